// Package selection is server selection as a pure function: from a picture of
// the topology, a read preference and the servers that an operation wants to
// keep away from, to the servers that it may be sent to. It does no I/O, reads
// no clock and draws no random numbers, so that every rule of the Server
// Selection and Max Staleness specifications can be checked by a table.
//
// Waiting for a suitable server, and watching the topology, are the caller's.
// All functions may be called concurrently; none changes its arguments.
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

var serverTypes = []ServerType{UnknownServer, PossiblePrimary, Standalone, Mongos, RSPrimary, RSSecondary, RSArbiter, RSOther,
	RSGhost, LoadBalancer}

// Topology is what a client believes of a deployment at one moment.
type Topology struct {
	Type    TopologyType
	Servers []Server
}

// Server is what a client believes of one server.
type Server struct {
	Address string
	Type    ServerType
	// RTT is the average round trip time of hello.
	RTT  time.Duration
	Tags map[string]string
	// LastWrite is lastWrite.lastWriteDate of the server's hello response;
	// LastUpdate is when the client got that response, by its own clock.
	LastWrite  time.Time
	LastUpdate time.Time
}

// Available reports whether the server is believed to be reachable and able
// to answer (Server Selection, "Terms").
func (s Server) Available() bool {
	return s.Type != UnknownServer && s.Type != PossiblePrimary && s.Type != ""
}
