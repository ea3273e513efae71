package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/internal/farewell"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// sockets dials for one client, to two ends.
//
// Disconnecting must not wait for a server that is silent: the driver's
// monitor can miss that it is told to stop, and then reads its awaitable hello
// to the end (up to heartbeatFrequencyMS, 10 s by default).
//
// A heartbeat must not fall into the middle of the driver's handling of a
// network error. The driver marks the server Unknown, clears the pool, and
// then cancels the check that is under way. A reply that the monitor has read
// just before makes the server known again and starts the next check, which
// the cancellation then breaks: the pool is cleared a second time, under the
// retry. On a real network that is rare; with heartbeats every few
// milliseconds it is not. Replies to a monitor are therefore held back for a
// moment when another socket to the same server has failed. That changes when
// bytes arrive, never what they are.
type sockets struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu       sync.Mutex
	changed  sync.Cond
	open     map[*socket]bool
	monitors map[string]*socket   // by address: those that stream hello
	hold     map[string]time.Time // by address: until when heartbeats are held back
	shut     map[string]bool      // addresses whose pool is closed

	leaving farewell.Group
}

// How long a heartbeat is held back at most, how long a failing socket waits
// for the monitor to be out of the way, and how long a closing server may
// take.
const (
	holding  = 50 * time.Millisecond
	yielding = 50 * time.Millisecond
	closing  = 500 * time.Millisecond
)

func newSockets() *sockets {
	s := &sockets{dial: new(net.Dialer).DialContext, open: map[*socket]bool{}, monitors: map[string]*socket{}, hold: map[string]time.Time{}, shut: map[string]bool{}}
	s.changed.L = &s.mu
	return s
}

// DialContext implements options.ContextDialer.
func (s *sockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	k := &socket{Conn: s.leaving.Conn(c), owner: s, address: address}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut[address] {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.open[k] = true
	return k, nil
}

// poolClosed tells that the driver is closing everything that it has with a
// server, and only waits for its monitor now.
func (s *sockets) poolClosed(address string) {
	s.mu.Lock()
	s.shut[address] = true
	monitor := s.monitors[address]
	s.mu.Unlock()
	if monitor != nil {
		_ = monitor.Close()
	}
}

// closeLate closes what is still open when closing has taken too long.
func (s *sockets) closeLate(done <-chan struct{}) {
	timer := time.NewTimer(closing)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		s.mu.Lock()
		var late []*socket
		for k := range s.open {
			if s.shut[k.address] {
				late = append(late, k)
			}
		}
		s.mu.Unlock()
		for _, k := range late {
			_ = k.Close()
		}
		timer.Reset(10 * time.Millisecond)
	}
}

// socket is a connection of the driver.
type socket struct {
	net.Conn
	owner   *sockets
	address string

	// Under owner.mu:
	streams bool
	reading bool
	closed  bool
}

// Close closes the connection and forgets it.
func (k *socket) Close() error {
	s := k.owner
	s.mu.Lock()
	k.closed = true
	delete(s.open, k)
	if s.monitors[k.address] == k {
		delete(s.monitors, k.address)
		delete(s.hold, k.address)
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	return k.Conn.Close()
}

// Write looks for an awaitable hello: only monitors send it.
func (k *socket) Write(b []byte) (int, error) {
	if exhausts(b) && k.becomeMonitor() {
		_ = k.Close()
	}
	n, err := k.Conn.Write(b)
	if err != nil {
		k.failed(err)
	}
	return n, err
}

// becomeMonitor tells whether the socket is not wanted any more.
func (k *socket) becomeMonitor() bool {
	s := k.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.closed {
		k.streams = true
		s.monitors[k.address] = k
	}
	return s.shut[k.address]
}

// Read holds back what comes for a monitor at the wrong moment.
func (k *socket) Read(b []byte) (int, error) {
	k.setReading(true)
	n, err := k.Conn.Read(b)
	if err != nil {
		k.setReading(false)
		k.failed(err)
		return n, err
	}
	if !k.wait() {
		return 0, net.ErrClosed
	}
	return n, nil
}

func (k *socket) setReading(is bool) {
	s := k.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	k.reading = is
	s.changed.Broadcast()
}

// wait lets time pass until a monitor may go on. It is false if the socket
// was closed meanwhile.
func (k *socket) wait() bool {
	s := k.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.streams {
		s.until(func() (time.Time, bool) {
			t := s.hold[k.address]
			return t, k.closed || t.IsZero() || !time.Now().Before(t)
		})
	}
	k.reading = false
	return !k.closed || !k.streams
}

// failed notices that a socket that is no monitor's has met an error, before
// the driver hears of it.
func (k *socket) failed(err error) {
	var n net.Error
	if errors.Is(err, net.ErrClosed) || errors.As(err, &n) && n.Timeout() {
		return // the driver's own doing, or nothing that it takes for a failure of the server
	}
	s := k.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	monitor := s.monitors[k.address]
	if k.streams || k.closed || monitor == nil {
		return
	}
	s.hold[k.address] = time.Now().Add(holding)
	deadline := time.Now().Add(yielding)
	s.until(func() (time.Time, bool) {
		return deadline, monitor.closed || monitor.reading || !time.Now().Before(deadline)
	})
}

// until waits for a condition, which gives the time at which to look again
// though nothing has changed. The caller holds mu.
func (s *sockets) until(over func() (time.Time, bool)) {
	for {
		again, is := over()
		if is {
			return
		}
		timer := time.AfterFunc(time.Until(again)+time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
		s.changed.Wait()
		timer.Stop()
	}
}

// exhausts tells that a message is an OP_MSG with exhaustAllowed.
func exhausts(b []byte) bool {
	return len(b) >= 20 && binary.LittleEndian.Uint32(b[12:]) == uint32(wiremessage.OpMsg) &&
		wiremessage.MsgFlag(binary.LittleEndian.Uint32(b[16:]))&wiremessage.ExhaustAllowed != 0
}
