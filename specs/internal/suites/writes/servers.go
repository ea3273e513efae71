package writes

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

func otherMongos() *suites.File {
	const increase = "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"
	increased := []string{first, fmt.Sprintf("{ _id: 2, x: %d }", 22+suites.Rounds), third}
	always := func(arguments string) []string { return slices.Repeat([]string{arguments}, suites.Rounds) }
	numbers := func(format string) (out []string) {
		for n := range suites.Rounds {
			out = append(out, fmt.Sprintf(format, 10+n))
		}
		return out
	}
	inserted := append(suites.Initial(), numbers("{ _id: %d }")...)
	var rows []suites.OnMongoses
	for _, r := range []struct {
		o         operation
		arguments []string // of each round
		wrote     []string
	}{
		{named("insertOne"), numbers("{ document: { _id: %d } }"), inserted},
		{named("insertMany ordered"), numbers("{ documents: [ { _id: %d } ] }"), inserted},
		{named("updateOne"), always(increase), increased},
		{named("findOneAndUpdate"), always(increase), increased},
		{named("bulkWrite ordered"), always("{ requests: [ { updateOne: " + increase + " } ] }"), increased},
		{named("deleteOne"), always("{ filter: { _id: 3 } }"), []string{first, second}},
	} {
		row := suites.OnMongoses{Operation: r.o, Wrote: []suites.Outcome{{Collection: suites.Collection, Documents: r.wrote}}}
		for _, a := range r.arguments {
			o := r.o
			o.Arguments, o.Result = a, ""
			row.Rounds = append(row.Rounds, o)
		}
		rows = append(rows, row)
	}
	return policy.OtherMongos(suites.Servers("4.4", suites.Sharded), rows...)
}

// otherMongosForEnds lets go of the mongos of a transaction when its end fails.
// The session identifies the mongos, so that the test does not depend on chance.
func otherMongosForEnds() *suites.File {
	f := suites.NewFile("sharded-transactions", "the end of a transaction on another mongos", suites.Servers("4.4", suites.Sharded),
		"The session is unpinned before commit or abort is retried, and the retry goes to another mongos with the recovery token. The",
		"commit took effect, and the other mongos says so; an abort is unknown to it, where the mongos of the transaction would answer.")
	f.Clients = []suites.Client{suites.WatchedMongoses()}
	f.Sessions = true
	insert := named("insertOne")
	for _, r := range []struct {
		command, mode, data string
		failing             int // in the events
	}{
		{"commitTransaction", suites.Always, suites.LabelledConcern(label), 0},
		{"abortTransaction", suites.Times(1), policy.Fails(suites.HostUnreachable), 2},
	} {
		o := ending(r.command)
		o.Started = "{ " + r.command + `: 1, recoveryToken: { $$exists: true }, autocommit: false, txnNumber: { $numberLong: "1" } }`
		f.Tell(o, story{Says: "is retried on another mongos (R40)",
			Before: []string{suites.MongosesKnown("client"), suites.OnSession("startTransaction", "client"),
				insert.Call("client", "session: session", "")},
			Points: []string{suites.TargetedFailPoint(r.command, r.mode, r.data)},
			After:  []string{suites.Special("assertSessionUnpinned", "session: session")},
			Seen:   insert.Attempts(1, 0, inside), Then: o.Attempts(2, r.failing, "")})
	}
	return f
}
