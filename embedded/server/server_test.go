package server_test

import (
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestRefusals are the checks before a command runs, beyond what recordings
// show.
func TestRefusals(t *testing.T) {
	start := func(kind server.Kind, version string) []*server.Server {
		return joined(t, version, 2, server.Config{Kind: kind}).Members()
	}
	set, single, mongos, old := start(server.ReplicaSet, "8.0"), start(server.Single, "8.0")[0], start(server.Sharded, "8.0")[0],
		start(server.ReplicaSet, "4.2")[0]
	primary, secondary := set[0], set[1]
	inTxn := func(doc bson.D, more ...any) bson.D { // doc in a transaction
		return append(append(doc, d("lsid", lsid, "txnNumber", int64(1), "autocommit", false)...), d(more...)...)
	}
	reading := func(concern ...any) bson.D { return d("find", "c", "readConcern", d(concern...)) }
	writing := func(name string, concern ...any) bson.D { return d("insert", "c", name, d(concern...)) }
	preferring := func(mode string, more ...any) bson.D {
		return d("find", "c", "$readPreference", append(d("mode", mode), d(more...)...))
	}
	never := bson.Timestamp{T: math.MaxInt32}
	for _, row := range []struct {
		reason  string
		server  *server.Server
		command bson.D
		code    int64 // 0: none
		text    string
	}{
		{"a command of another version", old, d("bulkWrite", 1), 59, "no such command: 'bulkWrite'"},
		{"4.2 does not know hello", old, d("hello", 1), 59, ""},
		{"a command of this version", primary, d("bulkWrite", 1), 0, ""},
		{"5.0 unified the words of mongos", mongos, d("noSuch", 1), 59, "no such command: 'noSuch'"},
		{"a command of the admin database", primary, d("bulkWrite", 1, "$db", "x"), 13, "bulkWrite may only be run against the admin database."},
		{"an unknown field", primary, d("strict", 1, "known", 1, "unknown", 1), 40415, "BSON field 'strict.unknown' is an unknown field."},
		{"every command has the generic arguments", primary, d("strict", 1, "lsid", lsid, "comment", "x", "maxTimeMS", 5,
			"$audit", 1, "$client", 1, "$configServerState", 1, "$oplogQueryData", 1, "$queryOptions", 1), 0, ""},
		{"an error of another type", primary, d("breaks", 1), 1, "broken"},
		{"a panic", primary, d("panics", 1), 1, "ouch"},
		{"lsid is not a document", primary, d("ping", 1, "lsid", 1), 14, ""},
		{"lsid without id", primary, d("ping", 1, "lsid", bson.D{}), 40414, ""},
		{"the id of lsid is not a UUID", primary, d("ping", 1, "lsid", d("id", "x")), 14, ""},
		{"txnNumber without lsid", primary, d("insert", "c", "txnNumber", int64(1)), 72, ""},
		{"a negative txnNumber", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(-1)), 72, ""},
		{"a txnNumber that is not a long", primary, d("insert", "c", "lsid", lsid, "txnNumber", 1), 14, "expected type 'long'"},
		{"autocommit without txnNumber", primary, d("insert", "c", "lsid", lsid, "autocommit", false), 72, "requires a transaction number"},
		{"autocommit is true", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "autocommit", true), 72, "autocommit=true is not"},
		{"startTransaction without autocommit", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "startTransaction", true), 72,
			"requires 'autocommit'"},
		{"startTransaction is false", primary, inTxn(d("insert", "c"), "startTransaction", false), 72, "startTransaction=false is not allowed"},
		{"a transaction that begins with its end", primary, inTxn(d("commitTransaction", 1), "startTransaction", true), 263, "with a commit"},
		{"a command without data in a transaction", primary, inTxn(d("ping", 1)), 263, "Cannot run 'ping'"},
		{"txnNumber on a standalone", single, d("insert", "c", "lsid", lsid, "txnNumber", int64(1)), 20, "only allowed on a replica set member"},
		{"a write on a secondary", secondary, d("insert", "c"), 10107, "not master"},
		{"a read from the primary on a secondary", secondary, d("find", "c"), 13435, "not master and slaveOk=false"},
		{"a read from any member on a secondary", secondary, preferring("nearest"), 0, ""},
		{"$readPreference is not a document", primary, d("find", "c", "$readPreference", "primary"), 14, ""},
		{"tags, with mode primary", primary, preferring("primary", "tags", bson.A{d("a", "b")}), 2, "Only empty tags"},
		{"the empty tag set, with mode primary", primary, preferring("primary", "tags", bson.A{bson.D{}}), 0, ""},
		{"staleness, with mode primary", primary, preferring("primary", "maxStalenessSeconds", 90), 2, ""},
		{"staleness and tags, with mode nearest", primary, preferring("nearest", "maxStalenessSeconds", 90, "tags", bson.A{d("a", "b")}), 0, ""},
		{"maxTimeMS is a string", primary, d("find", "c", "maxTimeMS", "1"), 2, "maxTimeMS must be a number"},
		{"maxTimeMS is a fraction", primary, d("find", "c", "maxTimeMS", 1.5), 2, "non-integral"},
		{"maxTimeMS is negative", primary, d("find", "c", "maxTimeMS", -1), 51024, "must be >= 0"},
		{"maxTimeMS is negative, on 4.2", old, d("find", "c", "maxTimeMS", -1), 2, "out of range"},
		{"maxTimeMS of 0 means no limit", primary, d("find", "c", "maxTimeMS", 0), 0, ""},
		{"maxTimeMS has more than 31 bits", primary, d("find", "c", "maxTimeMS", int64(1)<<31), 2, "out of range"},
		{"maxTimeMS is a whole double", primary, d("find", "c", "maxTimeMS", 1000.0), 0, ""},
		{"getMore goes where the cursor is", secondary, d("getMore", int64(1), "collection", "c"), 0, ""},
		{"a database without a name", primary, d("find", "c", "$db", ""), 73, ""},
		{"a database with a slash", primary, d("find", "c", "$db", "a/b"), 73, "Invalid database name: 'a/b'"},
		{"a database with a long name", primary, d("find", "c", "$db", strings.Repeat("x", 64)), 73, ""},
		{"apiVersion is not a string", primary, d("ping", 1, "apiVersion", 1), 14, ""},
		{"apiStrict refuses commands outside the API", primary, d("serverStatus", 1, "apiVersion", "1", "apiStrict", true), 323, ""},
		{"apiStrict refuses stages", primary, d("aggregate", 1, "pipeline", bson.A{d("$listLocalSessions", bson.D{})}, "apiVersion", "1",
			"apiStrict", true), 323, "stage $listLocalSessions"},
		{"apiStrict allows others", primary, d("aggregate", 1, "pipeline", bson.A{d("$match", bson.D{})}, "apiVersion", "1", "apiStrict", true), 0, ""},
		{"apiStrict without apiVersion", primary, d("ping", 1, "apiStrict", true), 4886600, ""},
		{"4.2 does not know API versions", old, d("ping", 1, "apiVersion", "7"), 0, ""},
		{"read concern majority of a write", primary, writing("readConcern", "level", "majority"), 72, "Command insert does not support"},
		{"read concern of a command that reads nothing", primary, d("ping", 1, "readConcern", d("level", "available")), 72,
			"Command ping does not support"},
		{"read concern local of a causal write", primary, writing("readConcern", "level", "local"), 0, ""},
		{"read concern without a level, of a write", primary, writing("readConcern", "afterClusterTime", bson.Timestamp{T: 1}), 0, ""},
		{"read concern majority of a read", primary, reading("level", "majority"), 0, ""},
		{"read concern snapshot in a transaction", primary, inTxn(writing("readConcern", "level", "snapshot"), "startTransaction", true), 0, ""},
		{"an unknown level", primary, writing("readConcern", "level", "nosuch"), 9, "readConcern.level must be"},
		{"an unknown field of readConcern", primary, reading("lever", "majority"), 72, "Unrecognized option in readConcern: lever"},
		{"a time that nobody has told the server", primary, reading("afterClusterTime", never), 72, "must not be greater"},
		{"a time that the command itself tells the server", primary, append(reading("afterClusterTime", never),
			d("$clusterTime", d("clusterTime", never))...), 0, ""},
		{"getMore waits for no time", primary, d("getMore", int64(1), "collection", "c", "readConcern", d("afterClusterTime", bson.Timestamp{T: 1})), 72,
			"afterClusterTime is not allowed"},
		{"an unknown field of writeConcern", primary, writing("writeConcern", "w", 1, "wait", 5), 9, "unrecognized write concern field: wait"},
		{"writeConcern is not a document", primary, d("insert", "c", "writeConcern", 1), 14, ""},
		{"writeConcern of a command that does not write", primary, d("ping", 1, "writeConcern", d("w", 1)), 72, "Command does not support writeConcern"},
		{"writeConcern of a write that does not have one", primary, d("searches", "c", "writeConcern", d("w", 1)), 72, "does not support writeConcern"},
		{"a write without writeConcern on a secondary", secondary, d("searches", "c"), 10107, ""},
		{"w: 2 on a standalone", single, writing("writeConcern", "w", 2), 2, ""},
		{"a negative w", primary, writing("writeConcern", "w", -1), 9, ""},
		{"w: true", primary, writing("writeConcern", "w", true), 9, ""},
		{"writeConcern in a transaction", primary, inTxn(writing("writeConcern", "w", 1)), 72, ""},
		{"an unknown parameter to set", primary, d("setParameter", 1, "noSuch", 1), 72, ""},
		{"an unknown parameter to get", primary, d("getParameter", 1, "noSuch", 1), 72, "no option found to get"},
		{"a secondary cannot step down", secondary, d("replSetStepDown", 1), 10107, ""},
		{"the primary cannot be frozen", primary, d("replSetFreeze", 5), 95, ""},
		{"a standalone does not have a configuration", single, d("replSetGetConfig", 1), 76, ""},
		{"an unknown mechanism", primary, d("saslStart", 1, "mechanism", "NOSUCH", "payload", bson.Binary{}), 334, "NOSUCH"},
		{"an unknown mechanism, on 4.2", old, d("saslStart", 1, "mechanism", "NOSUCH", "payload", bson.Binary{}), 2, "NOSUCH"},
		{"a mechanism that is not supported", primary, d("authenticate", 1, "mechanism", "MONGODB-X509"), 334, "MONGODB-X509"},
		{"mongos has flushRouterConfig", mongos, d("flushRouterConfig", 1), 0, ""},
		{"mongod does not", primary, d("flushRouterConfig", 1), 59, ""},
		{"killSessions of a number", primary, d("killSessions", 1), 14, ""},
	} {
		reply := pipe(t, row.server).call(row.command)
		text, _ := reply.Lookup("errmsg").StringValueOK()
		if reply == nil || code(reply) != row.code || !strings.Contains(text, row.text) {
			t.Errorf("%s: got %v, want code %d and %q", row.reason, reply, row.code, row.text)
		}
		if ok := reply.Lookup("ok").Double() == 1; ok != (row.code == 0) {
			t.Errorf("%s: ok in %v", row.reason, reply)
		}
	}
}

