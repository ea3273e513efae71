package main

import (
	"fmt"
	"slices"
)

// Client is a client entity of a suite. Beside those of its list each suite has
// the client setup, which sets the fail points, so that the pools of the others
// are untouched.
type Client struct {
	ID      string
	Options string // flow YAML of uriOptions, without braces
	Many    bool   // useMultipleMongoses
	Observe []string
	// Ignore are commands without events, nil for those that clean up.
	Ignore []string
}

// Ignored are the commands without events.
func (c Client) Ignored() []string {
	if c.Ignore == nil {
		return []string{"killCursors", "abortTransaction"}
	}
	return c.Ignore
}

// Observed is a client with options whose commands are seen, and other events.
func Observed(id, options string, events ...string) Client {
	return Client{ID: id, Options: options, Observe: append(events, "commandStartedEvent", "commandSucceededEvent", "commandFailedEvent")}
}

// Watched is a client whose commands are seen, abortTransaction as well.
func Watched(id, options string) Client {
	c := Observed(id, options)
	c.Ignore = []string{"killCursors"}
	return c
}

// AllMongoses is a client of several mongoses whose discovery is seen. Before
// a test asks what the client makes of several, it has to know them:
// MongosesKnown.
func AllMongoses(id, options string) Client {
	return Client{ID: id, Options: options, Many: true, Observe: []string{"serverDescriptionChangedEvent"}}
}

// WatchedMongoses is a client of several mongoses whose commands are seen as
// well.
func WatchedMongoses() Client {
	c := Watched("client", "")
	c.Many, c.Observe = true, append([]string{"serverDescriptionChangedEvent"}, c.Observe...)
	return c
}

// MongosesKnown waits until a client of AllMongoses knows two: one that knows a
// single mongos when it retries has no other to go to.
func MongosesKnown(client string) string {
	return Special("waitForEvent", "client: "+client+", event: { serverDescriptionChangedEvent: { newDescription: { type: Mongos } } }, count: 2")
}

// Suffix distinguishes the entities of clients; those of the client named
// "client" have no suffix.
func Suffix(client string) string {
	if client == "client" {
		return ""
	}
	return "-" + client
}

// Objects are the entities below a client that operations are called on, with
// what each needs to be there before it.
func Objects(database, client string, kinds ...string) []string {
	s := Suffix(client)
	entities := []struct{ kind, entity string }{
		{"admin", fmt.Sprintf("database: { id: admin%s, client: %s, databaseName: admin }", s, client)},
		{"database", fmt.Sprintf("database: { id: database%s, client: %s, databaseName: %s }", s, client, database)},
		{"collection", fmt.Sprintf("collection: { id: collection%s, database: database%s, collectionName: %s }", s, s, Collection)},
		{"bucket", fmt.Sprintf("bucket: { id: bucket%s, database: database%s }", s, s)},
	}
	if slices.Contains(kinds, "collection") || slices.Contains(kinds, "bucket") {
		kinds = append(slices.Clone(kinds), "database")
	}
	var out []string
	for _, e := range entities {
		if slices.Contains(kinds, e.kind) {
			out = append(out, e.entity)
		}
	}
	return out
}

// Session is an entity for an explicit session.
func Session(client string) string {
	return fmt.Sprintf("session: { id: session%s, client: %s }", Suffix(client), client)
}

// OnSession calls an operation of the client's session.
func OnSession(name, client string) string {
	return "{ name: " + name + ", object: session" + Suffix(client) + " }"
}

// Begin begins a transaction of a client's session with an operation.
func Begin(o Operation, client string) []string {
	return []string{OnSession("startTransaction", client), o.Call(client, InSession(client), "")}
}

// InSession is the argument of an operation in the client's session.
func InSession(client string) string { return "session: session" + Suffix(client) }

// Ping makes a client discover its deployment and open a connection.
func Ping(client string) string {
	return fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", Suffix(client))
}

// Pinged are the events of Ping.
func Pinged(database string) []string {
	return []string{StartedEvent("{ ping: 1 }", "ping", database), SucceededEvent("ping")}
}

// Stale makes a client with maxIdleTimeMS of less than 50 ms discover its
// deployment, so that its next operation needs a new connection.
func Stale(client string) []string { return []string{Ping(client), Wait(50)} }

// Wait lets time pass.
func Wait(ms int) string { return Special("wait", fmt.Sprintf("ms: %d", ms)) }

// Special is a special test operation.
func Special(name, arguments string) string {
	return "{ name: " + name + ", object: testRunner, arguments: { " + arguments + " } }"
}
