package backpressure

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// establishment breaks the hello of new connections, which drivers take for an
// overloaded server (Connection Monitoring and Pooling, "Backpressure-enabled").
// As in the suites of handshakes, the only connection is idle for too long, and
// appName keeps the fail point to one client.
func establishment() *suites.File {
	const app = "utrEstablishment"
	events := append([]string{"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent", "poolClearedEvent"}, suites.CommandEvents()...)
	client := func(id, options string) suites.Client {
		return suites.Client{ID: id, Observe: events, Options: "{ " + options + "appName: " + app + id + ", maxIdleTimeMS: 10, " + suites.Quiet + " }"}
	}
	f := &suites.File{
		Name:        "establishment",
		Description: "client backpressure: connections that cannot be established",
		About: []string{"A network error in the hello of a new connection has the labels of a retryable overload error: every command is retried for it, up to",
			"the limit, and the pool is not cleared. No command was sent then: pool events show the attempts."},
		Least:   "1.10", // operation wait
		Require: []string{`{ minServerVersion: "4.4.7" }`},
		Clients: []suites.Client{suites.SetupClient(), client("client", ""), client("none", "maxAdaptiveRetries: 0, "),
			client("off", "retryReads: false, retryWrites: false, ")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	const started, failed = "{ connectionCheckOutStartedEvent: {} }", "{ connectionCheckOutFailedEvent: { reason: connectionError } }"
	raises := fmt.Sprintf("{ isClientError: true, errorLabelsContain: [ %s, %s ] }", overloaded, retryable)
	for _, title := range []string{"collection.find", "collection.updateMany", "collection.deleteMany", "collection.createIndex", "database.runCommand with find"} {
		o := named(title)
		for _, s := range []struct {
			says, rule, by, mode string
			failing              int
			raises               string
		}{
			{"is retried twice after network errors in hello", "B1", "client", suites.Times(2), 2, ""},
			{"is retried no more than twice after network errors in hello", "B4", "client", suites.Always, 3, raises},
			{"is not retried after a network error in hello with retryReads and retryWrites false", "B3", "off", suites.Times(1), 1, raises},
		} {
			pool := []string{started}
			for range s.failing {
				pool = append(pool, started, failed)
			}
			commands := suites.PingEvents(databaseName)
			if s.raises == "" {
				pool, commands = append(pool, started), append(commands, o.Attempts(1, 0, o.carries(s.by))...)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Operations: append(suites.Stale(s.by), suites.FailPoint("hello, isMaster", s.mode, "appName: "+app+s.by+", "+suites.Closes),
					o.Call(s.by, "", s.raises)),
				Events:  []suites.Expected{{Client: s.by, Events: commands}, {Client: s.by, EventType: "cmap", Events: pool}},
				Outcome: o.outcome(s.raises == ""),
			})
		}
	}
	o := named("collection.updateMany")
	f.Add(suites.Test{
		Description: o.Title() + " is not retried after a network error in hello with maxAdaptiveRetries 0 (B4)",
		Operations: append(suites.Stale("none"), suites.FailPoint("hello, isMaster", suites.Times(1), "appName: "+app+"none, "+suites.Closes),
			o.Call("none", "", raises)),
		Events: []suites.Expected{{Client: "none", Events: suites.PingEvents(databaseName)},
			{Client: "none", EventType: "cmap", Events: []string{started, started, failed}}},
		Outcome: o.outcome(false),
	})
	return f
}

// authentication breaks what comes after hello, which says nothing of overload.
func authentication() *suites.File {
	f := &suites.File{
		Name:        "authentication",
		Description: "client backpressure: connections that cannot be authenticated",
		About: []string{"A network error in authentication has none of the labels: commands that other policies do not retry are attempted once. No command",
			"was sent then."},
		Least: "1.10", // operation wait
		Require: []string{`{ minServerVersion: "4.4", auth: true, topologies: [ single, replicaset, sharded ] }`,
			`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`},
		Clients:  []suites.Client{suites.SetupClient(), suites.Observed("client", "{ maxIdleTimeMS: 10 }")},
		Entities: objects("client", "collection"),
	}
	for _, title := range []string{"collection.updateMany", "collection.createIndex", "database.runCommand with find"} {
		o := named(title)
		f.Add(suites.Test{
			Description: o.Title() + " is not retried after a network error in saslContinue (R34)",
			Operations: append(suites.Stale("client"), suites.FailPoint("saslContinue", suites.Times(1), suites.Closes),
				o.Call("client", "", fmt.Sprintf("{ isClientError: true, errorLabelsOmit: [ %s, %s ] }", overloaded, retryable))),
			Events:  []suites.Expected{{Client: "client", Events: suites.PingEvents(databaseName)}},
			Outcome: o.outcome(false),
		})
	}
	return f
}
