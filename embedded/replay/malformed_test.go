package replay

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/wire"
)

// malformed is one line of the recording of broken messages.
type malformed struct {
	Case    string
	Bytes   string
	Replies []struct {
		Opcode     int32
		ResponseTo int32
		Flags      uint32
		Doc        json.RawMessage
	}
	Rest   string
	Closed bool
}

// silence is how long we wait to be sure that nothing more comes.
const silence = 60 * time.Millisecond

// TestMalformed sends broken and unusual messages, each on a connection of its
// own, one after the other: some find what others have left.
func TestMalformed(t *testing.T) {
	cases := lines[malformed](t, "malformed.jsonl")
	if len(cases) != 55 {
		t.Fatalf("%d cases", len(cases))
	}
	d := start(t, embedded.Options{Version: "4.9"})
	p := &player{t: t, hosts: d.Hosts(), same: map[any]any{}, offset: map[string]int64{}}
	bystander := dial(t, d.Hosts()[0])
	for _, m := range cases {
		t.Run(m.Case, func(t *testing.T) {
			c := dial(t, d.Hosts()[0])
			message, err := hex.DecodeString(m.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(message); err != nil {
				t.Fatal(err)
			}
			for _, want := range m.Replies {
				opcode, to, flags, doc, err := malformedReply(c)
				if err != nil {
					t.Fatal(err)
				}
				if opcode != want.Opcode || to != want.ResponseTo || flags != want.Flags {
					t.Errorf("got opcode %d to %d, flags %d, want %d to %d, %d", opcode, to, flags, want.Opcode, want.ResponseTo, want.Flags)
				}
				for _, diff := range p.compare(step{Send: json.RawMessage(`{"x": 1}`)}, doc, extended(t, want.Doc)) {
					t.Error(diff)
				}
			}
			rest, closed := drain(t, c, m.Closed)
			if got := hex.EncodeToString(rest); got != m.Rest || closed != m.Closed {
				t.Errorf("then got %q, closed %v, want %q, %v", got, closed, m.Rest, m.Closed)
			}
			ping(t, bystander)
		})
	}
}

// malformedReply reads one reply as the recording tells it: of a compressed
// one, the opcode inside in place of the flags, and no document.
func malformedReply(c *client) (opcode, to int32, flags uint32, doc bson.D, err error) {
	if err = c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return
	}
	h, body, err := wire.ReadMessage(c.in)
	if err != nil {
		return 0, 0, 0, nil, fmt.Errorf("waited %v for an answer: %w", patience, err)
	}
	var raw bson.Raw
	switch h.OpCode {
	case wire.OpMsg:
		m, err := wire.ParseMsg(h, body)
		if err != nil {
			return 0, 0, 0, nil, err
		}
		raw, flags = m.Body, uint32(m.Flags)
	case wire.OpReply:
		r, err := wire.ParseReply(body)
		if err != nil {
			return 0, 0, 0, nil, err
		}
		raw, flags = r.Documents[0], uint32(r.Flags)
	case wire.OpCompressed:
		inner, plain, _, err := wire.Decompress(h, body)
		if err != nil {
			return 0, 0, 0, nil, err
		}
		if _, err := wire.ParseMsg(inner, plain); err != nil {
			return 0, 0, 0, nil, err
		}
		return int32(h.OpCode), h.ResponseTo, uint32(inner.OpCode), bson.D{{Key: "note", Value: "compressed reply"}}, nil
	}
	err = bson.Unmarshal(raw, &doc)
	return int32(h.OpCode), h.ResponseTo, flags, doc, err
}

// drain reads what else comes until the end of the connection, or, if it should
// stay open, until it has been silent for a while.
func drain(t *testing.T, c *client, closed bool) ([]byte, bool) {
	most := silence
	if closed {
		most = patience
	}
	if err := c.SetReadDeadline(time.Now().Add(most)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.in)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return rest, false
	}
	return rest, true
}

func ping(t *testing.T, c *client) {
	t.Helper()
	raw, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(wire.AppendMsg(nil, 1, 0, 0, raw)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.receive(); err != nil || got.doc.Lookup("ok").Double() != 1 {
		t.Fatalf("another connection was harmed: %v %v", got, err)
	}
}
