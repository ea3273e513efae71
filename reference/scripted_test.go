package reference

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

var d = testkit.D // a document of keys and values in turn

// scripted is a deployment that replies to each command with the next step of a script, or with success if no step is
// left. Its members stream hello. Connections are in memory, so that tests can run in a synctest bubble.
type scripted struct {
	t       *testing.T
	members []string // addresses
	kind    string   // single, replicaset, sharded, load-balanced
	wire    int32
	batch   int32 // maxWriteBatchSize
	message int32 // maxMessageSizeBytes
	done    chan struct{}

	sessionless bool // the servers do not support sessions

	mu    sync.Mutex
	steps map[string][]step // by command name, or by "member command"
	seen  []received
	first []bson.Raw // the first command of each connection, and all hellos
	open  []net.Conn // server ends
}

// step is a reply.
type step struct {
	reply bson.D // nil: {ok: 1} and what the command needs
	close bool   // close the connection instead
	stray bool   // reply to the previous request
	wait  time.Duration
}

// received is a received command.
type received struct {
	name   string
	body   bson.Raw
	member int
	conn   net.Conn
	at     time.Time
	after  time.Time // time of the reply
	// sequences are the names of the document sequences.
	sequences string
}

func fails(code int32, labels ...string) step {
	s := step{reply: d("ok", 0.0, "errmsg", fmt.Sprintf("scripted error %d", code), "code", code, "codeName",
		fmt.Sprintf("Code%d", code))}
	if len(labels) > 0 {
		s.reply = append(s.reply, bson.E{Key: "errorLabels", Value: labels})
	}
	return s
}

