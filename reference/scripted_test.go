package reference

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A scripted deployment answers each command with the next step that a test
// wrote for it, and with a plain success when there is none left. Its members
// stream hello like a server since 4.4. Connections are in memory, so that a
// test can run in a synctest bubble.
type scripted struct {
	t       *testing.T
	members []string // addresses
	kind    string   // single, replicaset, sharded, load-balanced
	wire    int32
	batch   int32 // maxWriteBatchSize
	done    chan struct{}

	mu    sync.Mutex
	steps map[string][]step // by command name, or by "member command"
	seen  []received
	first []bson.Raw // the first command of each connection, and each check of a server
	open  []net.Conn // far ends
}

// step is one answer.
type step struct {
	reply bson.D // nil: {ok: 1} and what the command needs
	close bool   // close the connection instead
	wait  time.Duration
	raw   []byte // bytes instead of a message
}

// received is a command, with the moment at which it came.
type received struct {
	name   string
	body   bson.Raw
	member int
	conn   net.Conn
	at     time.Time
	after  time.Time // when the command before it was answered
}

func fails(code int32, labels ...string) step {
	s := step{reply: d("ok", 0.0, "errmsg", fmt.Sprintf("scripted error %d", code), "code", code, "codeName", fmt.Sprintf("Code%d", code))}
	if len(labels) > 0 {
		s.reply = append(s.reply, bson.E{Key: "errorLabels", Value: labels})
	}
	return s
}

func d(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

func script(t *testing.T, kind string, n int) *scripted {
	s := &scripted{t: t, kind: kind, wire: 25, batch: 100000, steps: map[string][]step{}, done: make(chan struct{})}
	for i := range max(n, 1) {
		s.members = append(s.members, fmt.Sprintf("s%d:1", i))
	}
	t.Cleanup(func() { close(s.done); s.cut() })
	return s
}

// cut closes all connections.
func (s *scripted) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}

func (s *scripted) on(command string, steps ...step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[command] = append(s.steps[command], steps...)
}

func (s *scripted) uri(options ...string) string {
	if s.kind == "replicaset" {
		options = append(options, "replicaSet=rs")
	} else if s.kind == "load-balanced" {
		options = append(options, "loadBalanced=true")
	}
	return "mongodb://" + strings.Join(s.members, ",") + "/?" + strings.Join(options, "&")
}

// commands gives what was received under a name.
func (s *scripted) commands(name string) (out []bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if r.name == name {
			out = append(out, r.body)
		}
	}
	return out
}

func (s *scripted) dial(_ context.Context, _, address string) (net.Conn, error) {
	near, far := net.Pipe()
	s.mu.Lock()
	s.open = append(s.open, far)
	s.mu.Unlock()
	member := slices.Index(s.members, address)
	if strings.Contains(string(debug.Stack()), "topology.(*pool)") { // and not a monitor
		if st, _ := s.next(member, "dial"); st.close {
			_ = far.Close() // the server accepts it, and ends it at once
		}
	}
	go s.serve(member, far)
	return near, nil
}

func (s *scripted) hello(member int) bson.D {
	out, primary := d("helloOk", true), member == 0
	if s.kind == "replicaset" {
		out = append(out, d("secondary", !primary, "setName", "rs", "setVersion", int32(1), "hosts", s.members, "me", s.members[member],
			"primary", s.members[0], "lastWrite", d("lastWriteDate", bson.NewDateTimeFromTime(time.Now())))...)
		if primary {
			out = append(out, bson.E{Key: "electionId", Value: bson.ObjectID{1}})
		}
	} else if primary = true; s.kind != "single" {
		out = append(out, bson.E{Key: "msg", Value: "isdbgrid"})
	}
	out = append(out, d("isWritablePrimary", primary, "ismaster", primary, "maxBsonObjectSize", int32(16777216), "maxMessageSizeBytes", int32(48000000),
		"maxWriteBatchSize", s.batch, "logicalSessionTimeoutMinutes", int32(30), "minWireVersion", int32(0), "maxWireVersion", s.wire)...)
	if s.wire >= 9 {
		out = append(out, bson.E{Key: "topologyVersion", Value: d("processId", bson.ObjectID{2}, "counter", int64(1))})
	}
	if s.kind == "load-balanced" {
		out = append(out, bson.E{Key: "serviceId", Value: bson.ObjectID{3}})
	}
	return append(out, bson.E{Key: "ok", Value: 1.0})
}

// serve reads messages and answers them until the connection ends.
func (s *scripted) serve(member int, c net.Conn) {
	defer func() { _ = c.Close() }()
	for greeted := false; ; greeted = true {
		head := make([]byte, 16)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		rest := make([]byte, int(binary.LittleEndian.Uint32(head))-16)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		id, opcode, flags := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[12:]), uint32(0)
		if opcode == query { // the first hello
			_, after, _ := bytes.Cut(rest[4:], []byte{0})
			rest = after[8:]
		} else {
			flags, rest = binary.LittleEndian.Uint32(rest), rest[5:]
		}
		body := bson.Raw(rest)
		if !greeted || opcode == msg && body.Index(0).Key() == "hello" {
			s.mu.Lock()
			s.first = append(s.first, body)
			s.mu.Unlock()
		}
		name := body.Index(0).Key()
		answer := func() bool { return s.answer(member, c, id, name, body, flags) }
		if strings.EqualFold(name, "hello") || strings.EqualFold(name, "isMaster") {
			answer = func() bool { return s.stream(member, c, id, opcode, flags, body) }
		}
		if !answer() {
			return
		}
	}
}

