package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// packet writes a message of an operation code, whose body follows head.
func packet(t testing.TB, opcode uint32, head []byte, d bson.D) []byte {
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	out := append(make([]byte, 16), append(head, doc...)...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	binary.LittleEndian.PutUint32(out[12:], opcode)
	return out
}

const query, msg = 2004, 2013

func queryHead(name string) []byte {
	return append(append(make([]byte, 4), name...), 0, 0, 0, 0, 0, 1, 0, 0, 0)
}

func TestWithBackpressure(t *testing.T) {
	hello := bson.D{{Key: "hello", Value: 1}, {Key: "client", Value: bson.D{{Key: "x", Value: 1}}}}
	legacy := bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}}
	truncated := packet(t, msg, make([]byte, 5), hello)
	truncated = truncated[:len(truncated)-3]
	for _, c := range []struct {
		why     string
		message []byte
		at      int // where the command begins; 0: the message stays as it is
	}{
		{"hello as OP_MSG", packet(t, msg, make([]byte, 5), hello), 21},
		{"legacy hello as OP_MSG", packet(t, msg, make([]byte, 5), legacy), 21},
		{"legacy hello as OP_QUERY", packet(t, query, queryHead("admin.$cmd"), legacy), 16 + len(queryHead("admin.$cmd"))},
		{"another command", packet(t, msg, make([]byte, 5), bson.D{{Key: "ping", Value: 1}, {Key: "hello", Value: 1}}), 0},
		{"the field is there already", packet(t, msg, make([]byte, 5), append(hello, bson.E{Key: "backpressure", Value: true})), 0},
		{"a checksum would be wrong", packet(t, msg, []byte{1, 0, 0, 0, 0}, hello), 0},
		{"a document sequence comes first", packet(t, msg, []byte{0, 0, 0, 0, 1}, hello), 0},
		{"another opcode", packet(t, 2012, make([]byte, 5), hello), 0},
		{"a name without end", packet(t, query, []byte{0, 0, 0, 0, 'a'}, bson.D{})[:21], 0},
		{"truncated", truncated, 0},
		{"nothing", nil, 0},
	} {
		got := withBackpressure(c.message)
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
		were, _ := before.Elements()
		are, _ := after.Elements()
		if v, _ := after.Lookup("backpressure").StringValueOK(); v != "2" || len(are) != len(were)+1 || string(got[4:c.at]) != string(c.message[4:c.at]) {
			t.Errorf("%s: %v", c.why, after)
		}
	}
}

func FuzzWithBackpressure(f *testing.F) {
	f.Add(packet(f, msg, make([]byte, 5), bson.D{{Key: "hello", Value: 1}}))
	f.Add(packet(f, query, queryHead("admin.$cmd"), bson.D{{Key: "isMaster", Value: 1}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		kept := string(message)
		got := withBackpressure(message)
		if string(message) != kept {
			t.Error("the caller's bytes were changed")
		}
		if string(withBackpressure(got)) != string(got) {
			t.Error("it is added twice")
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
		answered bool
	}{
		{"an error reply", mongo.Error{Code: 91, Message: "no"}, true},
		{"a network error", mongo.Error{Message: "no", Labels: []string{mongo.NetworkError}, Wrapped: net.ErrClosed}, false},
		{"a timeout", context.DeadlineExceeded, false},
	} {
		told := 0
		_, err := handshaker{answers{c.err}, func(string) { told++ }}.GetHandshakeInformation(context.Background(), "", nil)
		var op *net.OpError
		if errors.As(err, &op) != c.answered || err.Error() != c.err.Error() || told != 1 {
			t.Errorf("%s: %#v", c.why, err)
		}
		if c.answered && (op.Op != "remote error" || innermostCommand(err) == nil) {
			t.Errorf("%s: %#v", c.why, op)
		}
	}
	if _, err := (handshaker{answers{}, func(string) { t.Error("a success is told") }}).GetHandshakeInformation(context.Background(), "", nil); err != nil {
		t.Error(err)
	}
}
