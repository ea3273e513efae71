package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/shared"
)

// recordings is the folder of the recordings; the test is skipped without it.
func recordings(t testing.TB) string {
	t.Helper()
	return shared.Path(t, "recordings")
}

// step is one line of a recording.
type step struct {
	Scenario   string
	Step       int
	Connection int
	Server     int
	Send       json.RawMessage
	Opcode     string
	Namespace  string
	Flags      uint32
	Sequences  map[string][]json.RawMessage
	Reply      *struct {
		Opcode string
		Flags  uint32
		Doc    json.RawMessage
	}
	Closed bool
}

func (s step) String() string { return fmt.Sprintf("%s, step %d", s.Scenario, s.Step) }

// lines reads a recording of one JSON object a line.
func lines[T any](t testing.TB, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(recordings(t), name))
	if err != nil {
		t.Fatal(err)
	}
	// The shard's replica set has another name here.
	data = bytes.ReplaceAll(data, []byte("3575efa2-03a6-46c7-bdb1-40bc9a374c0a/"), []byte("rs0/"))
	var out []T
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var v T
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// extended reads Extended JSON, keeping the order of the fields.
func extended(t testing.TB, data json.RawMessage) bson.D {
	t.Helper()
	var doc bson.D
	if err := bson.UnmarshalExtJSON(data, true, &doc); err != nil {
		t.Fatalf("%v in %.200s", err, data)
	}
	return doc
}

func start(t testing.TB, options embedded.Options) *embedded.Deployment {
	t.Helper()
	d, err := embedded.Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// patience is how long an answer may take.
const patience = 5 * time.Second

// player sends the steps of a recording, each on its connection.
type player struct {
	t     testing.TB
	hosts []string // of our servers, by number
	conns map[int]*client
	// same maps what the real server named to what ours did: cursors, resume
	// tokens, processes. It is filled by comparing and used for sending.
	same map[any]any
	// offset is how far a counter of ours is behind the real one, by what it
	// counts.
	offset map[string]int64
	// theirs are the addresses of the real servers, by number.
	theirs []string
	// rewrite, if not nil, changes what a step sends.
	rewrite func(step, bson.D) bson.D
	// payload, if not nil, compares the payloads of an authentication.
	payload func(s step, got, want []byte) bool
}

// client is one connection to a server.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &client{Conn: nc, in: bufio.NewReader(nc)}
}

// answer is what came back: one document, or the end of the connection.
type answer struct {
	opcode string
	flags  uint32
	doc    bson.Raw
	closed bool
}

// receive reads one answer.
func (c *client) receive() (answer, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return answer{}, err
	}
	h, body, err := wire.ReadMessage(c.in)
	if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset") {
		return answer{closed: true}, nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("waited %v for an answer: %w", patience, err)
	}
	switch h.OpCode {
	case wire.OpMsg:
		m, err := wire.ParseMsg(h, body)
		return answer{opcode: "OP_MSG", flags: uint32(m.Flags), doc: m.Body}, err
	case wire.OpReply:
		r, err := wire.ParseReply(body)
		if err == nil && len(r.Documents) != 1 {
			err = fmt.Errorf("%d documents", len(r.Documents))
		}
		if err != nil {
			return answer{}, err
		}
		return answer{opcode: "OP_REPLY", flags: uint32(r.Flags), doc: r.Documents[0]}, nil
	}
	return answer{}, fmt.Errorf("an answer with opcode %d", h.OpCode)
}

// play sends one step and tells how the answer differs from the recorded one,
// line by line.
func (p *player) play(s step) []string {
	c := p.conns[s.Connection]
	if c == nil {
		c = dial(p.t, p.hosts[s.Server])
		p.conns[s.Connection] = c
	}
	if s.Send != nil && string(s.Send) != "null" {
		if _, err := c.Write(p.message(s)); err != nil {
			return []string{"send: " + err.Error()}
		}
	}
	if s.Reply == nil && !s.Closed {
		return nil
	}
	got, err := c.receive()
	if err != nil {
		return []string{err.Error()}
	}
	if got.closed || s.Closed {
		delete(p.conns, s.Connection)
		if got.closed != s.Closed {
			return []string{fmt.Sprintf("connection closed: got %v, want %v; %v", got.closed, s.Closed, got.doc)}
		}
		return nil
	}
	var diff []string
	if got.opcode != s.Reply.Opcode || got.flags != s.Reply.Flags {
		diff = append(diff, fmt.Sprintf("opcode and flags: got %s %d, want %s %d", got.opcode, got.flags, s.Reply.Opcode, s.Reply.Flags))
	}
	var doc bson.D
	if err := bson.Unmarshal(got.doc, &doc); err != nil {
		return append(diff, "unmarshal: "+err.Error())
	}
	return append(diff, p.compare(s, doc, extended(p.t, s.Reply.Doc))...)
}

// message is the bytes that a step sends.
func (p *player) message(s step) []byte {
	doc := p.ours(extended(p.t, s.Send)).(bson.D)
	if p.rewrite != nil {
		doc = p.rewrite(s, doc)
	}
	raw, err := bson.Marshal(doc)
	if err != nil {
		p.t.Fatal(err)
	}
	if s.Opcode == "OP_QUERY" {
		return wire.AppendQuery(nil, 1, wire.Query{Collection: s.Namespace, Return: -1, Query: raw})
	}
	return p.withSequences(wire.AppendMsg(nil, 1, 0, wire.Flags(s.Flags), raw), s)
}

// withSequences appends document sequences to a message.
func (p *player) withSequences(message []byte, s step) []byte {
	for name, docs := range s.Sequences {
		section := append([]byte(name), 0)
		for _, d := range docs {
			raw, err := bson.Marshal(extended(p.t, d))
			if err != nil {
				p.t.Fatal(err)
			}
			section = append(section, raw...)
		}
		message = append(message, 1)
		message = append(message, int32Bytes(len(section)+4)...)
		message = append(message, section...)
	}
	copy(message, int32Bytes(len(message)))
	return message
}

func int32Bytes(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }

// ours puts our names into what is sent, in place of the real server's.
func (p *player) ours(v any) any {
	switch v := v.(type) {
	case bson.D:
		for i := range v {
			if v[i].Key == "topologyVersion" {
				p.ourVersion(v[i].Value)
				continue
			}
			v[i].Value = p.ours(v[i].Value)
		}
		return v
	case bson.A:
		for i := range v {
			v[i] = p.ours(v[i])
		}
		return v
	case int64, string, bson.ObjectID, bson.Timestamp:
		if o, ok := p.same[v]; ok {
			return o
		}
		return v
	}
	return v
}

// ourVersion translates a topologyVersion that a recorded client sends.
func (p *player) ourVersion(v any) {
	doc, ok := v.(bson.D)
	if !ok {
		return
	}
	for i, e := range doc {
		switch value := e.Value.(type) {
		case bson.ObjectID:
			doc[i].Value = p.ours(value)
		case int64:
			// Counters that no server has ever had stay as they are.
			if o, ok := p.same[counter(value)]; ok {
				doc[i].Value = o
			}
		}
	}
}

// counter keeps counters of topologyVersion apart from other numbers.
type counter int64
