package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m, func() error { return goleak.Find() }) }

// machine is where the processes of a test run: each has a port of its own, on
// an address that nobody else uses.
type machine struct {
	*utrtest.Place
	t        *testing.T
	host     string
	nextPort int
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	t.Parallel()
	return &machine{utrtest.NewPlace(t), t, utrtest.Address(t), utrtest.Ports}
}

func (m *machine) port() int { m.nextPort++; return m.nextPort }

// proc is a mongod or a mongos.
type proc struct {
	*utrtest.Process
	machine *machine
	port    int
	address string
	dir     string
	args    []string
}

// start starts one with a folder and a log of its own, and waits until it serves.
func (m *machine) start(name string, args ...string) *proc {
	m.t.Helper()
	p := &proc{machine: m, port: m.port(), dir: m.t.TempDir()}
	p.address = net.JoinHostPort(m.host, strconv.Itoa(p.port))
	p.args = append([]string{name, "--bind_ip", m.host, "--port", strconv.Itoa(p.port), "--setParameter", "enableTestCommands=1",
		"-v", "--logpath", filepath.Join(p.dir, "log"), "--logappend"}, args...)
	if name == "mongod" {
		p.args = append(p.args, "--dbpath", p.dir)
	}
	p.again()
	return p
}

// again starts it again, with more options.
func (p *proc) again(more ...string) {
	p.machine.t.Helper()
	before := p.serving()
	p.args = append(p.args, more...)
	p.Process = p.machine.Start(p.args...)
	testkit.Until(p.machine.t, p.address+" to serve", func() bool { return p.serving() > before || p.Ended() })
}

func (p *proc) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log")) // there may be none yet
	return string(text)
}

// serving counts how often it has begun to serve.
func (p *proc) serving() int { return strings.Count(p.log(), `"msg":"Waiting for connections"`) }

// end sends a signal and expects an exit code.
func (p *proc) end(signal os.Signal, code int) utrtest.Result {
	p.machine.t.Helper()
	p.Signal(signal)
	return p.End().Want(code)
}

// client is one of the Go driver.
func client(t *testing.T, uri string, change ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetServerSelectionTimeout(testkit.Patience).SetHeartbeatInterval(500 * time.Millisecond)
	for _, f := range change {
		f(o)
	}
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // it would say goodbye to servers that are gone
		_ = c.Disconnect(ctx)
	})
	return c
}

// direct is a client of one process.
func (p *proc) direct() *mongo.Client {
	p.machine.t.Helper()
	return client(p.machine.t, "mongodb://"+p.address+"/?directConnection=true")
}

// try runs a command on admin.
func try(t *testing.T, c *mongo.Client, command ...bson.E) (bson.Raw, error) {
	t.Helper()
	return c.Database("admin").RunCommand(testkit.Context(t), bson.D(command)).Raw()
}

// run is try for a command that succeeds.
func run(t *testing.T, c *mongo.Client, command ...bson.E) bson.Raw {
	t.Helper()
	raw, err := try(t, c, command...)
	if err != nil {
		t.Fatalf("%s: %v", command[0].Key, err)
	}
	return raw
}

// refused expects an error with a code.
func refused(t *testing.T, reason string, c *mongo.Client, code int32, command ...bson.E) {
	t.Helper()
	_, err := try(t, c, command...)
	if failure := (mongo.CommandError{}); !errors.As(err, &failure) || failure.Code != code {
		t.Errorf("%s: got %v, not code %d", reason, err, code)
	}
}

func e(key string, value any) bson.E { return bson.E{Key: key, Value: value} }

// insert writes a document.
func insert(t *testing.T, c *mongo.Client) {
	t.Helper()
	if _, err := c.Database("db").Collection("c").InsertOne(testkit.Context(t), bson.D{}); err != nil {
		t.Error(err)
	}
}

// find expects to read one, or not to be allowed to.
func find(t *testing.T, reason string, c *mongo.Client, allowed bool, o ...options.Lister[options.DatabaseOptions]) {
	t.Helper()
	err := c.Database("db", o...).Collection("c").FindOne(testkit.Context(t), bson.D{}).Err()
	if allowed != (err == nil || errors.Is(err, mongo.ErrNoDocuments)) {
		t.Errorf("%s: find gives %v", reason, err)
	}
}

