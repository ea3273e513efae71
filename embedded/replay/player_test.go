package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// step is one line of a recording.
type step struct {
	Scenario                 string
	Step, Connection, Server int
	Send                     json.RawMessage
	Opcode, Namespace        string
	Flags                    uint32
	Sequences                map[string][]json.RawMessage
	Reply                    *reply
	Closed                   bool
}

type reply struct {
	Opcode string
	Flags  uint32
	Doc    json.RawMessage
}

// UnmarshalJSON reads a reply, or the document of one that is an OP_MSG.
func (r *reply) UnmarshalJSON(data []byte) error {
	type plain reply
	err := json.Unmarshal(data, (*plain)(r))
	if r.Doc == nil {
		r.Opcode, r.Doc = "OP_MSG", slices.Clone(data)
	}
	return err
}

func (s step) String() string { return fmt.Sprintf("%s, step %d", s.Scenario, s.Step) }

// lines reads a recording of so many JSON objects, one a line.
func lines[T any](t testing.TB, name string, n int) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Recordings(t), name))
	testkit.Check(t, err)
	// The shard's replica set has another name here.
	text = bytes.ReplaceAll(text, []byte("3575efa2-03a6-46c7-bdb1-40bc9a374c0a/"), []byte("rs0/"))
	var out []T
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var v T
		testkit.Check(t, json.Unmarshal(in.Bytes(), &v))
		out = append(out, v)
	}
	if err := in.Err(); err != nil || len(out) != n {
		t.Fatalf("%s: %d lines, %v, want %d", name, len(out), err, n)
	}
	return out
}

// player sends the steps of a recording, each on its connection. It runs in a
// synctest bubble.
type player struct {
	t       testing.TB
	servers []*server.Server // by number
	conns   map[int]*client
	// same maps what the real server named to what ours did: cursors, resume
	// tokens, processes. It is filled by comparing and used for sending.
	same map[any]any
	// behind is how far the count of a fail point is behind the real one.
	behind map[string]int32
	// scenario, if not nil, is called before the first step of each.
	scenario func(p *player, first step)
	// rewrite, if not nil, changes what a step sends.
	rewrite func(step, bson.D) bson.D
	// payload, if not nil, compares the payloads of an authentication.
	payload func(s step, got, want []byte) bool
}

// newPlayer starts servers of the recorded version, at the recorded addresses.
func newPlayer(t testing.TB, kind server.Kind, users *server.Users, hosts ...string) *player {
	t.Helper()
	profile, err := server.ProfileNamed("4.9")
	testkit.Check(t, err)
	time.Sleep(time.Until(time.Unix(1795360000, 0))) // when the recording began, for the times in it
	const set = "rs0"
	c := server.NewCluster(server.Config{Kind: kind, Profile: profile, SetName: set, Users: users, Backend: data.New(data.Options{
		Sharded: kind == server.Sharded, ReplicaSet: kind == server.ReplicaSet, ShardName: server.ShardName, ShardHost: server.ShardHost(set),
		NoScripting: true, // as the recorded servers were started
	})})
	t.Cleanup(func() { testkit.Check(t, c.Close()) })
	config := server.SetConfig{Name: set, Version: 1}
	for i, host := range hosts {
		config.Members = append(config.Members, server.NewMember(i, host))
	}
	if kind == server.ReplicaSet {
		testkit.Check(t, c.Configure(config))
	}
	for _, host := range hosts {
		_, err := c.Join(host, server.Process{AccessControl: users != nil})
		testkit.Check(t, err)
	}
	return &player{t: t, servers: c.Members(), conns: map[int]*client{}, same: map[any]any{}, behind: map[string]int32{}}
}

// client is one connection to a server.
type client struct {
	net.Conn
	in *bufio.Reader
}

func connect(t testing.TB, s *server.Server) *client {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	s.Serve(far, false)
	_ = near.SetReadDeadline(time.Now().Add(24 * time.Hour)) // which is after all recordings
	return &client{near, bufio.NewReader(near)}
}

// send sends a message. A server need not read to the end of what it closes
// the connection for.
func (c *client) send(message []byte) { _, _ = c.Write(message) }

// answer is what came back: one document, or the end of the connection. Of a
// compressed document it has the opcode inside in place of the flags.
type answer struct {
	opcode wire.OpCode
	to     int32
	flags  uint32
	doc    bson.Raw
	closed bool
}

