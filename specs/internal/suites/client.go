package suites

import (
	"fmt"
	"slices"
)

// Client is a client entity of a suite.
type Client struct {
	ID      string
	Options string // flow YAML of uriOptions
	Many    bool   // useMultipleMongoses
	Observe []string
	// Ignore are commands without events, nil for those that clean up.
	Ignore []string
}

func (c Client) ignored() []string {
	if c.Ignore == nil {
		return []string{"killCursors", "abortTransaction"}
	}
	return c.Ignore
}

// CommandEvents are the events of commands.
func CommandEvents() []string {
	return []string{"commandStartedEvent", "commandSucceededEvent", "commandFailedEvent"}
}

// SetupClient sets the fail points: a client of its own, so that the pools of
// the others are untouched.
func SetupClient() Client { return Client{ID: "setup"} }

// PlainClient is the client of most tests.
func PlainClient() Client { return Observed("client", "") }

// Observed is a client with options whose commands are seen.
func Observed(id, options string) Client {
	return Client{ID: id, Options: options, Observe: CommandEvents()}
}

// AllMongoses is a client of several mongoses whose discovery is seen. Before
// a test asks what the client makes of several, it has to know them:
// MongosesKnown.
func AllMongoses(id, options string) Client {
	return Client{ID: id, Options: options, Many: true, Observe: []string{"serverDescriptionChangedEvent"}}
}

// MongosesKnown waits until a client of AllMongoses knows two: one that knows a
// single mongos when it retries has no other to go to.
func MongosesKnown(client string) string {
	return "{ name: waitForEvent, object: testRunner, arguments: { client: " + client +
		", event: { serverDescriptionChangedEvent: { newDescription: { type: Mongos } } }, count: 2 } }"
}

// Suffix tells the entities of clients apart: those of the plain one have none.
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
	below := slices.Contains(kinds, "collection") || slices.Contains(kinds, "bucket")
	var out []string
	for _, o := range []struct {
		needed bool
		entity string
	}{
		{slices.Contains(kinds, "admin"), fmt.Sprintf("database: { id: admin%s, client: %s, databaseName: admin }", s, client)},
		{slices.Contains(kinds, "database") || below, fmt.Sprintf("database: { id: database%s, client: %s, databaseName: %s }", s, client, database)},
		{slices.Contains(kinds, "collection"), fmt.Sprintf("collection: { id: collection%s, database: database%s, collectionName: %s }", s, s, Collection)},
		{slices.Contains(kinds, "bucket"), fmt.Sprintf("bucket: { id: bucket%s, database: database%s }", s, s)},
	} {
		if o.needed {
			out = append(out, o.entity)
		}
	}
	return out
}

// Session is an entity for an explicit session.
func Session(client string) string {
	return fmt.Sprintf("session: { id: session%s, client: %s }", Suffix(client), client)
}

// Ping makes a client discover its deployment and open a connection.
func Ping(client string) string {
	return fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", Suffix(client))
}

// PingEvents are the events of Ping.
func PingEvents(database string) []string {
	return []string{StartedEvent("{ ping: 1 }", "ping", database), SucceededEvent("ping")}
}

// Stale makes a client with maxIdleTimeMS of less than 50 ms discover its
// deployment, so that its next operation needs a new connection.
func Stale(client string) []string {
	return []string{Ping(client), "{ name: wait, object: testRunner, arguments: { ms: 50 } }"}
}
