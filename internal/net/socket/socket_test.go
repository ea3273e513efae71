package socket

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

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// message returns an OP_MSG with an empty body, or another message with a header.
func message(code wiremessage.OpCode, flags wiremessage.MsgFlag) []byte {
	at, b := wiremessage.AppendHeaderStart(nil, 1, 0, code)
	if code == wiremessage.OpMsg {
		b = append(wiremessage.AppendMsgFlags(b, flags), 0, 5, 0, 0, 0, 0)
	} else {
		b = append(b, "whatever"...)
	}
	return bsoncore.UpdateLength(b, at, int32(len(b)))
}

// end is one end of a connection that can be half closed, as with TCP, and that can
// be in a synctest bubble.
type end struct {
	net.Conn          // writes
	in       net.Conn // reads
}

func (e *end) Read(b []byte) (int, error) { return e.in.Read(b) }
func (e *end) CloseWrite() error          { return e.Conn.Close() }
func (e *end) Close() error               { return errors.Join(e.Conn.Close(), e.in.Close()) }
func (e *end) SetDeadline(t time.Time) error {
	return errors.Join(e.Conn.SetDeadline(t), e.in.SetDeadline(t))
}
func (e *end) SetReadDeadline(t time.Time) error { return e.in.SetReadDeadline(t) }

// connected returns the sockets of a client that uses the given connection.
func connected(t *testing.T, c net.Conn) (*Dialer, net.Conn) {
	t.Helper()
	s := New(func(context.Context, string, string) (net.Conn, error) { return c, nil }, time.Second)
	client, err := s.DialContext(t.Context(), "tcp", "h:1")
	testkit.Check(t, err)
	return s, client
}

// connect returns a client's sockets, one of them, and its server.
func connect(t *testing.T) (s *Dialer, client, server net.Conn) {
	t.Helper()
	clientIn, serverOut := net.Pipe()
	serverIn, clientOut := net.Pipe()
	server = &end{serverOut, serverIn}
	t.Cleanup(func() { _ = server.Close() })
	s, client = connected(t, &end{clientOut, clientIn})
	return s, client, server
}

// wait closes the sockets of a disconnected client.
func wait(s *Dialer) { s.Close(time.Second, func() {}) }

// waiting calls wait and returns a channel that receives a value afterward.
func waiting(s *Dialer) <-chan bool {
	done := make(chan bool, 1)
	go func() { wait(s); done <- true }()
	synctest.Wait()
	return done
}

// A closed connection waits after some messages until the server closes its side, for
// at most closeLimit.
func TestClose(t *testing.T) {
	messages := map[string][]byte{
		"command": message(wiremessage.OpMsg, 0), "unacknowledged": message(wiremessage.OpMsg, wiremessage.MoreToCome),
		"awaitable":  message(wiremessage.OpMsg, wiremessage.ExhaustAllowed),
		"compressed": message(wiremessage.OpCompressed, 0),
		"query":      message(wire.OpQuery, 0), "foreign": []byte("GET / HTTP/1.1\r\n\r\n"), "short": {1, 2, 3},
		"cut": message(wiremessage.OpMsg, 0)[:20],
	}
	play := func(t *testing.T, sent string, serverCloses bool) (outcome string) {
		synctest.Test(t, func(t *testing.T) {
			sockets, client, server := connect(t)
			read := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, server); read <- err }()
			for _, name := range strings.Fields(sent) {
				var err error
				if name == "reply" {
					go func() { _, _ = server.Write([]byte("x")) }()
					_, err = client.Read(make([]byte, 9))
				} else {
					_, err = client.Write(messages[name])
				}
				testkit.Check(t, err)
			}
			begun := time.Now()
			testkit.Check(t, errors.Join(client.Close(), client.Close()))
			testkit.Check(t, <-read) // the end of the connection
			done := waiting(sockets)
			outcome = testkit.Either(len(done) == 0, "waits, closed", "closed")
			if serverCloses {
				testkit.Check(t, server.Close())
			}
			<-done
			wait(sockets) // a second time, without sockets
			outcome += fmt.Sprintf(" after %s", time.Since(begun))
		})
		return outcome
	}
	testkit.Transcript(t, "testdata/close.txt", func(t *testing.T, sent string) string {
		return "the server closes its side: " + play(t, sent, true) + "\nthe server does nothing: " + play(t, sent, false)
	})
}

