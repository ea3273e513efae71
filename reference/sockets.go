package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/event"
)

// sockets dials for a client, and corrects what the topology does otherwise than
// specified: docs/reference-engine.md ("Sockets") lists it. Methods may be called
// concurrently; options are set before the first dial.
type sockets struct {
	*enginekit.Sockets
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	tls          *tls.Config // nil: plain
	polls        bool        // monitors poll: none ever streams
	patient      bool        // pools are not to be filled before the first check
	backpressure any         // the value of that field in handshakes, nil without

	// Changed in Update.
	known     map[string]bool      // addresses whose server was not Unknown once
	cancels   map[string]bool      // addresses whose check was cancelled, until one has succeeded; true: the monitor has noticed
	due       map[string]bool      // addresses whose monitor is to rest
	late      map[string]*late     // checks that timed out, by address
	rechecked map[string]time.Time // when servers were, or will be, checked at once
	watches   map[*watch]bool
	seekers   int // operations that wait for a server
	sought    int // how often the first of them has begun to wait
}

// noticing bounds the wait for what a monitor, or the topology, does at once.
const noticing = 500 * time.Millisecond

func newSockets(dial func(ctx context.Context, network, address string) (net.Conn, error)) *sockets {
	s := &sockets{dial: dial, known: map[string]bool{}, cancels: map[string]bool{}, due: map[string]bool{}, late: map[string]*late{},
		rechecked: map[string]time.Time{}, watches: map[*watch]bool{}}
	s.Sockets = enginekit.NewSockets(s.connect, noticing)
	s.Sent = func(message []byte) []byte { return withBackpressure(message, s.backpressure) }
	s.Cancelled = s.cancel
	s.Failed = func(k *enginekit.Socket, err error) {
		if k.Monitor {
			s.outlive(k.Address)
			s.timedOut(k.Address, err)
		}
	}
	return s
}

