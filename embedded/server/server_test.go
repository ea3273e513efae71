package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/embedded/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 5 * time.Second

// stub is data enough for the protocol's tests.
type stub struct {
	began, ended chan struct{} // closed as a waiting command begins and ends, if not nil
}

func (s stub) Rows() []command.Row {
	fine := func(*command.Request) (bson.D, error) { return bson.D{{Key: "n", Value: int32(1)}}, nil }
	return []command.Row{
		{Name: "find", Run: fine},
		{Name: "getMore", Run: fine, OnSecondary: true},
		{Name: "aggregate", Run: fine},
		{Name: "insert", Run: fine, Write: true},
		{Name: "searches", Run: fine, Write: true, NoWriteConcern: true},
		{Name: "commitTransaction", Run: fine, AdminOnly: true},
		{Name: "bulkWrite", Run: fine, Write: true, AdminOnly: true, MinWire: 25},
		{Name: "strict", Run: fine, OnSecondary: true, Fields: []string{"known"}},
		{Name: "panics", OnSecondary: true, Run: func(*command.Request) (bson.D, error) { panic("ouch") }},
		{Name: "breaks", OnSecondary: true, Run: func(*command.Request) (bson.D, error) { return nil, errors.New("broken") }},
		{Name: "closes", OnSecondary: true, Run: func(*command.Request) (bson.D, error) { return nil, command.ErrClose }},
		{Name: "closesAfter", OnSecondary: true, Run: func(r *command.Request) (bson.D, error) {
			r.CloseAfter = true
			return nil, nil
		}},
		{Name: "waits", OnSecondary: true, Run: func(r *command.Request) (bson.D, error) {
			if s.began != nil {
				close(s.began)
				defer close(s.ended)
			}
			<-r.Context.Done()
			return nil, r.Context.Err()
		}},
		{Name: "writes", OnSecondary: true, Run: func(r *command.Request) (bson.D, error) {
			return bson.D{{Key: "wrote", Value: true}}, server.TransactionalWrite(r)
		}},
		{Name: "counts", OnSecondary: true, Run: counting},
	}
}

// counting streams 1, 2 and 3 to who allows it.
func counting(r *command.Request) (bson.D, error) {
	n := int32(1)
	reply := func() (bson.D, error) { return bson.D{{Key: "n", Value: n}}, nil }
	var next func() (bson.D, error)
	next = func() (bson.D, error) {
		n++
		r.Stream = next
		if n == 3 {
			r.Stream = nil
		}
		return reply()
	}
	if r.ExhaustAllowed {
		r.Stream = next
	}
	return reply()
}

func (stub) OperationTime() bson.Timestamp { return bson.Timestamp{T: 100, I: 1} }
func (stub) EndSessions([]bson.Raw)        {}
func (stub) KillSessions([]bson.Raw)       {}