// A closed socket wakes readers and writers at once and rejects all calls, even while
// the connection waits for its server.
func TestClosedForItsUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sockets, client, server := connect(t)
		go func() { _, _ = io.ReadFull(server, make([]byte, len(message(wiremessage.OpMsg, 0)))) }()
		_, err := client.Write(message(wiremessage.OpMsg, 0))
		testkit.Check(t, err)
		read, wrote := make(chan error, 2), make(chan error, 1)
		for range 2 {
			go func() { _, err := client.Read(make([]byte, 9)); read <- err }()
		}
		go func() { _, err := client.Write(message(wiremessage.OpMsg, 0)); wrote <- err }()
		synctest.Wait() // until all are blocked
		testkit.Check(t, client.Close())
		for range 2 {
			if err := <-read; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a concurrent read: %v", err)
			}
		}
		testkit.ErrorContains(t, <-wrote)
		_, err = server.Write([]byte("x"))
		testkit.Check(t, err)
		_, err1 := client.Read(make([]byte, 9))
		_, err2 := client.Write(message(wiremessage.OpMsg, 0))
		never := time.Time{}
		for i, err := range []error{err1, err2, client.SetDeadline(never), client.SetReadDeadline(never),
			client.SetWriteDeadline(never)} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("call %d on a closed connection: %v", i, err)
			}
		}
		testkit.Check(t, server.Close())
		wait(sockets)
	})
}

// Deadlines apply to the connection while it is open.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, _ := connect(t)
		defer func() { _ = client.Close() }()
		read := func() error { _, err := client.Read(make([]byte, 1)); return err }
		write := func() error { _, err := client.Write(message(wiremessage.OpMsg, 0)); return err }
		var took []time.Duration
		for _, set := range []func(time.Time) error{client.SetDeadline, client.SetReadDeadline, client.SetWriteDeadline} {
			for _, use := range []func() error{read, write} {
				begun := time.Now()
				testkit.Check(t, client.SetDeadline(begun.Add(time.Hour)))
				testkit.Check(t, set(begun.Add(time.Second)))
				var timeout net.Error
				if err := use(); !errors.As(err, &timeout) || !timeout.Timeout() {
					t.Errorf("a read or write ended with %v", err)
				}
				took = append(took, time.Since(begun))
			}
		}
		testkit.Equal(t, "time of a read and a write, for each kind of deadline", fmt.Sprint(took), "[1s 1s 1s 1h0m0s 1h0m0s 1s]")
	})
}

// A reply to an earlier message that arrives after a timeout is an error.
func TestLateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sockets, client, server := connect(t)
		var failed error
		sockets.Failed = func(_ *Socket, err error) { failed = err }
		go func() { _, _ = io.Copy(io.Discard, server) }()
		_, err := client.Write(message(wiremessage.OpMsg, 0))
		testkit.Check(t, err)
		go func() { _, _ = server.Write(message(wiremessage.OpMsg, 0)) }() // not to message 1
		_, err = io.ReadAll(client)
		if wrong := new(replies.Error); !errors.As(err, &wrong) || failed != err {
			t.Errorf("the reply is accepted: %v; the reported error: %v", err, failed)
		}
		testkit.Check(t, errors.Join(client.Close(), server.Close()))
		wait(sockets)
	})
}

// Several calls can wait for several closed sockets.
func TestWaitWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sockets, _, _ := connect(t)
		for range 2 {
			var servers []net.Conn
			for range 2 {
				_, client, server := connect(t)
				client.(*Socket).owner = sockets
				go func() { _, _ = io.Copy(io.Discard, server) }()
				_, err := client.Write(message(wiremessage.OpMsg, 0))
				testkit.Check(t, err)
				testkit.Check(t, client.Close())
				servers = append(servers, server)
			}
			one, two := waiting(sockets), waiting(sockets)
			testkit.Check(t, servers[0].Close())
			synctest.Wait()
			testkit.Equal(t, "calls that return after the first server", len(one)+len(two), 0)
			testkit.Check(t, servers[1].Close())
			<-one
			<-two
		}
	})
}

// A connection that cannot be half closed is closed at once.
func TestCloseOfAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half, server := net.Pipe()
		sockets, client := connected(t, half)
		got := make(chan []byte, 1)
		go func() { all, _ := io.ReadAll(server); got <- all }()
		_, err := client.Write(message(wiremessage.OpMsg, wiremessage.MoreToCome))
		testkit.Check(t, err)
		testkit.Check(t, client.Close())
		wait(sockets)
		testkit.Equal(t, "the server receives", <-got, message(wiremessage.OpMsg, wiremessage.MoreToCome))
	})
}
