package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// peer is a server of one connection after the other.
type peer struct {
	net.Listener
	t *testing.T
}

func newPeer(t *testing.T) peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return peer{l, t}
}

// connect gives both ends of a new connection.
func (p peer) connect(s *sockets) (ours, theirs net.Conn) {
	p.t.Helper()
	ours, err := s.DialContext(context.Background(), "tcp", p.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	if theirs, err = p.Accept(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// awaitable is the beginning of what only monitors send.
func awaitable() []byte {
	b := make([]byte, 20)
	binary.LittleEndian.PutUint32(b, 20)
	binary.LittleEndian.PutUint32(b[12:], uint32(wiremessage.OpMsg))
	binary.LittleEndian.PutUint32(b[16:], uint32(wiremessage.ExhaustAllowed))
	return b
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

type read struct {
	n   int
	err error
}

func readLater(c net.Conn) <-chan read {
	out := make(chan read, 1)
	go func() {
		n, err := c.Read(make([]byte, 4))
		out <- read{n, err}
	}()
	return out
}

func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("waited a minute for %s", what)
	}
	panic("unreachable")
}

// A heartbeat that comes after another socket to the same server has failed is
// held back until the driver closes the monitor's.
func TestHeartbeatIsHeldBack(t *testing.T) {
	s, p := newSockets(), newPeer(t)
	monitor, server := p.connect(s)
	write(t, monitor, awaitable())
	heartbeat := readLater(monitor)

	application, gone := p.connect(s)
	_ = gone.Close()
	if r := await(t, readLater(application), "the error"); !errors.Is(r.err, io.EOF) {
		t.Fatalf("got %v", r.err)
	}
	write(t, server, []byte("beat"))
	s.mu.Lock()
	held := !s.hold[p.Addr().String()].IsZero()
	s.mu.Unlock()
	if !held {
		t.Fatal("nothing is held back")
	}
	_ = monitor.Close()
	if r := await(t, heartbeat, "the monitor"); !errors.Is(r.err, net.ErrClosed) {
		t.Errorf("the heartbeat arrived: %d bytes, %v", r.n, r.err)
	}
}

// If the driver does not close the monitor's socket, the heartbeat arrives
// whole, only later.
func TestHeartbeatArrives(t *testing.T) {
	s, p := newSockets(), newPeer(t)
	monitor, server := p.connect(s)
	write(t, monitor, awaitable())
	heartbeat := readLater(monitor)
	application, gone := p.connect(s)
	_ = gone.Close()
	await(t, readLater(application), "the error")
	write(t, server, []byte("beat"))
	if r := await(t, heartbeat, "the heartbeat"); r.n != 4 || r.err != nil {
		t.Errorf("got %d bytes, %v", r.n, r.err)
	}
}

// What is no failure of the server holds nothing back.
func TestNothingIsHeldBack(t *testing.T) {
	for _, row := range []struct {
		reason string
		fail   func(ours, theirs net.Conn)
	}{
		{"the driver's own deadline", func(ours, _ net.Conn) { _ = ours.SetReadDeadline(time.Now()) }},
		{"closed by the driver", func(ours, _ net.Conn) { _ = ours.Close() }},
		{"another message", func(_, theirs net.Conn) { _, _ = theirs.Write([]byte("reply")) }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s, p := newSockets(), newPeer(t)
			monitor, _ := p.connect(s)
			write(t, monitor, awaitable())
			ours, theirs := p.connect(s)
			failing := readLater(ours)
			row.fail(ours, theirs)
			await(t, failing, "the end of reading")
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.hold) > 0 {
				t.Error("heartbeats are held back")
			}
		})
	}
}

// A failing socket lets the monitor finish what it has read already.
func TestFailureWaitsForTheMonitor(t *testing.T) {
	s, p := newSockets(), newPeer(t)
	monitor, server := p.connect(s)
	write(t, monitor, awaitable())
	write(t, server, []byte("beat"))
	if r := await(t, readLater(monitor), "the heartbeat"); r.err != nil {
		t.Fatal(r.err)
	}
	application, gone := p.connect(s)
	_ = gone.Close()
	begun := time.Now()
	await(t, readLater(application), "the error") // the monitor never reads again
	if took := time.Since(begun); took < yielding {
		t.Errorf("the error came after %s, while the monitor was at work", took)
	}
}

// A pool that is closed takes its monitor with it, and lets no new one begin.
func TestPoolClosed(t *testing.T) {
	s, p := newSockets(), newPeer(t)
	monitor, _ := p.connect(s)
	write(t, monitor, awaitable())
	stream := readLater(monitor)
	other, _ := p.connect(s)
	s.poolClosed(p.Addr().String())
	if r := await(t, stream, "the monitor"); r.err == nil {
		t.Error("the monitor goes on")
	}
	if c, err := s.DialContext(context.Background(), "tcp", p.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("a connection is made to a server that is closed")
	}
	done := make(chan struct{})
	late := make(chan struct{})
	stuck := readLater(other)
	go func() { s.closeLate(done); close(late) }()
	if r := await(t, stuck, "a socket that the driver has not closed"); r.err == nil {
		t.Error("what is left is not closed")
	}
	close(done)
	await(t, late, "the end of closing")
}
