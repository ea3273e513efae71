package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime/debug"
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
	servers map[string]*watched // by address: see at
	seekers int                 // operations that wait for a server
	sought  int                 // how often the first of them has begun to wait
}

// watched is what is known of one server.
type watched struct {
	known     bool      // it was not Unknown once
	cancelled bool      // its check was cancelled, and none has succeeded since
	noticed   bool      // and the monitor has noticed
	due       bool      // the monitor is to rest
	late      error     // of a check that timed out; repeated, if the next one has failed for it
	rechecked time.Time // when it was, or will be, checked at once

	checkOuts int             // under way
	failed    map[string]bool // why connections were closed since the first of these began: texts, which are all that distinguishes them
	over      bool            // the pool was closed, or closed what it had: nothing more is reported

	out map[int64]*event.PoolEvent // connections that are checked out, with the closing of those that were interrupted
}

// at finds what is known of a server. It is to be called in Update or Await.
func (s *sockets) at(address string) *watched {
	if s.servers[address] == nil {
		s.servers[address] = &watched{failed: map[string]bool{}, out: map[int64]*event.PoolEvent{}}
	}
	return s.servers[address]
}

// note changes what is known of a server.
func (s *sockets) note(address string, change func(*watched)) {
	s.Update(func() { change(s.at(address)) })
}

// noticing bounds the wait for what a monitor, or the topology, does at once.
const noticing = 500 * time.Millisecond

func newSockets(dial func(ctx context.Context, network, address string) (net.Conn, error)) *sockets {
	s := &sockets{dial: dial, servers: map[string]*watched{}}
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
	return strings.Contains(string(debug.Stack()), "topology.(*Server).setupHeartbeatConnection(")
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
			w := s.at(address)
			return w.noticed || !w.cancelled
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
		known = s.at(address).known || !s.patient
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

// outlive has a monitor whose client is being closed wait until its pool is: the
// topology cancels the check first, for which the monitor would clear the pool.
func (s *sockets) outlive(address string) {
	s.Await(context.Background(), noticing, func() bool { return !s.IsShut() || s.Ended(address) })
}

// cancel notes that the check of a server was cancelled for an error of another
// connection. The monitor then rests, unless that was for an immediate check.
func (s *sockets) cancel(address string, cause error) {
	s.note(address, func(w *watched) {
		w.cancelled, w.noticed = true, false
		w.due = w.due || !errors.As(cause, new(checkNow))
	})
}

// cancelled reports whether the check of a server, or of any for "", was
// cancelled and none has succeeded since, or whether the last one repeated a
// failure.
func (s *sockets) cancelled(address string) (is bool) {
	s.Update(func() {
		for a, w := range s.servers {
			is = is || (address == "" || address == a) && (w.cancelled || errors.As(w.late, new(repeated)))
		}
	})
	return is
}

// rest has a monitor whose check was cancelled wait for the next heartbeat, or
// for an operation that needs a server (Server Monitoring, "Clients using the
// streaming protocol" and "requestCheck"). The topology's monitors do not wait.
func (s *sockets) rest(address string, interval time.Duration) {
	due, sought := false, 0
	s.note(address, func(w *watched) {
		due, sought = w.due && s.seekers == 0, s.sought
		w.due = false
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

// timedOut notes the error of a monitor's read, if it is a time-out.
func (s *sockets) timedOut(address string, err error) {
	if isTimeout(err) && !errors.As(err, new(checkNow)) {
		s.note(address, func(w *watched) { w.late = err })
	}
}

// again returns the error for which a monitor must not connect yet, once.
func (s *sockets) again(address string) (err error) {
	s.note(address, func(w *watched) {
		if w.late != nil && !errors.As(w.late, new(repeated)) {
			w.late = repeated{w.late}
			err = w.late
		}
	})
	return err
}

// checks notes that a check of a server begins. It returns false if that check
// only repeats the failure of the last.
func (s *sockets) checks(address string) (is bool) {
	s.note(address, func(w *watched) {
		if is = w.late == nil || errors.As(w.late, new(repeated)); is {
			w.late = nil
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
	s.note(address, func(w *watched) {
		if ours = !w.rechecked.After(now); ours {
			wait = max(0, w.rechecked.Add(interval).Sub(now))
			w.rechecked = now.Add(wait)
		}
	})
	return wait, ours
}

// checkNow is what a monitor receives instead of the heartbeat that it awaits.
type checkNow struct{}

func (checkNow) Error() string   { return "the check was ended for an immediate one" }
func (checkNow) Timeout() bool   { return true }
func (checkNow) Temporary() bool { return true }

// watch notes which connections to a server are closed, and why, from before a
// connection is asked for until end is called. The topology hands the error of a
// handshake out first; then it marks the server Unknown, clears the pool and
// cancels the monitor's check; and last it reports that the connection is closed.
// A retry that begins earlier selects a server that is about to be Unknown, and
// fails because its pool is cleared: one failure would count as two attempts.
func (s *sockets) watch(address string) (end func()) {
	s.note(address, func(w *watched) {
		if w.checkOuts++; w.checkOuts == 1 {
			w.failed, w.over = map[string]bool{}, false
		}
	})
	return func() { s.note(address, func(w *watched) { w.checkOuts-- }) }
}

// event notes what a pool reports.
func (s *sockets) event(e *event.PoolEvent) {
	closed := e.Type == event.ConnectionClosed
	over := e.Type == event.ConnectionPoolClosed || closed && (e.Reason == event.ReasonPoolClosed || e.Reason == event.ReasonStale)
	if over || closed && e.Error != nil {
		s.note(e.Address, func(w *watched) {
			w.over = w.over || over
			if e.Error != nil {
				w.failed[e.Error.Error()] = true
			}
		})
	}
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
	if err != nil && checkoutFailure(context.Background(), err, address).rules.Handshake {
		s.Await(context.Background(), handling, func() bool {
			w := s.at(address)
			return w.checkOuts == 0 || w.over || w.failed[err.Error()]
		})
	}
}

// order gives what is to be told now that a pool has reported an event. A connection
// that its pool interrupts (Connection Monitoring and Pooling, "Clearing a Connection
// Pool") is reported closed by the topology before it is checked in.
func (s *sockets) order(e *event.PoolEvent) (told []*event.PoolEvent) {
	s.note(e.Address, func(w *watched) {
		told = []*event.PoolEvent{e}
		closed, out := w.out[e.ConnectionID]
		switch {
		case e.Type == event.ConnectionCheckedOut:
			w.out[e.ConnectionID] = nil
		case e.Type == event.ConnectionCheckedIn:
			delete(w.out, e.ConnectionID)
			if closed != nil {
				told = append(told, closed)
			}
		case e.Type == event.ConnectionClosed && e.Reason == event.ReasonStale && out:
			w.out[e.ConnectionID], told = e, nil
		}
	})
	return told
}

// interrupted reports whether a connection that is checked out was interrupted. The
// topology takes such a one for one of the present generation if it was the last of
// its pool.
func (s *sockets) interrupted(address string, id int64) (is bool) {
	s.note(address, func(w *watched) { is = w.out[id] != nil })
	return is
}
