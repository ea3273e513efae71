package replies

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func message(id, to int32, opcode wiremessage.OpCode, flags wiremessage.MsgFlag) []byte {
	at, b := wiremessage.AppendHeaderStart(nil, id, to, opcode)
	b = append(wiremessage.AppendMsgFlags(b, flags), "a document"...)
	return bsoncore.UpdateLength(b, at, int32(len(b)))
}

// buffer is a connection that reads what the server has sent.
type buffer struct {
	net.Conn
	replies io.Reader
}

func (b buffer) Read(p []byte) (int, error)      { return b.replies.Read(p) }
func (buffer) Write(message []byte) (int, error) { return len(message), nil }

func TestReplies(t *testing.T) {
	const msg, more = wiremessage.OpMsg, wiremessage.MoreToCome
	request := func(id int32) []byte { return message(id, 0, msg, 0) }
	reply := func(to int32) []byte { return message(90, to, msg, 0) }
	for _, row := range []struct {
		reason   string
		requests [][]byte
		replies  [][]byte
		accepted bool
	}{
		{"the reply to the only request", [][]byte{request(1)}, [][]byte{reply(1)}, true},
		{"a late reply to an earlier request", [][]byte{request(1), request(2)}, [][]byte{reply(1)}, false},
		{"the reply to the last request", [][]byte{request(1), request(2)}, [][]byte{reply(2)}, true},
		{"a reply to nothing", [][]byte{request(1)}, [][]byte{reply(0)}, false},
		{"a second reply that is also wrong", [][]byte{request(1)}, [][]byte{reply(1), reply(2)}, false},
		{"a compressed late reply", [][]byte{request(1), request(2)},
			[][]byte{message(90, 1, wiremessage.OpCompressed, 0)}, false},
		{"an OP_REPLY, which has other flags", [][]byte{request(1)},
			[][]byte{message(90, 1, wiremessage.OpCode(1), more), reply(1)}, true},
		{"each reply of a stream is to the previous one", [][]byte{request(1)},
			[][]byte{message(91, 1, msg, more), message(92, 91, msg, more), message(93, 92, msg, 0)}, true},
		{"a stream whose replies are all to the request", [][]byte{request(1)},
			[][]byte{message(91, 1, msg, more), message(92, 1, msg, 0)}, false},
		{"not the wire protocol", [][]byte{[]byte("a TLS handshake, or something else")}, [][]byte{reply(2)}, true},
		{"not the wire protocol any more", [][]byte{request(1), []byte("something else")}, [][]byte{reply(2)}, true},
	} {
		for _, size := range []int{1, 4, 16, 1000} {
			c := Check(buffer{replies: bytes.NewReader(slices.Concat(row.replies...))})
			for _, m := range row.requests {
				_, err := c.Write(m)
				testkit.Check(t, err)
			}
			_, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{c}, make([]byte, size))
			if refused := new(Error); (err == nil) != row.accepted || err != nil && !errors.As(err, &refused) {
				t.Errorf("%s, read in pieces of %d bytes: %v", row.reason, size, err)
			}
			if _, again := c.Read(make([]byte, 1)); err != nil && again != err {
				t.Errorf("%s: the connection is used again: %v", row.reason, again)
			}
		}
	}
}

// TestDialer checks that a dialed connection is a checked one.
func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	c, err := Dialer{}.DialContext(t.Context(), "tcp", l.Addr().String())
	testkit.Check(t, err)
	if _, ok := c.(*Conn); !ok {
		t.Errorf("the connection is a %T", c)
	}
	testkit.Check(t, errors.Join(c.Close(), l.Close()))
	_, err = Dialer{}.DialContext(t.Context(), "tcp", l.Addr().String())
	testkit.ErrorContains(t, err)
}

func TestOwn(t *testing.T) {
	o := Own(options.Client())
	testkit.Equal(t, "dialer", o.Dialer == Dialer{}, true)
	testkit.Equal(t, "a client with streaming heartbeats may wait 10 s for the next one", *o.ServerMonitoringMode, "poll")
}
