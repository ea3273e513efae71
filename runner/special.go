package runner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// special is a row of the table of special test operations: the arguments
// that it takes, and what it does with them.
type special struct {
	arguments []argument
	run       func(context.Context, *testRun, call) *fault
}

// argument is a parameter of a special operation.
type argument struct {
	name     string
	kind     source.Kind
	optional bool
	entity   entities.Kind // for the name of an entity: its kind
}

// call is one use of a special operation, its arguments checked.
type call struct {
	path string
	op   specs.Operation
}

func (c call) value(name string) *source.Value { return c.op.Arguments.Get(name) }
func (c call) text(name string) string         { return textOf(c.value(name)) }
func (c call) number(name string) int64        { n, _ := whole(c.value(name)); return n }
func (c call) milliseconds(name string) time.Duration {
	return time.Duration(c.number(name)) * time.Millisecond
}

// failf makes the fault of an assertion that does not hold.
func (c call) failf(format string, args ...any) *fault {
	return failf(c.path, c.op.Position, "%s: %s", c.op.Name, fmt.Sprintf(format, args...))
}

// patience is how long waitForEvent, waitForThread and waitForPrimaryChange
// wait by the format.
const patience = 10 * time.Second

// refused are operations that the format once had, with what to say of them.
var refused = map[string]string{
	"loop": "the loop operation is not supported: it is deprecated, and made for tests of Atlas that end by a signal",
}

// specials makes the table ("Special Test Operations").
func specials() map[string]special {
	text := func(name string) argument { return argument{name: name, kind: source.String} }
	number := func(name string) argument { return argument{name: name, kind: source.Int} }
	document := func(name string) argument { return argument{name: name, kind: source.Document} }
	named := func(name string, kind entities.Kind) argument {
		return argument{name: name, kind: source.String, entity: kind}
	}
	optional := func(a argument) argument { a.optional = true; return a }
	client := named("client", entities.Client)
	session := named("session", entities.Session)
	return map[string]special{
		// Suites of Transactions name a session here, to no effect.
		"failPoint":         {[]argument{client, document("failPoint"), optional(session)}, setFailPoint},
		"targetedFailPoint": {[]argument{session, document("failPoint")}, targetFailPoint},

		"createEntities": {[]argument{{name: "entities", kind: source.Array}}, createEntities},

		"runOnThread":   {[]argument{named("thread", entities.ThreadKind), document("operation")}, runOnThread},
		"waitForThread": {[]argument{named("thread", entities.ThreadKind)}, waitForThread},
		"wait":          {[]argument{number("ms")}, wait},

		"waitForEvent":                         {[]argument{client, document("event"), number("count")}, waitForEvent},
		"assertEventCount":                     {[]argument{client, document("event"), number("count")}, assertEventCount},
		"assertNumberConnectionsCheckedOut":    {[]argument{client, number("connections")}, assertCheckedOut},
		"assertSameLsidOnLastTwoCommands":      {[]argument{client}, assertLSIDs(true)},
		"assertDifferentLsidOnLastTwoCommands": {[]argument{client}, assertLSIDs(false)},

		"assertSessionTransactionState": {[]argument{session, text("state")}, assertTransactionState},
		"assertSessionPinned":           {[]argument{session}, assertPinned(true)},
		"assertSessionUnpinned":         {[]argument{session}, assertPinned(false)},
		"assertSessionDirty":            {[]argument{session}, assertDirty(true)},
		"assertSessionNotDirty":         {[]argument{session}, assertDirty(false)},

		"assertCollectionExists":    {[]argument{text("databaseName"), text("collectionName")}, assertCollection(true)},
		"assertCollectionNotExists": {[]argument{text("databaseName"), text("collectionName")}, assertCollection(false)},
		"assertIndexExists":         {[]argument{text("databaseName"), text("collectionName"), text("indexName")}, assertIndex(true)},
		"assertIndexNotExists":      {[]argument{text("databaseName"), text("collectionName"), text("indexName")}, assertIndex(false)},

		"recordTopologyDescription": {[]argument{client, text("id")}, recordTopology},
		"assertTopologyType":        {[]argument{named("topologyDescription", entities.Topology), text("topologyType")}, assertTopologyType},
		"waitForPrimaryChange": {[]argument{client, named("priorTopologyDescription", entities.Topology),
			optional(number("timeoutMS"))}, waitForPrimaryChange},
	}
}

