package writes

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// neverRetried are the operations of "Unsupported Write Operations".
func neverRetried(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "never-retried",
		Description: "retryable writes: operations that are never retried",
		About: []string{"Writes of which a statement may change many documents, aggregations that write, generic commands and all other writes",
			"carry no transaction number and are attempted once, whatever the error."},
		Require:  []string{requirement(suites.Operation{})},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities: append(objects("client", "database", "collection"), objects("setup", "database")...),
		Empty:    []string{written},
	}
	for _, o := range operations {
		outcome := append(o.Outcome(false), suites.Outcome{Collection: written})
		for _, e := range []struct{ says, data, raises, require string }{
			{"a network error", suites.Closes, suites.RaisedNetwork, ""},
			{"HostUnreachable with the label " + label, suites.Labelled(coded("HostUnreachable"), label), suites.RaisedCode(coded("HostUnreachable")), since44(o, every)},
			{"PrimarySteppedDown with the label " + label, suites.Labelled(coded("PrimarySteppedDown"), label), suites.RaisedCode(coded("PrimarySteppedDown")), since44(o, every)},
			{"ShutdownInProgress", suites.ErrorCode(coded("ShutdownInProgress")), raisesPlain(coded("ShutdownInProgress")), since44(o, every)},
			{"HostUnreachable of a server before 4.4", suites.ErrorCode(coded("HostUnreachable")), raisesPlain(coded("HostUnreachable")), before44},
			{"PrimarySteppedDown of a server before 4.4", suites.ErrorCode(coded("PrimarySteppedDown")), raisesPlain(coded("PrimarySteppedDown")), before44},
		} {
			if e.require == before44 && o.Since != "" {
				continue
			}
			r := require(e.require)
			if r == nil {
				r = special(o)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s is not retried after %s (R34)", o.Title(), e.says),
				Require:     r,
				Operations:  append(slices.Clone(o.Before), suites.FailPoint(o.Command, suites.Times(1), e.data), o.Call("client", "", e.raises)),
				Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, 1, unmarked)}},
				Outcome:     outcome,
			})
		}
		if o.Wrote == nil {
			continue
		}
		f.Add(suites.Test{
			Description: o.Title() + " carries no transaction number (R6)",
			Require:     special(o),
			Operations:  []string{o.Call("client", "", "")},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, 0, unmarked)}},
			Outcome:     append(o.Outcome(true), suites.Outcome{Collection: written}),
		})
	}
	return f
}

// unacknowledged checks writes that the server does not answer. A ping on the
// only connection tells that the server has read them.
func unacknowledged(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "unacknowledged",
		Description: "retryable writes: write concern w: 0",
		About: []string{"A write with w: 0 carries no transaction number and is sent once. A ping on the same connection, which is the",
			"only one, ends after the server has read the write."},
		Require: []string{requirement(suites.Operation{})},
		Clients: []suites.Client{suites.SetupClient(), suites.Observed("client", "{ maxPoolSize: 1 }")},
		Entities: append(objects("client", "database"),
			"collection: { id: collection, database: database, collectionName: "+suites.Collection+", collectionOptions: { writeConcern: { w: 0 } } }"),
	}
	ping := suites.Operation{Object: "database", Name: "runCommand", Command: "ping", Database: databaseName,
		Arguments: "{ commandName: ping, command: { ping: 1 } }", Started: "{ ping: 1 }"}
	for _, o := range operations {
		extra, carries := "", "writeConcern: { w: 0 }, "+unmarked
		switch o.Name {
		case "findOneAndUpdate", "findOneAndReplace", "findOneAndDelete":
			continue // the server answers them, and drivers differ
		case "clientBulkWrite":
			if o.Variant == "ordered" {
				continue // drivers refuse it
			}
			extra = "writeConcern: { w: 0 }"
		}
		o.Result = ""
		f.Add(suites.Test{
			Description: o.Title() + " is not retried with w: 0 (R6)",
			Require:     []string{since44(o, every)},
			Operations: []string{suites.FailPoint(o.Command, suites.Times(1), suites.Labelled(coded("HostUnreachable"), label)),
				o.Call("client", extra, ""), ping.Call("client", "", "")},
			Events:  []suites.Expected{{Client: "client", Events: append(o.Attempts(1, 0, carries), ping.Attempts(1, 0, "")...)}},
			Outcome: o.Outcome(false),
		})
		f.Add(suites.Test{
			Description: o.Title() + " writes once with w: 0 (R6)",
			Require:     []string{onlySets(o)}, // a mongos may answer before the shard has written
			Operations:  []string{o.Call("client", extra, ""), ping.Call("client", "", "")},
			Events:      []suites.Expected{{Client: "client", Events: append(o.Attempts(1, 0, carries), ping.Attempts(1, 0, "")...)}},
			Outcome:     o.Outcome(true),
		})
	}
	return f
}

// standalone has no retryable writes.
func standalone(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "standalone",
		Description: "retryable writes: a standalone",
		About:       []string{"A standalone has sessions and no retryable writes: a write carries no transaction number and is attempted once."},
		Require:     []string{`{ minServerVersion: "4.2", topologies: [ single ] }`},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    objects("client", "collection"),
	}
	for _, o := range operations {
		single := func(version string) []string {
			return []string{fmt.Sprintf("{ minServerVersion: %q, topologies: [ single ] }", later(o, version))}
		}
		tell := func(says, rule, version, data, raises string, failing int) {
			t := suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), says, rule),
				Require:     single(version),
				Operations:  []string{o.Call("client", "", raises)},
				Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, failing, unmarked)}},
				Outcome:     o.Outcome(raises == ""),
			}
			if data != "" {
				t.Operations = append([]string{suites.FailPoint(o.Command, suites.Times(1), data)}, t.Operations...)
			}
			f.Add(t)
		}
		tell("carries no transaction number on a standalone", "R6", "4.2", "", "", 0)
		tell("is not retried on a standalone after a network error", "W32", "4.2", suites.Closes, suites.RaisedNetwork, 1)
		tell("is not retried on a standalone after ShutdownInProgress", "W32", "4.2", suites.ErrorCode(coded("ShutdownInProgress")), suites.RaisedCode(coded("ShutdownInProgress")), 1)
		tell("is not retried on a standalone after HostUnreachable with the label "+label, "W32", "4.4",
			suites.Labelled(coded("HostUnreachable"), label), suites.RaisedCode(coded("HostUnreachable")), 1)
	}
	return f
}