// cluster starts servers of a kind and a version.
func cluster(t testing.TB, kind server.Kind, version string, n int) *server.Cluster {
	t.Helper()
	p, err := server.ProfileNamed(version)
	if err != nil {
		t.Fatal(err)
	}
	c := server.NewCluster(server.Config{Kind: kind, Profile: p, SetName: "rs", Backend: stub{}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for range n {
		if _, err := c.Add("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// client talks to a server over a pipe or a socket.
type client struct {
	t testing.TB
	net.Conn
	in   *bufio.Reader
	last wire.Header // of the reply that was read last
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &client{t: t, Conn: nc, in: bufio.NewReader(nc)}
}

func raw(t testing.TB, v any) bson.Raw {
	t.Helper()
	out, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *client) send(flags wire.Flags, doc bson.D) {
	c.t.Helper()
	if _, err := c.Write(wire.AppendMsg(nil, 5, 0, flags, raw(c.t, doc))); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads a reply, nil if the connection is closed instead.
func (c *client) receive() (bson.Raw, wire.Flags) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	h, body, err := wire.ReadMessage(c.in)
	if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset") {
		return nil, 0
	}
	if err != nil {
		c.t.Fatalf("waited %v for a reply: %v", patience, err)
	}
	c.last = h
	m, err := wire.ParseMsg(h, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return m.Body, m.Flags
}

// call runs a command, by default on admin.
func (c *client) call(doc bson.D) bson.Raw {
	c.t.Helper()
	if !slices.ContainsFunc(doc, func(e bson.E) bool { return e.Key == "$db" }) {
		doc = append(doc, bson.E{Key: "$db", Value: "admin"})
	}
	c.send(0, doc)
	reply, _ := c.receive()
	return reply
}

func d(pairs ...any) bson.D {
	var out bson.D
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

func code(reply bson.Raw) int64 {
	n, _ := reply.Lookup("code").AsInt64OK()
	return n
}

func labels(reply bson.Raw) []string {
	list, ok := reply.Lookup("errorLabels").ArrayOK()
	if !ok {
		return nil
	}
	values, _ := list.Values()
	var out []string
	for _, v := range values {
		out = append(out, v.StringValue())
	}
	return out
}

var lsid = d("id", bson.Binary{Subtype: 4, Data: make([]byte, 16)})

// TestRefusals are the checks before a command runs, beyond what recordings
// show.
func TestRefusals(t *testing.T) {
	single := cluster(t, server.Single, "8.0", 1).Members()[0].Address()
	set := cluster(t, server.ReplicaSet, "8.0", 2)
	primary, secondary := set.Members()[0].Address(), set.Members()[1].Address()
	mongos := cluster(t, server.Sharded, "8.0", 1).Members()[0].Address()
	old := cluster(t, server.ReplicaSet, "4.2", 1).Members()[0].Address()
	for _, row := range []struct {
		reason  string
		address string
		command bson.D
		code    int64 // 0: none
		text    string
	}{
		{"a command of another age", old, d("bulkWrite", 1), 59, "no such command: 'bulkWrite'"},
		{"hello is not known to 4.2", old, d("hello", 1), 59, ""},
		{"a command of this age", primary, d("bulkWrite", 1), 0, ""},
		{"5.0 unified the words of mongos", mongos, d("noSuch", 1), 59, "no such command: 'noSuch'"},
		{"the admin database alone", primary, d("bulkWrite", 1, "$db", "x"), 13, "bulkWrite may only be run against the admin database."},
		{"a field that is not known", primary, d("strict", 1, "known", 1, "unknown", 1), 40415, "BSON field 'strict.unknown' is an unknown field."},
		{"generic arguments are known to all", primary, d("strict", 1, "lsid", lsid, "comment", "x", "maxTimeMS", 5), 0, ""},
		{"an error that is no command.Error", primary, d("breaks", 1), 1, "broken"},
		{"a panic stays inside", primary, d("panics", 1), 1, "ouch"},
		{"lsid that is no document", primary, d("ping", 1, "lsid", 1), 14, ""},
		{"lsid without id", primary, d("ping", 1, "lsid", bson.D{}), 40414, ""},
		{"lsid with an id that is no UUID", primary, d("ping", 1, "lsid", d("id", "x")), 14, ""},
		{"txnNumber without lsid", primary, d("insert", "c", "txnNumber", int64(1)), 72, ""},
		{"a negative txnNumber", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(-1)), 72, ""},
		{"a txnNumber that is no long", primary, d("insert", "c", "lsid", lsid, "txnNumber", 1), 14, "expected type 'long'"},
		{"autocommit without a number", primary, d("insert", "c", "lsid", lsid, "autocommit", false), 72, "requires a transaction number"},
		{"autocommit of true", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "autocommit", true), 72, "autocommit=true is not allowed"},
		{"startTransaction without autocommit", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "startTransaction", true), 72, "requires 'autocommit'"},
		{"startTransaction of false", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "autocommit", false, "startTransaction", false), 72, "startTransaction=false is not allowed"},
		{"a transaction that begins with its end", primary, d("commitTransaction", 1, "lsid", lsid, "txnNumber", int64(1), "autocommit", false, "startTransaction", true), 263, "with a commit"},
		{"a command without data in a transaction", primary, d("ping", 1, "lsid", lsid, "txnNumber", int64(1), "autocommit", false), 263, "Cannot run 'ping'"},
		{"txnNumber on a standalone", single, d("insert", "c", "lsid", lsid, "txnNumber", int64(1)), 20, "only allowed on a replica set member or mongos"},
		{"a write on a secondary", secondary, d("insert", "c"), 10107, "not master"},
		{"a read on a secondary that asks for the primary", secondary, d("find", "c"), 13435, "not master and slaveOk=false"},
		{"a read that a secondary may serve", secondary, d("find", "c", "$readPreference", d("mode", "nearest")), 0, ""},
		{"$readPreference that is no document", primary, d("find", "c", "$readPreference", "primary"), 14, ""},
		{"tags among one", primary, d("find", "c", "$readPreference", d("mode", "primary", "tags", bson.A{d("a", "b")})), 2, "Only empty tags"},
		{"the empty tag set among one", primary, d("find", "c", "$readPreference", d("mode", "primary", "tags", bson.A{bson.D{}})), 0, ""},
		{"staleness of the primary", primary, d("find", "c", "$readPreference", d("mode", "primary", "maxStalenessSeconds", 90)), 2, ""},
		{"staleness of others", primary, d("find", "c", "$readPreference", d("mode", "nearest", "maxStalenessSeconds", 90, "tags", bson.A{d("a", "b")})), 0, ""},
		{"maxTimeMS of a word", primary, d("find", "c", "maxTimeMS", "1"), 2, "maxTimeMS must be a number"},
		{"maxTimeMS of a part", primary, d("find", "c", "maxTimeMS", 1.5), 2, "non-integral"},
		{"maxTimeMS below 0", primary, d("find", "c", "maxTimeMS", -1), 51024, "must be >= 0"},
		{"maxTimeMS below 0, long ago", old, d("find", "c", "maxTimeMS", -1), 2, "out of range"},
		{"maxTimeMS of more than 31 bits", primary, d("find", "c", "maxTimeMS", int64(1)<<31), 2, "out of range"},
		{"maxTimeMS of a whole double", primary, d("find", "c", "maxTimeMS", 1000.0), 0, ""},
		{"getMore goes where the cursor is", secondary, d("getMore", int64(1), "collection", "c"), 0, ""},
		{"a database without a name", primary, d("find", "c", "$db", ""), 73, ""},
		{"a database with a slash", primary, d("find", "c", "$db", "a/b"), 73, "Invalid database name: 'a/b'"},
		{"a database with a long name", primary, d("find", "c", "$db", strings.Repeat("x", 64)), 73, ""},
		{"apiVersion that is no string", primary, d("ping", 1, "apiVersion", 1), 14, ""},
		{"apiStrict refuses what is not in the API", primary, d("serverStatus", 1, "apiVersion", "1", "apiStrict", true), 323, ""},
		{"apiStrict refuses stages", primary, d("aggregate", 1, "pipeline", bson.A{d("$listLocalSessions", bson.D{})}, "apiVersion", "1", "apiStrict", true), 323, "stage $listLocalSessions"},
		{"apiStrict allows others", primary, d("aggregate", 1, "pipeline", bson.A{d("$match", bson.D{})}, "apiVersion", "1", "apiStrict", true), 0, ""},
		{"apiStrict without apiVersion", primary, d("ping", 1, "apiStrict", true), 4886600, ""},
		{"4.2 knows no API versions", old, d("ping", 1, "apiVersion", "7"), 0, ""},
		{"readConcern majority of a write", primary, d("insert", "c", "readConcern", d("level", "majority")), 72, "Command insert does not support"},
		{"readConcern available of what reads nothing", primary, d("ping", 1, "readConcern", d("level", "available")), 72, "Command ping does not support"},
		{"readConcern local of a write, to be causal", primary, d("insert", "c", "readConcern", d("level", "local")), 0, ""},
		{"readConcern without a level of a write", primary, d("insert", "c", "readConcern", d("afterClusterTime", bson.Timestamp{T: 1})), 0, ""},
		{"readConcern majority of a read", primary, d("find", "c", "readConcern", d("level", "majority")), 0, ""},
		{"readConcern snapshot in a transaction", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "autocommit", false, "startTransaction", true,
			"readConcern", d("level", "snapshot")), 0, ""},
		{"readConcern of a level that is none", primary, d("insert", "c", "readConcern", d("level", "nosuch")), 9, "readConcern.level must be"},
		{"readConcern with a field that is none", primary, d("find", "c", "readConcern", d("lever", "majority")), 72, "Unrecognized option in readConcern: lever"},
		{"a time that nobody has heard of", primary, d("find", "c", "readConcern", d("afterClusterTime", bson.Timestamp{T: math.MaxInt32})), 72, "must not be greater"},
		{"a time that the command itself tells", primary, d("find", "c", "readConcern", d("afterClusterTime", bson.Timestamp{T: math.MaxInt32}),
			"$clusterTime", d("clusterTime", bson.Timestamp{T: math.MaxInt32})), 0, ""},
		{"writeConcern with a field that is none", primary, d("insert", "c", "writeConcern", d("w", 1, "wait", 5)), 9, "unrecognized write concern field: wait"},
		{"getMore waits for no time", primary, d("getMore", int64(1), "collection", "c", "readConcern", d("afterClusterTime", bson.Timestamp{T: 1})), 72, "afterClusterTime is not allowed"},
		{"writeConcern that is no document", primary, d("insert", "c", "writeConcern", 1), 14, ""},
		{"writeConcern of a command without writes", primary, d("ping", 1, "writeConcern", d("w", 1)), 72, "Command does not support writeConcern"},
		{"writeConcern of a write that takes none", primary, d("searches", "c", "writeConcern", d("w", 1)), 72, "Command does not support writeConcern"},
		{"a write that takes no writeConcern, on a secondary", secondary, d("searches", "c"), 10107, ""},
		{"w: 2 on a standalone", single, d("insert", "c", "writeConcern", d("w", 2)), 2, ""},
		{"w below 0", primary, d("insert", "c", "writeConcern", d("w", -1)), 9, ""},
		{"w: true", primary, d("insert", "c", "writeConcern", d("w", true)), 9, ""},
		{"writeConcern in a transaction", primary, d("insert", "c", "lsid", lsid, "txnNumber", int64(1), "autocommit", false, "writeConcern", d("w", 1)), 72, ""},
		{"setParameter of what there is not", primary, d("setParameter", 1, "noSuch", 1), 72, ""},
		{"getParameter of what there is not has a code now", primary, d("getParameter", 1, "noSuch", 1), 72, "no option found to get"},
		{"replSetStepDown of a secondary", secondary, d("replSetStepDown", 1), 10107, ""},
		{"replSetFreeze of the primary", primary, d("replSetFreeze", 5), 95, ""},
		{"replSetGetConfig of a standalone", single, d("replSetGetConfig", 1), 76, ""},
		{"an unknown mechanism", primary, d("saslStart", 1, "mechanism", "NOSUCH", "payload", bson.Binary{}), 334, "NOSUCH"},
		{"an unknown mechanism, long ago", old, d("saslStart", 1, "mechanism", "NOSUCH", "payload", bson.Binary{}), 2, "NOSUCH"},
		{"a mechanism that is not ours", primary, d("authenticate", 1, "mechanism", "MONGODB-X509"), 334, "MONGODB-X509"},
		{"mongos forgets its routes", mongos, d("flushRouterConfig", 1), 0, ""},
		{"mongod has none", primary, d("flushRouterConfig", 1), 59, ""},
		{"killSessions of what is no list", primary, d("killSessions", 1), 14, ""},
	} {
		reply := dial(t, row.address).call(row.command)
		text, _ := reply.Lookup("errmsg").StringValueOK()
		if reply == nil || code(reply) != row.code || !strings.Contains(text, row.text) {
			t.Errorf("%s: got %v, want code %d and %q", row.reason, reply, row.code, row.text)
		}
		if ok := reply.Lookup("ok").Double() == 1; ok != (row.code == 0) {
			t.Errorf("%s: ok in %v", row.reason, reply)
		}
	}
}

// TestClosed are the commands whose answer is the end of the connection.
func TestClosed(t *testing.T) {
	s := cluster(t, server.ReplicaSet, "8.0", 1).Members()[0]
	bystander := dial(t, s.Address())
	for _, command := range []bson.D{d("closes", 1), d("closesAfter", 1)} {
		if reply := dial(t, s.Address()).call(command); reply != nil {
			t.Errorf("%v: %v", command, reply)
		}
	}
	bystander.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data", d("failCommands", bson.A{"find"}, "closeConnection", true)))
	if reply := dial(t, s.Address()).call(d("find", "c")); reply != nil {
		t.Errorf("under failCommand: %v", reply)
	}
	if reply := bystander.call(d("ping", 1)); reply == nil {
		t.Error("another connection was closed")
	}
}

// TestOnPrimaryTransactionalWrite is the fail point that a write's commit asks.
func TestOnPrimaryTransactionalWrite(t *testing.T) {
	s := cluster(t, server.ReplicaSet, "8.0", 1).Members()[0]
	for _, row := range []struct {
		reason string
		data   bson.D
		closed bool
		code   int64
	}{
		{"it closes the connection", bson.D{}, true, 0},
		{"unless told not to", d("closeConnection", false), false, 0},
		{"with a code it closes all the same", d("failBeforeCommitExceptionCode", 5), true, 0},
		{"or fails", d("failBeforeCommitExceptionCode", 5, "closeConnection", false), false, 5},
	} {
		c := dial(t, s.Address())
		if reply := c.call(d("configureFailPoint", "onPrimaryTransactionalWrite", "mode", d("times", 1), "data", row.data)); code(reply) != 0 {
			t.Fatal(reply)
		}
		reply := c.call(d("writes", 1, "lsid", lsid, "txnNumber", int64(1)))
		if (reply == nil) != row.closed || code(reply) != row.code {
			t.Errorf("%s: %v", row.reason, reply)
		}
	}
}

// TestFailCommandSequence gives each attempt what is meant for it, whichever
// server it goes to.
func TestFailCommandSequence(t *testing.T) {
	members := cluster(t, server.Sharded, "8.0", 2).Members()
	one, other := dial(t, members[0].Address()), dial(t, members[1].Address())
	insert := d("insert", "c", "documents", bson.A{d("_id", 1)})
	if reply := one.call(d("getParameter", 1, "failCommandSequence", 1)); !reply.Lookup("failCommandSequence").Boolean() {
		t.Errorf("suites that require it are not told: %v", reply)
	}
	one.call(d("configureFailPoint", "failCommandSequence", "mode", "alwaysOn", "data", d("failCommands", bson.A{"insert"}, "sequence", bson.A{
		d("errorCode", 91, "errorLabels", bson.A{"mine"}), bson.D{}, d("writeConcernError", d("code", 64, "errmsg", "late")), d("loseReply", true)})))
	if reply := other.call(insert); code(reply) != 91 || !slices.Equal(labels(reply), []string{"mine"}) {
		t.Errorf("the first attempt got %v", reply)
	}
	if reply := one.call(insert); code(reply) != 0 {
		t.Errorf("the second attempt got %v", reply)
	}
	if reply := one.call(insert); reply.Lookup("writeConcernError", "code").AsInt64() != 64 {
		t.Errorf("the third attempt got %v", reply)
	}
	other.send(0, append(insert, bson.E{Key: "$db", Value: "x"}))
	if reply, _ := other.receive(); reply != nil {
		t.Errorf("the fourth attempt got %v", reply)
	}
	if reply := one.call(insert); code(reply) != 0 {
		t.Errorf("the fifth attempt got %v", reply)
	}
}

// TestLabels are the labels that follow from a code.
func TestLabels(t *testing.T) {
	write := d("insert", "c", "lsid", lsid, "txnNumber", int64(1))
	inTxn := d("find", "c", "lsid", lsid, "txnNumber", int64(1), "autocommit", false)
	commit := d("commitTransaction", 1, "lsid", lsid, "txnNumber", int64(1), "autocommit", false)
	watch := d("aggregate", "c", "pipeline", bson.A{d("$changeStream", bson.D{})})
	for _, row := range []struct {
		reason  string
		version string
		kind    server.Kind
		command bson.D
		code    int
		want    []string
	}{
		{"a retryable write", "8.0", server.ReplicaSet, write, 91, []string{"RetryableWriteError"}},
		{"4.2 leaves it to the driver", "4.2", server.ReplicaSet, write, 91, nil},
		{"4.4 does not", "4.4", server.ReplicaSet, write, 91, []string{"RetryableWriteError"}},
		{"mongos does not label what it fails itself", "8.0", server.Sharded, write, 91, nil},
		{"a code that is not to be retried", "8.0", server.ReplicaSet, write, 2, nil},
		{"a write that can not be retried", "8.0", server.ReplicaSet, d("insert", "c"), 91, nil},
		{"in a transaction", "8.0", server.ReplicaSet, inTxn, 91, []string{"TransientTransactionError"}},
		{"in a transaction, on mongos", "8.0", server.Sharded, inTxn, 91, []string{"TransientTransactionError"}},
		{"a write conflict", "8.0", server.ReplicaSet, inTxn, 112, []string{"TransientTransactionError"}},
		{"another error in a transaction", "8.0", server.ReplicaSet, inTxn, 2, nil},
		{"a commit is retried", "8.0", server.ReplicaSet, commit, 91, []string{"RetryableWriteError"}},
		{"a commit that found no lock", "8.0", server.Sharded, commit, 24, []string{"TransientTransactionError"}},
		{"a commit of no transaction", "8.0", server.ReplicaSet, commit, 251, []string{"TransientTransactionError"}},
		{"a change stream that can be opened again", "8.0", server.ReplicaSet, watch, 6, []string{"ResumableChangeStreamError"}},
		{"4.2 leaves that to the driver too", "4.2", server.ReplicaSet, watch, 6, nil},
		{"an overloaded server", "9.0", server.ReplicaSet, d("find", "c"), 462, []string{"SystemOverloadedError", "RetryableError"}},
		{"an overloaded server that is not to be asked again", "9.0", server.ReplicaSet, d("find", "c"), 433, []string{"SystemOverloadedError"}},
		{"8.0 is never overloaded", "8.0", server.ReplicaSet, d("find", "c"), 462, nil},
	} {
		s := cluster(t, row.kind, row.version, 1).Members()[0]
		c := dial(t, s.Address())
		data := d("failCommands", bson.A{"insert", "find", "aggregate", "commitTransaction"}, "errorCode", row.code)
		c.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data", data))
		reply := c.call(row.command)
		if code(reply) != int64(row.code) || !slices.Equal(labels(reply), row.want) {
			t.Errorf("%s: got %v, want %v", row.reason, reply, row.want)
		}
	}
}

// TestWords are what changed between versions.
func TestWords(t *testing.T) {
	for _, row := range []struct {
		version      string
		helloOk      bool
		message      string
		name         string
		failMessage  string
		topology     bool // the error tells topologyVersion
		helloOkField bool
	}{
		{"4.2", true, "not master", "NotMaster", "due to", false, false},
		{"4.4", true, "not master", "NotWritablePrimary", "due to", true, true},
		{"4.9", false, "not master", "NotWritablePrimary", "due to", true, false},
		{"5.0", true, "not primary", "NotWritablePrimary", "via", true, true},
		{"5.0", false, "not master", "NotWritablePrimary", "via", true, false},
		{"9.0", true, "not primary", "NotWritablePrimary", "via", true, true},
	} {
		set := cluster(t, server.ReplicaSet, row.version, 2)
		c := dial(t, set.Members()[1].Address())
		handshake := d("isMaster", 1)
		if row.helloOk {
			handshake = append(handshake, bson.E{Key: "helloOk", Value: true})
		}
		hello := c.call(handshake)
		if _, err := hello.LookupErr("helloOk"); (err == nil) != row.helloOkField {
			t.Errorf("%s: helloOk in %v", row.version, hello)
		}
		reply := c.call(d("insert", "c"))
		_, err := reply.LookupErr("topologyVersion")
		if reply.Lookup("errmsg").StringValue() != row.message || reply.Lookup("codeName").StringValue() != row.name || (err == nil) != row.topology {
			t.Errorf("%s: got %v", row.version, reply)
		}
		c.call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data", d("failCommands", bson.A{"ping"}, "errorCode", 5)))
		if reply := c.call(d("ping", 1)); !strings.HasPrefix(reply.Lookup("errmsg").StringValue(), "Failing command "+row.failMessage) {
			t.Errorf("%s: got %v", row.version, reply)
		}
	}
}

// TestWriteConcern is what becomes of write concerns that can not be had.
func TestWriteConcern(t *testing.T) {
	set := dial(t, cluster(t, server.ReplicaSet, "8.0", 2).Members()[0].Address())
	router := dial(t, cluster(t, server.Sharded, "8.0", 1).Members()[0].Address())
	for _, row := range []struct {
		reason string
		on     *client
		w      any
		code   int64
	}{
		{"one", set, 1, 0}, {"all members", set, 2, 0}, {"more than there are", set, 3, 100}, {"a majority", set, "majority", 0},
		{"a name", set, "x", 79}, {"tags", set, d("dc", 1), 0},
		{"all members of the shard", router, 3, 0}, {"more than the shard has", router, 4, 100},
		{"a majority of the shard", router, "majority", 0}, {"a name, behind a router", router, "x", 79},
	} {
		reply := row.on.call(d("insert", "c", "writeConcern", d("w", row.w)))
		e, _ := reply.Lookup("writeConcernError").DocumentOK()
		if code(e) != row.code || reply.Lookup("n").AsInt64() != 1 {
			t.Errorf("%s: %v", row.reason, reply)
		}
	}
	if reply := set.call(d("insert", "c", "writeConcern", d("w", 0))); reply == nil || firstKey(reply) != "ok" {
		t.Errorf("w: 0: %v", reply)
	}
}

func firstKey(doc bson.Raw) string { return doc.Index(0).Key() }

// TestStreaming reads the replies of an exhaust command: each answers the one
// before it, the last one says that it is.
func TestStreaming(t *testing.T) {
	s := cluster(t, server.ReplicaSet, "8.0", 1).Members()[0]
	c := dial(t, s.Address())
	c.send(wire.ExhaustAllowed, d("counts", 1, "$db", "admin"))
	before := int32(5)
	for n := int64(1); n <= 3; n++ {
		reply, flags := c.receive()
		if c.last.ResponseTo != before {
			t.Errorf("reply %d answers message %d, not %d", n, c.last.ResponseTo, before)
		}
		before = c.last.RequestID
		if reply.Lookup("n").AsInt64() != n || (flags&wire.MoreToCome != 0) != (n < 3) {
			t.Errorf("reply %d: %v, flags %b", n, reply, flags)
		}
	}
	if reply := c.call(d("counts", 1)); reply.Lookup("n").AsInt64() != 1 {
		t.Errorf("without exhaust: %v", reply)
	}
	if reply := c.call(d("ping", 1)); code(reply) != 0 {
		t.Errorf("then: %v", reply)
	}
	// A fail point strikes in the middle of a stream, and ends it.
	dial(t, s.Address()).call(d("configureFailPoint", "failCommand", "mode", d("skip", 1), "data", d("failCommands", bson.A{"counts"}, "errorCode", 5)))
	c.send(wire.ExhaustAllowed, d("counts", 1, "$db", "admin"))
	if reply, flags := c.receive(); code(reply) != 0 || flags&wire.MoreToCome == 0 {
		t.Errorf("before the fail point: %v", reply)
	}
	if reply, flags := c.receive(); code(reply) != 5 || flags&wire.MoreToCome != 0 {
		t.Errorf("under the fail point: %v", reply)
	}
}

// TestFailHandshake has the first hello of one application fail, and of no
// other one.
func TestFailHandshake(t *testing.T) {
	s := cluster(t, server.Single, "8.0", 1).Members()[0]
	dial(t, s.Address()).call(d("configureFailPoint", "failCommand", "mode", "alwaysOn",
		"data", d("failCommands", bson.A{"hello", "isMaster"}, "errorCode", 5, "appName", "mine")))
	for _, row := range []struct {
		reason string
		app    string
		want   int64
	}{
		{"the name in the very first message counts", "mine", 5},
		{"the name is another", "theirs", 0},
		{"there is no name", "", 0},
	} {
		c := dial(t, s.Address())
		hello := d("hello", 1, "client", d("application", d("name", row.app)))
		if row.app == "" {
			hello = d("hello", 1)
		}
		if got := code(c.call(hello)); got != row.want {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.want)
		}
	}
}

