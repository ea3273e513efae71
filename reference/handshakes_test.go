package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// packet returns a message with an opcode, the bytes head, and a document.
func packet(t testing.TB, opcode uint32, head []byte, doc bson.D) []byte {
	out := slices.Concat(make([]byte, 16), head, raw(t, doc))
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	binary.LittleEndian.PutUint32(out[12:], opcode)
	return out
}

const query, msg = 2004, 2013

func queryHead(name string) []byte {
	return append(append(make([]byte, 4), name...), 0, 0, 0, 0, 0, 1, 0, 0, 0)
}

// TestWithBackpressure checks that the field is replaced or removed in handshakes, and all other messages are
// unchanged.
func TestWithBackpressure(t *testing.T) {
	of := func(opcode uint32, head []byte, name string) func(...any) []byte {
		return func(more ...any) []byte { return packet(t, opcode, head, d(append([]any{name, 1}, more...)...)) }
	}
	plain := make([]byte, 5)
	whole := of(msg, plain, "hello")
	for _, row := range []struct {
		reason  string
		message func(more ...any) []byte
		changed bool
	}{
		{"hello as OP_MSG", whole, true},
		{"legacy hello as OP_MSG", of(msg, plain, "isMaster"), true},
		{"legacy hello as OP_QUERY", of(query, queryHead("admin.$cmd"), "isMaster"), true},
		{"a hello without the field", func(...any) []byte { return whole() }, false},
		{"another command", of(msg, plain, "ping"), false},
		{"another opcode", of(2012, plain, "hello"), false},
		{"truncated", func(more ...any) []byte { m := whole(more...); return m[:len(m)-3] }, false},
		{"empty", func(...any) []byte { return nil }, false},
	} {
		given := row.message("backpressure", "2", "client", "c")
		for value, want := range map[any][]byte{true: row.message("client", "c", "backpressure", true),
			"2": row.message("client", "c", "backpressure", "2"), nil: row.message("client", "c")} {
			if !row.changed {
				want = given
			}
			testkit.Equal(t, fmt.Sprint(row.reason, ", ", value), string(withBackpressure(given, value)), string(want))
		}
	}
}

func FuzzWithBackpressure(f *testing.F) {
	f.Add(packet(f, msg, make([]byte, 5), d("hello", 1, "backpressure", true)))
	f.Add(packet(f, query, queryHead("admin.$cmd"), d("isMaster", 1, "backpressure", "2")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		kept := string(message)
		got := withBackpressure(message, "2")
		if string(message) != kept || string(withBackpressure(got, "2")) != string(got) {
			t.Error("the argument was modified, or a second call changes the result")
		}
	})
}

type answers struct{ err error }

func (a answers) GetHandshakeInformation(context.Context, address.Address, *mnet.Connection) (mongo.HandshakeInformation, error) {
	return mongo.HandshakeInformation{}, a.err
}

func (answers) FinishHandshake(context.Context, *mnet.Connection) error { return nil }

// TestHandshakeErrors checks that the topology does not consider a server overloaded after an error reply.
func TestHandshakeErrors(t *testing.T) {
	network := mongo.Error{Message: "no", Labels: []string{mongo.NetworkError}, Wrapped: net.ErrClosed}
	for _, row := range []struct {
		reason  string
		err     error
		labels  bool
		calls   int
		hidden  bool
		command bool
	}{
		{"an error reply", mongo.Error{Code: 91, Message: "no"}, true, 1, true, true},
		{"a network error", network, true, 1, false, false},
		{"a network error, before the labels", network, false, 1, true, false},
		{"a timeout", context.DeadlineExceeded, true, 1, false, false},
		{"a success", nil, true, 0, false, false},
		{"a success, before the labels", nil, false, 0, false, false},
	} {
		calls := 0
		_, err := handshaker{answers{row.err}, row.labels, func(string) { calls++ }}.GetHandshakeInformation(t.Context(), "", nil)
		var op *net.OpError
		if errors.As(err, &op) != row.hidden || calls != row.calls || fmt.Sprint(err) != fmt.Sprint(row.err) ||
			row.hidden && op.Op != "remote error" || (innermostCommand(err) != nil) != row.command {
			t.Errorf("%s: %#v, failed was called %d times", row.reason, err, calls)
		}
	}
}