func script(t *testing.T, kind string, n int) *scripted {
	s := &scripted{t: t, kind: kind, wire: 25, batch: 100000, message: 48000000, steps: map[string][]step{},
		done: make(chan struct{})}
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

// commands returns the received commands with a name.
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

func (s *scripted) dial(ctx context.Context, _, address string) (net.Conn, error) {
	near, far := net.Pipe()
	s.mu.Lock()
	s.open = append(s.open, far)
	s.mu.Unlock()
	member := slices.Index(s.members, address)
	if strings.Contains(string(debug.Stack()), "topology.(*pool)") { // not a monitor
		st, _ := s.next(member, "dial")
		if st.close {
			_ = far.Close() // accepted and closed at once
		}
		select {
		case <-time.After(st.wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	go s.serve(member, far)
	return near, nil
}

func (s *scripted) hello(member int) bson.D {
	out, primary := d("helloOk", true), member == 0
	if s.kind == "replicaset" {
		out = append(out, d("secondary", !primary, "setName", "rs", "setVersion", int32(1), "hosts", s.members, "me",
			s.members[member],
			"primary", s.members[0], "lastWrite", d("lastWriteDate", bson.NewDateTimeFromTime(time.Now())))...)
		if primary {
			out = append(out, bson.E{Key: "electionId", Value: bson.ObjectID{1}})
		}
	} else if primary = true; s.kind != "single" {
		out = append(out, bson.E{Key: "msg", Value: "isdbgrid"})
	}
	out = append(out, d("isWritablePrimary", primary, "ismaster", primary, "maxBsonObjectSize", int32(16777216),
		"maxMessageSizeBytes", s.message,
		"maxWriteBatchSize", s.batch, "minWireVersion", int32(0), "maxWireVersion", s.wire)...)
	if !s.sessionless {
		out = append(out, bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)})
	}
	if s.wire >= 9 {
		out = append(out, bson.E{Key: "topologyVersion", Value: d("processId", bson.ObjectID{2}, "counter", int64(1))})
	}
	if s.kind == "load-balanced" {
		out = append(out, bson.E{Key: "serviceId", Value: bson.ObjectID{3}})
	}
	return append(out, bson.E{Key: "ok", Value: 1.0})
}

// serve replies to messages until the connection is closed.
func (s *scripted) serve(member int, c net.Conn) {
	defer func() { _ = c.Close() }()
	for first := true; ; first = false {
		h, body, err := wire.ReadMessage(c)
		if err != nil {
			return
		}
		m, err := sentBy(h, body)
		if err != nil {
			return
		}
		if first || m.opcode == wire.OpMsg && m.name() == "hello" {
			s.mu.Lock()
			s.first = append(s.first, m.body)
			s.mu.Unlock()
		}
		answer := s.answer
		if strings.EqualFold(m.name(), "hello") || strings.EqualFold(m.name(), "isMaster") {
			answer = s.stream
		}
		if !answer(member, c, h.RequestID, m) {
			return
		}
	}
}

// stream replies to hello, repeatedly if the client allows exhaust.
func (s *scripted) stream(member int, c net.Conn, id int32, m sent) bool {
	await, awaits := enginekit.Integer(m.body.Lookup("maxAwaitTimeMS"))
	exhausts := awaits && m.flags&uint32(wire.ExhaustAllowed) != 0
	for {
		wait := step{wait: time.Duration(await) * time.Millisecond}
		if st, ok := s.next(member, testkit.Either(awaits, "await", "hello")); ok {
			wait = st
		}
		if !s.pause(wait) || !s.write(c, id, m.opcode, exhausts, s.hello(member)) || !exhausts {
			return !wait.close && !exhausts
		}
		id = 0 // the next reply is to this one
	}
}

// pause waits for the duration of a step, and reports whether the connection stays open.
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

// answer replies to a command, unless it is unacknowledged.
func (s *scripted) answer(member int, c net.Conn, id int32, m sent) bool {
	s.mu.Lock()
	s.seen = append(s.seen, received{m.name(), m.body, member, c, time.Now(), time.Now(), m.sequences})
	n := len(s.seen)
	s.mu.Unlock()
	st, _ := s.next(member, strings.TrimSuffix(m.name(), "Transaction"))
	stays := s.pause(st)
	s.mu.Lock()
	s.seen[n-1].after = time.Now()
	s.mu.Unlock()
	if !stays || m.flags&uint32(wire.MoreToCome) != 0 {
		return stays
	}
	reply := st.reply
	if reply == nil {
		reply = d("ok", 1.0)
	}
	reply = append(reply[:len(reply):len(reply)], defaults(m.name(), m.body, reply)...)
	if s.kind != "single" {
		at := bson.Timestamp{T: uint32(n), I: 1}
		reply = append(reply, d("operationTime", at, "$clusterTime", d("clusterTime", at))...)
	}
	if st.stray {
		id--
	}
	return s.write(c, id, m.opcode, false, reply)
}

// defaults returns the required fields of a successful reply.
func defaults(name string, body bson.Raw, reply bson.D) bson.D {
	if slices.ContainsFunc(reply, func(e bson.E) bool {
		return slices.Contains([]string{"errmsg", "cursor", "n", "values", "databases"}, e.Key)
	}) {
		return nil
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
	}
	return map[string]bson.D{"saslStart": d("conversationId", 1, "done", true, "payload", bson.Binary{}),
		"distinct":      d("values", bson.A{}),
		"listDatabases": d("databases", bson.A{}), "mapReduce": d("results", bson.A{}), "count": d("n",
			int32(1)), "insert": d("n", int32(1)),
		"delete": d("n", int32(1)), "update": d("n", int32(1), "nModified", int32(1))}[name]
}

// cursorOf returns the field cursor of a reply.
func cursorOf(batch string, id int64, ns string, docs ...bson.D) bson.D {
	a := bson.A{}
	for _, d := range docs {
		a = append(a, d)
	}
	return d("cursor", d("id", id, "ns", ns, batch, a))
}

func (s *scripted) write(c net.Conn, id int32, opcode wire.OpCode, more bool, reply bson.D) bool {
	m := wire.AppendMsg(nil, 0, id, testkit.Either(more, wire.MoreToCome, 0), raw(s.t, reply))
	if opcode == wire.OpQuery { // the first hello
		m = wire.AppendReply(nil, 0, id, raw(s.t, reply))
	}
	_, err := c.Write(m)
	return err == nil
}
