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

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fakemongod/cmdline"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

type step struct {
	Scenario                 string
	Step, Connection, Server int
	Send                     json.RawMessage
	Opcode, Namespace        string
	Flags                    uint32
	Sequences                map[string][]json.RawMessage
	Reply                    *reply
	Closed, Timeout          bool
}

type reply struct {
	Opcode string
	Flags  uint32
	Doc    json.RawMessage
}

// UnmarshalJSON reads a reply, or only its document if it is an OP_MSG.
func (r *reply) UnmarshalJSON(data []byte) error {
	type plain reply
	err := json.Unmarshal(data, (*plain)(r))
	if r.Doc == nil {
		r.Opcode, r.Doc = "OP_MSG", slices.Clone(data)
	}
	return err
}

func (s step) String() string { return fmt.Sprintf("%s, step %d", s.Scenario, s.Step) }

// lines reads a recording of n lines, each a JSON object.
func lines[T any](t testing.TB, name string, n int) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Recordings(t), name))
	testkit.Check(t, err)
	// The embedded shard's replica set has another name.
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

// player sends the steps of a recording, each on its connection, in a synctest bubble.
type player struct {
	t       testing.TB
	cluster *server.Cluster
	servers []*server.Server // by number
	conns   map[int]*client
	// same maps values of the real server to ours: cursor ids, resume tokens, process ids. Comparing replies fills it;
	// requests are translated with it.
	same map[any]any
	// behind is the difference between the recorded count of a fail point and ours.
	behind map[string]int32
	// Of the latest comparison.
	minor   []string
	symptom string
	// These may be nil.
	scenario func(p *player, first step)         // called before the first step of each scenario
	rewrite  func(step, bson.D) bson.D           // changes a request
	payload  func(s step, got, want []byte) bool // compares payloads of an authentication
}

// newPlayer starts servers of the recorded version with the recorded addresses.
func newPlayer(t testing.TB, kind server.Topology, users *server.Users, hosts ...string) *player {
	t.Helper()
	return setup{version: "4.9", began: 1795360000, noScripting: true, kind: kind, users: users}.start(t, hosts...)
}

// setup is what the servers of a recording were started with, and when.
type setup struct {
	version     string
	began       int64
	noScripting bool
	kind        server.Topology
	users       *server.Users
	arguments   []string // the command line
	settings    bson.D   // of the replica set
}

// start starts the servers.
func (s setup) start(t testing.TB, hosts ...string) *player {
	t.Helper()
	v, err := version.Named(s.version)
	testkit.Check(t, err)
	time.Sleep(time.Until(time.Unix(s.began, 0)))
	const set = "rs0"
	c := server.NewCluster(server.Config{Topology: s.kind, Version: v, SetName: set, Users: s.users,
		Backend: commands.New(commands.Options{
			Sharded: s.kind == server.Sharded, ReplicaSet: s.kind == server.ReplicaSet, ShardName: server.ShardName,
			ShardHost:   server.ShardHost(set),
			NoScripting: s.noScripting,
		})})
	t.Cleanup(func() { testkit.Check(t, c.Close()) })
	config := server.SetConfig{Name: set, Version: 1, Settings: s.settings}
	for i, host := range hosts {
		config.Members = append(config.Members, server.NewMember(i, host))
	}
	if s.kind == server.ReplicaSet {
		testkit.Check(t, c.Configure(config))
	}
	for _, host := range hosts {
		_, err := c.Join(host, server.Process{AccessControl: s.users != nil, Arguments: s.arguments,
			Settings: cmdline.Parsed(s.arguments)})
		testkit.Check(t, err)
	}
	return &player{t: t, cluster: c, servers: c.Members(), conns: map[int]*client{}, same: map[any]any{},
		behind: map[string]int32{}}
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func connect(t testing.TB, s *server.Server) *client {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	s.Serve(far, false)
	_ = near.SetReadDeadline(time.Now().Add(24 * time.Hour)) // after the end of all recordings
	return &client{near, bufio.NewReader(near)}
}

// send sends a message. It ignores errors, because the server may close the connection before it has read everything.
func (c *client) send(message []byte) { _, _ = c.Write(message) }

// answer is a reply or the end of the connection. For a compressed reply, flags is the original opcode.
type answer struct {
	opcode wire.OpCode
	to     int32
	flags  uint32
	doc    bson.Raw
	closed bool
}

var opcodes = map[wire.OpCode]string{wire.OpMsg: "OP_MSG", wire.OpReply: "OP_REPLY"}

// patience is how long the recorded client waited for a reply.
const patience = 12 * time.Second

// receive returns the next answer, after the server has become idle.
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
		a.flags, a.doc = binary.LittleEndian.Uint32(body), body[20:] // after flags, cursor, start and number of documents
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

// play executes a step and returns the differences from the recorded answer.
func (p *player) play(s step) []string {
	c := p.conns[s.Connection]
	if c == nil {
		c = connect(p.t, p.servers[s.Server])
		p.conns[s.Connection] = c
	}
	if s.Send != nil && string(s.Send) != "null" {
		c.send(p.message(s))
	}
	if s.Timeout {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		got, err := c.receive()
		delete(p.conns, s.Connection)
		_ = c.Close()
		if err == nil {
			return []string{fmt.Sprint("got an answer, want none: ", got.doc)}
		}
		return nil
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
		diff = append(diff, fmt.Sprintf("opcode and flags: got %d %d, want %s %d", got.opcode, got.flags, s.Reply.Opcode,
			s.Reply.Flags))
	}
	var doc bson.D
	if err := bson.Unmarshal(got.doc, &doc); err != nil {
		return append(diff, "unmarshal: "+err.Error())
	}
	return append(diff, p.compare(s, doc, testkit.Extended[bson.D](p.t, s.Reply.Doc))...)
}

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

// ours replaces values of the real server with ours.
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
	case counter: // unknown ones are not changed
		return cmp.Or(p.same[v], any(int64(v)))
	}
	return v
}

// counter is a counter of a topologyVersion. The type distinguishes it from other numbers in player.same.
type counter int64

// exceeded plays a step. A limit of 1 ms is exceeded if the recorded primary exceeded it.
func (p *player) exceeded(s step) []string {
	if p.servers[s.Server] == p.cluster.Primary() && s.Reply != nil && len(s.Send) > len("null") &&
		value.Float(value.Get(testkit.Extended[bson.D](p.t, s.Send), "maxTimeMS")) == 1 &&
		value.Get(testkit.Extended[bson.D](p.t, s.Reply.Doc), "code") == any(fault.MaxTimeMSExpired) {
		const point = `{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "%s", "$db": "admin"}`
		p.run(fmt.Sprintf(point, "alwaysOn"))
		defer p.run(fmt.Sprintf(point, "off"))
	}
	return p.play(s)
}

// own is the number of the connection for commands outside of recordings.
const own = -1

// run sends commands that must succeed, on a separate connection.
func (p *player) run(commands ...string) {
	for _, c := range commands {
		p.play(step{Connection: own, Send: json.RawMessage(c)})
		if got, err := p.conns[own].receive(); err != nil || got.doc.Lookup("ok").Double() != 1 {
			p.t.Fatalf("%s got %+v, %v", c, got, err)
		}
	}
}