// message is a command as bytes.
func message(t *testing.T, command ...bson.E) []byte {
	t.Helper()
	doc, err := bson.Marshal(append(bson.D(command), e("$db", "admin")))
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendMsg(nil, 1, 0, 0, doc)
}

// dial connects, as a client that does what it likes.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(testkit.Patience))
	return nc.(*net.TCPConn)
}

// say sends bytes and gives what is answered until the connection ends.
func say(t *testing.T, address, text string) string {
	t.Helper()
	nc := dial(t, address)
	_, _ = io.WriteString(nc, text) // the other end may have had enough
	answer, _ := io.ReadAll(nc)     // an end of any kind
	return strings.TrimSpace(string(answer))
}

// set starts members of a replica set and initiates it.
func (m *machine) set(n int, args ...string) []*proc {
	m.t.Helper()
	var members []*proc
	for range n {
		members = append(members, m.start("mongod", append([]string{"--replSet", "rs"}, args...)...))
	}
	run(m.t, members[0].direct(), e("replSetInitiate", config(members)))
	return members
}

func config(members []*proc) bson.D {
	list := bson.A{}
	for i, m := range members {
		list = append(list, bson.D{e("_id", i), e("host", m.address)})
	}
	return bson.D{e("_id", "rs"), e("members", list)}
}

func uri(members []*proc) string {
	var seeds []string
	for _, m := range members {
		seeds = append(seeds, m.address)
	}
	return "mongodb://" + strings.Join(seeds, ",") + "/?replicaSet=rs"
}

// becomes waits until one of some members has a state, as one of them sees it.
func becomes(t *testing.T, c *mongo.Client, state string, members ...*proc) {
	t.Helper()
	testkit.Until(t, members[0].address+" to be "+state, func() bool {
		return slices.ContainsFunc(members, func(m *proc) bool { return states(t, c)[m.address] == state })
	})
}

func states(t *testing.T, c *mongo.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	raw, err := try(t, c, e("replSetGetStatus", 1))
	if err != nil {
		return nil
	}
	members, _ := raw.Lookup("members").Array().Values()
	for _, m := range members {
		out[m.Document().Lookup("name").StringValue()] = m.Document().Lookup("stateStr").StringValue()
	}
	return out
}

// A standalone serves with the options that presets of other programs hold, and
// keeps its data while it is restarted.
func TestStandalone(t *testing.T) {
	p := newMachine(t).start("mongod", "--ipv6", "--bind_ip", "::1", "--oplogSize", "500", "--journal", "--storageEngine", "inMemory",
		"--setParameter", "diagnosticDataCollectionEnabled=false")
	c := p.direct()
	insert(t, c)
	hello := run(t, c, e("hello", 1))
	if _, err := hello.LookupErr("setName"); err == nil || !hello.Lookup("isWritablePrimary").Boolean() {
		t.Errorf("hello: %v", hello)
	}
	parsed := run(t, c, e("getCmdLineOpts", 1))
	if port, _ := parsed.Lookup("parsed", "net", "port").AsInt64OK(); port != int64(p.port) {
		t.Errorf("getCmdLineOpts: %v", parsed)
	}
	if got := run(t, c, e("getParameter", 1), e("diagnosticDataCollectionEnabled", 1)); got.Lookup("diagnosticDataCollectionEnabled").Boolean() {
		t.Errorf("getParameter: %v", got)
	}
	if pid, _ := run(t, c, e("serverStatus", 1)).Lookup("pid").AsInt64OK(); pid != int64(p.Process.Process.Pid) {
		t.Errorf("pid %d is not that of the process", pid)
	}
	p.end(syscall.SIGTERM, 0)
	p.again()
	if n, err := c.Database("db").Collection("c").CountDocuments(testkit.Context(t), bson.D{}); n != 1 {
		t.Errorf("after a restart: %d documents, %v", n, err)
	}
	p.end(syscall.SIGINT, 0)
}

