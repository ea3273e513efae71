package writes

import "github.com/unified-test-runner/utr/specs/internal/suites"

// neverRetried are the operations of "Unsupported Write Operations".
func neverRetried(operations []operation) *suites.File {
	f := suites.NewFile("never-retried", "operations that are never retried", retrying,
		"Writes of which a statement may change many documents, aggregations that write, generic commands and all other writes",
		"carry no transaction number and are attempted once, whatever the error.")
	f.Entities = suites.Objects(databaseName, "setup", "database")
	f.Empty = []string{written}
	unreachable, down, shutdown := suites.HostUnreachable, suites.PrimarySteppedDown, suites.ShutdownInProgress
	for _, o := range operations {
		empty := suites.Outcome{Collection: written}
		for _, e := range []struct{ says, data, raises, require string }{
			{"a network error", suites.Closes, suites.RaisedNetwork, special(o)},
			{"HostUnreachable with the label " + label, policy.Fails(unreachable), suites.RaisedCode(unreachable), labelling},
			{"PrimarySteppedDown with the label " + label, policy.Fails(down), suites.RaisedCode(down), labelling},
			{"ShutdownInProgress", suites.ErrorCode(shutdown), raisesPlain(shutdown), labelling},
			{"HostUnreachable of a server before 4.4", suites.ErrorCode(unreachable), raisesPlain(unreachable), before44},
			{"PrimarySteppedDown of a server before 4.4", suites.ErrorCode(down), raisesPlain(down), before44},
		} {
			f.Tell(o, story{Says: "is not retried after " + e.says + " (R34)", Require: e.require, Fails: e.data, Raises: e.raises, Attempts: 1,
				Outcome: append(o.Outcome(false), empty)})
		}
		if o.Wrote != nil {
			f.Tell(o, story{Says: "carries no transaction number (R6)", Require: special(o), Attempts: 1, Outcome: append(o.Outcome(true), empty)})
		}
	}
	return f
}

// unacknowledged checks writes that the server does not answer. The reply to a
// ping on the only connection shows that the server has read them.
func unacknowledged(operations []operation) *suites.File {
	f := suites.NewFile("unacknowledged", "write concern w: 0", retrying,
		"A write with w: 0 carries no transaction number and is sent once. A ping on the same connection, which is the",
		"only one, ends after the server has read the write.")
	f.Clients = []suites.Client{suites.Observed("client", "maxPoolSize: 1")}
	f.Objects = []string{"database"}
	f.Entities = []string{"collection: { id: collection, database: database, collectionName: " + suites.Collection +
		", collectionOptions: { writeConcern: { w: 0 } } }"}
	for _, o := range operations {
		with := ""
		switch o.Name {
		case "findOneAndUpdate", "findOneAndReplace", "findOneAndDelete":
			continue // the server answers them, and drivers differ
		case "clientBulkWrite":
			if o.Variant == "ordered" {
				continue // drivers refuse it
			}
			with = "writeConcern: { w: 0 }"
		}
		o.Result, o.Carries = "", "writeConcern: { w: 0 }, "+suites.Unnumbered
		ping, pinged := []string{suites.Ping("client")}, suites.Pinged(databaseName)
		f.Tell(o,
			story{Says: "is not retried with w: 0 (R6)", Require: labelling, Fails: policy.Fails(suites.HostUnreachable), With: with,
				After: ping, Seen: o.Attempts(1, 0, o.Carries), Then: pinged, Outcome: o.Outcome(false)},
			story{Says: "writes once with w: 0 (R6)", Require: onlySets, // a mongos may answer before the shard has written
				With: with, After: ping, Attempts: 1, Then: pinged})
	}
	return f
}

func standalone(operations []operation) *suites.File {
	f := suites.NewFile("standalone", "a standalone", suites.Servers("4.2", suites.Single),
		"A standalone has sessions and no retryable writes: a write carries no transaction number and is attempted once.")
	require := suites.Servers("4.2", suites.Single)
	for _, o := range operations {
		o.Carries = suites.Unnumbered
		f.Tell(o,
			story{Says: "carries no transaction number on a standalone (R6)", Require: require, Attempts: 1},
			story{Says: "is not retried on a standalone after a network error (W32)", Require: require,
				Fails: suites.Closes, Raises: suites.RaisedNetwork, Attempts: 1},
			story{Says: "is not retried on a standalone after ShutdownInProgress (W32)", Require: require,
				Fails: suites.ErrorCode(suites.ShutdownInProgress), Raises: suites.RaisedCode(suites.ShutdownInProgress), Attempts: 1},
			story{Says: "is not retried on a standalone after HostUnreachable with the label " + label + " (W32)",
				Require: suites.Servers("4.4", suites.Single),
				Fails:   policy.Fails(suites.HostUnreachable), Raises: suites.RaisedCode(suites.HostUnreachable), Attempts: 1})
	}
	return f
}
