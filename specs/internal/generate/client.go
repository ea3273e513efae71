package main

import (
	"fmt"
	"slices"
)

// Client is a client entity of a suite. Each suite also has the client setup, which sets the fail points
// so that they do not affect the pools of the others.
type Client struct {
	ID      string
	Options string // flow YAML of uriOptions, without braces
	Many    bool   // useMultipleMongoses
	Observe []string
	Ignore  []string // ignoreCommandMonitoringEvents; nil for killCursors and abortTransaction
}

// Observed returns a client that observes commands and other events.
func Observed(id, options string, events ...string) Client {
	return Client{ID: id, Options: options, Observe: append(events, "commandStartedEvent", "commandSucceededEvent", "commandFailedEvent")}
}

// Watched returns a client that observes commands including abortTransaction.
func Watched(id, options string) Client {
	c := Observed(id, options)
	c.Ignore = []string{"killCursors"}
	return c
}

// Idling returns a client that also observes check-outs. maxIdleTimeMS closes the connection that discovered the
// deployment, so that the next operation needs a new one. The appName restricts fail points for hello to this client.
func Idling(id, app, options string, events ...string) Client {
	return Observed(id, options+"appName: "+app+id+", maxIdleTimeMS: 10, "+Quiet,
		append([]string{"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent"}, events...)...)
}

// AllMongoses returns a client of several mongoses that observes their discovery, for MongosesKnown.
func AllMongoses(id, options string) Client {
	return Client{ID: id, Options: options, Many: true, Observe: []string{"serverDescriptionChangedEvent"}}
}

// WatchedMongoses returns a client of AllMongoses that also observes commands.
func WatchedMongoses() Client {
	c := Watched("client", "")
	c.Many, c.Observe = true, append([]string{"serverDescriptionChangedEvent"}, c.Observe...)
	return c
}

// MongosesKnown waits until a client of AllMongoses knows two mongoses. With only one it could not retry on another.
func MongosesKnown(client string) string {
	return Special("waitForEvent", "client: "+client+", event: { serverDescriptionChangedEvent: { newDescription: { type: Mongos } } }, count: 2")
}

// Suffix returns the suffix of the names of a client's entities, "" for the client named "client".
func Suffix(client string) string {
	if client == "client" {
		return ""
	}
	return "-" + client
}

// Objects returns entities below a client, with those they depend on.
func Objects(database, client string, kinds ...string) (out []string) {
	s := Suffix(client)
	if slices.Contains(kinds, "collection") || slices.Contains(kinds, "bucket") {
		kinds = append(slices.Clone(kinds), "database")
	}
	for _, e := range []struct{ kind, entity string }{
		{"admin", fmt.Sprintf("database: { id: admin%s, client: %s, databaseName: admin }", s, client)},
		{"database", fmt.Sprintf("database: { id: database%s, client: %s, databaseName: %s }", s, client, database)},
		{"collection", fmt.Sprintf("collection: { id: collection%s, database: database%s, collectionName: %s }", s, s, Collection)},
		{"bucket", fmt.Sprintf("bucket: { id: bucket%s, database: database%s }", s, s)},
	} {
		if slices.Contains(kinds, e.kind) {
			out = append(out, e.entity)
		}
	}
	return out
}

// Session returns a session entity.
func Session(client string) string {
	return fmt.Sprintf("session: { id: session%s, client: %s }", Suffix(client), client)
}

// OnSession returns an operation of the client's session.
func OnSession(name, client string) string {
	return "{ name: " + name + ", object: session" + Suffix(client) + " }"
}

// Begin returns operations that begin a transaction of a client's session, with o as the first.
func Begin(o Operation, client string) []string {
	return []string{OnSession("startTransaction", client), o.Call(client, InSession(client), "")}
}

// InSession returns the session argument of an operation.
func InSession(client string) string { return "session: session" + Suffix(client) }

// Ping returns an operation that makes a client discover its deployment and open a connection.
func Ping(client string) string {
	return fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", Suffix(client))
}

// Pinged returns the events of Ping.
func Pinged(database string) []string {
	return []string{StartedEvent("{ ping: 1 }", "ping", database), SucceededEvent("ping")}
}

// Stale makes a client discover its deployment and, if its maxIdleTimeMS is less than 50, require a new
// connection for the next operation.
func Stale(client string) []string { return []string{Ping(client), Wait(50)} }

func Wait(ms int) string { return Special("wait", fmt.Sprintf("ms: %d", ms)) }

// Special returns a special test operation.
func Special(name, arguments string) string {
	return "{ name: " + name + ", object: testRunner, arguments: { " + arguments + " } }"
}
