package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/unified-test-runner/utr/internal/net/socket"
	"github.com/unified-test-runner/utr/internal/wire/godriver"
)

// sockets dials for a client, and corrects deviations of the Go driver's topology from the specifications, which
// docs/driver/reference-engine.md ("Sockets") lists. Methods may be called concurrently; options are set before the
// first dial.
type sockets struct {
	*socket.Dialer
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	tls          *tls.Config // nil: no TLS
	polls        bool        // monitors poll instead of streaming
	afterCheck   bool        // pools wait for the first check
	backpressure any         // value of the field in handshakes, or nil
	labels       bool        // see handshaker

	timeout       *time.Duration // timeoutMS of the client, or nil
	socketTimeout time.Duration  // 0: none
	firstRTT      time.Duration  // see delayFirstRTT

	// Modified in Update.
	servers map[string]*serverState // by address: see at
	waiters int                     // operations waiting for a server
	waits   int                     // how often waiters changed from 0 to 1
}

// serverState is the state of one server.
type serverState struct {
	known    bool  // it has been checked successfully
	canceled bool  // its check was canceled, and no check has succeeded since
	reported bool  // the monitor has reported the cancellation
	due      bool  // the monitor must pause
	late     error // of a check that timed out; repeated, if the next check has failed with it
	measured bool  // see delayFirstRTT

	waiting []*waitLimit    // check-outs in progress
	failed  map[string]bool // messages of the errors that closed connections since the first of these check-outs began
	over    bool            // the pool was closed, or closed its connections: no more events follow
	failing int             // connections that could not be established, and that are not yet reported as closed

	out map[int64]*event.PoolEvent // checked-out connections, with the closed event if it was interrupted
}

// at returns the state of a server. It must be called in Update or Await.
func (s *sockets) at(address string) *serverState {
	if s.servers[address] == nil {
		s.servers[address] = &serverState{failed: map[string]bool{}, out: map[int64]*event.PoolEvent{}}
	}
	return s.servers[address]
}

func (s *sockets) change(address string, by func(*serverState)) {
	s.Update(func() { by(s.at(address)) })
}

// monitorTimeout bounds the wait for an immediate action of a monitor or the topology.
const monitorTimeout = 500 * time.Millisecond

func newSockets(dial func(ctx context.Context, network, address string) (net.Conn, error)) *sockets {
	s := &sockets{dial: dial, servers: map[string]*serverState{}}
	s.Dialer = socket.New(s.connect, monitorTimeout)
	s.Sent = func(k *socket.Socket, message []byte) []byte {
		fields := document("backpressure", s.backpressure)
		if !k.Pooled { // the Go driver derives it from connectTimeoutMS
			fields = append(fields, bson.E{Key: "maxTimeMS"})
		}
		return godriver.RewriteHello(message, fields...)
	}
	s.Canceled = s.cancel
	s.Failed = func(k *socket.Socket, err error) {
		if k.Monitor {
			s.awaitHandled(k.Address)
			s.awaitPoolClosed(k.Address)
			s.timedOut(k.Address, err)
		}
	}
	return s
}

// connect dials and establishes TLS here, so that sockets can inspect the messages.
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

// DialContext implements options.ContextDialer. If a connection of a pool fails, the server's stream is held until the
// topology has processed the error.
func (s *sockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	use := godriver.DialedFor()
	monitor, pooled := use == godriver.Monitor, use == godriver.Pool
	var l limit
	var err error
	switch use {
	case godriver.Monitor:
		err = s.repeatFailure(address)
	case godriver.Pool:
		err = s.awaitFirstCheck(ctx, address)
	default:
		err = s.delayFirstRTT(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	if pooled {
		if l = s.limit(address); !l.deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, l.deadline)
			defer cancel()
		}
	}
	k, err := s.Connect(ctx, network, address, monitor)
	switch {
	case err == nil:
		k.Pooled = pooled
		return k, nil
	case monitor:
		s.awaitPoolClosed(address)
	case pooled:
		s.failed(address, l)
	default:
		s.Hold(address)
	}
	if !s.labels {
		err = godriver.Unlabel(err)
	}
	return nil, err
}

