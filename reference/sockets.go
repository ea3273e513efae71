package reference

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/internal/farewell"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// sockets dials for a client and knows what is open, for two ends: closing a
// client must never wait for a server that is silent, and a monitor must take
// notice of a network error at once.
type sockets struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config // nil: plain
	polls   bool        // monitors poll: none ever streams
	patient bool        // pools are not to be filled before the first check

	mu       sync.Mutex
	open     map[*socket]bool
	monitors map[string]*socket // by address: those that stream hello
	changed  chan struct{}      // closed and replaced when monitors or known changes
	known    map[string]bool    // addresses whose server was not Unknown once
	failed   map[string]bool    // addresses whose monitor was interrupted
	// rechecked holds when servers were, or will be, checked at once.
	rechecked map[string]time.Time
	ended     map[string]bool  // addresses whose pool is closed
	held      map[string]int   // handshakes that failed, until the topology is done with them
	late      map[string]*late // checks that timed out, by address
	resting   resting
	leaving   farewell.Group
	// backpressure is the value of that field in handshakes, nil without.
	backpressure any
}

func newSockets(dial func(ctx context.Context, network, address string) (net.Conn, error)) *sockets {
	return &sockets{dial: dial, open: map[*socket]bool{}, monitors: map[string]*socket{}, known: map[string]bool{}, changed: make(chan struct{}),
		failed: map[string]bool{}, rechecked: map[string]time.Time{}, ended: map[string]bool{}, held: map[string]int{}, late: map[string]*late{},
		resting: newResting()}
}

// DialContext implements options.ContextDialer.
func (s *sockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	monitor := monitorDials()
	if monitor {
		if err := s.again(address); err != nil {
			return nil, err
		}
	} else if err := s.discovered(ctx, address); err != nil {
		return nil, err
	}
	c, err := s.dial(ctx, network, address)
	if err != nil {
		if monitor {
			s.outlive(address)
		}
		return nil, err
	}
	if s.tls != nil {
		config := s.tls.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		secure := tls.Client(c, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		c = secure
	}
	k := &socket{Conn: s.leaving.Conn(c), owner: s, address: address, monitor: monitor}
	s.mu.Lock()
	s.open[k] = true
	s.mu.Unlock()
	return k, nil
}

// closeWhen gives the owner a moment to close by itself (a monitor between
// two checks misses that it is told to stop), and closes what is left, again
// and again until done is closed.
func (s *sockets) closeWhen(done <-chan struct{}) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			for _, k := range s.all() {
				_ = k.Close()
			}
		}
	}
}

func (s *sockets) all() []*socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*socket, 0, len(s.open))
	for k := range s.open {
		out = append(out, k)
	}
	return out
}

// noticing is how long a monitor may take to see that its socket is gone.
const noticing = 500 * time.Millisecond

// streaming gives the socket on which the monitor of a server streams hello,
// and waits until there is one: a monitor begins to stream right after its
// first check. It is nil when over has a value, enough is true, or monitors poll.
func (s *sockets) streaming(address string, over <-chan time.Time, enough func() bool) *socket {
	for !s.polls && !enough() {
		s.mu.Lock()
		monitor, changed := s.monitors[address], s.changed
		s.mu.Unlock()
		if monitor != nil {
			return monitor
		}
		select {
		case <-changed:
		case <-over:
			return nil
		}
	}
	return nil
}

// interrupt breaks the monitor's stream with the network error that an
// application connection to the same server has met, and waits until noticed
// is true. The monitor then marks the server Unknown, clears the pool and
// connects again, one after the other on its own goroutine.
//
// Left to itself, the topology marks the server Unknown first and cancels the
// check on yet another goroutine. If a heartbeat comes in between, the server
// is known again for a moment, and the cancellation then clears the pool under
// the retry.
func (s *sockets) interrupt(address string, cause error, noticed func() bool) {
	timer := time.NewTimer(noticing)
	defer timer.Stop()
	monitor := s.streaming(address, timer.C, noticed)
	if monitor == nil { // or it met the error itself
		return
	}
	monitor.fail(innermost(cause))
	for pause := 20 * time.Microsecond; !noticed(); pause = min(2*pause, time.Millisecond) {
		select {
		case <-timer.C:
			return
		case <-time.After(pause):
		}
	}
}

// settle ends, after a failed handshake made a server Unknown, the stream that
// its monitor read before: see interrupt for why a retry must not begin
// meanwhile. The topology cancels the check, too, on yet another goroutine,
// unless the monitor was between two checks.
func (s *sockets) settle(before *socket, unknown func() bool) {
	if before == nil {
		return
	}
	timer := time.NewTimer(noticing)
	defer timer.Stop()
	select {
	case <-before.failWhile(net.ErrClosed, unknown):
	case <-timer.C:
	}
}

