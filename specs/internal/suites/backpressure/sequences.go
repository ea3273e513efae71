package backpressure

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// patient are options with which a client that backs off after every error
// runs out of time, but for one run in fifty, and one that does so after
// overload errors alone has time to spare.
const patient = "maxAdaptiveRetries: 8, timeoutMS: 3000"

// sequences are attempts that fail in different ways.
func sequences() *suites.File {
	f := &suites.File{
		Name:        "sequences",
		Description: "client backpressure: attempts that fail in different ways",
		About: []string{"Overload errors and others in one operation: what they do to the limit of retries, to the backoff, and to the error that is",
			"raised. Each attempt has a failure of its own, which needs a fail point of utr's embedded deployment."},
		Least:   "1.9",
		Require: []string{suites.Sequences(every)},
		Clients: []suites.Client{suites.SetupClient(), suites.PlainClient(), suites.Observed("timed", "{ timeoutMS: 20000 }"),
			suites.Observed("one", "{ maxAdaptiveRetries: 1 }"), suites.Observed("patient", "{ "+patient+" }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	unreachable, notFound := suites.Code{Number: 6, Name: "HostUnreachable"}, suites.Code{Number: 7, Name: "HostNotFound"}
	over, both := overload(), raised(overloaded, retryable)
	tell := func(o operation, by, says, rule string, attempts int, raises string, fails ...string) {
		failing := attempts
		if raises == "" {
			failing--
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s %s (%s)", o.Title(), says, rule),
			Operations:  []string{suites.Sequence(o.Command, fails...), o.Call(by, "", raises)},
			Events:      []suites.Expected{{Client: by, Events: o.Attempts(attempts, failing, o.carries(by))}},
			Outcome:     o.outcome(raises == ""),
		})
	}
	// Retryable by the other policies.
	for _, title := range []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.findOneAndUpdate"} {
		o := named(title)
		other, second := suites.Labelled(unreachable, writable), suites.Labelled(notFound, writable)
		tell(o, "client", "is retried twice after an overload error and HostUnreachable", "B2", 3, "", over, other)
		tell(o, "client", "is retried no more than twice after an overload error and HostUnreachable", "B2", 3, suites.RaisedLabels(unreachable, "", overloaded), over, other, other)
		tell(o, "client", "is retried twice after HostUnreachable and an overload error", "B2", 3, "", other, over)
		tell(o, "client", "is retried no more than twice after HostUnreachable and overload errors", "B2", 3, both, other, over, over)
		tell(o, "client", "is retried no more than twice after different errors with an overload error between them", "B2", 3, suites.RaisedLabels(notFound, "", overloaded), other, over, second)
		tell(o, "client", "is not retried again after HostUnreachable twice, though an overload error would follow", "R35", 2, suites.RaisedLabels(unreachable, "", overloaded), other, other, over)
		tell(o, "one", "is retried once after an overload error and HostUnreachable with maxAdaptiveRetries 1", "B2", 2, suites.RaisedLabels(unreachable, "", overloaded), over, other)
		tell(o, "timed", "is not retried after HostUnreachable three times and an overload error within timeoutMS", "B2", 4, both, other, other, other, over)
		tell(o, "timed", "is retried no more than twice within timeoutMS after an overload error and HostUnreachable", "B2", 3, suites.RaisedLabels(unreachable, "", overloaded), over, other, other)
		tell(o, "client", "is not retried after an overload error and one with "+overloaded+" alone", "R34", 2, raised(overloaded), over, suites.Labelled(limited, overloaded))
		rest := []string{over}
		for range 7 {
			rest = append(rest, other)
		}
		tell(o, "patient", "backs off after the overload error alone", "B6", 9, "", rest...)
	}
	// Retryable by client backpressure alone.
	for _, title := range []string{"collection.updateMany", "collection.deleteMany", "database.runCommand with ping"} {
		o := named(title)
		tell(o, "client", "is not retried after an overload error and HostUnreachable", "R34", 2, suites.RaisedLabels(unreachable, writable, overloaded),
			over, suites.Labelled(unreachable, writable))
		tell(o, "client", "is not retried after an overload error and a network error", "R34", 2, "{ isClientError: true, errorLabelsOmit: [ "+overloaded+" ] }",
			over, suites.Closes)
	}
	// Which error is raised: runCommand counts as a write.
	first, later := suites.Labelled(unreachable, overloaded, retryable), suites.Labelled(notFound, overloaded, retryable)
	quiet, quietLater := suites.Labelled(unreachable, overloaded, retryable, noWrites), suites.Labelled(notFound, overloaded, retryable, noWrites)
	for _, title := range []string{"collection.insertOne", "collection.updateMany", "database.runCommand with ping"} {
		o := named(title)
		tell(o, "client", "raises the last of different overload errors", "R20", 3, suites.RaisedLabels(notFound, overloaded, noWrites), first, later, later)
		tell(o, "client", "raises the first overload error if the others have the label "+noWrites, "R21", 3, suites.RaisedLabels(unreachable, overloaded, noWrites), first, quietLater, quietLater)
		tell(o, "client", "raises the overload error between two with the label "+noWrites, "R20", 3, suites.RaisedLabels(notFound, overloaded, noWrites), quiet, later, quiet)
		tell(o, "client", "raises the first overload error if all have the label "+noWrites, "R21", 3, suites.RaisedLabels(unreachable, overloaded+", "+noWrites, ""), quiet, quietLater, quietLater)
	}
	tell(named("collection.find"), "client", "raises the last overload error, though it has the label "+noWrites, "R20", 3,
		suites.RaisedLabels(notFound, overloaded+", "+noWrites, ""), first, first, quietLater)
	return f
}

// commitSequences are commits whose attempts fail in different ways.
func commitSequences() *suites.File {
	f := &suites.File{
		Name:        "commit-sequences",
		Description: "client backpressure: the write concern of commits that fail in different ways",
		About: []string{"A commit is sent with its own write concern as long as overload errors alone came before, and with w: majority ever after another",
			"error. Each attempt has a failure of its own, which needs a fail point of utr's embedded deployment."},
		Require:  []string{suites.Sequences(every)},
		Clients:  []suites.Client{suites.SetupClient(), watched()},
		Entities: append(objects("client", "collection"), suites.Session("client")),
	}
	insert := named("collection.insertOne")
	over, other := overload(), suites.Labelled(suites.Code{Number: 6, Name: "HostUnreachable"}, writable)
	both := suites.Labelled(suites.Code{Number: 6, Name: "HostUnreachable"}, overloaded, writable)
	const own = "writeConcern: { w: 1 }"
	const asked = "writeConcern: { w: majority, wtimeout: 10000 }"
	for _, r := range []struct {
		says, rule string
		fails      []string
		concerns   []string
	}{
		{"keeps its write concern after two overload errors", "B1", []string{over, over}, []string{own, own, own}},
		{"asks for majority after an overload error and HostUnreachable", "B1", []string{over, other}, []string{own, own, asked}},
		{"goes on to ask for majority after HostUnreachable and an overload error", "B1", []string{other, over}, []string{own, asked, asked}},
		{"asks for majority after an error with " + overloaded + " that is no retryable overload error", "W10", []string{both}, []string{own, asked}},
		{"asks for majority after a lost reply", "W10", []string{suites.LostReply}, []string{own, asked}},
	} {
		var events []string
		for i, c := range r.concerns {
			failing := 1
			if i == len(r.concerns)-1 {
				failing = 0
			}
			events = append(events, ending("commitTransaction", c).Attempts(1, failing, "")...)
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("commitTransaction %s (%s)", r.says, r.rule),
			Operations: []string{"{ name: startTransaction, object: session, arguments: { writeConcern: { w: 1 } } }",
				insert.Call("client", "session: session", ""), suites.Sequence("commitTransaction", r.fails...), onSession("commitTransaction", "")},
			Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), events)}},
			Outcome: insert.Outcome(true),
		})
	}
	return f
}
