package farewell

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is an OP_MSG with an empty body.
func plain(flags wiremessage.MsgFlag) []byte {
	at, b := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	b = append(wiremessage.AppendMsgFlags(b, flags), 0, 5, 0, 0, 0, 0)
	return bsoncore.UpdateLength(b, at, int32(len(b)))
}

// packed is the header of an OP_COMPRESSED with something in it.
func packed() []byte {
	at, b := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpCompressed)
	return bsoncore.UpdateLength(append(b, "whatever"...), at, int32(len(b)+8))
}

// query is that of an OP_QUERY.
func query() []byte {
	at, b := wiremessage.AppendHeaderStart(nil, 1, 0, opQuery)
	return bsoncore.UpdateLength(append(b, "whatever"...), at, int32(len(b)+8))
}

// pair gives both ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// TestClose shows after which messages a connection that is closed can still be
// heard of by its client, which is how it waits for the server.
func TestClose(t *testing.T) {
	none, more, exhaust := wiremessage.MsgFlag(0), wiremessage.MoreToCome, wiremessage.ExhaustAllowed
	reply := []byte(nil) // in the place of a message
	for _, row := range []struct {
		why      string
		messages [][]byte
		waits    bool
	}{
		{"nothing was sent", nil, false},
		{"a command that was answered", [][]byte{plain(none), reply}, false},
		{"a command whose reply nobody waits for any more", [][]byte{plain(none)}, true},
		{"an unacknowledged write", [][]byte{plain(more)}, true},
		{"a command after it was answered: it was executed before", [][]byte{plain(more), plain(none), reply}, false},
		{"a command after it was not", [][]byte{plain(more), plain(none)}, true},
		{"an unacknowledged write after a command", [][]byte{plain(none), reply, plain(more)}, true},
		{"compressed", [][]byte{packed()}, true},
		{"compressed, and answered", [][]byte{packed(), reply}, false},
		{"the handshake, in the older form", [][]byte{query()}, true},
		{"an awaitable hello", [][]byte{plain(exhaust)}, false},
		{"an awaitable hello after a hello", [][]byte{plain(none), reply, plain(exhaust)}, false},
		{"what is no message", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, false},
		{"less than a header", [][]byte{{1, 2, 3}}, false},
		{"a message that was cut", [][]byte{plain(none)[:20]}, false},
	} {
		t.Run(row.why, func(t *testing.T) {
			plainly, server := pair(t)
			var group Group
			client := group.Conn(plainly)
			for _, m := range row.messages {
				var err error
				if m == nil {
					_, err = server.Write([]byte("x"))
					_, err2 := client.Read(make([]byte, 9))
					err = errors.Join(err, err2)
				} else {
					_, err = client.Write(m)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Fatal(err)
				}
			}
			over := make(chan struct{})
			go func() { defer close(over); group.Wait() }()
			if row.waits {
				select {
				case <-over:
					t.Error("it did not wait for the server")
				case <-time.After(20 * time.Millisecond):
				}
			}
			if _, err := io.Copy(io.Discard, server); err != nil { // to the end, which must have been sent
				t.Error(err)
			}
			_ = server.Close()
			select {
			case <-over:
			case <-time.After(10 * time.Second):
				t.Error("it waits for a server that is gone")
			}
		})
	}
}

// Closed is closed for the user, whatever the connection still does: who reads
// is woken at once, even though a reply comes, and nothing can be done with it.
func TestClosedForItsUser(t *testing.T) {
	plainly, server := pair(t)
	var group Group
	client := group.Conn(plainly)
	if _, err := client.Write(plain(0)); err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	for range 2 {
		go func() {
			_, err := client.Read(make([]byte, 9))
			read <- err
		}()
	}
	time.Sleep(10 * time.Millisecond) // for them to be reading, most of the time
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case err := <-read:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("reading meanwhile: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("who reads does not hear of it")
		}
	}
	if _, err := server.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	_, read1 := client.Read(make([]byte, 9))
	_, write := client.Write(plain(0))
	for what, err := range map[string]error{
		"Read": read1, "Write": write, "SetDeadline": client.SetDeadline(time.Time{}),
		"SetReadDeadline": client.SetReadDeadline(time.Time{}), "SetWriteDeadline": client.SetWriteDeadline(time.Time{}),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_ = server.Close()
	group.Wait()
}

// Deadlines are the connection's as long as it is open.
func TestDeadlines(t *testing.T) {
	plainly, _ := pair(t)
	var group Group
	client := group.Conn(plainly)
	defer func() { _ = client.Close() }()
	past := time.Unix(1, 0)
	for what, set := range map[string]func(time.Time) error{"SetDeadline": client.SetDeadline, "SetReadDeadline": client.SetReadDeadline} {
		if err := set(past); err != nil {
			t.Error(err)
		}
		var timeout net.Error
		if _, err := client.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: reading gives %v", what, err)
		}
		_ = set(time.Time{})
	}
	if err := client.SetWriteDeadline(past); err != nil {
		t.Error(err)
	}
	if _, err := client.Write(plain(0)); err == nil {
		t.Error("SetWriteDeadline: writing gives no error")
	}
}

// Who still writes is woken, too: the server never reads all of this.
func TestCloseWhileWriting(t *testing.T) {
	plainly, server := pair(t)
	var group Group
	client := group.Conn(plainly)
	at, message := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	message = wiremessage.AppendMsgFlags(message, 0)
	message = append(message, make([]byte, 64<<20)...) // more than sockets take
	bsoncore.UpdateLength(message, at, int32(len(message)))
	wrote := make(chan error)
	go func() {
		_, err := client.Write(message)
		wrote <- err
	}()
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-wrote:
		if err == nil {
			t.Error("writing to nobody gives no error")
		}
	case <-time.After(10 * time.Second):
		t.Error("who writes does not hear of it")
	}
	_ = server.Close()
	group.Wait()
}

// A server that never closes its side is not waited for without end.
func TestCloseIsBounded(t *testing.T) {
	plainly, _ := pair(t)
	var group Group
	client := group.Conn(plainly)
	if _, err := client.Write(plain(wiremessage.MoreToCome)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	group.Wait()
	if d := time.Since(begun); d < Limit/2 {
		t.Errorf("it waited for %s only", d)
	}
}

// Who closes while somebody waits is waited for or not, and nothing else happens.
func TestWaitWhileClosing(t *testing.T) {
	var group Group
	var all sync.WaitGroup
	for range 8 {
		plainly, server := pair(t)
		client := group.Conn(plainly)
		if _, err := client.Write(plain(0)); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = client.Close() })
		all.Go(group.Wait)
		all.Go(func() {
			_, _ = io.Copy(io.Discard, server)
			_ = server.Close()
		})
	}
	all.Wait()
	group.Wait()
}

// A connection that cannot be closed by half is closed at once.
func TestCloseOfAPipe(t *testing.T) {
	plainly, server := net.Pipe()
	var group Group
	client := group.Conn(plainly)
	go func() { _, _ = io.ReadFull(server, make([]byte, len(plain(0)))) }()
	if _, err := client.Write(plain(wiremessage.MoreToCome)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end reads %v, want the end", err)
	}
	_ = server.Close()
}