// hold keeps what a monitor's stream says from the monitor, until release: a
// handshake with the same server has failed. What the monitor has read already
// has taken effect when it returns. Otherwise the server could be made Unknown
// and be known again for a moment, until the monitor finds that its check, which
// it has not even begun, was cancelled.
func (s *sockets) hold(address string) {
	s.mu.Lock()
	s.held[address]++
	monitor := s.monitors[address]
	s.mu.Unlock()
	if monitor == nil {
		return
	}
	deadline := time.Now().Add(noticing)
	for pause := 20 * time.Microsecond; s.digests(monitor) && time.Now().Before(deadline); pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
	}
}

// digests tells that a monitor has read what it streams, and has not come back
// for more.
func (s *sockets) digests(monitor *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	monitor.mu.Lock()
	defer monitor.mu.Unlock()
	return s.monitors[monitor.address] == monitor && !monitor.reading
}

// release undoes hold, and ends the stream first if the server is Unknown. That
// is what the topology does on yet another goroutine. If a heartbeat came in
// between, the server would be known again for a moment.
func (s *sockets) release(address string, unknown func() bool) {
	s.mu.Lock()
	monitor := s.monitors[address]
	s.mu.Unlock()
	if monitor != nil {
		monitor.failWhile(net.ErrClosed, unknown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[address] > 0 {
		s.held[address]--
	}
	s.tell()
}

// passes waits until what a monitor's stream says is not held back, and gives an
// error if the stream is closed meanwhile. A handshake that nothing more is heard
// of holds it for a while only. What passes is read: hold finds the monitor either
// waiting or at it.
func (s *sockets) passes(k *socket) error {
	var over <-chan time.Time
	for {
		s.mu.Lock()
		streams, held, changed := s.monitors[k.address] == k, s.held[k.address] > 0, s.changed
		if streams && !held {
			k.mu.Lock()
			k.reading = false
			k.mu.Unlock()
		}
		s.mu.Unlock()
		switch {
		case !streams:
			return net.ErrClosed
		case !held:
			return nil
		case over == nil:
			timer := time.NewTimer(noticing)
			defer timer.Stop()
			over = timer.C
		}
		select {
		case <-changed:
		case <-s.resting.shut:
			return net.ErrClosed
		case <-over:
			s.mu.Lock()
			delete(s.held, k.address)
			s.mu.Unlock()
		}
	}
}

// streams notes that a socket is that of a monitor which streams, unless it is
// closed already.
func (s *sockets) streams(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[k] {
		s.monitors[k.address] = k
		s.tell()
	}
}

// discovered waits for the first check of a server that has succeeded, if pools
// are patient: that of the Go driver is ready from the beginning on, where a pool
// is paused until its server is known (Connection Monitoring and Pooling,
// "Populating the Pool with minPoolSize connections").
func (s *sockets) discovered(ctx context.Context, address string) error {
	for {
		s.mu.Lock()
		known, changed := s.known[address], s.changed
		s.mu.Unlock()
		if known || !s.patient {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.resting.shut:
			return net.ErrClosed
		}
	}
}

// discover notes that a server is known.
func (s *sockets) discover(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known[address] {
		s.known[address] = true
		s.tell()
	}
}

// tell wakes who waits for another monitor. The caller holds mu.
func (s *sockets) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// cancelled tells that the monitor of a server, or of any for "", was
// interrupted and has not been heard of since, or that its last check was none.
func (s *sockets) cancelled(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, l := range s.late {
		if l.repeated && (address == "" || address == a) {
			return true
		}
	}
	if address == "" {
		return len(s.failed) > 0
	}
	return s.failed[address]
}

func (s *sockets) recovered(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, address)
}

// socket forgets itself when it is closed.
type socket struct {
	net.Conn
	owner   *sockets
	address string
	monitor bool // it is that of a monitor, from its first check on

	mu      sync.Mutex
	asked   bool // an awaitable hello was sent: the next read begins to stream
	known   bool // as a monitor that streams
	reading bool
	closed  bool
	broken  error // what Read and Write say after fail
	ending  *ending
}

// Close closes the connection and forgets it.
//
// A monitor that reads meanwhile is cancelled: an error on another connection
// has made its server Unknown before.
func (k *socket) Close() error {
	k.mu.Lock()
	cancels := k.known && k.reading
	cause := k.broken
	k.closed = true
	if k.ending != nil {
		close(k.ending.over)
		k.ending = nil
	}
	k.mu.Unlock()
	if cancels {
		k.owner.cancel(k.address, cause)
	}
	s := k.owner
	s.mu.Lock()
	delete(s.open, k)
	if s.monitors[k.address] == k {
		delete(s.monitors, k.address)
		s.tell()
	}
	s.mu.Unlock()
	return k.Conn.Close()
}

// Write gives handshakes and checks what the policy has them say of backpressure.
// It looks for the first awaitable hello, too: it is what only monitors send.
func (k *socket) Write(b []byte) (int, error) {
	k.mu.Lock()
	k.asked = k.asked || exhausts(b)
	k.mu.Unlock()
	out := withBackpressure(b, k.owner.backpressure)
	n, err := k.Conn.Write(out)
	if n == len(out) {
		n = len(b)
	}
	return min(n, len(b)), k.why(err)
}

// Read gives the cause of fail, if that is why reading failed.
//
// The first read after the awaitable hello makes the socket known as that of a
// monitor which streams, and not the hello itself: a monitor that finds its
// connection closed before it reads takes that for no network error, and sleeps
// for minHeartbeat.
func (k *socket) Read(b []byte) (int, error) {
	k.mu.Lock()
	first := k.asked && !k.known
	k.known = k.known || first
	k.reading = true
	streams := k.known
	e := k.ending
	k.ending = nil
	k.mu.Unlock()
	if first {
		k.owner.streams(k)
	}
	if e != nil {
		if e.still() {
			k.fail(e.cause)
		}
		close(e.over)
	}
	n, err := k.Conn.Read(b)
	if err == nil && streams {
		if err = k.owner.passes(k); err != nil {
			n = 0
		}
	}
	k.mu.Lock()
	k.reading = false
	broken := k.broken
	k.mu.Unlock()
	if k.monitor && err != nil {
		k.owner.outlive(k.address)
	}
	if broken != nil { // even if something has come
		return 0, broken
	}
	if k.monitor {
		k.owner.timedOut(k.address, err)
	}
	return n, err
}

// SetReadDeadline leaves it to Read to give the cause of fail.
func (k *socket) SetReadDeadline(t time.Time) error { return k.unbroken(k.Conn.SetReadDeadline(t)) }

// SetWriteDeadline leaves it to Write to give the cause of fail.
func (k *socket) SetWriteDeadline(t time.Time) error { return k.unbroken(k.Conn.SetWriteDeadline(t)) }

// unbroken gives an error that has not come of fail.
func (k *socket) unbroken(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil {
		return nil
	}
	return err
}

func (k *socket) why(err error) error {
	if err == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil {
		return k.broken
	}
	return err
}

// fail closes the socket under its user, who sees cause.
func (k *socket) fail(cause error) {
	k.mu.Lock()
	k.broken = cause
	k.mu.Unlock()
	k.owner.cancel(k.address, cause)
	_ = k.Close()
}

// ending is a failure that waits for the next read.
type ending struct {
	cause error
	still func() bool
	over  chan struct{}
}

// failWhile fails the socket if the condition holds while its user reads: what
// the user has read already may change it. The channel is closed when that is
// decided: at once if the topology has closed the socket before. The condition
// must not wait for anything.
func (k *socket) failWhile(cause error, still func() bool) <-chan struct{} {
	k.mu.Lock()
	if k.ending != nil {
		defer k.mu.Unlock()
		return k.ending.over
	}
	over := make(chan struct{})
	if !k.reading && !k.closed && k.broken == nil {
		defer k.mu.Unlock()
		k.ending = &ending{cause, still, over}
		return over
	}
	close(over)
	fails := k.broken == nil && (k.reading || !k.closed) && still()
	if fails {
		k.broken = cause
	}
	k.mu.Unlock()
	if fails {
		k.fail(cause)
	}
	return over
}

// innermost takes the connection's name off an error.
func innermost(err error) error {
	if c, ok := err.(topology.ConnectionError); ok && c.Wrapped != nil {
		return c.Wrapped
	}
	return io.EOF
}

// exhausts tells that a message is an OP_MSG with exhaustAllowed.
func exhausts(b []byte) bool {
	return len(b) >= 20 && binary.LittleEndian.Uint32(b[12:]) == uint32(wiremessage.OpMsg) &&
		wiremessage.MsgFlag(binary.LittleEndian.Uint32(b[16:]))&wiremessage.ExhaustAllowed != 0
}
