package reference

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// eventLog is the ordered log of one client. Events get their number as they
// are added, under one lock, so that the order is that in which they happened.
type eventLog struct {
	now func() time.Time

	mu     sync.Mutex
	events []result.Event
	more   chan struct{} // closed and replaced with each event
}

func newEventLog(now func() time.Time) *eventLog {
	return &eventLog{now: now, more: make(chan struct{})}
}

func (l *eventLog) add(e result.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = l.now()
	e.Sequence = int64(len(l.events)) + 1
	l.events = append(l.events, e)
	close(l.more)
	l.more = make(chan struct{})
}

// after gives the events with a greater number; if there are none it waits up
// to wait for one.
func (l *eventLog) after(ctx context.Context, n int64, wait time.Duration) ([]result.Event, error) {
	var timeout <-chan time.Time
	for {
		l.mu.Lock()
		i := sort.Search(len(l.events), func(i int) bool { return l.events[i].Sequence > n })
		found := append([]result.Event(nil), l.events[i:]...)
		more := l.more
		l.mu.Unlock()
		if len(found) > 0 || wait <= 0 {
			return found, nil
		}
		if timeout == nil {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-more:
		case <-timeout:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// last is the number of the latest event.
func (l *eventLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.events))
}

// has says whether there is an event of a server with a greater number.
func (l *eventLog) has(n int64, kind result.EventType, address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.events) - 1; i >= 0 && l.events[i].Sequence > n; i-- {
		if l.events[i].Type == kind && l.events[i].Address == address {
			return true
		}
	}
	return false
}

// reset forgets the events so far. Numbers start again from 1.
func (l *eventLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = nil
}
