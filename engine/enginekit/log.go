package enginekit

import (
	"context"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// EventLog is the ordered log of one client. An event gets its number as it is
// added, under one lock. The driver calls its monitors where things happen, so
// that the numbers give the order of command, CMAP and SDAM events together. It
// may be used concurrently.
type EventLog struct {
	now    func() time.Time
	shared Shared
	events []result.Event // numbered from 1
}

// NewEventLog makes an empty log. now is the clock of events.
func NewEventLog(now func() time.Time) *EventLog { return &EventLog{now: now} }

// Add writes an event, with its time and number.
func (l *EventLog) Add(e result.Event) {
	l.shared.Update(func() {
		e.Time, e.Sequence = l.now(), int64(len(l.events))+1
		l.events = append(l.events, e)
	})
}

// After gives the events with a greater number; if there are none it waits up
// to wait for one (see engine.Test). The error is the context's.
func (l *EventLog) After(ctx context.Context, n int64, wait time.Duration) (found []result.Event, err error) {
	some := func() bool {
		found = slices.Clone(l.events[min(max(n, 0), int64(len(l.events))):])
		return len(found) > 0 || wait <= 0
	}
	if !l.shared.Await(ctx, wait, some) {
		err = ctx.Err()
	}
	return found, err
}

// Latest gives the last event of a type.
func (l *EventLog) Latest(of result.EventType) (last result.Event, found bool) {
	l.shared.Update(func() {
		for _, e := range slices.Backward(l.events) {
			if e.Type == of {
				last, found = e, true
				return
			}
		}
	})
	return last, found
}

// Reset forgets the events so far. Numbers start again from 1.
func (l *EventLog) Reset() { l.shared.Update(func() { l.events = nil }) }