// connect makes TLS here, so that sockets see what is sent.
func (s *sockets) connect(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := s.dial(ctx, network, address)
	if err != nil || s.tls == nil {
		return c, err
	}
	config := s.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

// DialContext implements options.ContextDialer. If a connection of a pool cannot
// be made, the server's stream is held until the topology has handled that.
func (s *sockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	monitor := monitorDials()
	var err error
	if monitor {
		err = s.again(address)
	} else {
		err = s.discovered(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	k, err := s.Connect(ctx, network, address, monitor)
	switch {
	case err == nil:
		return k, nil
	case monitor:
		s.outlive(address)
	default:
		s.Hold(address)
	}
	return nil, err
}

// monitorDials reports whether a dialer was called for the monitor of a server.
// The topology gives all connections the same dialer, and nothing in their
// contexts distinguishes them, but for who has called.
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

// starting is how long an attempt waits for a monitor that has just checked a
// server to begin to stream.
const starting = 50 * time.Millisecond

// awaitStream waits until the monitor of a server streams, as it does right
// after its first check, but not for long.
//
// An attempt must not begin earlier. If it fails at once and makes the server
// Unknown before the monitor streams, then the monitor sleeps for minHeartbeat,
// and cannot be woken.
func (s *sockets) awaitStream(address string) {
	if !s.polls {
		s.AwaitStream(address, starting)
	}
}

// handle lets the topology handle an error of a server, while the server's
// monitor hears nothing. If that made the server Unknown, which handling reports,
// its stream ends, and handle waits until the monitor has noticed, so that events
// have one order.
//
// Left to itself, the topology marks the server Unknown and cancels the check on
// another goroutine. If a heartbeat came in between, the server would be known
// again for a moment, and the cancellation would clear the pool under the retry.
func (s *sockets) handle(address string, handling func() (unknown bool)) {
	s.Hold(address)
	if s.Release(address, net.ErrClosed, handling()) {
		s.Await(context.Background(), noticing, func() bool {
			noticed, is := s.cancels[address]
			return noticed || !is
		})
	}
}

// discovered waits for the first check of a server that has succeeded, if pools
// are patient: that of the Go driver is ready from the beginning on, where a pool
// is paused until its server is known (Connection Monitoring and Pooling,
// "Populating the Pool with minPoolSize connections").
func (s *sockets) discovered(ctx context.Context, address string) error {
	known := false
	over := func() bool {
		known = s.known[address] || !s.patient
		return known || s.IsShut()
	}
	switch {
	case !s.Await(ctx, forever, over):
		return ctx.Err()
	case !known:
		return net.ErrClosed
	}
	return nil
}

// discover notes that a server is known.
func (s *sockets) discover(address string) {
	if !s.Await(context.Background(), 0, func() bool { return s.known[address] }) {
		s.Update(func() { s.known[address] = true })
	}
}

// outlive has a monitor whose client is being closed wait until its pool is: the
// topology cancels the check first, for which the monitor would clear the pool.
func (s *sockets) outlive(address string) {
	s.Await(context.Background(), noticing, func() bool { return !s.IsShut() || s.Ended(address) })
}

// cancel notes that the check of a server was cancelled for an error of another
// connection. The monitor then rests, unless that was for an immediate check.
func (s *sockets) cancel(address string, cause error) {
	s.Update(func() {
		s.cancels[address] = false
		s.due[address] = s.due[address] || !errors.As(cause, new(checkNow))
	})
}

// cancelled reports whether the check of a server, or of any for "", was
// cancelled and none has succeeded since, or whether the last one repeated a
// failure.
func (s *sockets) cancelled(address string) (is bool) {
	s.Update(func() {
		for a, l := range s.late {
			is = is || l.repeated && (address == "" || address == a)
		}
		_, cancelled := s.cancels[address]
		is = is || cancelled || address == "" && len(s.cancels) > 0
	})
	return is
}

// missed notes that a check of a server has failed.
func (s *sockets) missed(address string) {
	s.Update(func() {
		if _, is := s.cancels[address]; is {
			s.cancels[address] = true
		}
	})
}

// recovered notes that a check of a server has succeeded.
func (s *sockets) recovered(address string) { s.Update(func() { delete(s.cancels, address) }) }

// rest has a monitor whose check was cancelled wait for the next heartbeat, or
// for an operation that needs a server (Server Monitoring, "Clients using the
// streaming protocol" and "requestCheck"). The topology's monitors do not wait.
func (s *sockets) rest(address string, interval time.Duration) {
	due, sought := false, 0
	s.Update(func() {
		due, sought = s.due[address] && s.seekers == 0, s.sought
		delete(s.due, address)
	})
	if due {
		s.Await(context.Background(), interval, func() bool { return s.sought != sought || s.IsShut() })
	}
}

// seek notes that an operation waits for a server, until found is called.
func (s *sockets) seek() (found func()) {
	s.Update(func() {
		if s.seekers++; s.seekers == 1 {
			s.sought++
		}
	})
	return func() { s.Update(func() { s.seekers-- }) }
}

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
	if errors.As(err, &network) && network.Timeout() && !errors.As(err, new(checkNow)) {
		s.Update(func() { s.late[address] = &late{err: err} })
	}
}

// again returns the error for which a monitor must not connect yet, once.
func (s *sockets) again(address string) (err error) {
	s.Update(func() {
		if l := s.late[address]; l != nil && !l.repeated {
			l.repeated, err = true, repeated{l.err}
		}
	})
	return err
}

// checks notes that a check of a server begins. It returns false if that check
// only repeats the failure of the last.
func (s *sockets) checks(address string) (is bool) {
	s.Update(func() {
		if l := s.late[address]; l == nil || l.repeated {
			delete(s.late, address)
			is = true
		}
	})
	return is
}

// repeated is the error of a check that only repeats the failure of the last.
type repeated struct{ error }

func (r repeated) Unwrap() error { return r.error }

// minHeartbeat is minHeartbeatFrequencyMS (Server Discovery and Monitoring,
// "minHeartbeatFrequencyMS").
const minHeartbeat = 500 * time.Millisecond

// recheck has the monitor of a server look at it at once, after an error made
// it Unknown without a change that the server itself would report: a mongos or
// a standalone that says NotWritablePrimary because a fail point told it to, for
// example. A monitor that streams hello does not hear the topology's own request
// for a check, and the server would stay Unknown until its next heartbeat.
//
// The stream ends as if it had timed out, for which a monitor connects again
// without clearing the pool. That is done once in an interval at most; a
// request that comes too early waits for its time. Unknown is asked then.
func (s *sockets) recheck(address string, interval time.Duration, unknown func() bool) {
	wait, ours := s.appoint(address, time.Now(), min(interval, minHeartbeat))
	check := func() {
		s.Hold(address)
		s.Release(address, checkNow{}, unknown())
	}
	switch {
	case !ours:
	case wait > 0:
		time.AfterFunc(wait, check)
	default:
		check()
	}
}

// appoint returns how long the next immediate check of a server has to wait, and
// whether it is the caller's to make: false means that one is waiting already.
func (s *sockets) appoint(address string, now time.Time, interval time.Duration) (wait time.Duration, ours bool) {
	s.Update(func() {
		last, before := s.rechecked[address]
		if ours = !before || !last.After(now); ours {
			if before {
				wait = max(0, last.Add(interval).Sub(now))
			}
			s.rechecked[address] = now.Add(wait)
		}
	})
	return wait, ours
}

// checkNow is what a monitor receives instead of the heartbeat that it awaits.
type checkNow struct{}

func (checkNow) Error() string   { return "the check was ended for an immediate one" }
func (checkNow) Timeout() bool   { return true }
func (checkNow) Temporary() bool { return true }

// watch notes the connections to a server that were closed since it began. The
// topology hands the error of a handshake out first; then it marks the server
// Unknown, clears the pool and cancels the monitor's check; and last it reports
// that the connection is closed. A retry that begins earlier selects a server
// that is about to be Unknown, and fails because its pool is cleared: one failure
// would count as two attempts.
type watch struct {
	address string
	failed  map[string]bool // texts of the errors, which are all that distinguishes connections
	over    bool            // the pool was closed, or closed what it had: nothing more is reported
}

// watch begins before a connection is asked for, until end is called.
func (s *sockets) watch(address string) (end func()) {
	w := &watch{address: address, failed: map[string]bool{}}
	s.Update(func() { s.watches[w] = true })
	return func() { s.Update(func() { delete(s.watches, w) }) }
}

// event notes what a pool reports.
func (s *sockets) event(e *event.PoolEvent) {
	over := e.Type == event.ConnectionPoolClosed ||
		e.Type == event.ConnectionClosed && (e.Reason == event.ReasonPoolClosed || e.Reason == event.ReasonStale)
	if !over && (e.Type != event.ConnectionClosed || e.Error == nil) {
		return
	}
	s.Update(func() {
		for w := range s.watches {
			if w.address == e.Address {
				w.over = w.over || over
				if e.Error != nil {
					w.failed[e.Error.Error()] = true
				}
			}
		}
	})
}

// handling bounds the wait for what the topology does without waiting for
// anyone: it is reached only if the topology reports nothing of a connection.
const handling = 5 * time.Second

// handled waits until the pool has reported that the connection is closed for
// which a check-out fails with err: that comes first (Connection Monitoring and
// Pooling, "Checking Out a Connection"). It is called during the check-out, which
// is watched. If another connection to the same server failed with the same
// text, either will do: the pool was cleared for it, and errors of older
// connections have no effect then.
func (s *sockets) handled(address string, err error) {
	if err == nil || !checkoutFailure(err, address).rules.Handshake {
		return
	}
	text := err.Error()
	s.Await(context.Background(), handling, func() bool {
		watched := false
		for w := range s.watches {
			if w.address == address {
				watched = true
				if w.over || w.failed[text] {
					return true
				}
			}
		}
		return !watched
	})
}
