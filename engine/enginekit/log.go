package enginekit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// EventLog is the ordered log of one client. An event gets its number as it is
// added, under one lock. The driver calls its monitors where things happen, so
// that the numbers give the order of command, CMAP and SDAM events together. It
// may be used concurrently.
type EventLog struct {
	now func() time.Time

	mu     sync.Mutex
	events []result.Event // numbered from 1
	more   chan struct{}  // closed and replaced with each event
}

// NewEventLog makes an empty log. now is the clock of events.
func NewEventLog(now func() time.Time) *EventLog {
	return &EventLog{now: now, more: make(chan struct{})}
}

// Add writes an event, with its time and number.
func (l *EventLog) Add(e result.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time, e.Sequence = l.now(), int64(len(l.events))+1
	l.events = append(l.events, e)
	close(l.more)
	l.more = make(chan struct{})
}

// After gives the events with a greater number; if there are none it waits up
// to wait for one (see engine.Test). The error is the context's.
func (l *EventLog) After(ctx context.Context, n int64, wait time.Duration) ([]result.Event, error) {
	found, more := l.since(n)
	if len(found) > 0 || wait <= 0 {
		return found, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for len(found) == 0 {
		select {
		case <-more:
			found, more = l.since(n)
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return found, nil
}

// since gives the events with a greater number, and what reports the next one.
func (l *EventLog) since(n int64) ([]result.Event, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events[min(max(n, 0), int64(len(l.events))):]), l.more
}

// Latest gives the last event with a number greater than n that a function
// accepts.
func (l *EventLog) Latest(n int64, is func(result.Event) bool) (result.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.events) {
		if e.Sequence <= n {
			break
		}
		if is(e) {
			return e, true
		}
	}
	return result.Event{}, false
}

// Reset forgets the events so far. Numbers start again from 1.
func (l *EventLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = nil
}
