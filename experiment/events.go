package experiment

import (
	"container/heap"
	"time"
)

// event is something that happens at a time. Events of the same time happen in
// the order in which they were planned.
type event struct {
	at    time.Duration
	order uint64
	kind  eventKind
	op    *operationRun // for those about an operation
	try   int           // the attempt that it is about
	ok    bool          // of a reply
}

type eventKind uint8

const (
	begins   eventKind = iota // the next operation
	arrives                   // a request at the server
	finished                  // what the server is busy with
	answered                  // a reply at the client
	rested                    // a backoff is over
	expires                   // the deadline of an operation
)

// agenda holds what is going to happen, as a heap (container/heap).
type agenda struct {
	events []event
	count  uint64
}

func (a *agenda) Len() int      { return len(a.events) }
func (a *agenda) Swap(i, j int) { a.events[i], a.events[j] = a.events[j], a.events[i] }

// Less makes the earliest event the first of the heap.
func (a *agenda) Less(i, j int) bool {
	e, f := &a.events[i], &a.events[j]
	return e.at < f.at || e.at == f.at && e.order < f.order
}

func (a *agenda) Push(e any) { a.events = append(a.events, e.(event)) }

func (a *agenda) Pop() any {
	last := len(a.events) - 1
	e := a.events[last]
	a.events[last] = event{} // let the operation be freed
	a.events = a.events[:last]
	return e
}

func (a *agenda) plan(e event) {
	e.order = a.count
	a.count++
	heap.Push(a, e)
}

// next removes the earliest event; ok is false without one.
func (a *agenda) next() (e event, ok bool) {
	if a.Len() == 0 {
		return event{}, false
	}
	return heap.Pop(a).(event), true
}