// hello begins to await a change, with the time that it may take.
func (c *client) await(flags wire.Flags, reply bson.Raw, ms int) {
	c.t.Helper()
	c.send(flags, d("hello", 1, "topologyVersion", reply.Lookup("topologyVersion"), "maxAwaitTimeMS", int64(ms), "$db", "admin"))
}

func counter(reply bson.Raw) int64 { return reply.Lookup("topologyVersion", "counter").AsInt64() }

// TestStepDown follows the recording of a step down: what each member's
// stream tells, and what a write gets before and after.
func TestStepDown(t *testing.T) {
	set := cluster(t, server.ReplicaSet, "4.9", 3)
	members := set.Members()
	streams := make([]*client, len(members))
	first := make([]bson.Raw, len(members))
	for i, m := range members {
		streams[i] = dial(t, m.Address())
		first[i] = streams[i].call(d("hello", 1))
		streams[i].await(wire.ExhaustAllowed, first[i], 60000)
	}
	writer := dial(t, members[0].Address())
	if reply := writer.call(d("insert", "c")); code(reply) != 0 {
		t.Fatalf("a write on the primary: %v", reply)
	}
	if reply := writer.call(d("replSetStepDown", 4)); code(reply) != 0 {
		t.Fatalf("replSetStepDown: %v", reply)
	}
	if reply := writer.call(d("insert", "c")); code(reply) != 10107 {
		t.Errorf("a write on the old primary: %v", reply)
	}
	for i, c := range streams {
		var reply bson.Raw
		var flags wire.Flags
		// A stream may tell of the step in between.
		for reply == nil || reply.Lookup("primary").Type == 0 {
			if reply, flags = c.receive(); reply == nil || flags&wire.MoreToCome == 0 {
				t.Fatalf("the stream of member %d ended with %v", i, reply)
			}
		}
		if reply.Lookup("isWritablePrimary").Boolean() != (i == 1) || reply.Lookup("primary").StringValue() != members[1].Address() {
			t.Errorf("member %d tells %v", i, reply)
		}
		if counter(reply) <= counter(first[i]) {
			t.Errorf("member %d: topologyVersion went from %d to %d", i, counter(first[i]), counter(reply))
		}
	}
	fresh := dial(t, members[1].Address())
	reply := fresh.call(d("hello", 1))
	if id := reply.Lookup("electionId").ObjectID().Hex(); id != "7fffffff0000000000000002" {
		t.Errorf("electionId is %s", id)
	}
	if reply := fresh.call(d("insert", "c")); code(reply) != 0 {
		t.Errorf("a write on the new primary: %v", reply)
	}
}