// stream answers hello, again and again if the client takes more to come.
func (s *scripted) stream(member int, c net.Conn, id, opcode, flags uint32, body bson.Raw) bool {
	await, awaits := enginekit.Integer(body.Lookup("maxAwaitTimeMS"))
	for {
		wait := step{wait: time.Duration(await) * time.Millisecond}
		if st, ok := s.next(member, map[bool]string{true: "await", false: "hello"}[awaits]); ok {
			wait = st
		}
		if !s.pause(wait) {
			return false
		}
		exhaust := uint32(0)
		if awaits && flags&(1<<16) != 0 {
			exhaust = 1 << 1
		}
		if !s.write(c, id, opcode, exhaust, s.hello(member)) {
			return false
		}
		if exhaust == 0 {
			return true
		}
	}
}

// pause waits as a step says, and reports whether the connection stays open.
func (s *scripted) pause(st step) bool {
	if st.wait > 0 {
		select {
		case <-time.After(st.wait):
		case <-s.done:
			return false
		}
	}
	return !st.close
}

func (s *scripted) next(member int, name string) (step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []string{fmt.Sprintf("%d %s", member, name), name} {
		if q := s.steps[key]; len(q) > 0 {
			s.steps[key] = q[1:]
			return q[0], true
		}
	}
	return step{}, false
}

// answer answers a command. What is unacknowledged has no reply.
func (s *scripted) answer(member int, c net.Conn, id uint32, name string, body bson.Raw, flags uint32) bool {
	s.mu.Lock()
	s.seen = append(s.seen, received{name, body, member, c, time.Now(), time.Now()})
	n := len(s.seen)
	s.mu.Unlock()
	st, _ := s.next(member, name)
	stays := s.pause(st)
	s.mu.Lock()
	s.seen[n-1].after = time.Now()
	s.mu.Unlock()
	if !stays || flags&(1<<1) != 0 {
		return stays
	}
	if st.raw != nil {
		_, err := c.Write(st.raw)
		return err == nil
	}
	reply := st.reply
	if reply == nil {
		reply = d("ok", 1.0)
	}
	reply = append(reply[:len(reply):len(reply)], defaults(name, body, reply)...)
	if s.kind != "single" {
		at := bson.Timestamp{T: uint32(n), I: 1}
		reply = append(reply, d("operationTime", at, "$clusterTime", d("clusterTime", at))...)
	}
	return s.write(c, id, msg, 0, reply)
}

// defaults are the fields that a successful reply needs.
func defaults(name string, body bson.Raw, reply bson.D) bson.D {
	for _, e := range reply {
		if e.Key == "errmsg" || e.Key == "cursor" || e.Key == "n" || e.Key == "values" || e.Key == "databases" {
			return nil
		}
	}
	coll, _ := body.Index(0).Value().StringValueOK()
	db, _ := body.Lookup("$db").StringValueOK()
	switch name {
	case "find", "aggregate", "listCollections", "listIndexes":
		return cursorOf("firstBatch", 0, db+"."+coll)
	case "getMore":
		return cursorOf("nextBatch", 0, db+"."+coll)
	case "bulkWrite":
		return append(cursorOf("firstBatch", 0, "admin.$cmd.bulkWrite"), bson.E{Key: "nInserted", Value: 1})
	case "saslStart":
		return d("conversationId", 1, "done", true, "payload", bson.Binary{})
	case "count", "insert", "delete":
		return d("n", int32(1))
	case "update":
		return d("n", int32(1), "nModified", int32(1))
	}
	if list, ok := map[string]string{"distinct": "values", "listDatabases": "databases", "mapReduce": "results"}[name]; ok {
		return d(list, bson.A{})
	}
	return nil
}

// cursorOf is the field of a reply that has a cursor in it.
func cursorOf(batch string, id int64, ns string, docs ...bson.D) bson.D {
	a := bson.A{}
	for _, d := range docs {
		a = append(a, d)
	}
	return d("cursor", d("id", id, "ns", ns, batch, a))
}

func (s *scripted) write(c net.Conn, id, opcode, flags uint32, reply bson.D) bool {
	head := make([]byte, 5)
	if opcode == query {
		opcode, head = 1, make([]byte, 20)
		head[16] = 1
	} else {
		binary.LittleEndian.PutUint32(head, flags)
	}
	m := packet(s.t, opcode, head, reply)
	binary.LittleEndian.PutUint32(m[8:], id)
	_, err := c.Write(m)
	return err == nil
}
