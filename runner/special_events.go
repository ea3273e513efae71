package runner

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// waitForEvent waits for matching events, including earlier ones ("waitForEvent").
func waitForEvent(ctx context.Context, t *testRun, c call) *fault {
	client, want := c.text("client"), c.number("count")
	ctx, cancel := limited(ctx, waitLimit, "the limit for waitForEvent")
	defer cancel()
	for after, wait := int64(0), time.Duration(0); ; wait = waitLimit {
		var log []result.Event
		var err error
		t.whileWaiting(func() { log, err = t.logWaiting(ctx, client, after, wait) })
		if err != nil && ctx.Err() == nil {
			return broken(err)
		}
		got, f := t.count(ctx, c, log)
		switch {
		case f != nil:
			return f
		case int64(got) >= want:
			return nil
		}
		if f := ended(ctx, c.path, c.op.Position, fmt.Sprintf("%s of type %s on %s, got %d",
			plural.Of(int(want), "event"), c.value("event").Fields[0].Key, client, got)); f != nil {
			return f
		}
		after = lastSequence(log)
	}
}

// count counts the events that match the argument "event". It rejects an event that the client does not observe,
// because the count would always be 0.
func (t *testRun) count(ctx context.Context, c call, log []result.Event) (int, *fault) {
	path, event := c.path+".arguments.event", c.value("event")
	observed := t.observation(c.text("client"))
	if field := event.Fields[0]; !observed.lists("observeEvents", field.Key) {
		return 0, failf(path, field.KeyPosition,
			"%s does not observe %s: it is not in the client's observeEvents", c.text("client"), field.Key)
	}
	n, mismatches := t.matcher(ctx).Count(path, event, observed.filter(log))
	return n, failed(mismatches)
}

// assertEventCount asserts the number of matching events ("assertEventCount").
func assertEventCount(ctx context.Context, t *testRun, c call) *fault {
	log, err := t.log(ctx, c.text("client"))
	if err != nil {
		return broken(err)
	}
	got, f := t.count(ctx, c, log)
	if f != nil {
		return f
	}
	return c.equal("count", strconv.Itoa(got), "the number of matching events on "+c.text("client"))
}

// assertCheckedOut counts CMAP events, observed or not ("client", "assertNumberConnectionsCheckedOut").
func assertCheckedOut(ctx context.Context, t *testRun, c call) *fault {
	log, err := t.log(ctx, c.text("client"))
	if err != nil {
		return broken(err)
	}
	got := 0
	for _, e := range log {
		switch e.Type {
		case result.ConnectionCheckedOut:
			got++
		case result.ConnectionCheckedIn:
			got--
		}
	}
	return c.equal("connections", strconv.Itoa(got), "the number of connections checked out by "+c.text("client"))
}

// assertLSIDs compares the lsids of the last two commands
// ("assertSameLsidOnLastTwoCommands", "assertDifferentLsidOnLastTwoCommands").
func assertLSIDs(ctx context.Context, t *testRun, c call) *fault {
	events, err := t.observed(ctx, c.text("client"))
	if err != nil {
		return broken(err)
	}
	var started []result.Event
	for _, e := range events {
		if e.Type == result.CommandStarted {
			started = append(started, e)
		}
	}
	if len(started) < 2 {
		return c.failf("%s has observed %s, but two are required", c.text("client"),
			plural.Of(len(started), "commandStartedEvent"))
	}
	var lsids [2]bson.Raw
	for i, e := range started[len(started)-2:] {
		var ok bool
		if lsids[i], ok = e.Body.Lookup("lsid").DocumentOK(); !ok {
			return c.failf("command %s has no lsid", e.CommandName)
		}
	}
	if bytes.Equal(lsids[0], lsids[1]) == c.want {
		return nil
	}
	are, want := "the same", "any except "+lsids[0].String()
	if c.want {
		are, want = "different", lsids[0].String()
	}
	f := c.failf("the lsids of the last two commands are %s", are)
	f.mismatches[0].Want, f.mismatches[0].Got = want, lsids[1].String()
	return f
}
