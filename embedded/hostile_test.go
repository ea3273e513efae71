package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded/wire"
)

// hostilePatience is how long the answer to a hostile message may take.
const hostilePatience = 10 * time.Second

// memory is a connection whose client has sent everything at once and then
// leaves. It keeps an eye on the answers.
type memory struct {
	in    bytes.Reader
	panic atomic.Pointer[string]
	once  sync.Once
	done  chan struct{}
}

func newMemory(sent []byte) *memory {
	m := &memory{done: make(chan struct{})}
	m.in.Reset(sent)
	return m
}

func (m *memory) Read(p []byte) (int, error) { return m.in.Read(p) }

// Write looks for what a recovered panic would have answered.
func (m *memory) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("failed inside")) {
		text := string(p)
		m.panic.Store(&text)
	}
	return len(p), nil
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

func (*memory) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*memory) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*memory) SetDeadline(time.Time) error      { return nil }
func (*memory) SetReadDeadline(time.Time) error  { return nil }
func (*memory) SetWriteDeadline(time.Time) error { return nil }

// sane are the commands that hostile messages are made from. None waits.
func sane(t testing.TB) [][]byte {
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
	id := bson.D{{Key: "_id", Value: 1}}
	var out [][]byte
	for _, doc := range []bson.D{
		{{Key: "ping", Value: 1}},
		{{Key: "hello", Value: 1}, {Key: "helloOk", Value: true}, {Key: "compression", Value: bson.A{"zlib"}}},
		{{Key: "isMaster", Value: 1}, {Key: "saslSupportedMechs", Value: "admin.u"}},
		{{Key: "hello", Value: 1}, {Key: "speculativeAuthenticate", Value: bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"},
			{Key: "payload", Value: bson.Binary{Data: []byte("n,,n=u,r=abcdefgh")}}, {Key: "db", Value: "admin"}}}},
		{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-1"}, {Key: "payload", Value: bson.Binary{Data: []byte("n,,n=u,r=abcdefgh")}}},
		{{Key: "buildInfo", Value: 1}}, {{Key: "serverStatus", Value: 1}}, {{Key: "getParameter", Value: "*"}},
		{{Key: "configureFailPoint", Value: "failGetMoreAfterCursorCheckout"}, {Key: "mode", Value: "off"}},
		{{Key: "replSetGetStatus", Value: 1}}, {{Key: "connectionStatus", Value: 1}}, {{Key: "startSession", Value: 1}},
		{{Key: "endSessions", Value: bson.A{lsid}}}, {{Key: "killSessions", Value: bson.A{lsid}}},
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{id}}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(1)}},
		{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: id}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "x", Value: 1}}}}}}}}},
		{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: id}, {Key: "limit", Value: 1}}}}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$gt", Value: 1}}}}}, {Key: "sort", Value: id}, {Key: "batchSize", Value: 1}},
		{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "c"}},
		{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{int64(5)}}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: id}}, bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$x"}}}}}}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "count", Value: "c"}, {Key: "query", Value: id}}, {{Key: "distinct", Value: "c"}, {Key: "key", Value: "x"}},
		{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: id}, {Key: "update", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: 2}}}}}, {Key: "new", Value: true}},
		{{Key: "create", Value: "c"}}, {{Key: "drop", Value: "c"}}, {{Key: "listCollections", Value: 1}}, {{Key: "listIndexes", Value: "c"}},
		{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "x", Value: 1}}}, {Key: "name", Value: "x_1"}}}}},
		{{Key: "dropIndexes", Value: "c"}, {Key: "index", Value: "*"}}, {{Key: "listDatabases", Value: 1}}, {{Key: "dropDatabase", Value: 1}},
		{{Key: "commitTransaction", Value: 1}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(1)}, {Key: "autocommit", Value: false}},
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{id}}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(2)},
			{Key: "autocommit", Value: false}, {Key: "startTransaction", Value: true}},
		{{Key: "abortTransaction", Value: 1}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(2)}, {Key: "autocommit", Value: false}},
	} {
		raw, err := bson.Marshal(append(doc, bson.E{Key: "$db", Value: "admin"}))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, wire.AppendMsg(nil, 1, 0, 0, raw), wire.AppendMsg(nil, 1, 0, wire.ChecksumPresent, raw),
			wire.AppendQuery(nil, 1, wire.Query{Collection: "admin.$cmd", Return: -1, Query: raw[:len(raw):len(raw)]}))
		for _, name := range []string{"snappy", "zlib", "zstd"} {
			c, _ := wire.CompressorNamed(name)
			packed, err := wire.Compress(out[len(out)-3], c)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, packed)
		}
	}
	return out
}

