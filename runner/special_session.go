package runner

import (
	"context"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/matchers"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// answerOf asks the engine about the session of a call.
func (t *testRun) answerOf(ctx context.Context, c call, question string) (bson.RawValue, *fault) {
	outcome, f := t.ask(ctx, c.path, c.op.Position, c.text("session"), question, nil)
	if f == nil && outcome.Err != nil {
		f = c.failf("%s", outcome.Err.Message)
	}
	return outcome.Value, f
}

// assertTransactionState ("assertSessionTransactionState").
func assertTransactionState(ctx context.Context, t *testRun, c call) *fault {
	v, f := t.answerOf(ctx, c, engine.OpTransactionState)
	if f != nil {
		return f
	}
	if state, ok := v.StringValueOK(); !ok || state != c.text("state") {
		return differ(c, c.value("state"), matchers.Extended(v, false), "the transaction state of %s", c.text("session"))
	}
	return nil
}

// assertPinned ("assertSessionPinned", "assertSessionUnpinned").
func assertPinned(want bool) special {
	return func(ctx context.Context, t *testRun, c call) *fault {
		address, f := t.pinned(ctx, c)
		if f != nil {
			return f
		}
		return c.expect(want, address != "", c.text("session")+" is pinned to "+address, c.text("session")+" is not pinned to a mongos")
	}
}

// pinned gives the address of the mongos that a session is pinned to, or "".
func (t *testRun) pinned(ctx context.Context, c call) (string, *fault) {
	v, f := t.answerOf(ctx, c, engine.OpPinnedServer)
	if f != nil {
		return "", f
	}
	address, ok := v.StringValueOK()
	if !ok && v.Type != bson.TypeNull && v.Type != 0 {
		return "", breakf("%s answered %s, which is neither an address nor null", engine.OpPinnedServer, matchers.Extended(v, false))
	}
	return address, nil
}

// assertDirty ("assertSessionDirty", "assertSessionNotDirty").
func assertDirty(want bool) special {
	return func(ctx context.Context, t *testRun, c call) *fault {
		v, f := t.answerOf(ctx, c, engine.OpDirty)
		if f != nil {
			return f
		}
		dirty, ok := v.BooleanOK()
		if !ok {
			return breakf("%s answered %s, which is not a boolean", engine.OpDirty, matchers.Extended(v, false))
		}
		return c.expect(want, dirty, c.text("session")+" is marked dirty", c.text("session")+" is not marked dirty")
	}
}

// setFailPoint sets a fail point through a client ("failPoint").
func setFailPoint(ctx context.Context, t *testRun, c call) *fault {
	command, name, f := failPointOf(c)
	if f != nil {
		return f
	}
	arguments, err := bson.Marshal(bson.D{{Key: "command", Value: command}})
	if err != nil {
		return c.failf("%s", err)
	}
	outcome, f := t.ask(ctx, c.path, c.op.Position, c.text("client"), engine.OpConfigureFailPoint, arguments)
	if outcome.Err == nil || outcome.Err.Client {
		// Even an answer that never arrived may have been that it is set.
		t.recordFailPoint(name, c.text("client"), outcome)
	}
	if f == nil && outcome.Err != nil {
		f = c.failf("the fail point %s could not be set: %s", name, outcome.Err.Message)
	}
	return f
}

// targetFailPoint sets a fail point on the mongos that a session is pinned to,
// through the runner's own client of that mongos ("targetedFailPoint").
func targetFailPoint(ctx context.Context, t *testRun, c call) *fault {
	command, name, f := failPointOf(c)
	if f != nil {
		return f
	}
	address, f := t.pinned(ctx, c)
	switch {
	case f != nil:
		return f
	case address == "":
		return c.failf("%s is not pinned to a mongos", c.text("session"))
	}
	t.locked(func() { t.failPoints = append(t.failPoints, failPoint{name: name, address: address}) })
	_, err := t.site.commands.at(ctx, address, "admin", command)
	if f := ended(ctx, c.path, c.op.Position, "the fail point to be set on "+address); f != nil {
		return f
	}
	if err != nil {
		return c.failf("the fail point %s could not be set on %s: %s", name, address, err)
	}
	return nil
}

// failPointOf gives a fail point of a test, which names itself: other tests are
// flawed.
func failPointOf(c call) (command bson.Raw, name string, f *fault) {
	v := c.value("failPoint")
	command, err := v.Raw()
	if err != nil {
		return nil, "", c.failf("%s", err)
	}
	return command, v.Get("configureFailPoint").Text(), nil
}
