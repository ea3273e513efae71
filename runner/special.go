package runner

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/specs"
)

// testRunner is the object of special test operations.
const testRunner = "testRunner"

// special is a special test operation.
type special struct {
	do   func(context.Context, *testRun, call) *fault
	want bool // the expected answer, for an assertion with an opposite
}

// call is a call of a special test operation with validated arguments.
type call struct {
	path string
	op   specs.Operation
	want bool
}

func (c call) value(name string) *source.Value { return c.op.Arguments.Get(name) }
func (c call) text(name string) string         { return c.value(name).Text() }
func (c call) number(name string) int64        { n, _ := c.value(name).Integer(); return n }
func (c call) milliseconds(name string) time.Duration {
	return time.Duration(c.number(name)) * time.Millisecond
}

func (c call) failf(format string, args ...any) *fault {
	return failf(c.path, c.op.Position, "%s: %s", c.op.Name, fmt.Sprintf(format, args...))
}

// breakf returns a fault of the set-up. It says nothing about the driver.
func (c call) breakf(format string, args ...any) *fault {
	return breakf("%s: %s: %s", c.op.Position, c.op.Name, fmt.Sprintf(format, args...))
}

// expect returns a fault if a condition is not as asserted. Its message is yes if the condition holds, and no
// otherwise.
func (c call) expect(is bool, yes, no string) *fault {
	switch {
	case is == c.want:
		return nil
	case is:
		return c.failf("%s", yes)
	}
	return c.failf("%s", no)
}

// equal returns a fault if a value, as JSON, differs from an argument.
func (c call) equal(argument, got, what string) *fault {
	want := c.value(argument)
	text := want.JSON()
	if n, whole := want.Integer(); whole {
		text = strconv.FormatInt(n, 10)
	}
	if text == got {
		return nil
	}
	f := c.failf("%s differs", what)
	f.mismatches[0].Position = want.Position
	f.mismatches[0].Want, f.mismatches[0].Got = want.JSON(), got
	return f
}

// waitLimit is the time limit that the format sets for waitForEvent, waitForThread and waitForPrimaryChange.
const waitLimit = 10 * time.Second

// specials returns the special test operations ("Special Test Operations").
// Package operations defines their arguments.
func specials() map[string]special {
	return map[string]special{
		"failPoint":         {do: setFailPoint},
		"targetedFailPoint": {do: targetFailPoint},

		"createEntities": {do: createEntities},

		"runOnThread":   {do: runOnThread},
		"waitForThread": {do: waitForThread},
		"wait":          {do: wait},

		"waitForEvent":                         {do: waitForEvent},
		"assertEventCount":                     {do: assertEventCount},
		"assertNumberConnectionsCheckedOut":    {do: assertCheckedOut},
		"assertSameLsidOnLastTwoCommands":      {assertLSIDs, true},
		"assertDifferentLsidOnLastTwoCommands": {assertLSIDs, false},

		"assertSessionTransactionState": {do: assertTransactionState},
		"assertSessionPinned":           {assertPinned, true},
		"assertSessionUnpinned":         {assertPinned, false},
		"assertSessionDirty":            {assertDirty, true},
		"assertSessionNotDirty":         {assertDirty, false},

		"assertCollectionExists":    {assertCollection, true},
		"assertCollectionNotExists": {assertCollection, false},
		"assertIndexExists":         {assertIndex, true},
		"assertIndexNotExists":      {assertIndex, false},

		"recordTopologyDescription": {do: recordTopology},
		"assertTopologyType":        {do: assertTopologyType},
		"waitForPrimaryChange":      {do: waitForPrimaryChange},
	}
}

func wait(ctx context.Context, t *testRun, c call) *fault {
	t.whileWaiting(func() { _ = sleep(ctx, c.milliseconds("ms")) })
	return ended(ctx, c.path, c.op.Position, fmt.Sprintf("wait of %s", c.milliseconds("ms")))
}

func createEntities(ctx context.Context, t *testRun, c call) *fault {
	return t.create(ctx, c.path+".arguments.entities", specs.DecodeEntities(c.value("entities")))
}

// runOnThread queues an operation on a thread ("runOnThread").
func runOnThread(ctx context.Context, t *testRun, c call) *fault {
	thread, err := entities.Value[*entities.Queue](&t.entities, c.text("thread"), entities.Thread)
	if err != nil {
		return c.failf("%s", err)
	}
	op := specs.DecodeOperation(c.value("operation"))
	path := c.path + ".arguments.operation"
	if op.Object == testRunner {
		return failf(path+".object", op.Position, "a thread runs operations of entities, not special test operations")
	}
	err = thread.Do(func() {
		t.add(protect("an operation of thread "+c.text("thread"), func() *fault {
			_, f := t.perform(ctx, ctx, path, op)
			return f
		}))
	})
	if err != nil {
		return c.failf("%s: %s", c.text("thread"), err)
	}
	return nil
}

// waitForThread waits for the operations of a thread ("waitForThread").
func waitForThread(ctx context.Context, t *testRun, c call) *fault {
	return t.join(ctx, c.path, c.op.Position, c.text("thread"), "waitForThread")
}
