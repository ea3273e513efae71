package reference

import (
	"errors"
	"net"
	"runtime"
	"strings"
)

// A check that times out clears the pool and interrupts what is in use (Server
// Discovery and Monitoring, "Network error when reading or writing": Clear a
// pool with interruptInUseConnections on a monitor's time-out). The topology
// forgives the first time-out: it checks again at once, and clears the pool if
// that check fails as well. So the dialer fails the second check, at once, with
// the error of the first.

// late is a check that timed out.
type late struct {
	err      error
	repeated bool // the second check has failed for it
}

// timedOut notes the error of a monitor's read, if it is a time-out.
func (s *sockets) timedOut(address string, err error) {
	var network net.Error
	if !errors.As(err, &network) || !network.Timeout() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[address] = &late{err: err}
}

// again gives the error for which a monitor must not connect yet, once.
func (s *sockets) again(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.late[address]
	if l == nil || l.repeated {
		return nil
	}
	l.repeated = true
	return repeated{l.err}
}

// checks hears that a check of a server begins. It gives false if that is one
// which only repeats the failure of the last.
func (s *sockets) checks(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.late[address]; l != nil && !l.repeated {
		return false
	}
	delete(s.late, address)
	return true
}

// repeated is the error of a check that was none.
type repeated struct{ error }

func (r repeated) Unwrap() error { return r.error }

// monitorDials tells that a dialer was called for the monitor of a server. The
// topology gives all connections the same dialer, and nothing in their contexts
// tells them apart.
func monitorDials() bool {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "topology.(*Server).setupHeartbeatConnection") {
			return true
		}
		if !more {
			return false
		}
	}
}
