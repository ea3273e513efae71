package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/result"
)

// observation defines which events of a client are observed ("client").
type observation struct {
	client *source.Value
	after  int64 // last event before the pools were populated ("awaitMinPoolSizeMS")
}

// lists reports whether an option of the client, a list, contains a name.
func (o *observation) lists(option, name string) bool {
	return slices.ContainsFunc(o.client.Get(option).Elements(), func(v *source.Value) bool { return v.Text() == name })
}

// filter returns the observed events. The end of a command is sensitive if its start is.
func (o *observation) filter(log []result.Event) []result.Event {
	var seen []result.Event
	redacted := make(map[int64]bool) // by request
	for _, e := range log {
		if name := e.CommandName; name != "" {
			empty := e.Type != result.CommandFailed && len(e.Body) <= 5
			secret := e.Redacted || wire.Sensitive(name) || redacted[e.RequestID] || wire.IsHello(name) && empty
			if e.Type == result.CommandStarted {
				redacted[e.RequestID] = secret
			}
			if name == "configureFailPoint" || o.lists("ignoreCommandMonitoringEvents", name) ||
				secret && !o.client.Get("observeSensitiveCommands").IsTrue() {
				continue
			}
		}
		if e.Sequence > o.after && o.lists("observeEvents", string(e.Type)) {
			seen = append(seen, e)
		}
	}
	return seen
}

func (t *testRun) observation(client string) *observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observations[client]
}

func (t *testRun) log(ctx context.Context, client string) ([]result.Event, error) {
	return t.logWaiting(ctx, client, 0, 0)
}

// logWaiting returns all events of a client so far, even with an error. It waits
// for an event with a sequence number greater than after, at most for wait.
func (t *testRun) logWaiting(ctx context.Context, client string, after int64,
	wait time.Duration) ([]result.Event, error) {
	t.mu.Lock()
	known := t.logs[client]
	t.mu.Unlock()
	last := lastSequence(known)
	if last > after {
		wait = 0
	}
	events, err := guarded(ctx, "reading the events of "+client, func(ctx context.Context) ([]result.Event, error) {
		return t.engine.Events(ctx, client, last, wait)
	})
	if err != nil {
		return known, fmt.Errorf("reading the events of %s: %w", client, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Another thread may have read the same events.
	t.logs[client] = slices.Grow(t.logs[client], len(events))
	for _, e := range events {
		if e.Sequence > lastSequence(t.logs[client]) {
			t.logs[client] = append(t.logs[client], e)
		}
	}
	return t.logs[client], nil
}

func lastSequence(log []result.Event) int64 {
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Sequence
}

func (t *testRun) observed(ctx context.Context, client string) ([]result.Event, error) {
	log, err := t.log(ctx, client)
	return t.observation(client).filter(log), err
}