// TestLabels are the labels that follow from a code.
func TestLabels(t *testing.T) {
	txn := d("lsid", lsid, "txnNumber", int64(1), "autocommit", false)
	write := d("insert", "c", "lsid", lsid, "txnNumber", int64(1))
	inTxn, commit := append(d("find", "c"), txn...), append(d("commitTransaction", 1), txn...)
	watch := d("aggregate", "c", "pipeline", bson.A{d("$changeStream", bson.D{})})
	more := d("getMore", int64(1))
	for _, row := range []struct {
		reason  string
		version string
		kind    server.Kind
		command bson.D
		codes   []int
		want    string
	}{
		{"a retryable write", "8.0", server.ReplicaSet, write, []int{91}, `["RetryableWriteError"]`},
		{"4.2 leaves it to the driver", "4.2", server.ReplicaSet, write, []int{91}, ""},
		{"4.4 does not", "4.4", server.ReplicaSet, write, []int{91}, `["RetryableWriteError"]`},
		{"mongos does not label its own failures", "8.0", server.Sharded, write, []int{91}, ""},
		{"a code that is not retryable", "8.0", server.ReplicaSet, write, []int{2}, ""},
		{"a write that is not retryable", "8.0", server.ReplicaSet, d("insert", "c"), []int{91}, ""},
		{"in a transaction", "8.0", server.ReplicaSet, inTxn, []int{91}, `["TransientTransactionError"]`},
		{"in a transaction on mongos", "8.0", server.Sharded, inTxn, []int{91}, `["TransientTransactionError"]`},
		{"a write conflict", "8.0", server.ReplicaSet, inTxn, []int{112}, `["TransientTransactionError"]`},
		{"another error in a transaction", "8.0", server.ReplicaSet, inTxn, []int{2}, ""},
		{"a commit is retryable", "8.0", server.ReplicaSet, commit, []int{91}, `["RetryableWriteError"]`},
		{"a commit that did not get a lock", "8.0", server.Sharded, commit, []int{24}, `["TransientTransactionError"]`},
		{"a commit without a transaction", "8.0", server.ReplicaSet, commit, []int{251}, `["TransientTransactionError"]`},
		{"a change stream that can be resumed", "8.0", server.ReplicaSet, watch, []int{6}, `["ResumableChangeStreamError"]`},
		{"4.2 leaves that to the driver, too", "4.2", server.ReplicaSet, watch, []int{6}, ""},
		{"an overloaded server", "9.0", server.ReplicaSet, d("find", "c"), []int{462}, `["SystemOverloadedError","RetryableError"]`},
		{"an overloaded server that forbids retries", "9.0", server.ReplicaSet, d("find", "c"), []int{433}, `["SystemOverloadedError"]`},
		{"8.0 is never overloaded", "8.0", server.ReplicaSet, d("find", "c"), []int{462}, ""},
		// The getMore of a change stream has the codes of the server, which are not those of the drivers' list.
		{"a retriable error of a getMore", "8.0", server.ReplicaSet, more, []int{6, 7, 63, 89, 91, 133, 134, 150, 189, 234, 262, 402, 9001, 10107,
			11600, 11602, 13388, 13435, 13436}, `["ResumableChangeStreamError"]`},
		{"drivers know what a lost cursor means", "8.0", server.ReplicaSet, more, []int{43}, ""},
		{"402 came late", "4.4", server.ReplicaSet, more, []int{402}, ""},
		{"another error of a getMore", "8.0", server.ReplicaSet, more, []int{1, 8, 235, 280, 286}, ""},
		{"4.2 leaves getMore to the driver", "4.2", server.ReplicaSet, more, []int{234}, ""},
	} {
		c := pipe(t, joined(t, row.version, 1, server.Config{Kind: row.kind}).Members()[0])
		for _, failure := range row.codes {
			command := append(slices.Clone(row.command), bson.E{Key: "fails", Value: failure}) // which only getMore reads
			c.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data", d("failCommands",
				bson.A{"insert", "find", "aggregate", "commitTransaction"}, "errorCode", failure)))
			reply := c.call(command)
			if got := reply.Lookup("errorLabels").String(); code(reply) != int64(failure) || got != row.want {
				t.Errorf("%s: got %v, want %v", row.reason, reply, row.want)
			}
		}
	}
}

