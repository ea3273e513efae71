package experiment

import (
	"slices"
	"time"
)

// request is an attempt that the server received.
type request struct {
	op  *operationRun
	try int
}

// verdict is the result of processing a request.
type verdict uint8

const (
	nothing verdict = iota // it was admitted and waits in the queue
	served
	rejected // with an overload error
)

// server is the model of a server: one processor, a door and a queue.
//
// It judges every request at the door. That takes processor time. Requests that the limiter admits and for which the
// queue has room wait to be served; it rejects all others. Judging has priority over serving. The server does not
// know deadlines, and serves requests that clients have abandoned.
type server struct {
	judging, serving time.Duration
	limit            int
	bucket           *bucket // nil: no limiter

	door, queue fifo[request]
	busy        bool
	current     request
	atDoor      bool // current is being judged, not served
}

func newServer(c *Config) *server {
	whole := time.Second / time.Duration(c.Capacity)
	s := &server{judging: whole * time.Duration(c.Rejection) / 100, limit: c.Queue}
	s.serving = whole - s.judging
	if c.Rate > 0 {
		s.bucket = &bucket{rate: float64(c.Rate), burst: float64(c.Burst), tokens: float64(c.Burst)}
	}
	return s
}

// arrive puts a request at the door.
func (s *server) arrive(r request) { s.door.push(r) }

// crash discards and returns all requests.
func (s *server) crash() []request {
	lost := slices.Concat(s.door, s.queue)
	if s.busy {
		lost = append(lost, s.current)
	}
	s.door, s.queue, s.busy = nil, nil, false
	return lost
}

// work starts processing the next request and returns the time that it takes. ok is
// false if the processor is busy or no request waits.
func (s *server) work() (takes time.Duration, ok bool) {
	if s.busy {
		return 0, false
	}
	if s.current, s.atDoor = s.door.pop(); s.atDoor {
		s.busy = true
		return s.judging, true
	}
	if s.current, s.busy = s.queue.pop(); s.busy {
		return s.serving, true
	}
	return 0, false
}

// finish ends the processing of the current request.
func (s *server) finish(now time.Duration) (request, verdict) {
	s.busy = false
	switch {
	case !s.atDoor:
		return s.current, served
	case len(s.queue) >= s.limit, s.bucket != nil && !s.bucket.take(now):
		return s.current, rejected
	}
	s.queue.push(s.current)
	return s.current, nothing
}

// bucket is the token bucket of a rate limiter.
type bucket struct {
	rate, burst, tokens float64
	at                  time.Duration
}

// take takes a token if one is available.
func (b *bucket) take(now time.Duration) bool {
	b.tokens = min(b.burst, b.tokens+b.rate*(now-b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// fifo is a queue.
type fifo[T any] []T

func (f *fifo[T]) push(one T) { *f = append(*f, one) }

// pop removes the first element. ok is false for an empty queue.
func (f *fifo[T]) pop() (first T, ok bool) {
	if len(*f) == 0 {
		return first, false
	}
	first, (*f)[0] = (*f)[0], first // release the operation
	*f = (*f)[1:]
	return first, true
}
