package server

import "fmt"

// Profile is a server version: its numbers, and what tells it from others. The
// rest follows from the wire version.
type Profile struct {
	Name    string // "8.0"
	Version [3]int
	Wire    int // maxWireVersion

	// Hello: the command hello exists beside isMaster. HelloOk: isMaster says so.
	Hello, HelloOk bool
	// Legacy: the opcodes before OP_MSG are served, not only hello in OP_QUERY.
	Legacy bool
	// Primary: error messages say primary, but to clients that have not said
	// helloOk; older servers say master to all.
	Primary bool
	// Via: failCommand's message begins "Failing command via".
	Via bool
}

// profiles are the versions that there are, in order. 4.9 is the development
// version that the recordings come from.
var profiles = []Profile{
	{Name: "4.2", Version: [3]int{4, 2, 25}, Wire: 8, Legacy: true},
	{Name: "4.4", Version: [3]int{4, 4, 29}, Wire: 9, Legacy: true, Hello: true, HelloOk: true},
	{Name: "4.9", Version: [3]int{4, 9, 0}, Wire: 12, Legacy: true, Hello: true, Primary: true},
	{Name: "5.0", Version: [3]int{5, 0, 31}, Wire: 13, Legacy: true, Hello: true, HelloOk: true, Primary: true, Via: true},
	{Name: "6.0", Version: [3]int{6, 0, 25}, Wire: 17, Hello: true, HelloOk: true, Primary: true, Via: true},
	{Name: "7.0", Version: [3]int{7, 0, 22}, Wire: 21, Hello: true, HelloOk: true, Primary: true, Via: true},
	{Name: "8.0", Version: [3]int{8, 0, 12}, Wire: 25, Hello: true, HelloOk: true, Primary: true, Via: true},
	{Name: "8.2", Version: [3]int{8, 2, 1}, Wire: 27, Hello: true, HelloOk: true, Primary: true, Via: true},
	{Name: "9.0", Version: [3]int{9, 0, 0}, Wire: 29, Hello: true, HelloOk: true, Primary: true, Via: true},
}

// DefaultProfile is the version that a deployment has if no one says which.
const DefaultProfile = "8.0"

// Profiles lists the names of the versions, oldest first.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return names
}

// ProfileNamed finds a version. "" is the default.
func ProfileNamed(name string) (Profile, error) {
	if name == "" {
		name = DefaultProfile
	}
	for _, p := range profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("server version %q: there are %v", name, Profiles())
}

// Text is "4.9.0".
func (p Profile) Text() string {
	return fmt.Sprintf("%d.%d.%d", p.Version[0], p.Version[1], p.Version[2])
}

// Wire versions that brought something.
const (
	wire44 = 9  // topologyVersion and streaming hello, RetryableWriteError, ResumableChangeStreamError
	wire49 = 12 // the stable API
	wire50 = 13
	wire60 = 17
	wire80 = 25
	wire82 = 27 // SystemOverloadedError, the ingress rate limiters
	wire90 = 29 // baseBackoffMS
)

// LoadBalancerWire is the wire version from which mongoses serve behind load
// balancers.
const LoadBalancerWire = wire50
