package driver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// eventLog is the ordered log of one client. An event gets its number as it
// is added, under one lock. The driver calls its monitors where things
// happen, so that the numbers give the order of command, CMAP and SDAM events
// together.
type eventLog struct {
	now func() time.Time

	mu     sync.Mutex
	events []result.Event // numbered from 1
	more   chan struct{}  // closed and replaced with each event
}

func newEventLog(now func() time.Time) *eventLog {
	return &eventLog{now: now, more: make(chan struct{})}
}

func (l *eventLog) add(e result.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time, e.Sequence = l.now(), int64(len(l.events))+1
	l.events = append(l.events, e)
	close(l.more)
	l.more = make(chan struct{})
}

// after gives the events with a greater number; if there are none it waits up
// to wait for one.
func (l *eventLog) after(ctx context.Context, n int64, wait time.Duration) ([]result.Event, error) {
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	for {
		l.mu.Lock()
		found, more := slices.Clone(l.events[min(max(n, 0), int64(len(l.events))):]), l.more
		l.mu.Unlock()
		if len(found) > 0 || wait <= 0 {
			return found, nil
		}
		select {
		case <-more:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// latest gives the last event that a function accepts.
func (l *eventLog) latest(is func(result.Event) bool) (result.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.events) {
		if is(e) {
			return e, true
		}
	}
	return result.Event{}, false
}