// special executes an operation on testRunner.
func (t *testRun) special(ctx context.Context, path string, op specs.Operation) *fault {
	if why, old := refused[op.Name]; old {
		return failf(path+".name", op.Position, "%s", why)
	}
	row, known := t.run.specials[op.Name]
	if !known {
		return failf(path+".name", op.Position, "undefined operation: the test runner has no operation %q", op.Name)
	}
	if f := t.check(path, op, row.arguments); f != nil {
		return f
	}
	return row.run(ctx, t, call{path, op})
}

// check holds the arguments against the row: names, types, entities.
func (t *testRun) check(path string, op specs.Operation, row []argument) *fault {
	var all fault
	note := func(f *fault) { all.mismatches = append(all.mismatches, f.mismatches...) }
	if op.Arguments != nil {
		for _, f := range op.Arguments.Fields {
			if !slices.ContainsFunc(row, func(a argument) bool { return a.name == f.Key }) {
				note(failf(path+".arguments."+f.Key, f.KeyPosition, "unsupported argument: %s does not take %q", op.Name, f.Key))
			}
		}
	}
	for _, a := range row {
		v := op.Arguments.Get(a.name)
		switch {
		case v == nil && !a.optional:
			note(failf(path+".arguments", op.Position, "missing argument: %s needs %q", op.Name, a.name))
		case v == nil:
		case a.kind == source.Int && !isCount(v):
			note(failf(path+".arguments."+a.name, v.Position, "%s of %s has to be an integer that is not negative, not %s", a.name, op.Name, literal(v)))
		case v.Kind != a.kind && a.kind != source.Int:
			note(failf(path+".arguments."+a.name, v.Position, "%s of %s has to be of type %s, not %s", a.name, op.Name, a.kind, v.Kind))
		case a.entity != "":
			if err := t.entities.Demand(v.String, a.entity); err != nil {
				note(failf(path+".arguments."+a.name, v.Position, "%s", err))
			}
		}
	}
	if f := placeholderIn(path+".arguments", op.Arguments); f != nil && op.Name != "createEntities" {
		note(f)
	}
	return failed(all.mismatches)
}

// whole gives an integer, written plainly or as Extended JSON.
func whole(v *source.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	rv, err := v.BSON()
	if err != nil {
		return 0, false
	}
	if f, ok := rv.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	if rv.Type != bson.TypeInt32 && rv.Type != bson.TypeInt64 {
		return 0, false
	}
	return rv.AsInt64(), true
}

// isCount reports whether a value is an integer that is not negative.
func isCount(v *source.Value) bool {
	n, ok := whole(v)
	return ok && n >= 0
}

// wait sleeps ("wait").
func wait(ctx context.Context, t *testRun, c call) *fault {
	_ = t.sleep(ctx, c.milliseconds("ms")) // its error is the context's
	return ended(ctx, c.path, c.op.Position, fmt.Sprintf("wait of %s", c.milliseconds("ms")))
}

// createEntities makes entities in the middle of a test ("createEntities").
// What is malformed in them is among the test's flaws.
func createEntities(ctx context.Context, t *testRun, c call) *fault {
	return t.create(ctx, c.path+".arguments.entities", parseEntities(c.value("entities")))
}

// runOnThread gives an operation to a thread ("runOnThread").
func runOnThread(ctx context.Context, t *testRun, c call) *fault {
	thread, err := t.entities.Thread(c.text("thread"))
	if err != nil {
		return c.failf("%s", err)
	}
	op := specs.DecodeOperation(c.value("operation"))
	path := c.path + ".arguments.operation"
	if op.Object == testRunner {
		return failf(path+".object", op.Position, "a thread runs operations of entities, not special test operations")
	}
	err = thread.Do(func() {
		f := protect("an operation of thread "+c.text("thread"), func() *fault {
			_, f := t.perform(ctx, path, op)
			return f
		})
		if f != nil {
			t.add(f)
		}
	})
	if err != nil {
		return c.failf("%s: %s", c.text("thread"), err)
	}
	return nil
}

// waitForThread waits for a thread's operations to end ("waitForThread").
// What went wrong in them is noted already.
func waitForThread(ctx context.Context, t *testRun, c call) *fault {
	thread, err := t.entities.Thread(c.text("thread"))
	if err != nil {
		return c.failf("%s", err)
	}
	thread.Stop()
	ctx, cancel := t.limited(ctx, patience, "waitForThread")
	defer cancel()
	t.whileWaiting(func() { _ = thread.Wait(ctx) })
	return ended(ctx, c.path, c.op.Position, "the operations of "+c.text("thread"))
}
