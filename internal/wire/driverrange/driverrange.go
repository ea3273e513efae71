// Package driverrange lowers the Go driver's minimum server version to 4.2, the oldest that the specifications
// cover. The released driver requires 4.4, through two exported variables. Importing this package sets them
// before anything connects. 4.2 speaks the same protocol; features it lacks are decided by wire version elsewhere.
package driverrange

import "go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

// minWireVersion is the maxWireVersion of MongoDB 4.2.
const minWireVersion = 8

func init() {
	topology.SupportedWireVersions.Min = minWireVersion
	topology.MinSupportedMongoDBVersion = "4.2"
}
