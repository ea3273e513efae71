package experiment

import (
	"container/heap"
	"time"
)

// event is a function to call at a time. Events at the same time happen in the order in which they were planned.
type event struct {
	at      time.Duration
	order   uint64
	happens func()
}

// agenda is the heap of future events and the current time.
type agenda struct {
	events []event
	count  uint64
	now    time.Duration
}

func (a *agenda) Len() int      { return len(a.events) }
func (a *agenda) Swap(i, j int) { a.events[i], a.events[j] = a.events[j], a.events[i] }

func (a *agenda) Less(i, j int) bool {
	e, f := &a.events[i], &a.events[j]
	return e.at < f.at || e.at == f.at && e.order < f.order
}

func (a *agenda) Push(e any) { a.events = append(a.events, e.(event)) }

func (a *agenda) Pop() any {
	last := len(a.events) - 1
	e := a.events[last]
	a.events[last] = event{} // release the operation
	a.events = a.events[:last]
	return e
}

// plan adds an event after a delay.
func (a *agenda) plan(after time.Duration, happens func()) {
	heap.Push(a, event{a.now + after, a.count, happens})
	a.count++
}

// next runs the earliest event.
func (a *agenda) next() {
	e := heap.Pop(a).(event)
	a.now = e.at
	e.happens()
}
