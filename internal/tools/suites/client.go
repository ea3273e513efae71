package main

import "slices"

// client is a client entity of a suite. Each suite also has the client setup. It sets the fail points, so that they do
// not affect the pools of the others.
type client struct {
	ID      string
	Options value // uriOptions
	Many    bool  // useMultipleMongoses
	Observe []string
	Traced  value    // observeTracingMessages; such a client observes no events
	Ignore  []string // ignoreCommandMonitoringEvents; nil for killCursors and abortTransaction
}

func (c client) value() value {
	v := doc("id", c.ID, "useMultipleMongoses", c.Many)
	if c.Options != nil && len(c.Options.Content) > 0 {
		v = merge(v, doc("uriOptions", c.Options))
	}
	if c.Traced != nil {
		return block(doc("client", block(merge(v, doc("observeTracingMessages", c.Traced)))))
	}
	ignore := c.Ignore
	if ignore == nil {
		ignore = []string{"killCursors", "abortTransaction"}
	}
	v = merge(v, doc("observeEvents", list(c.Observe...), "ignoreCommandMonitoringEvents", list(ignore...)))
	return block(doc("client", block(v)))
}

// observed returns a client that observes commands and other events.
func observed(id string, options value, events ...string) client {
	return client{ID: id, Options: options,
		Observe: append(events, "commandStartedEvent", "commandSucceededEvent", "commandFailedEvent")}
}

// watched returns a client that observes commands including abortTransaction.
func watched(id string, options value) client {
	c := observed(id, options)
	c.Ignore = []string{"killCursors"}
	return c
}

// quiet are the options of a client whose monitors send no hello during a test, so that a fail point for
// hello only affects the connections of its pool.
var quiet = doc("heartbeatFrequencyMS", 600000, "serverMonitoringMode", "poll")

// idling returns a client that also observes check-outs. maxIdleTimeMS closes the connection that discovered the
// deployment, so that the next operation needs a new one. The appName restricts fail points for hello to this client.
func idling(id, app string, options value, events ...string) client {
	return observed(id, merge(options, doc("appName", app+id, "maxIdleTimeMS", 10), quiet),
		append([]string{"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent"}, events...)...)
}

// allMongoses returns a client of several mongoses that observes their discovery, for mongosesKnown.
func allMongoses(id string, options value) client {
	return client{ID: id, Options: options, Many: true, Observe: []string{"serverDescriptionChangedEvent"}}
}

// watchedMongoses returns a client of allMongoses that also observes commands.
func watchedMongoses() client {
	c := watched("client", nil)
	c.Many, c.Observe = true, append([]string{"serverDescriptionChangedEvent"}, c.Observe...)
	return c
}

// mongosesKnown waits until a client of allMongoses has discovered two mongoses. With only one, it could not retry on
// another.
func mongosesKnown(client string) value {
	return runnerOperation("waitForEvent", "client", client,
		"event", flow("{ serverDescriptionChangedEvent: { newDescription: { type: Mongos } } }"), "count", 2)
}

// suffix returns the suffix of the names of a client's entities, "" for the client named "client".
func suffix(client string) string {
	if client == "client" {
		return ""
	}
	return "-" + client
}

// objectEntities returns entities below a client, with those they depend on.
func objectEntities(database, client string, kinds ...string) (out []value) {
	s := suffix(client)
	if slices.Contains(kinds, "collection") || slices.Contains(kinds, "bucket") {
		kinds = append(slices.Clone(kinds), "database")
	}
	for _, e := range []struct {
		kind   string
		entity value
	}{
		{"admin", doc("database", doc("id", "admin"+s, "client", client, "databaseName", "admin"))},
		{"database", doc("database", doc("id", "database"+s, "client", client, "databaseName", database))},
		{"collection", doc("collection", doc("id", "collection"+s, "database", "database"+s, "collectionName", collection))},
		{"bucket", doc("bucket", doc("id", "bucket"+s, "database", "database"+s,
			"bucketOptions", doc("bucketName", collection)))},
	} {
		if slices.Contains(kinds, e.kind) {
			out = append(out, block(e.entity))
		}
	}
	return out
}

// sessionEntity returns the session of a client.
func sessionEntity(client string) value {
	return block(doc("session", doc("id", "session"+suffix(client), "client", client)))
}

// threadEntity returns a thread.
func threadEntity(id string) value { return block(doc("thread", doc("id", id))) }

// onSession returns an operation of the client's session.
func onSession(name, client string) value {
	return doc("name", name, "object", "session"+suffix(client))
}

// begin returns operations that begin a transaction of a client's session. The first operation in it is o.
func begin(o operation, client string) []value {
	return []value{onSession("startTransaction", client), o.call(client, inSession(client), nil)}
}

// inSession returns the session argument of an operation.
func inSession(client string) value { return doc("session", "session"+suffix(client)) }

// runCommand returns an operation that runs a command, with further arguments.
func runCommand(object, name string, command, arguments value) value {
	return doc("name", "runCommand", "object", object,
		"arguments", merge(doc("commandName", name, "command", command), arguments))
}

// ping returns an operation that makes a client discover its deployment and open a connection.
func ping(client string) value { return pingWith(client, nil) }

// pingWith is ping with further arguments.
func pingWith(client string, arguments value) value {
	return runCommand("database"+suffix(client), "ping", doc("ping", 1), arguments)
}

// pinged returns the events of ping.
func pinged(database string) []value {
	return []value{startedEvent(doc("ping", 1), "ping", database), succeededEvent("ping")}
}

// stale makes a client discover its deployment and, if its maxIdleTimeMS is less than 50, require a new
// connection for the next operation.
func stale(client string) []value { return []value{ping(client), wait(50)} }

func wait(ms int) value { return runnerOperation("wait", "ms", ms) }

// runnerOperation returns an operation of the test runner with names and values of its arguments.
func runnerOperation(name string, arguments ...any) value {
	return doc("name", name, "object", "testRunner", "arguments", doc(arguments...))
}
