// Package entities has the entities of a test: their kinds, what contains what, and the entity map ("Entity Map" of the
// Unified Test Format). The runner keeps what tests name, and an engine the objects of its driver.
//
// Clients contain databases and sessions; databases contain collections and buckets. Operations create cursors, and
// closing goes the other way: cursors, then sessions, then clients. The other objects need not be closed.
package entities
