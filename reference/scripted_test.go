package reference

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A scripted deployment answers each command with the next step that a test
// wrote for it, and with a plain success when there is none left. Its members
// are real sockets that stream hello like a server since 4.4.
type scripted struct {
	t       *testing.T
	members []*member
	kind    string // single, replicaset, sharded, load-balanced
	wire    int32
	batch   int32 // maxWriteBatchSize
	process bson.ObjectID

	mu    sync.Mutex
	steps map[string][]step // by command name, or by "member command"
	seen  []bson.Raw
	first []bson.Raw // the first command of each connection
	conns int64
	clock uint32
}

// step is one answer.
type step struct {
	reply bson.D // nil: {ok: 1} and what the command needs
	close bool   // close the connection instead
	wait  time.Duration
	raw   []byte // bytes instead of a message
}

type member struct {
	s       *scripted
	index   int
	l       net.Listener
	address string
	mu      sync.Mutex
	open    map[net.Conn]bool
	done    chan struct{}
	wait    sync.WaitGroup
}

func fails(code int32, labels ...string) step {
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: fmt.Sprintf("scripted error %d", code)}, {Key: "code", Value: code}, {Key: "codeName", Value: fmt.Sprintf("Code%d", code)}}
	if len(labels) > 0 {
		d = append(d, bson.E{Key: "errorLabels", Value: labels})
	}
	return step{reply: d}
}

var closes = step{close: true}

func script(t *testing.T, kind string, n int) *scripted {
	t.Helper()
	s := &scripted{t: t, kind: kind, wire: 25, batch: 100000, process: bson.NewObjectID(), steps: map[string][]step{}, clock: 1}
	for i := 0; i < n; i++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m := &member{s: s, index: i, l: l, address: l.Addr().String(), open: map[net.Conn]bool{}, done: make(chan struct{})}
		s.members = append(s.members, m)
	}
	for _, m := range s.members {
		m.wait.Add(1)
		go m.accept()
	}
	t.Cleanup(s.stop)
	return s
}

func (s *scripted) on(command string, steps ...step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[command] = append(s.steps[command], steps...)
}

func (s *scripted) uri(options ...string) string {
	var hosts []string
	for _, m := range s.members {
		hosts = append(hosts, m.address)
	}
	switch s.kind {
	case "replicaset":
		options = append(options, "replicaSet=rs")
	case "load-balanced":
		options = append(options, "loadBalanced=true")
	}
	return "mongodb://" + strings.Join(hosts, ",") + "/?" + strings.Join(options, "&")
}

// commands gives what was received under a name.
func (s *scripted) commands(name string) []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []bson.Raw
	for _, c := range s.seen {
		if first, err := c.IndexErr(0); err == nil && first.Key() == name {
			out = append(out, c)
		}
	}
	return out
}

func (s *scripted) stop() {
	for _, m := range s.members {
		m.stop()
	}
}

func (m *member) stop() {
	m.mu.Lock()
	select {
	case <-m.done:
	default:
		close(m.done)
	}
	_ = m.l.Close()
	for c := range m.open {
		_ = c.Close()
	}
	m.mu.Unlock()
	m.wait.Wait()
}

func (m *member) accept() {
	defer m.wait.Done()
	for {
		c, err := m.l.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		m.open[c] = true
		m.wait.Add(1)
		m.mu.Unlock()
		go func() {
			defer m.wait.Done()
			m.serve(c)
			m.mu.Lock()
			delete(m.open, c)
			m.mu.Unlock()
			_ = c.Close()
		}()
	}
}

func (m *member) hello() bson.D {
	s := m.s
	d := bson.D{{Key: "helloOk", Value: true}}
	switch s.kind {
	case "replicaset":
		var hosts []string
		for _, o := range s.members {
			hosts = append(hosts, o.address)
		}
		d = append(d, bson.E{Key: "isWritablePrimary", Value: m.index == 0}, bson.E{Key: "ismaster", Value: m.index == 0},
			bson.E{Key: "secondary", Value: m.index != 0}, bson.E{Key: "setName", Value: "rs"}, bson.E{Key: "setVersion", Value: int32(1)},
			bson.E{Key: "hosts", Value: hosts}, bson.E{Key: "me", Value: m.address}, bson.E{Key: "primary", Value: s.members[0].address},
			bson.E{Key: "lastWrite", Value: bson.D{{Key: "lastWriteDate", Value: bson.NewDateTimeFromTime(time.Now())}}})
		if m.index == 0 {
			d = append(d, bson.E{Key: "electionId", Value: bson.ObjectID{1}})
		}
	case "sharded", "load-balanced":
		d = append(d, bson.E{Key: "isWritablePrimary", Value: true}, bson.E{Key: "ismaster", Value: true}, bson.E{Key: "msg", Value: "isdbgrid"})
	default:
		d = append(d, bson.E{Key: "isWritablePrimary", Value: true}, bson.E{Key: "ismaster", Value: true})
	}
	s.mu.Lock()
	s.conns++
	n := s.conns
	s.mu.Unlock()
	d = append(d, bson.E{Key: "maxBsonObjectSize", Value: int32(16777216)}, bson.E{Key: "maxMessageSizeBytes", Value: int32(48000000)},
		bson.E{Key: "maxWriteBatchSize", Value: s.batch}, bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)},
		bson.E{Key: "connectionId", Value: n}, bson.E{Key: "minWireVersion", Value: int32(0)}, bson.E{Key: "maxWireVersion", Value: s.wire})
	if s.wire >= 9 {
		d = append(d, bson.E{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: s.process}, {Key: "counter", Value: int64(1)}}})
	}
	if s.kind == "load-balanced" {
		id := bson.ObjectID{byte(m.index + 1)}
		d = append(d, bson.E{Key: "serviceId", Value: id})
	}
	return append(d, bson.E{Key: "ok", Value: 1.0})
}

