package server

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// Profile is a server version. Its features follow from the wire version.
type Profile struct {
	Name    string // "8.0"
	Version [3]int
	Wire    int // maxWireVersion
}

// profiles are the supported versions, oldest first. 4.9 is the development version of the recordings.
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

// feature is a feature of the wire versions from since to before until; until 0 means no limit.
type feature struct{ since, until int }

// The features. See also embedded/internal/fault/errorcodes.txt for names of error codes, params.go for parameters, and
// embedded/internal/commands/fields.txt for fields of commands.
var (
	helloCommand    = feature{since: 9}            // hello in addition to isMaster
	offersHello     = feature{since: 13}           // isMaster replies helloOk
	offersHello44   = feature{since: 9, until: 12} // the same; 4.9 does not, according to recordings
	topologyVersion = feature{since: 9}            // in hello and errors; awaitable and streaming hello
	errorLabels     = feature{since: fault.LabelsSince}
	timesEntered    = feature{since: 9}  // getParameter reports the number of hits of a fail point
	stableAPI       = feature{since: 12} // apiVersion, apiStrict, apiDeprecationErrors
	// messages for clients with helloOk contain "primary", not "master"
	primaryMessages = feature{since: 12}
	// an error instead of a closed connection for a command without $db
	answersNoDatabase = feature{since: 13}
	// buildEnvironment in buildInfo; 4.9 has none, according to recordings
	namesCompiler = feature{since: 13}
	// closes the connection after a message that is not compressed in an OP_COMPRESSED
	refusesNoop    = feature{since: 13}
	queryCommands  = feature{until: lastLegacy + 1} // every command in an OP_QUERY
	loadBalancing  = feature{since: 13}             // mongos
	mongosMessages = feature{since: 17}             // mongos reports unknown commands like mongod
	codeMechanism  = feature{since: 13}             // MechanismUnavailable instead of BadValue
	namesDelay     = feature{since: 13}             // secondaryDelaySecs, before slaveDelay
	codeNoOption   = feature{since: 14}             // an error code for getParameter of an unknown parameter
	apiAdvice      = feature{since: 17}             // errors about apiStrict say where to read about it
	codeNegative   = feature{since: 17}             // a specific error code for a negative maxTimeMS
	// the ingress connection limiter (parameters of the manual: 7.0.20, 8.0.12, 8.2)
	connectionLimiter = feature{since: 21}
	overload          = feature{since: fault.OverloadSince} // the label SystemOverloadedError; the ingress rate limiters
	// rejected requests: NoWritesPerformed; a parameter controls RetryableError
	limiterLabels = feature{since: 29}
	tagsAsW       = feature{since: 17} // a write concern may have tags
	concernFirst  = feature{since: 13} // writeConcernError precedes ok
)

func (p Profile) has(f feature) bool { return p.Wire >= f.since && (f.until == 0 || p.Wire < f.until) }

// HasLoadBalancing reports whether a mongos of the version supports load balancers.
func (p Profile) HasLoadBalancing() bool { return p.has(loadBalancing) }

func (x *exchange) has(f feature) bool { return x.conn.server.cluster.Profile.has(f) }

// DefaultProfile is the default version.
const DefaultProfile = "8.0"

// Profiles lists the names of the versions, oldest first.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return names
}

// ProfileNamed returns a version by its name; "" means the default.
func ProfileNamed(name string) (Profile, error) {
	i := slices.Index(Profiles(), cmp.Or(name, DefaultProfile))
	if i < 0 {
		return Profile{}, fmt.Errorf("unknown server version %q: supported versions are %v", name, Profiles())
	}
	return profiles[i], nil
}

// Text returns the full version, such as "4.9.0".
func (p Profile) Text() string { return commands.VersionText(p.Version) }