// The command shutdown ends the process, with a log that has the whole story.
func TestShutdown(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	p := newMachine(t).start("mongod", "--pidfilepath", pidFile)
	c := p.direct()
	run(t, c, e("ping", 1), e("comment", "a line of the log"))
	if pid, err := os.ReadFile(pidFile); strings.TrimSpace(string(pid)) != strconv.Itoa(p.Process.Process.Pid) {
		t.Errorf("the file of the process id: %q, %v", pid, err)
	}
	if _, err := try(t, c, e("shutdown", 1)); err == nil {
		t.Error("shutdown was answered")
	}
	p.End().Want(0)
	if _, err := os.Stat(pidFile); err == nil {
		t.Error("the file of the process id is left")
	}
	rest, found := p.log(), true
	for line := range strings.Lines(rest) {
		var doc bson.D
		if err := bson.UnmarshalExtJSON([]byte(line), false, &doc); err != nil || len(doc) < 6 || doc[0].Key != "t" {
			t.Errorf("this is not an entry: %v: %s", err, line)
		}
	}
	for _, want := range []string{`"msg":"MongoDB starting"`, `"msg":"Build Info"`, `"msg":"Options set by command line"`, `"msg":"Listening on"`,
		`"msg":"Waiting for connections"`, `"msg":"Connection accepted"`, `"msg":"client metadata"`, `"comment":"a line of the log"`,
		`"msg":"Terminating via shutdown command"`, `"msg":"Shutting down","attr":{"exitCode":0}`} {
		if _, rest, found = strings.Cut(rest, want); !found {
			t.Fatalf("%s is missing, or too early, in:\n%s", want, p.log())
		}
	}
}