// TestLoadBalancer connects with loadBalanced and without.
func TestLoadBalancer(t *testing.T) {
	c := cluster(t, server.Sharded, "8.0", 2)
	balancer, err := c.Balance("127.0.0.1:0", c.Members())
	testkit.Check(t, err)
	t.Cleanup(func() { _ = balancer.Close() })
	services := map[bson.ObjectID]int{}
	for range 4 {
		k := dial(t, balancer.Address())
		if reply := k.call(d("hello", 1)); code(reply) != 354 {
			t.Errorf("without loadBalanced: %v", reply)
		}
		reply := k.call(d("hello", 1, "loadBalanced", true))
		id, ok := reply.Lookup("serviceId").ObjectIDOK()
		if !ok {
			t.Fatalf("no serviceId: %v", reply)
		}
		services[id]++
	}
	if len(services) != 2 {
		t.Errorf("connections went to %v", services)
	}
	direct := dial(t, c.Members()[0].Address()).call(d("hello", 1, "loadBalanced", true))
	if _, err := direct.LookupErr("serviceId"); err == nil {
		t.Errorf("not through the balancer: %v", direct)
	}
}

// TestOtherMessages are commands in messages other than a plain OP_MSG.
func TestOtherMessages(t *testing.T) {
	ask := func(version string, message []byte) (wire.Header, []byte) {
		c := pipe(t, joined(t, version, 1, server.Config{}).Members()[0])
		_, err := c.Write(message)
		testkit.Check(t, err)
		h, body, err := wire.ReadMessage(c.in)
		testkit.Check(t, err)
		return h, body
	}
	query := func(version string, doc bson.D) bson.Raw {
		_, body := ask(version, wire.AppendQuery(nil, 1, wire.Query{Collection: "admin.$cmd", Return: -1, Query: raw(t, doc)}))
		r, err := wire.ParseReply(body)
		testkit.Check(t, err)
		return r.Documents[0]
	}
	for version, want := range map[string]int64{"5.0": 0, "6.0": 352} { // 6.0 serves only hello in OP_QUERY
		if got := code(query(version, d("ping", 1))); got != want {
			t.Errorf("%s: ping got code %d, want %d", version, got, want)
		}
		if reply := query(version, d("isMaster", 1)); !reply.Lookup("ismaster").Boolean() {
			t.Errorf("%s: isMaster got %v", version, reply)
		}
	}
	for _, name := range []string{"snappy", "zlib", "zstd"} { // the reply is compressed like the command
		compressor, _ := wire.CompressorNamed(name)
		packed, err := wire.Compress(wire.AppendMsg(nil, 5, 0, 0, raw(t, d("buildInfo", 1, "$db", "admin"))), compressor)
		testkit.Check(t, err)
		h, body, used, err := wire.Decompress(ask("8.0", packed))
		if err != nil || used != compressor {
			t.Fatalf("%s: %v with %d", name, err, used)
		}
		if m, err := wire.ParseMsg(h, body); err != nil || m.Body.Lookup("version").StringValue() != "8.0.12" {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
}

// TestCloseWhileBusy closes while commands wait, block and stream, and while a
// client does not read.
func TestCloseWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := joined(t, "8.0", 1, server.Config{Kind: server.ReplicaSet})
		s := c.Members()[0]
		pipe(t, s).call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data",
			d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 3600000)))
		for _, doc := range []bson.D{d("waits", 1), d("find", "c"), d("listCommands", 1)} {
			pipe(t, s).send(0, doc) // nobody reads the reply to listCommands
		}
		stream := pipe(t, s)
		version := stream.call(d("hello", 1)).Lookup("topologyVersion")
		stream.send(wire.ExhaustAllowed, d("hello", 1, "topologyVersion", version, "maxAwaitTimeMS", 3600000))
		synctest.Wait()
		began := time.Now()
		testkit.Check(t, c.Close())
		if took := time.Since(began); took != 0 {
			t.Errorf("something waited %v before it ended", took)
		}
		if _, err := c.Add("127.0.0.1:0"); err == nil {
			t.Error("a server was added to a closed cluster")
		}
	})
}

