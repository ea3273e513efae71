// Package wire42 lets the Go driver's packages talk to servers of version 4.2,
// the oldest that the specifications have in view. The driver as released
// begins at 4.4, by two exported variables that name its range. Importing this
// package for its effect sets them, once, before anything connects; 4.2 speaks
// the same protocol, and what it lacks is decided by wire version elsewhere.
package wire42

import "go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

// minWireVersion is the maxWireVersion of MongoDB 4.2.
const minWireVersion = 8

func init() {
	topology.SupportedWireVersions.Min = minWireVersion
	topology.MinSupportedMongoDBVersion = "4.2"
}
