// Package selection is for utr only. It implements server selection as pure functions of a topology description, a read
// preference and a list of deprioritized servers. It does no I/O, reads no clock and draws no random numbers, so that
// every rule of the Server Selection and Max Staleness specifications can be tested with a table.
//
// The caller monitors the topology and waits for a suitable server. All functions may be called concurrently and
// never modify their arguments.
package selection

import "time"

// TopologyType is a topology type of Server Discovery and Monitoring.
type TopologyType string

// The topology types.
const (
	Unknown               TopologyType = "Unknown"
	Single                TopologyType = "Single"
	ReplicaSetNoPrimary   TopologyType = "ReplicaSetNoPrimary"
	ReplicaSetWithPrimary TopologyType = "ReplicaSetWithPrimary"
	Sharded               TopologyType = "Sharded"
	LoadBalanced          TopologyType = "LoadBalanced"
)

var topologyTypes = []TopologyType{Unknown, Single, ReplicaSetNoPrimary, ReplicaSetWithPrimary, Sharded, LoadBalanced}

// ServerType is a server type of Server Discovery and Monitoring.
type ServerType string

// The server types.
const (
	UnknownServer   ServerType = "Unknown"
	PossiblePrimary ServerType = "PossiblePrimary"
	Standalone      ServerType = "Standalone"
	Mongos          ServerType = "Mongos"
	RSPrimary       ServerType = "RSPrimary"
	RSSecondary     ServerType = "RSSecondary"
	RSArbiter       ServerType = "RSArbiter"
	RSOther         ServerType = "RSOther"
	RSGhost         ServerType = "RSGhost"
	LoadBalancer    ServerType = "LoadBalancer"
)

var serverTypes = []ServerType{UnknownServer, PossiblePrimary, Standalone, Mongos, RSPrimary, RSSecondary,
	RSArbiter, RSOther,
	RSGhost, LoadBalancer}

// Topology is a topology description: a client's view of a deployment at one moment.
type Topology struct {
	Type    TopologyType
	Servers []Server
}

// Server is a server description.
type Server struct {
	Address string
	Type    ServerType
	// RTT is the average round trip time of hello.
	RTT  time.Duration
	Tags map[string]string
	// LastWrite is lastWrite.lastWriteDate of the server's hello response. LastUpdate is when the client received
	// that response, on the client's clock.
	LastWrite  time.Time
	LastUpdate time.Time
}

// Available reports whether the server is known to be reachable (Server Selection, "Terms").
func (s Server) Available() bool {
	return s.Type != UnknownServer && s.Type != PossiblePrimary && s.Type != ""
}