// delayFirstRTT delays the first connection that measures the round trip times of a server. The handshake of the
// monitor is the first measurement, and the next one is due after heartbeatFrequencyMS (Server Monitoring, "Measuring
// RTT"). The clients of most tests are closed earlier, and open a third fewer connections to each server.
func (s *sockets) delayFirstRTT(ctx context.Context, address string) error {
	first := false
	s.change(address, func(w *serverState) { first, w.measured = !w.measured, true })
	if !first {
		return nil
	}
	select {
	case <-time.After(s.firstRTT):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handle holds the server's stream while the topology handles an error. If the server becomes Unknown, which handling
// reports, its stream ends, and handle waits until the monitor has reported it, so that the order of events is fixed.
//
// Otherwise the topology would mark the server Unknown and cancel the check on another goroutine. A heartbeat in
// between would make the server known again, and the cancellation would clear the pool during the retry.
func (s *sockets) handle(address string, handling func() (unknown bool)) {
	s.Hold(address)
	unknown := handling()
	s.Release(address, unknown)
	if unknown {
		s.Await(context.Background(), monitorTimeout, func() bool {
			w := s.at(address)
			return w.reported || !w.canceled || s.IsShut()
		})
	}
}

// awaitFirstCheck waits for the first successful check of a server, if pools wait for it. A pool is paused until its
// server is known (Connection Monitoring and Pooling, "Marking a Connection Pool as Ready"), but the Go
// driver's pools are not.
func (s *sockets) awaitFirstCheck(ctx context.Context, address string) error {
	known := false
	done := func() bool {
		known = s.at(address).known || !s.afterCheck
		return known || s.IsShut()
	}
	switch {
	case !s.Await(ctx, forever, done):
		return ctx.Err()
	case !known:
		return net.ErrClosed
	}
	return nil
}

// failed is called before the topology handles the error of a connection that could not be established.
func (s *sockets) failed(address string, l limit) {
	s.settle(address, l)
	s.change(address, func(w *serverState) { w.failing++ })
	s.Hold(address)
}

// awaitHandled delays the error of a monitor until the topology has handled the errors of failed connections: it
// cancels the check before it reports that the connection is closed, and the events could be in either order.
func (s *sockets) awaitHandled(address string) {
	s.Await(context.Background(), monitorTimeout, func() bool { return s.at(address).failing == 0 || s.IsShut() })
}

// awaitPoolClosed delays the monitor of a closing client until its pool is closed. The topology cancels the check
// first, and the monitor would clear the pool.
func (s *sockets) awaitPoolClosed(address string) {
	s.Await(context.Background(), monitorTimeout, func() bool { return !s.IsShut() || s.Ended(address) })
}

// cancel records that the check of a server was canceled for an error of another connection. The monitor will pause. It
// must be called in Update.
func (s *sockets) cancel(address string) {
	w := s.at(address)
	w.canceled, w.reported, w.due = true, false, true
}

// canceled reports whether the last check of a server, or of any server for "", was canceled or repeated a failure.
func (s *sockets) canceled(address string) (is bool) {
	s.Update(func() {
		for a, w := range s.servers {
			is = is || (address == "" || address == a) && (w.canceled || errors.As(w.late, new(repeated)))
		}
	})
	return is
}

// pause delays a monitor whose check was canceled until the next heartbeat, or until an operation needs a server
// (Server Monitoring, "Clients use the streaming protocol when supported" and "Requesting an immediate check"). The
// topology's monitors do not wait. If the client is closed meanwhile, the monitor waits for its pool: a check could
// still succeed before, and make the pool ready.
func (s *sockets) pause(address string, interval time.Duration) {
	due, waits := false, 0
	s.change(address, func(w *serverState) {
		due, waits = w.due && s.waiters == 0, s.waits
		w.due = false
	})
	if due {
		s.Await(context.Background(), interval, func() bool { return s.waits != waits || s.IsShut() })
		s.awaitPoolClosed(address)
	}
}

// addWaiter records that an operation waits for a server, until done is called.
func (s *sockets) addWaiter() (done func()) {
	s.Update(func() {
		if s.waiters++; s.waiters == 1 {
			s.waits++
		}
	})
	return func() { s.Update(func() { s.waiters-- }) }
}

// A check that times out clears the pool with interruptInUseConnections (Server Discovery and Monitoring, "Network
// error when reading or writing"). The topology ignores the first timeout: it checks again at once, and clears the
// pool if that check also fails. So the dialer fails the second check with the error of the first.

// timedOut records the error of a monitor's read if it is a timeout.
func (s *sockets) timedOut(address string, err error) {
	if isTimeout(err) {
		s.change(address, func(w *serverState) { w.late = err })
	}
}

// repeatFailure returns the timeout of the last check once, and nil otherwise.
func (s *sockets) repeatFailure(address string) (err error) {
	s.change(address, func(w *serverState) {
		if w.late != nil && !errors.As(w.late, new(repeated)) {
			w.late = repeated{w.late}
			err = w.late
		}
	})
	return err
}

// beginCheck records the start of a check. It returns false if the check only repeats the last failure.
func (s *sockets) beginCheck(address string) (is bool) {
	s.change(address, func(w *serverState) {
		if is = w.late == nil || errors.As(w.late, new(repeated)); is {
			w.late = nil
		}
	})
	return is
}

// repeated is the error of a check that only repeats the last failure.
type repeated struct{ error }

func (r repeated) Unwrap() error { return r.error }

// watch records which connections to a server are closed, and why, from before a check-out until end is called. The
// topology returns a handshake error first; then it marks the server Unknown, clears the pool and cancels the
// monitor's check; and last it reports that the connection is closed. A retry that starts earlier selects a server
// that is about to become Unknown, and fails because its pool is cleared: one failure would count as two attempts.
func (s *sockets) watch(address string, p waitLimit) (end func()) {
	s.change(address, func(w *serverState) {
		if w.waiting = append(w.waiting, &p); len(w.waiting) == 1 {
			w.failed, w.over = map[string]bool{}, false
		}
	})
	return func() {
		s.change(address, func(w *serverState) {
			w.waiting = slices.DeleteFunc(w.waiting, func(other *waitLimit) bool { return other == &p })
		})
	}
}

// poolEvent records the closed connections of a pool.
func (s *sockets) poolEvent(e *event.PoolEvent) {
	closed := e.Type == event.ConnectionClosed
	over := e.Type == event.ConnectionPoolClosed || closed &&
		(e.Reason == event.ReasonPoolClosed || e.Reason == event.ReasonStale)
	if over || closed && e.Error != nil {
		s.change(e.Address, func(w *serverState) {
			w.over = w.over || over
			w.failing = max(0, w.failing-1)
			if over {
				w.failing = 0
			}
			if e.Error != nil {
				w.failed[e.Error.Error()] = true
			}
		})
	}
}

// awaitClosed delays the failed event of a check-out until the pool has reported that the connection is closed, which
// comes first (Connection Monitoring and Pooling, "Checking Out a Connection"). It is called during a watched
// check-out. Any connection that failed with the same message is sufficient: its error has cleared the pool, and
// errors of older connections have no effect.
func (s *sockets) awaitClosed(address string, err error) {
	if err != nil && checkoutFailure(context.Background(), err).rules.Handshake {
		s.Await(context.Background(), 5*time.Second, func() bool { // the limit is for a topology that reports nothing
			w := s.at(address)
			return len(w.waiting) == 0 || w.over || w.failed[err.Error()]
		})
	}
}

// reorder returns the events to write after a pool has reported an event. The topology reports that an interrupted
// connection (Connection Monitoring and Pooling, "Clearing a Connection Pool") is closed before it is checked in.
func (s *sockets) reorder(e *event.PoolEvent) (events []*event.PoolEvent) {
	s.change(e.Address, func(w *serverState) {
		events = []*event.PoolEvent{e}
		closed, out := w.out[e.ConnectionID]
		switch {
		case e.Type == event.ConnectionCheckedOut:
			w.out[e.ConnectionID] = nil
		case e.Type == event.ConnectionCheckedIn:
			delete(w.out, e.ConnectionID)
			if closed != nil {
				events = append(events, closed)
			}
		case e.Type == event.ConnectionClosed && e.Reason == event.ReasonStale && out:
			w.out[e.ConnectionID], events = e, nil
		}
	})
	return events
}

// interrupted reports whether a checked-out connection was interrupted. The topology does not detect that for the last
// connection of a pool.
func (s *sockets) interrupted(address string, id int64) (is bool) {
	s.change(address, func(w *serverState) { is = w.out[id] != nil })
	return is
}
