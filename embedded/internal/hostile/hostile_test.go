// Package hostile contains only tests, which send malformed messages to servers.
package hostile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

type faulty struct {
	run func(*commands.Request) (bson.D, error)
}

func (f faulty) Rows() []commands.Row {
	return []commands.Row{{Name: "insert", Parse: f.parse, OnSecondary: true, Retryable: true, Transactional: true}}
}
func (f faulty) parse(r *commands.Request) (func() (commands.Response, error), error) {
	return func() (commands.Response, error) {
		fields, err := f.run(r)
		return commands.Response{Fields: fields}, err
	}, nil
}
func (faulty) ClusterTime(t bson.Timestamp) bson.Timestamp { return t }
func (faulty) OperationTime() bson.Timestamp               { return bson.Timestamp{T: 1} }
func (faulty) KillSessions([]bson.Raw)                     {}
func (faulty) Scripting() bool                             { return true }
func (faulty) EndTerm(int64)                               {}

// TestStorm sends five thousand hostile messages, or a million with UTR_SOAK=1. It also checks that a storm detects
// faults of a server.
func TestStorm(t *testing.T) {
	seed, from, n := testkit.Seed(t), sane(t), 2500
	if os.Getenv("UTR_SOAK") == "1" {
		n = 500_000
	}
	never := make(chan struct{})
	for _, row := range []struct {
		reason string
		run    func(*commands.Request) (bson.D, error) // nil: real data
		want   string                                  // part of the error
	}{
		{"no fault", nil, ""},
		{"a command that panics", func(*commands.Request) (bson.D, error) { panic("ouch") }, "caused a panic"},
		{"a command that does not end", func(r *commands.Request) (bson.D, error) { <-never; return nil, nil },
			"has not processed"},
		{"a killed server", nil, "a ping after"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never = make(chan struct{})
				var backend server.Backend = commands.New(commands.Options{ReplicaSet: true})
				if row.run != nil {
					backend = faulty{row.run}
				}
				c := replicaSet(t, backend)
				if strings.Contains(row.reason, "killed") {
					_ = c.Kill(c.Members()[0])
				}
				testkit.WantError(t, "the storm", storm(c, seed, from, n), row.want)
				close(never)
				testkit.Check(t, c.Close())
			})
		})
	}
}

// version is the latest version that supports legacy opcodes.
const reported = "4.9"

// limit is the time for a reply to a hostile message, in virtual time. Commands may have to wait until abandoned
// transactions expire.
const limit = time.Minute

// replicaSet returns a replica set of two members without sockets.
func replicaSet(t *testing.T, backend server.Backend) *server.Cluster {
	t.Helper()
	v, err := version.Named(reported)
	testkit.Check(t, err)
	c := server.NewCluster(server.Config{Topology: server.ReplicaSet, Version: v, SetName: "rs", Backend: backend})
	var members []server.Member
	for i := range 2 {
		members = append(members, server.NewMember(i, fmt.Sprintf("h:%d", i)))
	}
	testkit.Check(t, c.Configure(server.SetConfig{Version: 1, Members: members}))
	for _, m := range members {
		_, err := c.Join(m.Host, server.Process{Parameters: bson.D{{Key: "transactionLifetimeLimitSeconds", Value: 1}}})
		testkit.Check(t, err)
	}
	return c
}

// storm runs two clients in a synctest bubble. Each sends n hostile messages to the servers of a cluster, and sometimes
// pings over an open connection. Panics, unprocessed messages and failed pings are errors.
func storm(cluster *server.Cluster, seed uint64, from [][]byte, n int) error {
	var work sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		work.Go(func() { errs[i] = client(cluster.Members(), rand.New(rand.NewPCG(seed, uint64(i))), from, n) })
	}
	work.Wait()
	return errors.Join(errs...)
}

func client(members []*server.Server, random *rand.Rand, from [][]byte, n int) error {
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	members[0].Serve(far, false)
	for sent := 0; sent < n; {
		var all []byte
		for range 1 + random.IntN(4) {
			all = append(all, spoil(random, from)...)
			sent++
		}
		m := newMemory(all)
		members[random.IntN(len(members))].Serve(m, false)
		select {
		case <-m.done:
		case <-time.After(limit):
			return fmt.Errorf("the server has not processed %x", all)
		}
		if text := m.panic.Load(); text != nil {
			return fmt.Errorf("%x caused a panic: %q", all, *text)
		}
		if random.IntN(20) == 0 {
			if err := ping(near, from[0]); err != nil {
				return fmt.Errorf("a ping after %x: %w", all, err)
			}
		}
	}
	return nil
}

// ping sends a message, whose reply must have ok: 1.
func ping(c net.Conn, message []byte) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := c.Write(message); err != nil {
		return err
	}
	h, body, err := wire.ReadMessage(c)
	if err != nil {
		return err
	}
	m, err := wire.ParseMsg(h, body)
	if err == nil && m.Body.Lookup("ok").Double() != 1 {
		err = fmt.Errorf("the reply is %v", m.Body)
	}
	return err
}

// memory is a connection whose client sends everything and then disconnects.
type memory struct {
	net.Conn // nil: the server uses only the methods below
	in       bytes.Reader
	panic    atomic.Pointer[string]
	once     sync.Once
	done     chan struct{}
}

func newMemory(sent []byte) *memory {
	m := &memory{done: make(chan struct{})}
	m.in.Reset(sent)
	return m
}

func (m *memory) Read(p []byte) (int, error) { return m.in.Read(p) }

