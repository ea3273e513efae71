package reference

import (
	"errors"
	"sync"
	"time"
)

// resting keeps monitors from checking again at once after a check was
// cancelled. They wait for the next heartbeat, or for an operation that needs a
// server (Server Monitoring, "Clients using the streaming protocol" and
// "requestCheck"). Left to themselves, those of the topology do not wait. Its
// methods may be called concurrently.
type resting struct {
	mu      sync.Mutex
	due     map[string]bool // addresses whose check was cancelled
	seekers int             // operations that wait for a server
	wake    chan struct{}   // closed and replaced with the first of them
	shut    chan struct{}   // closed with the client
	once    sync.Once
}

func newResting() resting {
	return resting{due: map[string]bool{}, wake: make(chan struct{}), shut: make(chan struct{})}
}

// cancel notes that the check of a server was cancelled for an error of
// another connection. One that is ended for the sake of an immediate one is
// followed by it.
func (s *sockets) cancel(address string, cause error) {
	s.mu.Lock()
	s.failed[address] = true
	s.mu.Unlock()
	if !errors.As(cause, new(checkNow)) {
		s.resting.mu.Lock()
		s.resting.due[address] = true
		s.resting.mu.Unlock()
	}
}

// rest is what a monitor does before it checks a server anew, if its last check
// was cancelled.
func (r *resting) rest(address string, interval time.Duration) {
	r.mu.Lock()
	due := r.due[address] && r.seekers == 0
	delete(r.due, address)
	wake := r.wake
	r.mu.Unlock()
	if !due {
		return
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-r.shut:
	}
}

// outlive has a monitor whose client is being closed wait until its pool is: the
// topology cancels the check first, for which the monitor would clear the pool.
func (s *sockets) outlive(address string) {
	select {
	case <-s.resting.shut:
	default:
		return
	}
	timer := time.NewTimer(noticing)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ended, changed := s.ended[address], s.changed
		s.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		}
	}
}

// end notes that a pool is closed.
func (s *sockets) end(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[address] = true
	s.tell()
}

// seek tells that an operation waits for a server, until found is called.
func (r *resting) seek() (found func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seekers++
	if r.seekers == 1 {
		close(r.wake)
		r.wake = make(chan struct{})
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seekers--
	}
}

// close ends all rest.
func (r *resting) close() { r.once.Do(func() { close(r.shut) }) }
