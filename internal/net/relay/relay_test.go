package relay_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// pair returns both ends of a TCP connection. They are closed when the test ends.
func pair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	a, err1 := net.Dial("tcp", l.Addr().String())
	b, err2 := l.Accept()
	testkit.Check(t, errors.Join(err1, err2, l.Close()))
	for _, c := range []net.Conn{a, b} {
		t.Cleanup(func() { _ = c.Close() })
		testkit.Check(t, c.SetDeadline(time.Now().Add(testkit.Patience)))
	}
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// same and whole wrap connections for Copy: unchanged, and without half-close.
func same(c net.Conn) net.Conn  { return c }
func whole(c net.Conn) net.Conn { return struct{ net.Conn }{c} }

func TestCopy(t *testing.T) {
	for _, r := range []struct {
		reason         string
		before, behind func(net.Conn) net.Conn
		// steps of the client and the server: "client:x" sends x, "client." half-closes, and "client=x" reads
		// x until the end.
		steps string
	}{
		{"a client that half-closes is answered", same, same,
			"client:question client. server=question server:answer server. client=answer"},
		{"a server that closes closes the client", same, same, "server:farewell server. client=farewell"},
		{"a server without half-close is closed", same, whole, "client:question client. server=question client="},
	} {
		t.Run(r.reason, func(t *testing.T) {
			client, front := pair(t)
			back, server := pair(t)
			over := make(chan bool)
			go func() { relay.Copy(r.before(front), r.behind(back)); close(over) }()
			for _, step := range strings.Fields(r.steps) {
				at := strings.IndexAny(step, ":.=")
				text, who := step[at+1:], map[string]*net.TCPConn{"client": client, "server": server}[step[:at]]
				var err error
				switch step[at] {
				case ':':
					_, err = io.WriteString(who, text)
				case '.':
					err = who.CloseWrite()
				case '=':
					var received []byte
					received, err = io.ReadAll(who)
					testkit.Equal(t, step, string(received), text)
				}
				testkit.Check(t, err)
			}
			testkit.Receive(t, "Copy returns", over)
			for _, c := range []net.Conn{front, back} {
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("a connection was left open: %v", err)
				}
			}
		})
	}
}

// failing is a listener whose calls of Accept return these errors in turn. nil is a connection.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

func TestAccept(t *testing.T) {
	full, left := &net.OpError{Op: "accept", Err: syscall.EMFILE}, &net.OpError{Op: "accept", Err: syscall.ECONNABORTED}
	closed := &net.OpError{Op: "accept", Err: net.ErrClosed}
	for _, r := range []struct {
		reason string
		errs   []error
		served int
		took   time.Duration
	}{
		{"connections are served until the listener is closed", []error{nil, nil, closed}, 2, 0},
		{"too many open files: it waits between retries", []error{full, full, nil, closed}, 1, 20 * time.Millisecond},
		{"a client that closed before it was accepted is ignored", []error{left, nil, closed}, 1, 10 * time.Millisecond},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, served := time.Now(), 0
				relay.Accept(&failing{errs: r.errs}, func(net.Conn) { served++ })
				testkit.Equal(t, "served, and waited", []any{served, time.Since(begun)}, []any{r.served, r.took})
			})
		})
	}
}
