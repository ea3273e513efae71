package server

import (
	"fmt"
)

// Profile is a server version. How it differs from others follows from the wire
// version.
type Profile struct {
	Name    string // "8.0"
	Version [3]int
	Wire    int // maxWireVersion
}

// profiles are the versions that there are, in order. 4.9 is the development
// version that the recordings come from.
var profiles = []Profile{
	{Name: "4.2", Version: [3]int{4, 2, 25}, Wire: 8},
	{Name: "4.4", Version: [3]int{4, 4, 29}, Wire: 9},
	{Name: "4.9", Version: [3]int{4, 9, 0}, Wire: 12},
	{Name: "5.0", Version: [3]int{5, 0, 31}, Wire: 13},
	{Name: "6.0", Version: [3]int{6, 0, 25}, Wire: 17},
	{Name: "7.0", Version: [3]int{7, 0, 22}, Wire: 21},
	{Name: "8.0", Version: [3]int{8, 0, 12}, Wire: 25},
	{Name: "8.2", Version: [3]int{8, 2, 1}, Wire: 27},
	{Name: "9.0", Version: [3]int{9, 0, 0}, Wire: 29},
}

// feature is something that versions have since a wire version, and until before
// another, or for good if that is 0.
type feature struct{ since, until int }

// The features. Names of error codes are in embedded/command/errorcodes.txt, parameters in params.go,
// fields of commands in embedded/data/versions.go.
var (
	helloCommand    = feature{since: 9}            // hello beside isMaster
	offersHello     = feature{since: 13}           // isMaster says that hello exists
	offersHello44   = feature{since: 9, until: 12} // the same; 4.9 does not, as recordings show
	topologyVersion = feature{since: 9}            // in hello and errors; hello waits for changes, and streams
	errorLabels     = feature{since: 9}            // from the server, and of fail points
	timesEntered    = feature{since: 9}            // getParameter counts how often a fail point struck
	stableAPI       = feature{since: 12}           // apiVersion, apiStrict, apiDeprecationErrors
	saysPrimary     = feature{since: 12}           // messages say primary, no longer master, to clients that said helloOk
	failsVia        = feature{since: 13}           // failCommand's message begins "Failing command via"
	loadBalancing   = feature{since: 13}           // of mongoses
	mongosWords     = feature{since: 13}           // of mongoses about unknown commands are those of mongod
	codeMechanism   = feature{since: 13}           // an unknown mechanism has an error code of its own
	codeNoOption    = feature{since: 13}           // so has getParameter of an unknown parameter
	noWrites        = feature{since: 17}           // the label NoWritesPerformed
	codeNegative    = feature{since: 17}           // a negative maxTimeMS has an error code of its own
	overload        = feature{since: 27}           // the label SystemOverloadedError; the ingress rate limiters
	limiterLabels   = feature{since: 29}           // of rejected requests: NoWritesPerformed, and RetryableError only if a parameter says so
)

func (p Profile) has(f feature) bool { return p.Wire >= f.since && (f.until == 0 || p.Wire < f.until) }

// HasLoadBalancing reports whether mongoses serve behind load balancers.
func (p Profile) HasLoadBalancing() bool { return p.has(loadBalancing) }

// has reports whether the server's version has a feature.
func (x *exchange) has(f feature) bool { return x.conn.server.cluster.Profile.has(f) }

// DefaultProfile is the version that a deployment has if none is named.
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