// TestRestart kills servers that listen, starts them again, and writes: a standalone has no terms.
func TestRestart(t *testing.T) {
	for _, kind := range []server.Kind{server.Single, server.ReplicaSet} {
		c := empty(t, "8.0", server.Config{Kind: kind, Backend: data.New(data.Options{ReplicaSet: kind == server.ReplicaSet})})
		s, err := c.Add("127.0.0.1:0")
		testkit.Check(t, err)
		testkit.Check(t, errors.Join(c.Kill(s), c.Restart(s)))
		if reply := dial(t, s.Address()).call(d("insert", "c", "documents", bson.A{bson.D{}}, "$db", "db")); reply.Lookup("n").AsInt64() != 1 {
			t.Errorf("%v: got %v", kind, reply)
		}
		if c.StepDown() == nil || c.Elect(cluster(t, kind, "8.0", 1).Members()[0]) == nil {
			t.Error("a step down of the only member, or the election of another set's member, is accepted")
		}
	}
}

// lastWord is the server's end of a connection that runs a function before the
// first of its kind is closed.
type lastWord struct {
	net.Conn
	said *atomic.Bool
	say  func()
}

func (w *lastWord) Close() error {
	if !w.said.Swap(true) {
		w.say()
	}
	return w.Conn.Close()
}

