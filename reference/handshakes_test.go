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

// packet writes a message of an operation code, whose document follows head.
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

// TestWithBackpressure: the field is replaced, or left out, where a driver asks for
// it in a handshake; all other messages stay as they are.
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
		{"a hello of the user's", func(...any) []byte { return whole() }, false},
		{"another command", of(msg, plain, "ping"), false},
		{"another opcode", of(2012, plain, "hello"), false},
		{"truncated", func(more ...any) []byte { m := whole(more...); return m[:len(m)-3] }, false},
		{"nothing", func(...any) []byte { return nil }, false},
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
			t.Error("the caller's bytes were changed, or it is added twice")
		}
	})
}

type answers struct{ err error }

func (a answers) GetHandshakeInformation(context.Context, address.Address, *mnet.Connection) (mongo.HandshakeInformation, error) {
	return mongo.HandshakeInformation{}, a.err
}

func (answers) FinishHandshake(context.Context, *mnet.Connection) error { return nil }

// TestAnsweredHandshakes: an error reply says that the server was there to
// answer; the topology must not call it overloaded.
func TestAnsweredHandshakes(t *testing.T) {
	for _, row := range []struct {
		reason   string
		err      error
		told     int
		answered bool
	}{
		{"an error reply", mongo.Error{Code: 91, Message: "no"}, 1, true},
		{"a network error", mongo.Error{Message: "no", Labels: []string{mongo.NetworkError}, Wrapped: net.ErrClosed}, 1, false},
		{"a timeout", context.DeadlineExceeded, 1, false},
		{"a success is not told", nil, 0, false},
	} {
		told := 0
		_, err := handshaker{answers{row.err}, func(string) { told++ }}.GetHandshakeInformation(t.Context(), "", nil)
		var op *net.OpError
		if errors.As(err, &op) != row.answered || told != row.told || fmt.Sprint(err) != fmt.Sprint(row.err) ||
			row.answered && (op.Op != "remote error" || innermostCommand(err) == nil) {
			t.Errorf("%s: %#v, told %d times", row.reason, err, told)
		}
	}
}
