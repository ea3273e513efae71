package relay_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// pair gives both ends of a connection over TCP, which last as long as the test.
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

// same, whole and ahead are connections as Pass may get them: as they are, ones
// that cannot be closed by halves, and ones of which a text was read ahead.
func same(c net.Conn) net.Conn  { return c }
func whole(c net.Conn) net.Conn { return struct{ net.Conn }{c} }

func ahead(text string) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn {
		in := bufio.NewReader(io.MultiReader(strings.NewReader(text), c))
		if text != "" {
			_, _ = in.Peek(1)
		}
		return &relay.ReadAhead{Conn: c, In: in}
	}
}

func TestPass(t *testing.T) {
	for _, r := range []struct {
		reason         string
		before, behind func(net.Conn) net.Conn
		// The story of the outer ends, in words of two: who does what. The client
		// and the server say something, end, or hear something up to the end.
		story string
	}{
		{"a client that has sent all is answered", same, same, "client:question client. server=question server:answer server. client=answer"},
		{"a server that ends takes the client along", same, same, "server:farewell server. client=farewell"},
		{"a server that cannot hear of an end is closed", same, whole, "client:question client. server=question client="},
		{"what was read ahead of the server is not lost", same, ahead("a"), "server:nswer server. client=answer"},
		{"what was read ahead of the client is not lost", ahead("q"), same, "client:uestion client. server=question server:answer server. client=answer"},
		{"a server that was read ahead of cannot hear of an end, and is closed", same, ahead(""), "client. server= client="},
	} {
		t.Run(r.reason, func(t *testing.T) {
			client, front := pair(t)
			back, server := pair(t)
			over := make(chan bool)
			go func() { relay.Pass(r.before(front), r.behind(back)); close(over) }()
			for _, step := range strings.Fields(r.story) {
				at := strings.IndexAny(step, ":.=")
				text, who := step[at+1:], map[string]*net.TCPConn{"client": client, "server": server}[step[:at]]
				var err error
				switch step[at] {
				case ':':
					_, err = io.WriteString(who, text)
				case '.':
					err = who.CloseWrite()
				case '=':
					var heard []byte
					heard, err = io.ReadAll(who)
					testkit.Equal(t, step, string(heard), text)
				}
				testkit.Check(t, err)
			}
			testkit.Receive(t, "the end of it", over)
			for _, c := range []net.Conn{front, back} {
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("a connection was left open: %v", err)
				}
			}
		})
	}
}

// troubled is a listener whose attempts to accept end like this, one after the other.
type troubled struct {
	net.Listener
	errs []error // nil is a connection
}

func (l *troubled) Accept() (net.Conn, error) {
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
		{"a lack of file descriptors is waited out, not asked away", []error{full, full, nil, closed}, 1, 20 * time.Millisecond},
		{"a client that left before it was accepted ends nothing", []error{left, nil, closed}, 1, 10 * time.Millisecond},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, served := time.Now(), 0
				relay.Accept(&troubled{errs: r.errs}, func(net.Conn) { served++ })
				testkit.Equal(t, "served, and waited", []any{served, time.Since(begun)}, []any{r.served, r.took})
			})
		})
	}
}
