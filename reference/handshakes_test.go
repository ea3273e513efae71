package reference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/net/socket"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

type answers struct{ err error }

func (a answers) GetHandshakeInformation(context.Context, address.Address,
	*mnet.Connection) (xdriver.HandshakeInformation, error) {
	return xdriver.HandshakeInformation{}, a.err
}

func (a answers) FinishHandshake(context.Context, *mnet.Connection) error { return a.err }

// TestHandshakeErrors checks that the topology does not consider a server overloaded after an error reply.
func TestHandshakeErrors(t *testing.T) {
	network := xdriver.Error{Message: "no", Labels: []string{xdriver.NetworkError}, Wrapped: net.ErrClosed}
	for _, row := range []struct {
		reason  string
		err     error
		labels  bool
		hidden  bool
		command bool
	}{
		{"an error reply", xdriver.Error{Code: 91, Message: "no"}, true, true, true},
		{"a network error", network, true, false, false},
		{"a network error, before the labels", network, false, true, false},
		{"a timeout", context.DeadlineExceeded, true, false, false},
		{"a success", nil, true, false, false},
		{"a success, before the labels", nil, false, false, false},
	} {
		h := handshaker{answers{row.err}, newSockets(nil)}
		h.sockets.labels = row.labels
		_, err := h.GetHandshakeInformation(t.Context(), "", &mnet.Connection{})
		var op *net.OpError
		if errors.As(err, &op) != row.hidden || fmt.Sprint(err) != fmt.Sprint(row.err) ||
			row.hidden && op.Op != "remote error" || (innermostCommand(err) != nil) != row.command {
			t.Errorf("%s: %#v", row.reason, err)
		}
	}
}

// TestMaxTimeOfHello checks that only the hello of a pool's connection has maxTimeMS, and only under timeoutMS.
func TestMaxTimeOfHello(t *testing.T) {
	for options, want := range map[string]string{"heartbeatFrequencyMS=1000": "[]", "timeoutMS=5000": "[5000]"} {
		synctest.Test(t, func(t *testing.T) {
			s := script(t, "replicaset", 2)
			e, err := New(Options{dial: s.dial})
			testkit.Check(t, err)
			testkit.Equal(t, "the error of find", openOn(t, e, s.uri(options), d()).perform("find").Err == nil, true)
			time.Sleep(time.Minute) // for checks and measurements
			var got []int64
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, hello := range s.first {
				if n, ok := enginekit.Integer(hello.Lookup("maxTimeMS")); ok {
					got = append(got, n)
				}
			}
			testkit.Equal(t, "maxTimeMS of hello with "+options, fmt.Sprint(got), want)
		})
	}
}

// TestLimit checks what limits the commands of a handshake.
func TestLimit(t *testing.T) {
	now := time.Now()
	soon, late, forever := waitLimit{now.Add(1), 1}, waitLimit{now.Add(2), 2}, waitLimit{}
	client := func(d time.Duration) *time.Duration { return &d }
	for _, row := range []struct {
		reason  string
		waiting []waitLimit
		timeout *time.Duration
		want    limit
		opens   bool // hello has the time of the pool
	}{
		{"a check-out with a deadline", []waitLimit{soon}, nil, limit{waitLimit: soon, maxTime: true}, false},
		{"the check-out that waits longest", []waitLimit{soon, late, soon}, nil, limit{waitLimit: late, maxTime: true}, false},
		{"a check-out without timeoutMS waits longest", []waitLimit{soon, forever, late}, nil, limit{each: 7}, false},
		{"no check-out: the client's timeoutMS", nil, client(3), limit{each: 3, maxTime: true}, true},
		{"no check-out, timeoutMS is 0", nil, client(0), limit{maxTime: true}, true},
		{"no check-out and no timeoutMS: socketTimeoutMS", nil, nil, limit{each: 7}, false},
	} {
		s := newSockets(nil)
		s.timeout, s.socketTimeout = row.timeout, 7
		for _, p := range row.waiting {
			s.watch("a:1", p)
		}
		s.watch("b:1", waitLimit{now.Add(9), 9})
		l, hello := s.limit("a:1"), row.want
		if row.opens {
			hello = limit{waitLimit: waitLimit{deadline: now.Add(time.Hour)}}
		}
		pool, cancel := context.WithDeadline(t.Context(), now.Add(time.Hour))
		testkit.Equal(t, row.reason, []bool{l == row.want, l.hello(pool) == hello}, []bool{true, true})
		cancel()
	}
}

