package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"reflect"
	"slices"
	"testing"

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

func TestWithBackpressure(t *testing.T) {
	hello, legacy := d("hello", 1, "backpressure", "2", "client", d("x", 1)), d("isMaster", 1, "helloOk", true, "backpressure", "2")
	admin := queryHead("admin.$cmd")
	whole := packet(t, msg, make([]byte, 5), hello)
	for _, c := range []struct {
		why     string
		message []byte
		at      int // where the command begins; 0: the message stays as it is
		value   any
	}{
		{"hello as OP_MSG", whole, 21, true},
		{"legacy hello as OP_MSG", packet(t, msg, make([]byte, 5), legacy), 21, true},
		{"legacy hello as OP_QUERY", packet(t, query, admin, legacy), 16 + len(admin), true},
		{"a policy without the field", whole, 21, nil},
		{"that of today", whole, 21, "2"},
		{"a hello of the user's", packet(t, msg, make([]byte, 5), d("hello", 1)), 0, "2"},
		{"another command", packet(t, msg, make([]byte, 5), d("ping", 1, "hello", 1, "backpressure", "2")), 0, true},
		{"a checksum would be wrong", packet(t, msg, []byte{1, 0, 0, 0, 0}, hello), 0, true},
		{"a document sequence comes first", packet(t, msg, []byte{0, 0, 0, 0, 1}, hello), 0, true},
		{"another opcode", packet(t, 2012, make([]byte, 5), hello), 0, true},
		{"a name without end", packet(t, query, []byte{0, 0, 0, 0, 'a'}, bson.D{})[:21], 0, true},
		{"truncated", whole[:len(whole)-3], 0, true},
		{"nothing", nil, 0, true},
	} {
		got := withBackpressure(c.message, c.value)
		if c.at == 0 {
			if string(got) != string(c.message) {
				t.Errorf("%s: it was changed", c.why)
			}
			continue
		}
		before, after := bson.Raw(c.message[c.at:]), bson.Raw(got[c.at:])
		if int(binary.LittleEndian.Uint32(got)) != len(got) || after.Validate() != nil {
			t.Errorf("%s: lengths are wrong", c.why)
			continue
		}
		var want, is bson.D
		if bson.Unmarshal(before, &want) != nil || bson.Unmarshal(after, &is) != nil {
			t.Fatal(c.why, before, after)
		}
		want = slices.DeleteFunc(want, func(e bson.E) bool { return e.Key == "backpressure" })
		if c.value != nil {
			want = append(want, bson.E{Key: "backpressure", Value: c.value})
		}
		if !reflect.DeepEqual(is, want) || string(got[4:c.at]) != string(c.message[4:c.at]) {
			t.Errorf("%s: %v, want %v", c.why, is, want)
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
	for _, c := range []struct {
		why      string
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
		_, err := handshaker{answers{c.err}, func(string) { told++ }}.GetHandshakeInformation(t.Context(), "", nil)
		var op *net.OpError
		if errors.As(err, &op) != c.answered || told != c.told || (err == nil) != (c.err == nil) || err != nil && err.Error() != c.err.Error() {
			t.Errorf("%s: %#v", c.why, err)
		}
		if c.answered && (op.Op != "remote error" || innermostCommand(err) == nil) {
			t.Errorf("%s: %#v", c.why, op)
		}
	}
}
