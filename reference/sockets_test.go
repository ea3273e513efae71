package reference

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// wired gives a client's sockets, one of them, and its other end, which reads
// what is sent.
func wired(t *testing.T) (*sockets, *socket, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	s := newSockets(func(context.Context, string, string) (net.Conn, error) { return near, nil })
	k, err := s.DialContext(t.Context(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, far) }()
	t.Cleanup(func() { _, _ = k.Close(), far.Close() })
	return s, k.(*socket), far
}

// await sends the hello that a server answers again and again.
func (k *socket) await(t *testing.T) {
	t.Helper()
	if _, err := k.Write(message(1, raw(t, d("hello", 1)), wiremessage.ExhaustAllowed)); err != nil {
		t.Fatal(err)
	}
}

// read reads in the background.
func (k *socket) read() <-chan error {
	read := make(chan error, 1)
	go func() {
		_, err := k.Read(make([]byte, 1))
		read <- err
	}()
	synctest.Wait()
	return read
}

// background does something that waits, and reports whether it still does once
// nothing else goes on.
func background(do func()) (waits func() bool) {
	over := make(chan struct{})
	go func() { defer close(over); do() }()
	return func() bool {
		synctest.Wait()
		select {
		case <-over:
			return false
		default:
			return true
		}
	}
}

// A socket is known as that of a monitor which streams from the first read
// after an awaitable hello. If it were known from the hello on, it could be
// closed before the monitor reads, which then sleeps for minHeartbeat.
func TestStreamsAreKnownFromTheirFirstRead(t *testing.T) {
	for _, row := range []struct {
		reason string
		acts   string // plain and awaitable hellos, reads, and closing
		known  bool
	}{
		{"nothing was sent", "", false},
		{"a read without a hello", "r", false},
		{"an ordinary hello is what every connection sends", "pr", false},
		{"the hello alone does not stream", "a", false},
		{"the read after it does", "ar", true},
		{"and the reads after that", "prarr", true},
		{"it is forgotten when it is closed", "arc", false},
		{"and not known again by a late read", "acr", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, k, far := wired(t)
			for _, act := range row.acts {
				switch act {
				case 'p':
					if _, err := k.Write(message(1, raw(t, d("hello", 1)), 0)); err != nil {
						t.Fatal(err)
					}
				case 'a':
					k.await(t)
				case 'r':
					read := k.read()
					_, _ = far.Write([]byte{1})
					<-read
				case 'c':
					_ = k.Close()
				}
			}
			if known := s.monitors["a:1"] != nil; known != row.known {
				t.Errorf("%s: known %t, want %t", row.reason, known, row.known)
			}
		})
	}
}

// Connections of a pool wait for the first check of its server, if it has to
// have some.
func TestPoolsWaitForTheirServers(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		reason string
		before func(*sockets)
		ctx    context.Context
		waits  bool
		want   error
	}{
		{"its server is known", func(s *sockets) { s.discover("a:1") }, t.Context(), false, nil},
		{"it may be empty", func(s *sockets) { s.patient = false }, t.Context(), false, nil},
		{"the time is over", func(s *sockets) { s.discover("b:1") }, ended, false, context.Canceled},
		{"the client is closed", func(s *sockets) { s.resting.close() }, t.Context(), false, net.ErrClosed},
		{"its server becomes known", func(s *sockets) { s.discover("b:1") }, context.WithoutCancel(t.Context()), true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSockets(nil)
			s.patient = true
			row.before(s)
			var err error
			waits := background(func() { err = s.discovered(row.ctx, "a:1") })
			if waits() != row.waits {
				t.Errorf("%s: it waits: %t", row.reason, !row.waits)
			}
			s.discover("a:1")
			if waits() || err != row.want {
				t.Errorf("%s: got %v, want %v", row.reason, err, row.want)
			}
		})
	}
}