func (m *member) serve(c net.Conn) {
	greeted := false
	greet := func(body bson.Raw) {
		if !greeted {
			m.s.mu.Lock()
			m.s.first = append(m.s.first, body)
			m.s.mu.Unlock()
		}
		greeted = true
	}
	for {
		head := make([]byte, 16)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		rest := make([]byte, int(binary.LittleEndian.Uint32(head))-16)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		id := binary.LittleEndian.Uint32(head[4:])
		if binary.LittleEndian.Uint32(head[12:]) == 2004 { // OP_QUERY: the first hello
			_, query, _ := bytes.Cut(rest[4:], []byte{0})
			greet(query[8:])
			doc, _ := bson.Marshal(m.hello())
			body := append(make([]byte, 20), doc...)
			binary.LittleEndian.PutUint32(body[16:], 1)
			if _, err := c.Write(frame(id, 1, body)); err != nil {
				return
			}
			continue
		}
		flags := binary.LittleEndian.Uint32(rest)
		body := bson.Raw(rest[5:])
		greet(body)
		first, err := body.IndexErr(0)
		if err != nil {
			return
		}
		name := first.Key()
		if name == "hello" || name == "isMaster" || name == "ismaster" {
			if !m.stream(c, id, flags, body) {
				return
			}
			continue
		}
		if !m.answer(c, id, name, body) {
			return
		}
	}
}

// stream answers hello, again and again if the client takes more to come.
func (m *member) stream(c net.Conn, id, flags uint32, body bson.Raw) bool {
	await, ok := enginekit.Integer(body.Lookup("maxAwaitTimeMS"))
	if !ok {
		return m.write(c, id, 0, m.hello())
	}
	for {
		select {
		case <-time.After(time.Duration(await) * time.Millisecond):
		case <-m.done:
			return false
		}
		exhaust := uint32(0)
		if flags&(1<<16) != 0 {
			exhaust = 1 << 1
		}
		if !m.write(c, id, exhaust, m.hello()) {
			return false
		}
		if exhaust == 0 {
			return true
		}
	}
}

func (m *member) answer(c net.Conn, id uint32, name string, body bson.Raw) bool {
	s := m.s
	s.mu.Lock()
	s.seen = append(s.seen, body)
	s.clock++
	now := s.clock
	var st step
	for _, key := range []string{fmt.Sprintf("%d %s", m.index, name), name} {
		if q := s.steps[key]; len(q) > 0 {
			st, s.steps[key] = q[0], q[1:]
			break
		}
	}
	s.mu.Unlock()
	if st.wait > 0 {
		select {
		case <-time.After(st.wait):
		case <-m.done:
			return false
		}
	}
	if st.close {
		return false
	}
	if st.raw != nil {
		_, err := c.Write(st.raw)
		return err == nil
	}
	d := st.reply
	if d == nil {
		d = bson.D{{Key: "ok", Value: 1.0}}
	}
	d = append(d[:len(d):len(d)], defaults(name, body, d)...)
	if s.kind != "single" {
		at := bson.Timestamp{T: now, I: 1}
		d = append(d, bson.E{Key: "operationTime", Value: at},
			bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: at}}})
	}
	return m.write(c, id, 0, d)
}

// defaults are the fields that a successful reply needs.
func defaults(name string, body bson.Raw, d bson.D) bson.D {
	for _, e := range d {
		if e.Key == "errmsg" || e.Key == "cursor" || e.Key == "n" || e.Key == "values" || e.Key == "databases" {
			return nil
		}
	}
	coll, _ := body.Index(0).Value().StringValueOK()
	db, _ := body.Lookup("$db").StringValueOK()
	switch name {
	case "find", "aggregate", "listCollections", "listIndexes":
		return bson.D{cursorField("firstBatch", 0, db+"."+coll)}
	case "getMore":
		return bson.D{cursorField("nextBatch", 0, db+"."+coll)}
	case "count", "insert", "delete":
		return bson.D{{Key: "n", Value: int32(1)}}
	case "update":
		return bson.D{{Key: "n", Value: int32(1)}, {Key: "nModified", Value: int32(1)}}
	case "distinct":
		return bson.D{{Key: "values", Value: bson.A{}}}
	case "listDatabases":
		return bson.D{{Key: "databases", Value: bson.A{}}}
	case "mapReduce":
		return bson.D{{Key: "results", Value: bson.A{}}}
	}
	return nil
}

func cursorField(batch string, id int64, ns string, docs ...bson.D) bson.E {
	a := bson.A{}
	for _, d := range docs {
		a = append(a, d)
	}
	return bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "ns", Value: ns}, {Key: batch, Value: a}}}
}

func (m *member) write(c net.Conn, id, flags uint32, d bson.D) bool {
	doc, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	body := append(make([]byte, 5), doc...)
	binary.LittleEndian.PutUint32(body, flags)
	_, err = c.Write(frame(id, 2013, body))
	return err == nil
}

func frame(to, opcode uint32, body []byte) []byte {
	out := make([]byte, 16, 16+len(body))
	binary.LittleEndian.PutUint32(out, uint32(16+len(body)))
	binary.LittleEndian.PutUint32(out[8:], to)
	binary.LittleEndian.PutUint32(out[12:], opcode)
	return append(out, body...)
}
