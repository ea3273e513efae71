package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/net/socket"
	"github.com/unified-test-runner/utr/internal/testkit"
)

const host = "h:1"

// pipes are sockets to one in-memory server.
type pipes struct {
	*testing.T
	sockets *socket.Dialer
	peers   chan net.Conn
}

// piped runs a test in a synctest bubble.
func piped(t *testing.T, test func(p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{t, newSockets(), make(chan net.Conn, 1)}
		p.sockets.Dial = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			p.peers <- theirs
			return ours, nil
		}
		test(p)
	})
}

// connect returns both ends of a new connection.
func (p *pipes) connect() (ours, theirs net.Conn) {
	p.Helper()
	ours, err := p.sockets.DialContext(p.Context(), "tcp", host)
	testkit.Check(p, err)
	theirs = <-p.peers
	p.Cleanup(func() { _, _ = theirs.Close(), ours.Close() })
	return ours, theirs
}

// monitor returns both ends of a connection that has sent an awaitable hello.
func (p *pipes) monitor() (ours, theirs net.Conn) {
	p.Helper()
	ours, theirs = p.connect()
	hello := make([]byte, 20)
	binary.LittleEndian.PutUint32(hello, 20)
	binary.LittleEndian.PutUint32(hello[12:], uint32(wiremessage.OpMsg))
	binary.LittleEndian.PutUint32(hello[16:], uint32(wiremessage.ExhaustAllowed))
	go func() { _, _ = theirs.Read(make([]byte, 20)) }()
	_, err := ours.Write(hello)
	testkit.Check(p, err)
	return ours, theirs
}

type read struct {
	n    int
	err  error
	took time.Duration
}

func readLater(c net.Conn) <-chan read {
	out := make(chan read, 1)
	began := time.Now()
	go func() {
		n, err := c.Read(make([]byte, 4))
		out <- read{n, err, time.Since(began)}
	}()
	synctest.Wait()
	return out
}

// A heartbeat that arrives just after another socket to the same server failed is
// held until the driver closes the monitor's socket, or for a moment. Errors that
// are not failures of the server do not hold it.
func TestHeartbeats(t *testing.T) {
	for _, row := range []struct {
		reason string
		fail   func(ours, theirs net.Conn)
		closes bool // the driver closes the monitor
		held   bool
	}{
		{"the server closes the other socket, the driver the monitor", func(_, theirs net.Conn) { _ = theirs.Close() },
			true, true},
		{"the server closes the other socket, the driver does nothing", func(_, theirs net.Conn) { _ = theirs.Close() },
			false, true},
		{"a write fails", func(ours, theirs net.Conn) { _ = theirs.Close(); _, _ = ours.Write([]byte("find")) }, false, true},
		{"a deadline of the driver", func(ours, _ net.Conn) { _ = ours.SetReadDeadline(time.Now()) }, false, false},
		{"closed by the driver", func(ours, _ net.Conn) { _ = ours.Close() }, false, false},
		{"a reply", func(_, theirs net.Conn) { _, _ = theirs.Write([]byte("done")) }, false, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			piped(t, func(p *pipes) {
				monitor, server := p.monitor()
				heartbeat := readLater(monitor)
				ours, theirs := p.connect()
				if row.reason != "a write fails" {
					failing := readLater(ours)
					defer func() { <-failing }()
				}
				row.fail(ours, theirs)
				synctest.Wait()
				_, err := server.Write([]byte("beat"))
				testkit.Check(t, err)
				synctest.Wait()
				testkit.Equal(t, "the heartbeat is held", len(heartbeat) == 0, row.held)
				if row.closes {
					_ = monitor.Close()
				}
				switch got := <-heartbeat; {
				case row.closes && !errors.Is(got.err, net.ErrClosed):
					t.Errorf("a closed socket received it: %+v", got)
				case row.held && !row.closes && (got.n != 4 || got.err != nil || got.took < holding || got.took > 2*holding):
					t.Errorf("got %+v, want the heartbeat after %s", got, holding)
				}
			})
		})
	}
}

// Closing a pool closes its monitor, and prevents new connections. Sockets that the
// driver does not close are closed after a while.
func TestPoolClosed(t *testing.T) {
	piped(t, func(p *pipes) {
		monitor, _ := p.monitor()
		stream := readLater(monitor)
		other, _ := p.connect()
		stuck := readLater(other)
		p.sockets.PoolClosed(host)
		if r := <-stream; r.err == nil {
			t.Error("the monitor is still connected")
		}
		if c, err := p.sockets.DialContext(t.Context(), "tcp", host); err == nil {
			_ = c.Close()
			t.Error("it connects to a server whose pool is closed")
		}
		done, late := make(chan struct{}), make(chan struct{})
		go func() { p.sockets.Close(closing, func() { <-done }); close(late) }()
		if r := <-stuck; r.err == nil || r.took != closing {
			t.Errorf("the last socket is closed after %s with %v, want %s", r.took, r.err, closing)
		}
		close(done)
		<-late
	})
}
