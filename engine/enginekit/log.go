package enginekit

import (
	"context"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/internal/net/shared"
	"github.com/unified-test-runner/utr/result"
)

// EventLog is the event log of one client. The driver calls its monitors synchronously, so the sequence numbers give
// the order of command, CMAP and SDAM events. Methods may be called concurrently.
type EventLog struct {
	now    func() time.Time
	state  shared.State
	events []result.Event // sequence numbers start at 1
}

// NewEventLog returns an empty log with a clock.
func NewEventLog(now func() time.Time) *EventLog { return &EventLog{now: now} }

// Add adds an event, and sets its time and sequence number.
func (l *EventLog) Add(e result.Event) {
	l.state.Update(func() {
		e.Time, e.Sequence = l.now(), int64(len(l.events))+1
		l.events = append(l.events, e)
	})
}

// After returns the events whose sequence number is greater than n. Without any,
// it waits up to wait for one (see engine.Test). The error is the context's.
func (l *EventLog) After(ctx context.Context, n int64, wait time.Duration) (found []result.Event, err error) {
	ready := func() bool {
		found = slices.Clone(l.events[min(max(n, 0), int64(len(l.events))):])
		return len(found) > 0 || wait <= 0
	}
	if !l.state.Await(ctx, wait, ready) {
		err = ctx.Err()
	}
	return found, err
}

// Reset removes all events. Sequence numbers start at 1 again.
func (l *EventLog) Reset() { l.state.Update(func() { l.events = nil }) }