// A check that was cancelled is followed by rest; nothing else is.
func TestRest(t *testing.T) {
	const address = "a:1"
	for _, row := range []struct {
		reason string
		before func(*sockets)
		rests  bool
	}{
		{"no check was cancelled", func(*sockets) {}, false},
		{"one was", func(s *sockets) { s.cancel(address, io.EOF) }, true},
		{"by the topology, whose cause is not known", func(s *sockets) { s.cancel(address, nil) }, true},
		{"for an immediate one", func(s *sockets) { s.cancel(address, checkNow{}) }, false},
		{"that of another server", func(s *sockets) { s.cancel("b:1", io.EOF) }, false},
		{"an operation waits already", func(s *sockets) { s.cancel(address, io.EOF); s.resting.seek() }, false},
		{"one that waited has found a server", func(s *sockets) { s.resting.seek()(); s.cancel(address, io.EOF) }, true},
		{"the client is closed", func(s *sockets) { s.cancel(address, io.EOF); s.resting.close() }, false},
		{"it has rested before", func(s *sockets) { s.cancel(address, io.EOF); s.resting.rest(address, 0) }, false},
	} {
		for end, by := range map[time.Duration]func(*sockets){
			time.Hour:   func(*sockets) {}, // the next heartbeat is due
			time.Second: func(s *sockets) { time.Sleep(time.Second); s.resting.seek() },
		} {
			synctest.Test(t, func(t *testing.T) {
				s, begun := newSockets(nil), time.Now()
				row.before(s)
				go by(s)
				s.resting.rest(address, time.Hour)
				if took := time.Since(begun); row.rests && took != end || !row.rests && took != 0 {
					t.Errorf("%s: rested for %v, want %v: %t", row.reason, took, end, row.rests)
				}
				time.Sleep(time.Hour)
			})
		}
	}
}

// A stream is ended under its monitor while the condition holds, and what came
// meanwhile is not read.
func TestFailWhile(t *testing.T) {
	cause := errors.New("cause")
	for _, row := range []struct {
		reason         string
		reading, holds bool
		want           error
	}{
		{"it reads, and the server is Unknown", true, true, cause},
		{"it reads, and the server is known", true, false, nil},
		{"it will read, and the server is Unknown by then", false, true, cause},
		{"it will read, and the server is known by then", false, false, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, k, far := wired(t)
			k.await(t)
			var read <-chan error
			if row.reading {
				read = k.read()
			}
			over := k.failWhile(cause, func() bool { return row.holds })
			undecided := background(func() { <-over })
			if undecided() == row.reading {
				t.Errorf("%s: it is decided: %t", row.reason, !row.reading)
			}
			if !row.reading {
				read = k.read()
			}
			if !row.holds {
				_, _ = far.Write([]byte{1})
			}
			if err := <-read; err != row.want || undecided() {
				t.Errorf("%s: read %v, want %v", row.reason, err, row.want)
			}
			waits := k.failWhile(cause, func() bool { return false })
			_ = k.Close()
			<-waits // a socket that is closed will not be read
		})
	}
}

// While a handshake with its server has failed, a monitor hears nothing.
func TestHold(t *testing.T) {
	known, unknown := func() bool { return false }, func() bool { return true }
	for _, row := range []struct {
		reason string
		holds  int
		end    func(*sockets, *socket)
		held   bool // still, after the end
		want   error
	}{
		{"nothing has failed", 0, func(*sockets, *socket) {}, false, nil},
		{"the server is known all the same", 1, func(s *sockets, _ *socket) { s.release("a:1", known) }, false, nil},
		{"the server is Unknown now", 1, func(s *sockets, _ *socket) { s.release("a:1", unknown) }, false, net.ErrClosed},
		{"one of two is over", 2, func(s *sockets, _ *socket) { s.release("a:1", known) }, true, nil},
		{"two are", 2, func(s *sockets, _ *socket) { s.release("a:1", known); s.release("a:1", known) }, false, nil},
		{"the topology cancels the check", 1, func(_ *sockets, k *socket) { _ = k.Close() }, false, net.ErrClosed},
		{"the client is closed", 1, func(s *sockets, _ *socket) { s.resting.close() }, false, net.ErrClosed},
		{"no more is heard: only for a while", 1, func(*sockets, *socket) {}, true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, k, far := wired(t)
			k.await(t)
			for range row.holds {
				s.hold("a:1")
			}
			read := k.read()
			if s.awaitStream("a:1") != k {
				t.Errorf("%s: it does not stream", row.reason)
			}
			var err error
			waits := background(func() { err = <-read })
			_, _ = far.Write([]byte{1})
			if waits() != (row.holds > 0) {
				t.Errorf("%s: it is held: %t", row.reason, row.holds == 0)
			}
			row.end(s, k)
			if waits() != row.held {
				t.Errorf("%s: it is held in the end: %t", row.reason, !row.held)
			}
			time.Sleep(noticing)
			if waits() || !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("%s: read %v, want %v", row.reason, err, row.want)
			}
		})
	}
}