// What mongod refuses ends with mongod's code.
func TestExitCodes(t *testing.T) {
	m := newMachine(t)
	used := t.TempDir()
	first := m.start("mongod")
	for _, r := range []struct {
		reason string
		code   int
		want   string
		args   []string
	}{
		{"a version", 0, "db version v", []string{"--version"}},
		{"help", 0, "usage: mongod", []string{"--help"}},
		{"a repair", 0, "", []string{"--dbpath", used, "--logpath", filepath.Join(used, "log"), "--logappend", "--repair"}},
		{"an unknown option", 2, "unrecognised option '--foo'", []string{"--foo"}},
		{"a port that is taken", 48, "address already in use", []string{"--port", strconv.Itoa(first.port), "--bind_ip", m.host}},
		{"no folder for data", 100, "Data directory", []string{"--dbpath", filepath.Join(used, "not", "there")}},
		{"another's folder", 100, "DBPathInUse", []string{"--dbpath", first.dir, "--port", "0"}},
		{"no place for the log", 1, "Can't initialize rotatable log file", []string{"--logpath", filepath.Join(used, "not", "there")}},
		{"no certificate", 1, "cannot read certificate file",
			[]string{"--port", "0", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", filepath.Join(used, "none")}},
	} {
		t.Run(r.reason, func(t *testing.T) { m.Run(append([]string{"mongod"}, r.args...)...).Want(r.code, r.want) })
	}
}

// A replica set of processes: writes, reads on a secondary, a fail point on one
// member, kill -9 of a secondary and of the primary, a step down.
func TestReplicaSet(t *testing.T) {
	members := newMachine(t).set(3)
	c := client(t, uri(members))
	insert(t, c)
	find(t, "on a secondary", c, true, options.Database().SetReadPreference(readpref.Secondary()))
	if got := states(t, c); got[members[0].address] != "PRIMARY" {
		t.Errorf("the one that was asked is not the primary: %v", got)
	}

	one := members[1].direct()
	run(t, one, e("configureFailPoint", "failCommand"), e("mode", "alwaysOn"), e("data", bson.D{e("failCommands", bson.A{"ping"}), e("errorCode", 8)}))
	refused(t, "a fail point", one, 8, e("ping", 1))
	run(t, members[2].direct(), e("ping", 1)) // the fail point strikes on its member alone

	members[1].end(syscall.SIGKILL, -1)
	becomes(t, c, "(not reachable/healthy)", members[1])
	insert(t, c)
	members[1].again()
	becomes(t, c, "SECONDARY", members[1])
	run(t, members[1].direct(), e("ping", 1)) // the fail point died with its process

	members[0].end(syscall.SIGKILL, -1)
	insert(t, c)
	if n, err := c.Database("db").Collection("c").CountDocuments(testkit.Context(t), bson.D{}); n != 3 {
		t.Errorf("%d documents are left, %v", n, err)
	}

	// Without a majority there is no primary.
	members[1].end(syscall.SIGKILL, -1)
	last := members[2].direct()
	becomes(t, last, "SECONDARY", members[2])
	members[0].again()
	becomes(t, last, "PRIMARY", members[0], members[2])

	before := states(t, last)
	run(t, c, e("replSetStepDown", 60))
	if after := states(t, last); before[members[0].address] == after[members[0].address] {
		t.Errorf("nobody stepped down: %v, %v", before, after)
	}
	insert(t, c)
}

// What a set refuses, and what a member that waits answers.
func TestInitiate(t *testing.T) {
	m := newMachine(t)
	a, b := m.start("mongod", "--replSet", "rs"), m.start("mongod", "--replSet", "other")
	nobody := net.JoinHostPort(m.host, strconv.Itoa(m.port()))
	c := a.direct()
	hello := run(t, c, e("isMaster", 1))
	if !hello.Lookup("isreplicaset").Boolean() || hello.Lookup("ismaster").Boolean() || hello.Lookup("secondary").Boolean() {
		t.Errorf("a member that waits says %v", hello)
	}
	member := func(id int, host string, more ...bson.E) bson.D {
		return append(bson.D{e("_id", id), e("host", host)}, more...)
	}
	initiate := func(name string, members ...any) bson.D {
		return bson.D{e("replSetInitiate", bson.D{e("_id", name), e("members", bson.A(members))})}
	}
	for _, r := range []struct {
		reason  string
		command bson.D
		code    int32
	}{
		{"it has no status yet", bson.D{e("replSetGetStatus", 1)}, 94},
		{"nor a configuration", bson.D{e("replSetGetConfig", 1)}, 94},
		{"nobody writes", bson.D{e("insert", "c"), e("documents", bson.A{bson.D{}})}, 10107},
		{"nobody reads", bson.D{e("find", "c")}, 13436},
		{"another name than that of the command line", initiate("another", member(0, a.address)), 93},
		{"a member that does not run", initiate("rs", member(0, a.address), member(1, nobody)), 74},
		{"a member of another set", initiate("rs", member(0, a.address), member(1, b.address)), 74},
		{"without the member that is asked", initiate("rs", member(1, nobody)), 74},
		{"an unknown field", initiate("rs", member(0, a.address, e("crown", true))), 40415},
	} {
		refused(t, r.reason, c, r.code, r.command...)
	}
	// Without a configuration the set has this member alone.
	run(t, c, e("replSetInitiate", bson.D{}))
	insert(t, a.direct())
	refused(t, "again", c, 23, e("replSetInitiate", bson.D{}))
	refused(t, "a member of a set", b.direct(), 74, initiate("other", member(0, b.address), member(1, a.address))...)
}

// A client that sends no more is answered what it has sent, whoever serves it:
// one that came before the set was initiated, and one that came later.
func TestHalfClosed(t *testing.T) {
	p := newMachine(t).start("mongod", "--replSet", "rs")
	early := dial(t, p.address)
	if _, err := early.Write(message(t, e("hello", 1))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := wire.ReadMessage(early); err != nil {
		t.Fatal(err)
	}
	run(t, p.direct(), e("replSetInitiate", bson.D{}))
	run(t, p.direct(), e("configureFailPoint", "failCommand"), e("mode", bson.D{e("times", 2)}),
		e("data", bson.D{e("failCommands", bson.A{"ping"}), e("blockConnection", true), e("blockTimeMS", 100)}))
	for who, nc := range map[string]*net.TCPConn{"one that came before": early, "one that came later": dial(t, p.address)} {
		if _, err := nc.Write(message(t, e("ping", 1))); err != nil {
			t.Fatal(err)
		}
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := wire.ReadMessage(nc); err != nil {
			t.Errorf("%s: the answer is lost: %v", who, err)
		}
		if n, err := nc.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: then came %d bytes, %v", who, n, err)
		}
	}
}

// field gives a field of a document to change.
func field(doc any, name string) *any {
	for i, f := range doc.(bson.D) {
		if f.Key == name {
			return &doc.(bson.D)[i].Value
		}
	}
	return nil
}

// replSetReconfig adds and removes members, and changes what they are.
func TestReconfigure(t *testing.T) {
	m := newMachine(t)
	members := m.set(2)
	c := client(t, uri(members))
	version := int32(1)
	changed := func(what func(list bson.A) bson.A) bson.E {
		t.Helper()
		var reply struct{ Config bson.D }
		if err := bson.Unmarshal(run(t, c, e("replSetGetConfig", 1)), &reply); err != nil {
			t.Fatal(err)
		}
		*field(reply.Config, "version") = version + 1
		list := field(reply.Config, "members")
		*list = what((*list).(bson.A))
		return e("replSetReconfig", reply.Config)
	}
	change := func(what func(list bson.A) bson.A) {
		t.Helper()
		run(t, c, changed(what))
		version++
	}
	third := m.start("mongod", "--replSet", "rs")
	change(func(list bson.A) bson.A {
		return append(list, bson.D{e("_id", 7), e("host", third.address), e("priority", 5)})
	})
	becomes(t, c, "PRIMARY", third) // which has the highest priority
	insert(t, c)
	refused(t, "the primary is to be removed", c, 74, changed(func(list bson.A) bson.A { return list[:2] }))
	resign := func(priority any) func(bson.A) bson.A {
		return func(list bson.A) bson.A { *field(list[2], "priority") = priority; return list }
	}
	refused(t, "the primary is to be one no more", c, 104, changed(resign(0)))
	change(resign(0.5))
	becomes(t, c, "PRIMARY", members[0])
	change(func(list bson.A) bson.A {
		*field(list[1], "tags") = bson.D{e("dc", "ny")}
		return list[:2]
	})
	hello := run(t, members[1].direct(), e("hello", 1))
	if hello.Lookup("tags", "dc").String() != `"ny"` || hello.Lookup("setVersion").Int32() != version {
		t.Errorf("tags: %v", hello)
	}
	removed := third.direct()
	testkit.Until(t, "the removed member to wait again", func() bool {
		raw, err := try(t, removed, e("hello", 1))
		waits, _ := raw.Lookup("isreplicaset").BooleanOK()
		return err == nil && waits
	})
	refused(t, "an older configuration", c, 103, e("replSetReconfig", config(members)))
}

// A sharded cluster of processes with two mongoses, one of which dies and takes
// nobody along, and a third that comes early and waits for its config server.
func TestSharded(t *testing.T) {
	m := newMachine(t)
	servers, shard := m.set(1, "--configsvr"), m.set(1, "--shardsvr")
	configdb := "rs/" + servers[0].address
	first, second := m.start("mongos", "--configdb", configdb), m.start("mongos", "--configdb", configdb)
	both := client(t, "mongodb://"+first.address+","+second.address)
	if got := run(t, both, e("addShard", "rs/"+shard[0].address), e("name", "sh01")); got.Lookup("shardAdded").StringValue() != "sh01" {
		t.Errorf("addShard: %v", got)
	}
	list, _ := run(t, both, e("listShards", 1)).Lookup("shards").ArrayOK()
	if values, err := list.Values(); err != nil || len(values) != 1 {
		t.Errorf("listShards: %v, %v", list, err)
	}
	run(t, both, e("enableSharding", "db"))
	run(t, both, e("shardCollection", "db.c"), e("key", bson.D{e("_id", 1)}))
	insert(t, first.direct())
	if n, err := second.direct().Database("db").Collection("c").CountDocuments(testkit.Context(t), bson.D{}); n != 1 {
		t.Errorf("through the other mongos: %d, %v", n, err)
	}
	c := first.direct()
	if hello := run(t, c, e("hello", 1)); hello.Lookup("msg").StringValue() != "isdbgrid" {
		t.Errorf("hello: %v", hello)
	}
	tags := bson.D{e("$addToSet", bson.D{e("tags", "x")})}
	if _, err := c.Database("config").Collection("shards").UpdateByID(testkit.Context(t), "sh01", tags); err != nil {
		t.Errorf("tags: %v", err)
	}
	second.end(syscall.SIGKILL, -1)
	find(t, "without the other mongos", c, true)
	early := m.start("mongos", "--configdb", "rs/"+second.address+","+servers[0].address)
	run(t, early.direct(), e("ping", 1))
	for _, p := range []*proc{first, early, servers[0], shard[0]} {
		p.end(syscall.SIGTERM, 0)
	}
}

// A mongos serves load balancers on a port of their own, which requires
// loadBalanced.
func TestLoadBalanced(t *testing.T) {
	m := newMachine(t)
	balanced := m.port()
	address := net.JoinHostPort(m.host, strconv.Itoa(balanced))
	router := m.start("mongos", "--configdb", "rs/"+m.set(1, "--configsvr")[0].address, "--setParameter", "loadBalancerPort="+strconv.Itoa(balanced))
	if got := run(t, router.direct(), e("getParameter", 1), e("loadBalancerPort", 1)); got.Lookup("loadBalancerPort").Int32() != int32(balanced) {
		t.Errorf("getParameter: %v", got)
	}
	insert(t, client(t, "mongodb://"+address+"/?loadBalanced=true"))
	nc := dial(t, address)
	if _, err := nc.Write(message(t, e("hello", 1))); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := wire.ReadMessage(nc); err == nil && !bytes.Contains(answer, []byte("errmsg")) {
		t.Errorf("a client that knows of no load balancer is answered %q", answer)
	}
}

// With --fork the child serves when its parent has ended.
func TestFork(t *testing.T) {
	m := newMachine(t)
	dir, port := t.TempDir(), strconv.Itoa(m.port())
	args := []string{"mongod", "--fork", "--bind_ip", m.host, "--port", port, "--dbpath", dir, "--logpath", filepath.Join(dir, "log")}
	m.Run(args...).Want(0, "child process started successfully, parent exiting")
	c := client(t, "mongodb://"+net.JoinHostPort(m.host, port)+"/?directConnection=true")
	run(t, c, e("ping", 1))
	m.Run(append(args[:7:7], t.TempDir(), "--logpath", filepath.Join(dir, "other"))...).Want(48, "child process failed, exited with 48")
	if _, err := try(t, c, e("shutdown", 1)); err == nil {
		t.Error("shutdown was answered")
	}
	testkit.Until(t, "the child to end", func() bool {
		lock, err := os.ReadFile(filepath.Join(dir, "mongod.lock"))
		return err == nil && len(lock) == 0
	})
}

// Users are made under the localhost exception, and survive a restart of the
// whole set: so mongo-orchestration switches authentication on. No log has a
// password.
func TestAuthentication(t *testing.T) {
	m := newMachine(t)
	members := m.set(2)
	create := func(c *mongo.Client, name string) error {
		_, err := try(t, c, e("createUser", name), e("pwd", "secret"), e("roles", bson.A{"root"}),
			e("writeConcern", bson.D{e("w", "majority"), e("fsync", true)}))
		return err
	}
	if err := create(client(t, uri(members)), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, p := range members {
		p.end(syscall.SIGTERM, 0)
	}
	for _, p := range members {
		p.again("--auth", "--keyFile", "key")
	}
	find(t, "without a password", client(t, uri(members)), false)
	if err := create(client(t, uri(members)), "eve"); err == nil {
		t.Error("the localhost exception holds where there is a user")
	}
	insert(t, client(t, uri(members), func(o *options.ClientOptions) {
		o.SetAuth(options.Credential{Username: "ann", Password: "secret"})
	}))
	if text := members[0].log(); !strings.Contains(text, "createUser") || strings.Contains(text, `"pwd"`) || strings.Contains(text, "payload") {
		t.Errorf("a secret, or nothing at all, is in the log: %s", text)
	}

	c := m.start("mongod", "--auth").direct()
	find(t, "a stranger", c, false)
	if err := create(c, "ann"); err != nil {
		t.Errorf("the first user: %v", err)
	}
}

// A host does not outlive the members whose folders are gone.
func TestHostEnds(t *testing.T) {
	p := newMachine(t).start("mongod")
	run(t, p.direct(), e("ping", 1))
	var memory struct{ Host string }
	text, err := os.ReadFile(filepath.Join(p.dir, "utr-host.json"))
	if err == nil {
		err = json.Unmarshal(text, &memory)
	}
	if err != nil || memory.Host == "" {
		t.Fatalf("%s: %v", text, err)
	}
	p.end(syscall.SIGKILL, -1)
	dial(t, memory.Host) // it waits for the process to come again
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the host to end", func() bool {
		nc, err := net.Dial("tcp", memory.Host)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
}
