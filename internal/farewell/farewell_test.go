package farewell

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
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

// packed is the same in an OP_COMPRESSED.
func packed(t *testing.T, flags wiremessage.MsgFlag, with wiremessage.CompressorID) []byte {
	t.Helper()
	body := plain(flags)[16:]
	small, err := driver.CompressPayload(body, driver.CompressionOpts{Compressor: with, ZlibLevel: wiremessage.DefaultZlibLevel, ZstdLevel: wiremessage.DefaultZstdLevel})
	if err != nil {
		t.Fatal(err)
	}
	at, b := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpCompressed)
	b = wiremessage.AppendCompressedOriginalOpCode(b, wiremessage.OpMsg)
	b = wiremessage.AppendCompressedUncompressedSize(b, int32(len(body)))
	b = wiremessage.AppendCompressedCompressorID(b, with)
	b = wiremessage.AppendCompressedCompressedMessage(b, small)
	return bsoncore.UpdateLength(b, at, int32(len(b)))
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
	none, more := wiremessage.MsgFlag(0), wiremessage.MoreToCome
	for _, row := range []struct {
		why      string
		messages [][]byte
		waits    bool
	}{
		{"nothing was sent", nil, false},
		{"a command with a reply", [][]byte{plain(none)}, false},
		{"an unacknowledged write", [][]byte{plain(more)}, true},
		{"a flag that only looks alike", [][]byte{plain(wiremessage.ExhaustAllowed)}, false},
		{"a command after it, whose reply is not waited for any more", [][]byte{plain(more), plain(none)}, false},
		{"an unacknowledged write after a command", [][]byte{plain(none), plain(more)}, true},
		{"compressed by snappy", [][]byte{packed(t, more, wiremessage.CompressorSnappy)}, true},
		{"compressed by zlib", [][]byte{packed(t, more, wiremessage.CompressorZLib)}, true},
		{"compressed by zstd", [][]byte{packed(t, more, wiremessage.CompressorZstd)}, true},
		{"compressed, with a reply", [][]byte{packed(t, none, wiremessage.CompressorZLib)}, false},
		{"what is no message", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, false},
		{"less than a header", [][]byte{{1, 2, 3}}, false},
		{"compressed, and cut", [][]byte{packed(t, more, wiremessage.CompressorZLib)[:24]}, false},
	} {
		t.Run(row.why, func(t *testing.T) {
			client, server := pair(t)
			var line Line
			var group Group
			for _, m := range row.messages {
				line.Wrote(m)
				if _, err := client.Write(m); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := line.Close(client, &group); err != nil && !errors.Is(err, net.ErrClosed) {
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

// A server that never closes its side is not waited for without end.
func TestCloseIsBounded(t *testing.T) {
	client, _ := pair(t)
	var line Line
	var group Group
	line.Wrote(plain(wiremessage.MoreToCome))
	if err := line.Close(client, &group); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	group.Wait()
	if d := time.Since(begun); d < Limit/2 {
		t.Errorf("it waited for %s only", d)
	}
}

// A connection that cannot be closed by half is closed at once.
func TestCloseOfAPipe(t *testing.T) {
	client, server := net.Pipe()
	var line Line
	var group Group
	line.Wrote(plain(wiremessage.MoreToCome))
	if err := line.Close(client, &group); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end reads %v, want the end", err)
	}
	_ = server.Close()
}