// wires records the deadlines of writes and reads.
type wires struct{ got string }

func (w *wires) Write(ctx context.Context, _ []byte) error {
	w.deadline(ctx, " write")
	return ctx.Err()
}

func (w *wires) Read(ctx context.Context) ([]byte, error) {
	w.deadline(ctx, " read")
	return nil, ctx.Err()
}

func (w *wires) Close() error { return nil }

func (w *wires) deadline(ctx context.Context, what string) {
	w.got += what
	if at, ok := ctx.Deadline(); ok {
		w.got += ":" + time.Until(at).String()
	}
}

// TestGreeting checks the deadlines of a handshake with two commands, each of which takes a second. The pool's context
// ends in between.
func TestGreeting(t *testing.T) {
	for _, row := range []struct {
		reason string
		limit  func() limit
		want   string // maxTimeMS, and the deadlines
	}{
		{"no limit", func() limit { return limit{} }, "none write read none write read"},
		{"socketTimeoutMS", func() limit { return limit{each: 5 * time.Second} },
			"none write:5s read:4s none write:5s read:4s"},
		{"the client's timeoutMS starts again", func() limit { return limit{each: 5 * time.Second, maxTime: true} },
			"5s write:5s read:4s 5s write:5s read:4s"},
		{"timeoutMS is 0", func() limit { return limit{maxTime: true} }, "none write read none write read"},
		{"the deadline of a check-out, less a round trip for maxTimeMS",
			func() limit {
				return limit{waitLimit: waitLimit{time.Now().Add(5 * time.Second), time.Second}, maxTime: true}
			},
			"4s write:5s read:4s 3s write:4s read:3s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			pool, end := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer end()
			ctx, cancel := context.WithCancel(pool)
			w := &wires{}
			c := &mnet.Connection{ReadWriteCloser: w}
			g := limitHandshake(ctx, c, row.limit())
			for range 2 {
				if at, ok := g.context().Deadline(); ok {
					w.got += " " + time.Until(at).String()
				} else {
					w.got += " none"
				}
				testkit.Check(t, c.Write(g.context(), nil))
				time.Sleep(time.Second)
				_, err := c.Read(g.context())
				testkit.Check(t, err)
			}
			testkit.Equal(t, row.reason, w.got, " "+row.want)
			cancel()
		})
	}
}

// TestClosedPoolEndsHandshake checks that a closed pool interrupts a handshake.
func TestClosedPoolEndsHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &mnet.Connection{ReadWriteCloser: &wires{}}
		g := limitHandshake(ctx, c, limit{})
		cancel()
		synctest.Wait()
		if err := c.Write(g.context(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the handshake goes on: %v", err)
		}
	})
}

// awaiting connects to a:1 and sends an awaitable hello. far is the server's side.
func awaiting(t *testing.T, monitor bool) (s *sockets, k *socket.Socket, far net.Conn) {
	near, far := net.Pipe()
	s = newSockets(func(context.Context, string, string) (net.Conn, error) { return near, nil })
	k, err := s.Connect(t.Context(), "tcp", "a:1", monitor)
	testkit.Check(t, err)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	_, err = k.Write(wire.AppendMsg(nil, 1, 0, wire.ExhaustAllowed, raw(t, d("hello", 1))))
	testkit.Check(t, err)
	return s, k, far
}

