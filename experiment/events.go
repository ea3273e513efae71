package experiment

import "time"

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

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// agenda holds what is going to happen, as a binary heap.
type agenda struct {
	heap  []event
	count uint64
}

func (a *agenda) plan(e event) {
	e.order = a.count
	a.count++
	a.heap = append(a.heap, e)
	for i := len(a.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.heap[i].before(&a.heap[parent]) {
			break
		}
		a.heap[i], a.heap[parent] = a.heap[parent], a.heap[i]
		i = parent
	}
}

// next removes the earliest event; ok is false without one.
func (a *agenda) next() (e event, ok bool) {
	if len(a.heap) == 0 {
		return event{}, false
	}
	e = a.heap[0]
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = event{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && a.heap[child+1].before(&a.heap[child]) {
			child++
		}
		if !a.heap[child].before(&a.heap[i]) {
			break
		}
		a.heap[child], a.heap[i] = a.heap[i], a.heap[child]
		i = child
	}
	return e, true
}