// opcodes are their names in the recordings.
var opcodes = map[wire.OpCode]string{wire.OpMsg: "OP_MSG", wire.OpReply: "OP_REPLY"}

// receive gives the next answer, when the server has done what it does.
func (c *client) receive() (answer, error) {
	h, body, err := wire.ReadMessage(c.in)
	synctest.Wait()
	if errors.Is(err, io.EOF) {
		return answer{closed: true}, nil
	}
	a := answer{opcode: h.OpCode, to: h.ResponseTo}
	switch {
	case err != nil:
	case h.OpCode == wire.OpReply:
		a.flags, a.doc = binary.LittleEndian.Uint32(body), body[20:] // behind cursor, first and number of documents
	case h.OpCode == wire.OpCompressed:
		h, body, _, err = wire.Decompress(h, body)
		if a.flags = uint32(h.OpCode); err == nil {
			_, err = wire.ParseMsg(h, body)
		}
	default:
		var m wire.Msg
		m, err = wire.ParseMsg(h, body)
		a.flags, a.doc = uint32(m.Flags), m.Body
	}
	return a, err
}

// play sends one step and says how the answer differs from the recorded one,
// line by line.
func (p *player) play(s step) []string {
	c := p.conns[s.Connection]
	if c == nil {
		c = connect(p.t, p.servers[s.Server])
		p.conns[s.Connection] = c
	}
	if s.Send != nil && string(s.Send) != "null" {
		c.send(p.message(s))
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
	if opcodes[got.opcode] != s.Reply.Opcode || got.flags != s.Reply.Flags {
		diff = append(diff, fmt.Sprintf("opcode and flags: got %d %d, want %s %d", got.opcode, got.flags, s.Reply.Opcode, s.Reply.Flags))
	}
	var doc bson.D
	if err := bson.Unmarshal(got.doc, &doc); err != nil {
		return append(diff, "unmarshal: "+err.Error())
	}
	return append(diff, p.compare(s, doc, testkit.Extended[bson.D](p.t, s.Reply.Doc))...)
}

// message is the bytes that a step sends.
func (p *player) message(s step) []byte {
	doc := p.ours(testkit.Extended[bson.D](p.t, s.Send)).(bson.D)
	if p.rewrite != nil {
		doc = p.rewrite(s, doc)
	}
	raw := testkit.Raw(p.t, doc)
	if s.Opcode == "OP_QUERY" {
		body := slices.Concat(make([]byte, 4), append([]byte(s.Namespace), 0), make([]byte, 8), raw)
		return wire.AppendMessage(nil, wire.Header{RequestID: 1, OpCode: wire.OpQuery}, body)
	}
	message := wire.AppendMsg(nil, 1, 0, wire.Flags(s.Flags), raw)
	for name, docs := range s.Sequences {
		section := append([]byte(name), 0)
		for _, d := range docs {
			section = append(section, testkit.Raw(p.t, testkit.Extended[bson.D](p.t, d))...)
		}
		message = append(binary.LittleEndian.AppendUint32(append(message, 1), uint32(len(section)+4)), section...)
	}
	binary.LittleEndian.PutUint32(message, uint32(len(message)))
	return message
}

// ours puts our names into what is sent, in place of the real server's.
func (p *player) ours(v any) any {
	switch v := v.(type) {
	case bson.D:
		for i, e := range v {
			if n, ok := e.Value.(int64); ok && e.Key == "counter" {
				e.Value = counter(n)
			}
			v[i].Value = p.ours(e.Value)
		}
	case bson.A:
		for i := range v {
			v[i] = p.ours(v[i])
		}
	case int64, string, bson.ObjectID, bson.Timestamp:
		return cmp.Or(p.same[v], any(v))
	case counter: // those that no server has ever had stay as they are
		return cmp.Or(p.same[v], any(int64(v)))
	}
	return v
}

// counter keeps counters of topologyVersion apart from other numbers.
type counter int64

// own is the connection of what no recording sends.
const own = -1

// live has a server answer commands with ok, on a connection of their own.
func (p *player) live(commands ...string) {
	for _, c := range commands {
		p.play(step{Connection: own, Send: json.RawMessage(c)})
		if got, err := p.conns[own].receive(); err != nil || got.doc.Lookup("ok").Double() != 1 {
			p.t.Fatalf("%s got %+v, %v", c, got, err)
		}
	}
}