// TestKillIsAtOnce asks over one connection when the server has begun to
// break another: a process that was killed answers on none.
func TestKillIsAtOnce(t *testing.T) {
	c := joined(t, "8.0", 1, server.Config{})
	s := c.Members()[0]
	var said atomic.Bool
	var clients [2]*client
	var answer bson.Raw
	for i := range clients {
		near, far := net.Pipe()
		clients[i] = newClient(t, near)
		s.Serve(&lastWord{far, &said, func() { answer = clients[1-i].call(d("hello", 1)) }})
		if reply := clients[i].call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("before: %v", reply)
		}
	}
	testkit.Check(t, c.Kill(s))
	if !said.Load() || answer != nil {
		t.Errorf("asked: %v, answered %v", said.Load(), answer)
	}
}

// journal remembers the messages that a server logs.
type journal struct{ messages []string }

func (j *journal) Log(e server.Entry)          { j.messages = append(j.messages, e.Message) }
func (j *journal) Commands(time.Duration) bool { return true }
func (j *journal) Lines() ([]string, int)      { return nil, 0 }

// TestJournal is what the process of a server logs of a connection.
func TestJournal(t *testing.T) {
	var j journal
	synctest.Test(t, func(t *testing.T) {
		s, err := empty(t, "8.0", server.Config{}).Join("h:0", server.Place{Journal: &j})
		testkit.Check(t, err)
		c := pipe(t, s)
		c.call(d("hello", 1, "client", d("driver", d("name", "x"))))
		c.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data", d("failCommands", bson.A{"ping"}, "errorCode", 8)))
		c.call(d("ping", 1))
		_ = c.Close()
		synctest.Wait()
	})
	want := []string{"Connection accepted", "client metadata", "Slow query", "Set failpoint", "Slow query",
		"fail point hits ping: error 8 UnknownError", "Slow query", "Connection ended", "ends"}
	if !slices.Equal(j.messages, want) {
		t.Errorf("%q, want %q", j.messages, want)
	}
}

// TestRefusedParameters starts servers with parameters that they do not take.
func TestRefusedParameters(t *testing.T) {
	for _, params := range []bson.D{d("noSuchParameter", 1), d("ingressRequestAdmissionRatePerSec", 0), d("quiet", func() {})} {
		_, err := empty(t, "8.2", server.Config{Parameters: params}).Add("127.0.0.1:0")
		refused := new(command.Error)
		if !errors.Is(err, server.ErrParameter) || params[0].Key == "noSuchParameter" && !errors.As(err, &refused) {
			t.Errorf("%v: %v", params, err)
		}
	}
}