// What a monitor has read takes effect before a handshake that failed does.
func TestHoldWaitsForWhatWasRead(t *testing.T) {
	for _, row := range []struct {
		reason           string
		streams, reading bool
		then             func(*sockets, *socket)
		took             time.Duration
	}{
		{"there is no monitor", false, false, nil, 0},
		{"it waits for the server", true, true, nil, 0},
		{"it comes back for more", true, false, func(_ *sockets, k *socket) { k.mu.Lock(); k.reading = true; k.mu.Unlock() }, 10 * time.Millisecond},
		{"its stream ends", true, false, func(s *sockets, _ *socket) { s.mu.Lock(); delete(s.monitors, "a"); s.mu.Unlock() }, 10 * time.Millisecond},
		{"it does not for long", true, false, func(*sockets, *socket) {}, noticing},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, begun := newSockets(nil), time.Now()
			monitor := &socket{owner: s, address: "a", monitor: true, reading: row.reading}
			if row.streams {
				s.monitors["a"] = monitor
			}
			if row.then != nil {
				time.AfterFunc(10*time.Millisecond, func() { row.then(s, monitor) })
			}
			s.hold("a")
			if took := time.Since(begun); took < row.took || took > row.took+time.Millisecond {
				t.Errorf("%s: it took %v", row.reason, took)
			}
			time.Sleep(time.Second)
		})
	}
}

// Immediate checks of a server keep their distance, and at most one waits.
func TestImmediateChecksKeepTheirDistance(t *testing.T) {
	const interval = 100 * time.Millisecond
	start, s := time.Now(), newSockets(nil)
	for _, row := range []struct {
		reason, address string
		after, wait     time.Duration
		ours            bool
	}{
		{"the first one is free", "a", 0, 0, true},
		{"another server has its own count", "b", 0, 0, true},
		{"too early: it waits for its time", "a", 30 * time.Millisecond, 70 * time.Millisecond, true},
		{"one is waiting already", "a", 60 * time.Millisecond, 0, false},
		{"the one that waited counts", "a", 150 * time.Millisecond, 50 * time.Millisecond, true},
		{"long after, it is free again", "a", time.Second, 0, true},
	} {
		wait, ours := s.appoint(row.address, start.Add(row.after), interval)
		if wait != row.wait || ours != row.ours {
			t.Errorf("%s: wait %v, ours %t, want %v, %t", row.reason, wait, ours, row.wait, row.ours)
		}
	}
}

func TestChecksThatTimeOut(t *testing.T) {
	const address = "a:1"
	for _, row := range []struct {
		reason  string
		read    error
		repeats bool
	}{
		{"a time-out is repeated", os.ErrDeadlineExceeded, true},
		{"another error is not: the topology acts on it at once", net.ErrClosed, false},
		{"nor is a success", nil, false},
	} {
		s := newSockets(nil)
		s.timedOut(address, row.read)
		if began := s.checks(address); began == row.repeats {
			t.Errorf("%s: the next check begins: %t", row.reason, began)
		}
		err := s.again(address)
		if again := errors.As(err, new(repeated)); again != row.repeats || again && !errors.Is(err, row.read) {
			t.Errorf("%s: the second check fails with %v", row.reason, err)
		}
		if s.cancelled(address) != row.repeats || s.cancelled("") != row.repeats || s.cancelled("b:1") {
			t.Errorf("%s: what it changes must not be told", row.reason)
		}
		if err := s.again(address); err != nil {
			t.Errorf("%s: the third fails with %v", row.reason, err)
		}
		if !s.checks(address) || s.cancelled(address) {
			t.Errorf("%s: it is not over with the third check", row.reason)
		}
	}
}