// spoil makes a hostile message from sane ones.
func spoil(r *rand.Rand, from [][]byte) []byte {
	m := bytes.Clone(from[r.IntN(len(from))])
	if r.IntN(4) > 0 { // compressed ones are dear, and mostly end at once
		for wire.OpCode(binary.LittleEndian.Uint32(m[12:])) == wire.OpCompressed {
			m = bytes.Clone(from[r.IntN(len(from))])
		}
	}
	number := func(at int) {
		if at+4 <= len(m) {
			values := []uint32{0, 1, 4, 5, 15, 16, 0x7fffffff, 0x80000000, 0xffffffff, uint32(len(m)), uint32(r.IntN(2 * len(m)))}
			binary.LittleEndian.PutUint32(m[at:], values[r.IntN(len(values))])
		}
	}
	fix := true
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0: // a bit
			m[r.IntN(len(m))] ^= 1 << r.IntN(8)
		case 1: // a byte, past the header
			m[16+r.IntN(len(m)-16)] = byte(r.IntN(256))
		case 2: // a length
			number(16 + r.IntN(len(m)-16))
		case 3: // the header
			number(4 * r.IntN(4))
			fix = false
		case 4: // an end that came early
			m = m[:17+r.IntN(len(m)-16)]
			if len(m) < 20 {
				return m
			}
		case 5: // another message's end
			other := from[r.IntN(len(from))]
			m = append(m[:16+r.IntN(len(m)-16)], other[16+r.IntN(len(other)-16):]...)
		case 6: // noise behind
			for range r.IntN(40) {
				m = append(m, byte(r.IntN(256)))
			}
		case 7: // a piece twice
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

// TestMillion sends a million hostile messages, most of them in memory, some
// through sockets, while a client works on: it never notices.
func TestMillion(t *testing.T) {
	total := 1_000_000
	if testing.Short() {
		total = 20_000
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	d, err := Start(ctx, Options{Topology: ReplicaSet, Version: "4.9", Members: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, host := range d.Hosts() { // hostile messages open transactions, and leave them
		admit(ctx, t, d.DirectURI(host), bson.D{{Key: "setParameter", Value: 1}, {Key: "transactionLifetimeLimitSeconds", Value: 1}})
	}
	working, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { bystander(working, t, d) })
	from := sane(t)
	var sent atomic.Int64
	var senders sync.WaitGroup
	for worker := range 2 {
		senders.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 49))
			members := d.cluster.Members()
			for sent.Load() < int64(total) && !t.Failed() {
				n := 1 + r.IntN(4)
				var all []byte
				for range n {
					all = append(all, spoil(r, from)...)
				}
				sent.Add(int64(n))
				s := members[r.IntN(len(members))]
				if r.IntN(500) == 0 {
					throughSocket(t, s.Address(), all)
					continue
				}
				m := newMemory(all)
				s.Serve(m)
				select {
				case <-m.done:
				case <-time.After(hostilePatience):
					t.Errorf("waited %v for the server to take %x; goroutines:\n%s", hostilePatience, all, stacks())
				}
				if text := m.panic.Load(); text != nil {
					t.Errorf("%x made a command fail inside: %q", all, *text)
				}
			}
		})
	}
	senders.Wait()
	stop()
	work.Wait()
	t.Logf("%d messages", sent.Load())
}

// stacks are what every goroutine is at, to tell what a server waits for.
func stacks() []byte {
	all := make([]byte, 1<<20)
	return all[:runtime.Stack(all, true)]
}

// admit runs a command that must go well.
func admit(ctx context.Context, t *testing.T, uri string, command bson.D) {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Disconnect(context.Background()) }()
	if err := c.Database("admin").RunCommand(ctx, command).Err(); err != nil {
		t.Fatal(err)
	}
}

// throughSocket sends messages and leaves, having read what came at once.
func throughSocket(t *testing.T, address string, sent []byte) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Errorf("dial: %v", err)
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(hostilePatience))
	if _, err := c.Write(sent); err != nil {
		return
	}
	if half, ok := c.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("waited %v for the server to close: %x", hostilePatience, sent)
	}
}

// bystander works with the deployment until its context ends; nothing may fail.
func bystander(ctx context.Context, t *testing.T, d *Deployment) {
	o := options.Client().ApplyURI(d.DirectURI(d.Hosts()[0])).SetHeartbeatInterval(500 * time.Millisecond)
	c, err := mongo.Connect(o)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Disconnect(context.Background()) }()
	pause := time.NewTicker(time.Millisecond) // to leave the others the processor
	defer pause.Stop()
	for ctx.Err() == nil {
		<-pause.C
		if err := c.Ping(ctx, nil); err != nil && ctx.Err() == nil {
			t.Errorf("a bystander's ping: %v", err)
			return
		}
	}
}