// TestAloneStepDown steps down without anyone to follow.
func TestAloneStepDown(t *testing.T) {
	set := cluster(t, server.ReplicaSet, "8.0", 1)
	c := dial(t, set.Members()[0].Address())
	if reply := c.call(d("replSetStepDown", 1)); code(reply) != 262 {
		t.Errorf("without force: %v", reply)
	}
	if reply := c.call(d("replSetStepDown", 0, "force", true)); code(reply) != 0 {
		t.Errorf("with force: %v", reply)
	}
	hello := c.call(d("hello", 1))
	for !hello.Lookup("isWritablePrimary").Boolean() {
		c.await(0, hello, 5000)
		next, _ := c.receive()
		if counter(next) == counter(hello) {
			t.Fatalf("waited 5 s for an election: %v", next)
		}
		hello = next
	}
	if err := set.StepDown(); err == nil {
		t.Error("StepDown without another member")
	}
	if err := set.Elect(cluster(t, server.ReplicaSet, "8.0", 1).Members()[0]); err == nil {
		t.Error("a member of another set was elected")
	}
}

// TestLoadBalancer connects with and without saying so.
func TestLoadBalancer(t *testing.T) {
	c := cluster(t, server.Sharded, "8.0", 2)
	balancer, err := c.Balance("127.0.0.1:0", c.Members())
	if err != nil {
		t.Fatal(err)
	}
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

// TestOldOpcodes are served up to 5.0, but hello in OP_QUERY always.
func TestOldOpcodes(t *testing.T) {
	for version, code := range map[string]int64{"5.0": 0, "6.0": 352} {
		s := cluster(t, server.Single, version, 1).Members()[0]
		ask := func(doc bson.D) bson.Raw {
			c := dial(t, s.Address())
			if _, err := c.Write(wire.AppendQuery(nil, 1, wire.Query{Collection: "admin.$cmd", Return: -1, Query: raw(t, doc)})); err != nil {
				t.Fatal(err)
			}
			_, body, err := wire.ReadMessage(c.in)
			if err != nil {
				t.Fatal(err)
			}
			r, err := wire.ParseReply(body)
			if err != nil {
				t.Fatal(err)
			}
			return r.Documents[0]
		}
		if got, _ := ask(d("ping", 1)).Lookup("code").AsInt64OK(); got != code {
			t.Errorf("%s: ping got code %d, want %d", version, got, code)
		}
		if reply := ask(d("isMaster", 1)); !reply.Lookup("ismaster").Boolean() {
			t.Errorf("%s: isMaster got %v", version, reply)
		}
	}
}

// TestCompressedReply answers as it was asked.
func TestCompressedReply(t *testing.T) {
	s := cluster(t, server.Single, "8.0", 1).Members()[0]
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		c := dial(t, s.Address())
		compressor, _ := wire.CompressorNamed(name)
		packed, err := wire.Compress(wire.AppendMsg(nil, 5, 0, 0, raw(t, d("buildInfo", 1, "$db", "admin"))), compressor)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(packed); err != nil {
			t.Fatal(err)
		}
		h, body, err := wire.ReadMessage(c.in)
		if err != nil {
			t.Fatal(err)
		}
		h, body, used, err := wire.Decompress(h, body)
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
	p, err := server.ProfileNamed("8.0")
	if err != nil {
		t.Fatal(err)
	}
	c := server.NewCluster(server.Config{Kind: server.ReplicaSet, Profile: p, SetName: "rs", Backend: stub{}})
	s, err := c.Add("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := []bson.D{d("waits", 1, "$db", "admin"), d("find", "c", "$db", "x")}
	setter := dial(t, s.Address())
	setter.call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data",
		d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 3600000)))
	for _, doc := range calls {
		dial(t, s.Address()).send(0, doc)
	}
	stream := dial(t, s.Address())
	stream.await(wire.ExhaustAllowed, stream.call(d("hello", 1)), 3600000)
	// One that never reads: it sends until no more goes out.
	deaf := dial(t, s.Address())
	flood := bytes.Repeat(wire.AppendMsg(nil, 1, 0, 0, raw(t, d("listCommands", 1, "$db", "admin"))), 100)
	for {
		if err := deaf.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := deaf.Write(flood); err != nil {
			break
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatalf("waited %v for Close", patience)
	}
	if _, err := c.Add("127.0.0.1:0"); err == nil {
		t.Error("a server was added to a closed cluster")
	}
}

