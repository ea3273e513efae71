package godriver

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// packet returns a message with an opcode, the bytes head, and a document.
func packet(t testing.TB, opcode uint32, head []byte, doc bson.D) []byte {
	out := slices.Concat(make([]byte, 16), head, testkit.Raw(t, doc))
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	binary.LittleEndian.PutUint32(out[12:], opcode)
	return out
}

const query, msg = 2004, 2013

func queryHead(name string) []byte {
	return append(append(make([]byte, 4), name...), 0, 0, 0, 0, 0, 1, 0, 0, 0)
}

// TestRewriteHello checks that fields are replaced or removed in handshakes, and all other messages are
// unchanged.
func TestRewriteHello(t *testing.T) {
	of := func(opcode uint32, head []byte, name string) func(...any) []byte {
		return func(more ...any) []byte {
			return packet(t, opcode, head, testkit.D(append([]any{name, 1}, more...)...))
		}
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
		for value, want := range map[any][]byte{true: row.message("backpressure", true),
			"2": row.message("backpressure", "2"),
			nil: row.message()} {
			if !row.changed {
				want = given
			}
			testkit.Equal(t, fmt.Sprint(row.reason, ", ", value),
				string(RewriteHello(given, bson.E{Key: "backpressure", Value: value}, bson.E{Key: "client"})), string(want))
		}
	}
}

func FuzzRewriteHello(f *testing.F) {
	f.Add(packet(f, msg, make([]byte, 5), testkit.D("hello", 1, "backpressure", true)))
	f.Add(packet(f, query, queryHead("admin.$cmd"), testkit.D("isMaster", 1, "backpressure", "2")))
	f.Add([]byte{})
	two := bson.E{Key: "backpressure", Value: "2"}
	f.Fuzz(func(t *testing.T, message []byte) {
		kept := string(message)
		got := RewriteHello(message, two)
		if string(message) != kept || string(RewriteHello(got, two)) != string(got) {
			t.Error("the argument was modified, or a second call changes the result")
		}
	})
}
