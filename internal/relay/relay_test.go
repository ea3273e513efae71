package relay_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/relay"
)

const patience = 10 * time.Second

// listen gives a listener that is closed when the test is over.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, l net.Listener) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	check(t, err)
	return bounded(t, c)
}

// bounded gives a connection that lasts no longer than patience and the test.
func bounded(t *testing.T, c net.Conn) *net.TCPConn {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	check(t, c.SetDeadline(time.Now().Add(patience)))
	return c.(*net.TCPConn)
}

// pair gives both ends of a connection over TCP.
func pair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l := listen(t)
	here = dial(t, l)
	c, err := l.Accept()
	check(t, err)
	return here, bounded(t, c)
}

// whole hides that a connection can be closed by halves.
type whole struct{ net.Conn }

func TestPass(t *testing.T) {
	for _, r := range []struct {
		reason string
		before func(net.Conn) net.Conn                         // the client as Pass gets it
		behind func(net.Conn) net.Conn                         // the server as Pass gets it
		story  func(t *testing.T, client, server *net.TCPConn) // of the outer ends
	}{
		{"a client that has sent all is answered", nil, nil, answered("question")},
		{"a server that ends takes the client along", nil, nil, func(t *testing.T, client, server *net.TCPConn) {
			say(t, server, "farewell")
			check(t, server.Close())
			hear(t, client, "farewell")
		}},
		{"a server that cannot be told of an end is closed", nil, func(c net.Conn) net.Conn { return whole{c} }, func(t *testing.T, client, server *net.TCPConn) {
			say(t, client, "question")
			check(t, client.CloseWrite())
			hear(t, server, "question")
			hear(t, client, "")
		}},
		{"what was read ahead of the server is not lost", nil, func(c net.Conn) net.Conn {
			return &relay.ReadAhead{Conn: c, In: ahead(c, "an")}
		}, func(t *testing.T, client, server *net.TCPConn) {
			say(t, server, "swer")
			check(t, server.Close())
			hear(t, client, "answer")
		}},
		{"what was read ahead of the client is not lost", func(c net.Conn) net.Conn {
			return &relay.ReadAhead{Conn: c, In: ahead(c, "ques")}
		}, nil, answered("tion")},
		{"a server that was read ahead of cannot be told of an end, and is closed", nil, func(c net.Conn) net.Conn {
			return &relay.ReadAhead{Conn: c, In: ahead(c, "")}
		}, func(t *testing.T, client, server *net.TCPConn) {
			check(t, client.CloseWrite())
			hear(t, server, "")
			hear(t, client, "")
		}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			client, front := pair(t)
			back, server := pair(t)
			var before, behind net.Conn = front, back
			if r.before != nil {
				before = r.before(front)
			}
			if r.behind != nil {
				behind = r.behind(back)
			}
			over := make(chan struct{})
			go func() {
				defer close(over)
				relay.Pass(before, behind)
			}()
			r.story(t, client, server)
			select {
			case <-over:
			case <-time.After(patience):
				t.Fatalf("it did not end within %s", patience)
			}
			for _, c := range []net.Conn{front, back} {
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("a connection was left open: %v", err)
				}
			}
		})
	}
}

// answered is the story of a client that says the last of its question and ends,
// and of a server that hears all of it and answers.
func answered(last string) func(t *testing.T, client, server *net.TCPConn) {
	return func(t *testing.T, client, server *net.TCPConn) {
		t.Helper()
		say(t, client, last)
		check(t, client.CloseWrite())
		hear(t, server, "question")
		say(t, server, "answer")
		check(t, server.Close())
		hear(t, client, "answer")
	}
}

// ahead reads from a connection that seems to begin with a text.
func ahead(c net.Conn, text string) *bufio.Reader {
	in := bufio.NewReader(io.MultiReader(strings.NewReader(text), c))
	if text != "" {
		_, _ = in.Peek(1)
	}
	return in
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	check(t, err)
}

// hear reads until the end.
func hear(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got, err := io.ReadAll(c)
	if string(got) != want || err != nil {
		t.Errorf("heard %q, %v, want %q", got, err, want)
	}
}

// troubled is a listener of which the first attempts to accept fail.
type troubled struct {
	net.Listener
	errs []error
}

func (l *troubled) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

func TestAccept(t *testing.T) {
	for _, r := range []struct {
		reason string
		errs   []error
	}{
		{"a connection is served", nil},
		{"a lack of file descriptors is waited out", []error{
			&net.OpError{Op: "accept", Err: syscall.EMFILE}, &net.OpError{Op: "accept", Err: syscall.EMFILE},
		}},
		{"a client that left before it was accepted ends nothing", []error{&net.OpError{Op: "accept", Err: syscall.ECONNABORTED}}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			var ended sync.WaitGroup
			t.Cleanup(ended.Wait) // after the listener is closed
			l := listen(t)
			ended.Go(func() {
				relay.Accept(&troubled{Listener: l, errs: r.errs}, func(c net.Conn) {
					_, _ = io.WriteString(c, "welcome")
					_ = c.Close()
				})
			})
			hear(t, dial(t, l), "welcome")
		})
	}
}