func (m *memory) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("panicked")) {
		text := string(p)
		m.panic.Store(&text)
	}
	return len(p), nil
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

const (
	session = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}`
	scram   = `{"$binary": {"base64": "biwsbj11LHI9YWJjZGVmZ2g=", "subType": "00"}}` // n,,n=u,r=abcdefgh
)

// sources are the source of hostile messages, a ping first. None of them waits.
var sources = []string{
	`{"ping": 1}`,
	`{"hello": 1, "helloOk": true, "compression": ["zlib"]}`,
	`{"isMaster": 1, "saslSupportedMechs": "admin.u"}`,
	`{"hello": 1, "speculativeAuthenticate": {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": ` + scram +
		`, "db": "admin"}}`,
	`{"saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": ` + scram + `}`,
	`{"buildInfo": 1}`, `{"serverStatus": 1}`, `{"getParameter": "*"}`,
	`{"configureFailPoint": "failGetMoreAfterCursorCheckout", "mode": "off"}`,
	`{"replSetGetStatus": 1}`, `{"connectionStatus": 1}`, `{"startSession": 1}`,
	`{"endSessions": [{` + session + `}]}`, `{"killSessions": [{` + session + `}]}`,
	`{"insert": "c", "documents": [{"_id": 1}], ` + session + `, "txnNumber": {"$numberLong": "1"}}`,
	`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"x": 1}}}]}`,
	`{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}`,
	`{"find": "c", "filter": {"x": {"$gt": 1}}, "sort": {"_id": 1}, "batchSize": 1}`,
	`{"getMore": {"$numberLong": "5"}, "collection": "c"}`,
	`{"killCursors": "c", "cursors": [{"$numberLong": "5"}]}`,
	`{"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}, {"$group": {"_id": "$x"}}], "cursor": {}}`,
	`{"count": "c", "query": {"_id": 1}}`, `{"distinct": "c", "key": "x"}`,
	`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"y": 2}}, "new": true}`,
	`{"create": "c"}`, `{"drop": "c"}`, `{"listCollections": 1}`, `{"listIndexes": "c"}`,
	`{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}`,
	`{"dropIndexes": "c", "index": "*"}`, `{"listDatabases": 1}`, `{"dropDatabase": 1}`,
	`{"commitTransaction": 1, ` + session + `, "txnNumber": {"$numberLong": "1"}, "autocommit": false}`,
	`{"insert": "c", "documents": [{"_id": 1}], ` + session +
		`, "txnNumber": {"$numberLong": "2"}, "autocommit": false, "startTransaction": true}`,
	`{"abortTransaction": 1, ` + session + `, "txnNumber": {"$numberLong": "2"}, "autocommit": false}`,
}

// sane returns the sources as messages of each kind, a ping first.
func sane(t *testing.T) (out [][]byte) {
	t.Helper()
	for _, text := range sources {
		raw := testkit.Extended[bson.Raw](t, strings.TrimSuffix(text, "}")+`, "$db": "admin"}`)
		plain := wire.AppendMsg(nil, 1, 0, 0, raw)
		query := slices.Concat(make([]byte, 4), []byte("admin.$cmd\x00"), make([]byte, 8), raw)
		out = append(out, plain, wire.AppendMsg(nil, 1, 0, wire.ChecksumPresent, raw),
			wire.AppendMessage(nil, wire.Header{OpCode: wire.OpQuery}, query))
		for _, c := range []wire.Compressor{wire.Snappy, wire.Zlib, wire.Zstd} {
			packed, err := wire.Compress(plain, c)
			testkit.Check(t, err)
			out = append(out, packed)
		}
	}
	return out
}

// spoil returns a hostile message derived from sane ones.
func spoil(r *rand.Rand, from [][]byte) []byte {
	m := bytes.Clone(from[r.IntN(len(from))])
	if r.IntN(4) > 0 { // compressed messages are slow, and most of them fail early
		for wire.OpCode(binary.LittleEndian.Uint32(m[12:])) == wire.OpCompressed {
			m = bytes.Clone(from[r.IntN(len(from))])
		}
	}
	number := func(at int) {
		if at+4 <= len(m) {
			values := []uint32{0, 1, 4, 5, 15, 16, 0x7fffffff, 0x80000000, 0xffffffff, uint32(len(m)),
				uint32(r.IntN(2 * len(m)))}
			binary.LittleEndian.PutUint32(m[at:], values[r.IntN(len(values))])
		}
	}
	fix := true
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0: // a bit
			m[r.IntN(len(m))] ^= 1 << r.IntN(8)
		case 1: // a byte after the header
			m[16+r.IntN(len(m)-16)] = byte(r.IntN(256))
		case 2: // a length
			number(16 + r.IntN(len(m)-16))
		case 3: // the header
			number(4 * r.IntN(4))
			fix = false
		case 4: // truncation
			m = m[:17+r.IntN(len(m)-16)]
		case 5: // the end of another message
			other := from[r.IntN(len(from))]
			m = append(m[:16+r.IntN(len(m)-16)], other[16+r.IntN(len(other)-16):]...)
		case 6: // noise at the end
			for range r.IntN(40) {
				m = append(m, byte(r.IntN(256)))
			}
		case 7: // a repeated part
			at := 16 + r.IntN(len(m)-16)
			m = append(m[:at:at], m[16+r.IntN(at-15):]...)
		}
		if len(m) < 24 {
			return m
		}
	}
	if fix {
		binary.LittleEndian.PutUint32(m, uint32(len(m)))
	}
	return m
}
