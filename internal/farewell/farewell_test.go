package farewell

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// message is one with a header, or an OP_MSG with an empty body.
func message(code wiremessage.OpCode, flags wiremessage.MsgFlag) []byte {
	at, b := wiremessage.AppendHeaderStart(nil, 1, 0, code)
	if code == wiremessage.OpMsg {
		b = append(wiremessage.AppendMsgFlags(b, flags), 0, 5, 0, 0, 0, 0)
	} else {
		b = append(b, "whatever"...)
	}
	return bsoncore.UpdateLength(b, at, int32(len(b)))
}

func plain(flags wiremessage.MsgFlag) []byte { return message(wiremessage.OpMsg, flags) }

// end is one of a connection whose ends can be closed one by one, as those of
// TCP can, and which can be in a synctest bubble.
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

// connect gives a connection of a group, and its server.
func connect(t *testing.T, g *Group) (client, server net.Conn) {
	t.Helper()
	hear, say := net.Pipe()
	listen, speak := net.Pipe()
	server = &end{say, listen}
	t.Cleanup(func() { _ = server.Close() })
	return g.Conn(&end{speak, hear}), server
}

// waiting reports the end of a group's wait.
func waiting(g *Group) <-chan struct{} {
	over := make(chan struct{})
	go func() { defer close(over); g.Wait() }()
	synctest.Wait()
	return over
}

func ended(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// After which messages a connection that is closed waits for the server: until that
// has closed its side, and for Limit at most.
func TestClose(t *testing.T) {
	none, more, exhaust := plain(0), plain(wiremessage.MoreToCome), plain(wiremessage.ExhaustAllowed)
	packed, query := message(wiremessage.OpCompressed, 0), message(opQuery, 0)
	reply := []byte(nil) // in the place of a message
	for _, r := range []struct {
		reason   string
		messages [][]byte
		waits    bool
	}{
		{"nothing was sent", nil, false},
		{"a command that was answered", [][]byte{none, reply}, false},
		{"a command whose reply nobody waits for any more", [][]byte{none}, true},
		{"an unacknowledged write", [][]byte{more}, true},
		{"a command after it was answered: it was executed before", [][]byte{more, none, reply}, false},
		{"a command after it was not", [][]byte{more, none}, true},
		{"an unacknowledged write after a command", [][]byte{none, reply, more}, true},
		{"compressed", [][]byte{packed}, true},
		{"compressed, and answered", [][]byte{packed, reply}, false},
		{"the handshake, in the older form", [][]byte{query}, true},
		{"an awaitable hello", [][]byte{exhaust}, false},
		{"an awaitable hello after a hello", [][]byte{none, reply, exhaust}, false},
		{"not a message", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, false},
		{"less than a header", [][]byte{{1, 2, 3}}, false},
		{"a message that was cut", [][]byte{none[:20]}, false},
	} {
		for _, answers := range []bool{true, false} {
			t.Run(r.reason, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var group Group
					client, server := connect(t, &group)
					heard := make(chan error, 1)
					go func() { _, err := io.Copy(io.Discard, server); heard <- err }()
					for _, m := range r.messages {
						var err error
						if m == nil {
							go func() { _, _ = server.Write([]byte("x")) }()
							_, err = client.Read(make([]byte, 9))
						} else {
							_, err = client.Write(m)
						}
						testkit.Check(t, err)
					}
					begun := time.Now()
					testkit.Check(t, errors.Join(client.Close(), client.Close()))
					testkit.Check(t, <-heard) // to the end, which must have been sent
					over := waiting(&group)
					testkit.Equal(t, "it waits for the server", !ended(over), r.waits)
					took := time.Duration(0)
					if answers {
						testkit.Check(t, server.Close())
					} else if r.waits {
						took = Limit
					}
					<-over
					testkit.Equal(t, "it took", time.Since(begun), took)
					group.Wait() // again: nobody is leaving
				})
			})
		}
	}
}

// Closed is closed for the user, whatever the connection still does: who reads or
// writes is woken at once, even though a reply comes, and nothing can be done with it.
func TestClosedForItsUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group Group
		client, server := connect(t, &group)
		go func() { _, _ = io.ReadFull(server, make([]byte, len(plain(0)))) }()
		_, err := client.Write(plain(0))
		testkit.Check(t, err)
		read, wrote := make(chan error, 2), make(chan error, 1)
		for range 2 {
			go func() { _, err := client.Read(make([]byte, 9)); read <- err }()
		}
		go func() { _, err := client.Write(plain(0)); wrote <- err }()
		synctest.Wait() // all are busy: the server does nothing more
		testkit.Check(t, client.Close())
		for range 2 {
			if err := <-read; !errors.Is(err, net.ErrClosed) {
				t.Errorf("reading meanwhile: %v", err)
			}
		}
		testkit.Fails(t, <-wrote)
		_, err = server.Write([]byte("x"))
		testkit.Check(t, err)
		_, err1 := client.Read(make([]byte, 9))
		_, err2 := client.Write(plain(0))
		never := time.Time{}
		for i, err := range []error{err1, err2, client.SetDeadline(never), client.SetReadDeadline(never), client.SetWriteDeadline(never)} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("use %d of a closed connection: %v", i, err)
			}
		}
		testkit.Check(t, server.Close())
		group.Wait()
	})
}

// Deadlines are the connection's as long as it is open.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group Group
		client, _ := connect(t, &group)
		defer func() { _ = client.Close() }()
		read := func() error { _, err := client.Read(make([]byte, 1)); return err }
		write := func() error { _, err := client.Write(plain(0)); return err }
		for _, r := range []struct {
			reason   string
			set      func(time.Time) error
			use      func() error
			overTime time.Duration
		}{
			{"of both, for a read", client.SetDeadline, read, time.Second},
			{"of both, for a write", client.SetDeadline, write, 2 * time.Second},
			{"of reads", client.SetReadDeadline, read, 3 * time.Second},
			{"of writes", client.SetWriteDeadline, write, 4 * time.Second},
		} {
			begun := time.Now()
			testkit.Check(t, r.set(begun.Add(r.overTime)))
			var timeout net.Error
			if err := r.use(); !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(begun) != r.overTime {
				t.Errorf("%s: %v after %s", r.reason, err, time.Since(begun))
			}
			testkit.Check(t, r.set(time.Time{}))
		}
	})
}

// Several can wait, for several that leave, and again later.
func TestWaitWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group Group
		for range 2 {
			var servers []net.Conn
			for range 2 {
				client, server := connect(t, &group)
				go func() { _, _ = io.Copy(io.Discard, server) }()
				_, err := client.Write(plain(0))
				testkit.Check(t, err)
				testkit.Check(t, client.Close())
				servers = append(servers, server)
			}
			one, two := waiting(&group), waiting(&group)
			testkit.Check(t, servers[0].Close())
			synctest.Wait()
			testkit.Equal(t, "over after the first", []bool{ended(one), ended(two)}, []bool{false, false})
			testkit.Check(t, servers[1].Close())
			<-one
			<-two
		}
	})
}

// A connection that cannot be closed by half is closed at once.
func TestCloseOfAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half, server := net.Pipe()
		var group Group
		client := group.Conn(half)
		got := make(chan []byte, 1)
		go func() { all, _ := io.ReadAll(server); got <- all }()
		_, err := client.Write(plain(wiremessage.MoreToCome))
		testkit.Check(t, err)
		testkit.Check(t, client.Close())
		group.Wait()
		testkit.Equal(t, "the other end hears all, and the end", <-got, plain(wiremessage.MoreToCome))
	})
}
