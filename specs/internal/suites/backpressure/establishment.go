package backpressure

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// establishment breaks the hello of new connections, which drivers take for an
// overloaded server (Connection Monitoring and Pooling, "Backpressure-enabled").
// As in the suites of handshakes, the only connection is idle for too long, and
// appName keeps the fail point to one client.
func establishment() *suites.File {
	const app = "utrEstablishment"
	client := func(id, options string) suites.Client {
		return suites.Observed(id, options+"appName: "+app+id+", maxIdleTimeMS: 10, "+suites.Quiet,
			"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent", "poolClearedEvent")
	}
	f := suites.NewFile("establishment", "connections that cannot be established", suites.Servers("4.4.7", ""),
		"A network error in the hello of a new connection has the labels of a retryable overload error: every command is retried for it, up to",
		"the limit, and the pool is not cleared. No command was sent then: pool events show the attempts.")
	f.Clients = []suites.Client{client("client", ""), client("none", "maxAdaptiveRetries: 0, "),
		client("off", "retryReads: false, retryWrites: false, ")}
	fails := func(by, says, mode string, failing int, succeeds bool) story {
		s := story{Says: says, By: by, Before: suites.Stale(by), Points: []string{suites.FailHello(app+by, mode)}, Seen: suites.Pinged(databaseName),
			Pool: append([]string{suites.CheckOut}, slices.Repeat([]string{suites.CheckOut, suites.CheckOutFailed}, failing)...)}
		if succeeds {
			s.Pool, s.Attempts = append(s.Pool, suites.CheckOut), 1
		} else {
			s.Raises = suites.WithLabels(suites.RaisedNetwork, both, "")
		}
		return s
	}
	tell(f, []string{"collection.find", "collection.updateMany", "collection.deleteMany", "collection.createIndex", "database.runCommand with find"},
		fails("client", "is retried twice after network errors in hello (B1)", suites.Times(2), 2, true),
		fails("client", "is retried no more than twice after network errors in hello (B4)", suites.Always, 3, false),
		fails("off", "is not retried after a network error in hello with retryReads and retryWrites false (B3)", suites.Times(1), 1, false))
	f.Tell(named("collection.updateMany"),
		fails("none", "is not retried after a network error in hello with maxAdaptiveRetries 0 (B4)", suites.Times(1), 1, false))
	return f
}

// authentication breaks what comes after hello, which is not a sign of overload.
func authentication() *suites.File {
	f := suites.NewFile("authentication", "connections that cannot be authenticated", "",
		"A network error in authentication has none of the labels: commands that other policies do not retry are attempted once. No command",
		"was sent then.")
	f.Clients = []suites.Client{suites.Observed("client", "maxIdleTimeMS: 10")}
	f.Require = suites.Authenticated("4.4", suites.Monitored)
	tell(f, []string{"collection.updateMany", "collection.createIndex", "database.runCommand with find"},
		story{Says: "is not retried after a network error in saslContinue (R34)", Before: suites.Stale("client"),
			Points: []string{suites.FailPoint("saslContinue", suites.Times(1), suites.Closes)},
			Raises: suites.WithLabels(suites.RaisedNetwork, "", both), Seen: suites.Pinged(databaseName)})
	return f
}