// TestMetadata is about the client's document in the handshake.
func TestMetadata(t *testing.T) {
	s := cluster(t, server.Single, "8.0", 1).Members()[0]
	app := func(name string) bson.D { return d("hello", 1, "client", d("application", d("name", name))) }
	c := dial(t, s.Address())
	if reply := c.call(app("a")); code(reply) != 0 {
		t.Errorf("the first: %v", reply)
	}
	if reply := c.call(app("b")); code(reply) != 186 {
		t.Errorf("the second: %v", reply)
	}
	if reply := dial(t, s.Address()).call(app(strings.Repeat("x", 129))); code(reply) != 184 {
		t.Errorf("a long name: %v", reply)
	}
}

// TestParameters sets one and reads it back, on this server alone.
func TestParameters(t *testing.T) {
	set := cluster(t, server.ReplicaSet, "8.0", 2)
	a, b := dial(t, set.Members()[0].Address()), dial(t, set.Members()[1].Address())
	if reply := a.call(d("setParameter", 1, "requireApiVersion", true)); reply.Lookup("was").Boolean() {
		t.Errorf("was: %v", reply)
	}
	if reply := a.call(d("ping", 1)); code(reply) != 498870 {
		t.Errorf("a ping without apiVersion: %v", reply)
	}
	if reply := b.call(d("ping", 1)); code(reply) != 0 {
		t.Errorf("on another server: %v", reply)
	}
	if reply := a.call(d("setParameter", 1, "requireApiVersion", false, "apiVersion", "1")); !reply.Lookup("was").Boolean() {
		t.Errorf("was: %v", reply)
	}
	all := a.call(d("getParameter", "*"))
	if _, err := all.LookupErr("enableTestCommands"); err != nil {
		t.Errorf("all parameters: %v", all)
	}
}