// somewhere is a connection to a:1.
type somewhere struct{ mnet.Describer }

func (somewhere) Address() address.Address { return "a:1" }

// TestFailedHandshake checks that after an error the handshake waits for check-outs that have run out of time, and that
// the stream of the server's monitor is held.
func TestFailedHandshake(t *testing.T) {
	for name, fails := range map[string]func(context.Context, handshaker, *mnet.Connection) error{
		"hello": func(ctx context.Context, h handshaker, c *mnet.Connection) error {
			_, err := h.GetHandshakeInformation(ctx, "a:1", c)
			return err
		},
		"authentication": func(ctx context.Context, h handshaker, c *mnet.Connection) error {
			limitHandshake(ctx, c, h.sockets.limit("a:1"))
			return h.FinishHandshake(ctx, c)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, k, far := awaiting(t, false)
			read := make(chan time.Time)
			go func() { _, _ = k.Read(make([]byte, 1)); read <- time.Now() }()
			synctest.Wait()
			time.AfterFunc(100*time.Millisecond, s.watch("a:1", waitLimit{deadline: time.Now()}))
			begun := time.Now()
			err := fails(t.Context(), handshaker{answers{net.ErrClosed}, s}, &mnet.Connection{Describer: somewhere{}})
			testkit.Equal(t, name+": the error, after", []any{errors.Is(err, net.ErrClosed), time.Since(begun)},
				[]any{true, 100 * time.Millisecond})
			begun = time.Now()
			_, err = far.Write([]byte{1})
			testkit.Check(t, err)
			testkit.Equal(t, name+": the stream is held for", (<-read).Sub(begun), monitorTimeout)
			testkit.Check(t, errors.Join(k.Close(), far.Close()))
		})
	}
}

// TestBackgroundHandshake checks what limits the hello and saslStart of a connection for minPoolSize.
func TestBackgroundHandshake(t *testing.T) {
	for _, row := range []struct {
		reason, options, hello, sasl string
		want                         string
	}{
		{"hello has connectTimeoutMS", "timeoutMS=100", "200ms+ok", "ok", "ready; maxTimeMS 100"},
		{"hello exceeds it", "timeoutMS=1000&connectTimeoutMS=100", "200ms+ok", "ok", "ready gone; maxTimeMS 1000"},
		{"saslStart has timeoutMS, again", "timeoutMS=100", "50ms+ok", "80ms+ok", "ready; maxTimeMS 100"},
		{"saslStart exceeds it", "timeoutMS=100&connectTimeoutMS=1000", "50ms+ok", "150ms+ok",
			"ready cleared gone missed; maxTimeMS 100"},
		{"without timeoutMS, they have socketTimeoutMS", "socketTimeoutMS=100&connectTimeoutMS=50", "80ms+ok", "80ms+ok",
			"ready; maxTimeMS 0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := script(t, "single", 1)
			s.on("hello", stepsOf(t, "ok,"+row.hello, nil)...) // of the monitor, and of the pool
			s.on("saslStart", stepsOf(t, row.sasl, nil)...)
			e, err := New(Options{dial: s.dial, Heartbeat: time.Hour})
			testkit.Check(t, err)
			options := row.options + "&minPoolSize=1&authMechanism=PLAIN"
			b := openOn(t, e, strings.Replace(s.uri(options), "//", "//user:password@", 1), d())
			time.Sleep(700 * time.Millisecond)
			before, after, missed := strings.Cut(b.eventWords([]int{1000}), " missed")
			got := strings.TrimSpace(before + after)
			if missed { // the heartbeat fails before or after the connection is closed
				got += " missed"
			}
			got += "; maxTimeMS"
			for _, command := range s.commands("saslStart") {
				n, _ := enginekit.Integer(command.Lookup("maxTimeMS"))
				got += fmt.Sprint(" ", n)
			}
			testkit.Equal(t, row.reason, got, row.want)
		})
	}
}