// TestUsers makes, changes, lists and drops users.
func TestUsers(t *testing.T) {
	set := cluster(t, server.ReplicaSet, "5.0", 2)
	a, b := dial(t, set.Members()[0].Address()), dial(t, set.Members()[1].Address())
	for _, row := range []struct {
		reason  string
		on      *client
		command bson.D
		code    int64
	}{
		{"a user", a, d("createUser", "u", "pwd", "p", "roles", bson.A{"root", d("role", "read", "db", "x")}), 0},
		{"twice", a, d("createUser", "u", "pwd", "p", "roles", bson.A{}), 51003},
		{"without a password", a, d("createUser", "v", "roles", bson.A{}), 2},
		{"without roles", a, d("createUser", "v", "pwd", "p"), 2},
		{"with a role that is a number", a, d("createUser", "v", "pwd", "p", "roles", bson.A{1}), 14},
		{"on a secondary", b, d("createUser", "w", "pwd", "p", "roles", bson.A{}), 10107},
		{"a new password", a, d("updateUser", "u", "pwd", "q"), 0},
		{"new roles", a, d("updateUser", "u", "roles", bson.A{"read"}), 0},
		{"of no one", a, d("updateUser", "v", "pwd", "q"), 11},
		{"drop no one", a, d("dropUser", "v"), 11},
	} {
		if reply := row.on.call(row.command); code(reply) != row.code {
			t.Errorf("%s: %v", row.reason, reply)
		}
	}
	for _, who := range []any{1, "u", d("user", "u", "db", "admin")} {
		users := b.call(d("usersInfo", who)).Lookup("users").Array()
		u, err := users.IndexErr(0)
		if err != nil || u.Document().Lookup("_id").StringValue() != "admin.u" || u.Document().Lookup("roles", "0", "role").StringValue() != "read" {
			t.Errorf("usersInfo of %v: %v", who, users)
		}
	}
	if reply := b.call(d("hello", 1, "saslSupportedMechs", "admin.u")); reply.Lookup("saslSupportedMechs").Type == 0 {
		t.Errorf("mechanisms of the user: %v", reply)
	}
	if reply := a.call(d("dropUser", "u")); code(reply) != 0 {
		t.Errorf("dropUser: %v", reply)
	}
	if users := b.call(d("usersInfo", 1)).Lookup("users").Array(); len(users) > 5 {
		t.Errorf("after dropUser: %v", users)
	}
	if reply := a.call(d("getnonce", 1)); len(reply.Lookup("nonce").StringValue()) != 16 {
		t.Errorf("getnonce: %v", reply)
	}
}

// TestAppNameInHello has a fail point strike the very hello that tells the
// application's name.
func TestAppNameInHello(t *testing.T) {
	for version, want := range map[string]int64{"4.2": 91, "4.4": 91, "8.0": 91} {
		s := cluster(t, server.Single, version, 1).Members()[0]
		dial(t, s.Address()).call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data",
			d("failCommands", bson.A{"isMaster", "hello"}, "errorCode", 91, "appName", "mine")))
		for name, want := range map[string]int64{"mine": want, "yours": 0} {
			reply := dial(t, s.Address()).call(d("isMaster", 1, "client", d("application", d("name", name))))
			if code(reply) != want {
				t.Errorf("%s, %s: %v, want code %d", version, name, reply, want)
			}
		}
	}
}

// TestKillEndsCommands sees that a command learns that its server is gone.
func TestKillEndsCommands(t *testing.T) {
	p, err := server.ProfileNamed("8.0")
	if err != nil {
		t.Fatal(err)
	}
	data := stub{began: make(chan struct{}), ended: make(chan struct{})}
	c := server.NewCluster(server.Config{Kind: server.ReplicaSet, Profile: p, Backend: data})
	t.Cleanup(func() { _ = c.Close() })
	s, err := c.Add("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := dial(t, s.Address())
	k.send(0, d("waits", 1, "$db", "admin"))
	await(t, data.began, "the command to begin")
	if err := c.Kill(s); err != nil {
		t.Fatal(err)
	}
	await(t, data.ended, "the command to end")
	if reply, _ := k.receive(); reply != nil {
		t.Errorf("a killed server answered %v", reply)
	}
	if err := c.Restart(s); err != nil {
		t.Fatal(err)
	}
	again := dial(t, s.Address())
	if reply := again.call(d("hello", 1)); !reply.Lookup("isWritablePrimary").Boolean() {
		t.Errorf("after a restart: %v", reply)
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
	c := cluster(t, server.ReplicaSet, "8.0", 1)
	s := c.Members()[0]
	var said atomic.Bool
	var clients [2]*client
	var answer bson.Raw
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for i := range clients {
		clients[i] = dial(t, l.Addr().String())
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s.Serve(&lastWord{far, &said, func() { answer = clients[1-i].call(d("hello", 1)) }})
		if reply := clients[i].call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("before: %v", reply)
		}
	}
	if err := c.Kill(s); err != nil {
		t.Fatal(err)
	}
	if !said.Load() || answer != nil {
		t.Errorf("asked: %v, answered %v", said.Load(), answer)
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}
