package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/wire"
)

// patience is how long anything may take here; nothing takes so long but on a
// machine that has much else to do.
const patience = time.Minute

// The program, built once.
var (
	once    sync.Once
	program string
	built   error
)

func TestMain(m *testing.M) {
	code := m.Run()
	if program != "" {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// utr is the program.
func utr(t *testing.T) string {
	t.Helper()
	once.Do(func() {
		var dir string
		if dir, built = os.MkdirTemp("", "utr-process-"); built != nil {
			return
		}
		program = filepath.Join(dir, "utr")
		var out []byte
		if out, built = exec.Command("go", "build", "-o", program, "../../cmd/utr").CombinedOutput(); built != nil {
			built = fmt.Errorf("%w: %s", built, out)
		}
	})
	if built != nil {
		t.Fatal(built)
	}
	return program
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until a condition holds, and says in what it waited in vain.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond) // between looks, not for what is looked for
	}
}

// given are the ports that freePorts has given away.
var given sync.Map

// freePorts are ports that nobody has at the moment, each given once. They are
// below those that systems choose for the near end of connections, so that none
// of these takes one before its server does.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	const first, last = 10000, 32000
	var ports []int
	for deadline := time.Now().Add(patience); len(ports) < n; {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %d free ports", patience, n)
		}
		port := first + rand.IntN(last-first)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = l.Close()
			ports = append(ports, port)
		}
	}
	return ports
}

// proc is a process of ours.
type proc struct {
	*exec.Cmd
	t      *testing.T
	port   int
	dir    string
	args   []string
	output bytes.Buffer
	done   chan struct{}
}

// start starts mongod or mongos on a port, with a folder of its own.
func start(t *testing.T, name string, port int, args ...string) *proc {
	t.Helper()
	dir := t.TempDir()
	all := append([]string{name, "--port", strconv.Itoa(port), "--logpath", filepath.Join(dir, "log"), "--logappend",
		"--setParameter", "enableTestCommands=1", "-v"}, args...)
	if name == "mongod" {
		all = append(all, "--dbpath", dir)
	}
	p := &proc{t: t, port: port, dir: dir, args: all}
	p.run()
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("log of %s: %v\n%s\n%s", p.address(), p.ProcessState, p.output.String(), log[max(0, len(log)-800):])
		}
	})
	return p
}

func (p *proc) run() {
	p.t.Helper()
	p.Cmd = exec.Command(utr(p.t), p.args...)
	p.Cmd.Stdout, p.Cmd.Stderr = &p.output, &p.output
	if err := p.Cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.done = make(chan struct{})
	command, done := p.Cmd, p.done
	go func() {
		_ = command.Wait()
		close(done)
	}()
}

// end sends a signal and waits. It gives the exit code.
func (p *proc) end(signal os.Signal) int {
	p.t.Helper()
	_ = p.Cmd.Process.Signal(signal) // it may be gone
	return p.wait()
}

func (p *proc) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("waited %v for the end of %v", patience, p.args)
	}
	return p.Cmd.ProcessState.ExitCode()
}

func (p *proc) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// client is one of the Go driver.
func client(t *testing.T, uri string, change ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetServerSelectionTimeout(patience).SetHeartbeatInterval(500 * time.Millisecond)
	for _, f := range change {
		f(o)
	}
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = c.Disconnect(ctx) // it says goodbye to servers that may be gone
	})
	return c
}

// direct is a client of one process.
func direct(t *testing.T, p *proc, change ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	return client(t, "mongodb://"+p.address()+"/?directConnection=true", change...)
}

// run runs a command on admin.
func run(t *testing.T, c *mongo.Client, command ...bson.E) bson.Raw {
	t.Helper()
	raw, err := c.Database("admin").RunCommand(limit(t), bson.D(command)).Raw()
	if err != nil {
		t.Fatalf("%s: %v", command[0].Key, err)
	}
	return raw
}

func e(key string, value any) bson.E { return bson.E{Key: key, Value: value} }

// set starts members of a replica set and initiates it.
func set(t *testing.T, n int, args ...string) []*proc {
	t.Helper()
	ports := freePorts(t, n)
	var members []*proc
	for _, port := range ports {
		members = append(members, start(t, "mongod", port, append([]string{"--replSet", "rs"}, args...)...))
	}
	for _, m := range members {
		run(t, direct(t, m), e("ping", 1))
	}
	run(t, direct(t, members[0]), e("replSetInitiate", config(members)))
	return members
}

func config(members []*proc) bson.D {
	list := bson.A{}
	for i, m := range members {
		list = append(list, bson.D{e("_id", i), e("host", m.address())})
	}
	return bson.D{e("_id", "rs"), e("members", list)}
}

func uri(members []*proc) string {
	var seeds []string
	for _, m := range members {
		seeds = append(seeds, m.address())
	}
	return "mongodb://" + strings.Join(seeds, ",") + "/?replicaSet=rs"
}

// states are those of the members, as one of them sees them.
func states(t *testing.T, c *mongo.Client) map[string]string {
	t.Helper()
	raw, err := c.Database("admin").RunCommand(limit(t), bson.D{e("replSetGetStatus", 1)}).Raw()
	if err != nil {
		return nil
	}
	var status struct {
		Members []struct {
			Name     string
			StateStr string
		}
	}
	if err := bson.Unmarshal(raw, &status); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range status.Members {
		out[m.Name] = m.StateStr
	}
	return out
}

// A standalone serves, keeps its data while it is restarted, and frees its port.
func TestStandalone(t *testing.T) {
	t.Parallel()
	p := start(t, "mongod", freePorts(t, 1)[0])
	c := direct(t, p)
	if _, err := c.Database("db").Collection("c").InsertOne(limit(t), bson.D{e("_id", 1)}); err != nil {
		t.Fatal(err)
	}
	hello := run(t, c, e("hello", 1))
	if _, err := hello.LookupErr("setName"); err == nil || !hello.Lookup("isWritablePrimary").Boolean() {
		t.Errorf("hello: %v", hello)
	}
	parsed := run(t, c, e("getCmdLineOpts", 1))
	if port, _ := parsed.Lookup("parsed", "net", "port").AsInt64OK(); port != int64(p.port) {
		t.Errorf("getCmdLineOpts: %v", parsed)
	}
	if pid, _ := run(t, c, e("serverStatus", 1)).Lookup("pid").AsInt64OK(); pid != int64(p.Process.Pid) {
		t.Errorf("pid %d is not that of the process, %d", pid, p.Process.Pid)
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	l, err := net.Listen("tcp", p.address())
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = l.Close()
	p.run()
	if err := c.Database("db").Collection("c").FindOne(limit(t), bson.D{e("_id", 1)}).Err(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if code := p.end(syscall.SIGINT); code != 0 {
		t.Errorf("SIGINT: exit code %d", code)
	}
}

// The command shutdown ends the process, with a log that tells of it.
func TestShutdown(t *testing.T) {
	t.Parallel()
	p := start(t, "mongod", freePorts(t, 1)[0], "--pidfilepath", filepath.Join(t.TempDir(), "pid"))
	c := direct(t, p)
	run(t, c, e("ping", 1), e("comment", "a line of the log"))
	pid, err := os.ReadFile(p.args[len(p.args)-3])
	if err != nil || strings.TrimSpace(string(pid)) != strconv.Itoa(p.Process.Pid) {
		t.Errorf("the file of the process id: %q, %v", pid, err)
	}
	if err := c.Database("admin").RunCommand(limit(t), bson.D{e("shutdown", 1)}).Err(); err == nil {
		t.Error("shutdown was answered")
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(p.args[len(p.args)-3]); err == nil {
		t.Error("the file of the process id is left")
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{`"msg":"MongoDB starting"`, `"msg":"Options set by command line"`, `"msg":"Listening on"`, `"msg":"Waiting for connections"`,
		`"msg":"Connection accepted"`, `"msg":"client metadata"`, `"comment":"a line of the log"`, `"msg":"Terminating via shutdown command"`, `"msg":"Shutting down","attr":{"exitCode":0}`} {
		i := strings.Index(string(log[at:]), want)
		if i < 0 {
			t.Fatalf("%s is missing from there on:\n%s", want, log[at:])
		}
		at += i
	}
	for i, line := range strings.Split(strings.TrimSpace(string(log)), "\n") {
		var doc bson.D
		if err := bson.UnmarshalExtJSON([]byte(line), false, &doc); err != nil || len(doc) < 6 || doc[0].Key != "t" {
			t.Errorf("line %d is no entry: %v: %s", i+1, err, line)
		}
	}
}

// What mongod refuses ends with mongod's code.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	used := t.TempDir()
	first := start(t, "mongod", freePorts(t, 1)[0])
	run(t, direct(t, first), e("ping", 1))
	for _, row := range []struct {
		reason string
		code   int
		want   string
		args   []string
	}{
		{"a version", 0, "db version v", []string{"mongod", "--version"}},
		{"help", 0, "usage: mongod", []string{"mongod", "--help"}},
		{"a repair", 0, "", []string{"mongod", "--dbpath", used, "--logpath", filepath.Join(used, "log"), "--logappend", "--repair"}},
		{"an option that there is not", 2, "unrecognised option '--foo'", []string{"mongod", "--foo"}},
		{"a port that is taken", 48, "address already in use", []string{"mongod", "--port", port, "--bind_ip", "127.0.0.1"}},
		{"no folder for data", 100, "Data directory", []string{"mongod", "--dbpath", filepath.Join(used, "not", "there")}},
		{"another's folder", 100, "DBPathInUse", []string{"mongod", "--dbpath", first.dir, "--port", "0"}},
		{"no place for the log", 1, "Can't initialize rotatable log file", []string{"mongod", "--logpath", filepath.Join(used, "not", "there")}},
		{"no certificate", 1, "cannot read certificate file", []string{"mongod", "--port", "0", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", filepath.Join(used, "none")}},
	} {
		ctx := limit(t)
		out, err := exec.CommandContext(ctx, utr(t), row.args...).CombinedOutput()
		var exited *exec.ExitError
		code := 0
		if errors.As(err, &exited) {
			code = exited.ExitCode()
		}
		if code != row.code || !strings.Contains(string(out), row.want) {
			t.Errorf("%s: exit code %d, %s", row.reason, code, out)
		}
	}
}

// A replica set of processes: writes, reads on a secondary, a fail point on one
// member, kill -9 of a secondary and of the primary, a step down.
func TestReplicaSet(t *testing.T) {
	t.Parallel()
	members := set(t, 3)
	c := client(t, uri(members))
	coll := c.Database("db").Collection("c")
	if _, err := coll.InsertOne(limit(t), bson.D{e("_id", 1)}); err != nil {
		t.Fatal(err)
	}
	secondary := c.Database("db", options.Database().SetReadPreference(readpref.Secondary())).Collection("c")
	if err := secondary.FindOne(limit(t), bson.D{}).Err(); err != nil {
		t.Errorf("on a secondary: %v", err)
	}
	if got := states(t, c); got[members[0].address()] != "PRIMARY" {
		t.Errorf("the one that was asked is not the primary: %v", got)
	}

	// A fail point strikes on its member alone.
	one := direct(t, members[1])
	run(t, one, e("configureFailPoint", "failCommand"), e("mode", "alwaysOn"), e("data", bson.D{e("failCommands", bson.A{"ping"}), e("errorCode", 8)}))
	if err := one.Ping(limit(t), nil); err == nil {
		t.Error("the fail point does not strike")
	}
	if err := direct(t, members[2]).Ping(limit(t), nil); err != nil {
		t.Errorf("the fail point strikes elsewhere: %v", err)
	}

	// Kill a secondary, and have it come back without its fail point.
	members[1].end(syscall.SIGKILL)
	eventually(t, "the dead member to be reported", func() bool {
		return states(t, c)[members[1].address()] == "(not reachable/healthy)"
	})
	if nc, err := net.DialTimeout("tcp", members[1].address(), patience); err == nil {
		_ = nc.Close()
		t.Error("a dead member accepts connections")
	}
	if _, err := coll.InsertOne(limit(t), bson.D{e("_id", 2)}); err != nil {
		t.Errorf("without one secondary: %v", err)
	}
	members[1].run()
	eventually(t, "the member to come back", func() bool { return states(t, c)[members[1].address()] == "SECONDARY" })
	if err := direct(t, members[1]).Ping(limit(t), nil); err != nil {
		t.Errorf("another process has the fail point of the one before: %v", err)
	}

	// Kill the primary.
	members[0].end(syscall.SIGKILL)
	if _, err := coll.InsertOne(limit(t), bson.D{e("_id", 3)}); err != nil {
		t.Errorf("after the death of the primary: %v", err)
	}
	if n, err := coll.CountDocuments(limit(t), bson.D{}); n != 3 {
		t.Errorf("%d documents are left, %v", n, err)
	}

	// Without a majority there is no primary.
	members[1].end(syscall.SIGKILL)
	last := direct(t, members[2])
	eventually(t, "the last member to be alone", func() bool { return states(t, last)[members[2].address()] == "SECONDARY" })
	if hello := run(t, last, e("hello", 1)); hello.Lookup("isWritablePrimary").Boolean() {
		t.Errorf("one of three is primary: %v", hello)
	}
	members[0].run()
	eventually(t, "a majority to elect", func() bool {
		s := states(t, last)
		return s[members[0].address()] == "PRIMARY" || s[members[2].address()] == "PRIMARY"
	})

	// Step down.
	before := states(t, last)
	if err := c.Database("admin").RunCommand(limit(t), bson.D{e("replSetStepDown", 60)}).Err(); err != nil {
		t.Errorf("step down: %v", err)
	}
	after := states(t, last)
	if before[members[0].address()] == after[members[0].address()] {
		t.Errorf("nobody stepped down: %v, %v", before, after)
	}
	if _, err := coll.InsertOne(limit(t), bson.D{e("_id", 4)}); err != nil {
		t.Errorf("after a step down: %v", err)
	}
}

// What a set refuses, and what a member that waits answers.
func TestInitiate(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 3)
	a := start(t, "mongod", ports[0], "--replSet", "rs")
	b := start(t, "mongod", ports[1], "--replSet", "other")
	c := direct(t, a)
	hello := run(t, c, e("isMaster", 1))
	if !hello.Lookup("isreplicaset").Boolean() || hello.Lookup("ismaster").Boolean() || hello.Lookup("secondary").Boolean() {
		t.Errorf("a member that waits says %v", hello)
	}
	nobody := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[2]))
	member := func(id int, host string, more ...bson.E) bson.D {
		return append(bson.D{e("_id", id), e("host", host)}, more...)
	}
	initiate := func(name string, members ...any) bson.D {
		return bson.D{e("replSetInitiate", bson.D{e("_id", name), e("members", bson.A(members))})}
	}
	eventually(t, "the other process", func() bool {
		nc, err := net.Dial("tcp", b.address())
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	})
	for _, row := range []struct {
		reason  string
		command bson.D
		code    int32
	}{
		{"there is no status yet", bson.D{e("replSetGetStatus", 1)}, 94},
		{"nor a configuration", bson.D{e("replSetGetConfig", 1)}, 94},
		{"nobody writes", bson.D{e("insert", "c"), e("documents", bson.A{bson.D{}})}, 10107},
		{"nobody reads", bson.D{e("find", "c")}, 13436},
		{"another name than that of the command line", initiate("another", member(0, a.address())), 93},
		{"a member that is not there", initiate("rs", member(0, a.address()), member(1, nobody)), 74},
		{"a member of another set", initiate("rs", member(0, a.address()), member(1, b.address())), 74},
		{"without the member that is asked", initiate("rs", member(1, nobody)), 74},
		{"nobody electable", initiate("rs", member(0, a.address(), e("priority", 0))), 93},
		{"a host twice", initiate("rs", member(0, a.address()), member(1, a.address())), 93},
		{"an id twice", initiate("rs", member(0, a.address()), member(0, nobody)), 93},
		{"an unknown field", initiate("rs", member(0, a.address(), e("crown", true))), 40415},
		{"no members", initiate("rs"), 93},
	} {
		err := c.Database("admin").RunCommand(limit(t), row.command).Err()
		var failure mongo.CommandError
		if !errors.As(err, &failure) || failure.Code != row.code {
			t.Errorf("%s: got %v, not code %d", row.reason, err, row.code)
		}
	}
	// Without a configuration the set has this member alone.
	run(t, c, e("replSetInitiate", bson.D{}))
	if _, err := direct(t, a).Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err != nil {
		t.Error(err)
	}
	if err := c.Database("admin").RunCommand(limit(t), bson.D{e("replSetInitiate", bson.D{})}).Err(); err == nil || !strings.Contains(err.Error(), "already initialized") {
		t.Errorf("again: %v", err)
	}
}

// A client that says that it sends no more is answered what it has sent, whoever
// serves it: one that came before the set was initiated, and one that came later.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	m := start(t, "mongod", freePorts(t, 1)[0], "--replSet", "rs", "--setParameter", "enableTestCommands=1")
	message := func(command ...bson.E) []byte {
		doc, err := bson.Marshal(append(bson.D(command), e("$db", "admin")))
		if err != nil {
			t.Fatal(err)
		}
		return wire.AppendMsg(nil, 1, 0, 0, doc)
	}
	c := direct(t, m)
	run(t, c, e("ping", 1))
	connect := func() *net.TCPConn {
		nc, err := net.Dial("tcp", m.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(patience))
		return nc.(*net.TCPConn)
	}
	early := connect()
	if _, err := early.Write(message(e("hello", 1))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := wire.ReadMessage(early); err != nil {
		t.Fatal(err)
	}
	run(t, c, e("replSetInitiate", bson.D{}))
	run(t, direct(t, m), e("configureFailPoint", "failCommand"), e("mode", bson.D{e("times", 2)}),
		e("data", bson.D{e("failCommands", bson.A{"ping"}), e("blockConnection", true), e("blockTimeMS", 100)}))
	for who, nc := range map[string]*net.TCPConn{"one that came before": early, "one that came later": connect()} {
		if _, err := nc.Write(message(e("ping", 1))); err != nil {
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

// replSetReconfig adds and removes members, and changes what they are.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	members := set(t, 2)
	c := client(t, uri(members))
	read := func() bson.D {
		var reply struct{ Config bson.D }
		if err := bson.Unmarshal(run(t, c, e("replSetGetConfig", 1)), &reply); err != nil {
			t.Fatal(err)
		}
		return reply.Config
	}
	change := func(what func(list bson.A) bson.A) {
		t.Helper()
		doc := read()
		for i := range doc {
			switch doc[i].Key {
			case "version":
				doc[i].Value = doc[i].Value.(int32) + 1
			case "members":
				doc[i].Value = what(doc[i].Value.(bson.A))
			}
		}
		run(t, c, e("replSetReconfig", doc))
	}
	third := start(t, "mongod", freePorts(t, 1)[0], "--replSet", "rs")
	if hello := run(t, direct(t, third), e("hello", 1)); !hello.Lookup("isreplicaset").Boolean() {
		t.Errorf("the third: %v", hello)
	}
	change(func(list bson.A) bson.A {
		return append(list, bson.D{e("_id", 7), e("host", third.address()), e("priority", 5)})
	})
	eventually(t, "the member of the highest priority to become primary", func() bool { return states(t, c)[third.address()] == "PRIMARY" })
	if _, err := c.Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err != nil {
		t.Error(err)
	}
	put := func(member any, name string, value any) {
		for i, f := range member.(bson.D) {
			if f.Key == name {
				member.(bson.D)[i].Value = value
			}
		}
	}
	refused := func(reason string, code int32, what func(list bson.A) bson.A) {
		t.Helper()
		doc := read()
		put(doc, "version", int32(99))
		for _, f := range doc {
			if f.Key == "members" {
				put(doc, "members", what(f.Value.(bson.A)))
			}
		}
		err := c.Database("admin").RunCommand(limit(t), bson.D{e("replSetReconfig", doc)}).Err()
		var failure mongo.CommandError
		if !errors.As(err, &failure) || failure.Code != code {
			t.Errorf("%s: got %v, not code %d", reason, err, code)
		}
	}
	refused("the primary is to be removed", 74, func(list bson.A) bson.A { return list[:2] })
	refused("the primary is to be one no more", 104, func(list bson.A) bson.A { put(list[2], "priority", 0); return list })
	change(func(list bson.A) bson.A { put(list[2], "priority", 0.5); return list })
	eventually(t, "another primary", func() bool { return states(t, c)[members[0].address()] == "PRIMARY" })
	change(func(list bson.A) bson.A {
		put(list[1], "tags", bson.D{e("dc", "ny")})
		return list[:2]
	})
	if hello := run(t, direct(t, members[1]), e("hello", 1)); hello.Lookup("tags", "dc").String() != `"ny"` || hello.Lookup("setVersion").Int32() != 4 {
		t.Errorf("tags: %v", hello)
	}
	eventually(t, "the removed member to wait again", func() bool {
		raw, err := direct(t, third).Database("admin").RunCommand(limit(t), bson.D{e("hello", 1)}).Raw()
		if err != nil {
			return false
		}
		waits, _ := raw.Lookup("isreplicaset").BooleanOK()
		return waits
	})
	if err := c.Database("admin").RunCommand(limit(t), bson.D{e("replSetReconfig", config(members))}).Err(); err == nil {
		t.Error("an older configuration is taken")
	}
}

// A sharded cluster of processes with two mongoses.
func TestSharded(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 3)
	members := set(t, 1, "--configsvr")
	shard := set(t, 1, "--shardsvr")
	configdb := "rs/" + members[0].address()
	var routers []*proc
	for _, port := range ports[:2] {
		routers = append(routers, start(t, "mongos", port, "--configdb", configdb))
	}
	both := client(t, "mongodb://"+routers[0].address()+","+routers[1].address())
	if got := run(t, both, e("addShard", "rs/"+shard[0].address()), e("name", "sh01")); got.Lookup("shardAdded").StringValue() != "sh01" {
		t.Errorf("addShard: %v", got)
	}
	list, _ := run(t, both, e("listShards", 1)).Lookup("shards").ArrayOK()
	if values, err := list.Values(); err != nil || len(values) != 1 {
		t.Errorf("listShards: %v, %v", list, err)
	}
	run(t, both, e("enableSharding", "db"))
	run(t, both, e("shardCollection", "db.c"), e("key", bson.D{e("_id", 1)}))
	first, second := direct(t, routers[0]), direct(t, routers[1])
	if _, err := first.Database("db").Collection("c").InsertOne(limit(t), bson.D{e("_id", 1)}); err != nil {
		t.Fatal(err)
	}
	if err := second.Database("db").Collection("c").FindOne(limit(t), bson.D{}).Err(); err != nil {
		t.Errorf("through the other mongos: %v", err)
	}
	if hello := run(t, first, e("hello", 1)); hello.Lookup("msg").StringValue() != "isdbgrid" {
		t.Errorf("hello: %v", hello)
	}
	if _, err := first.Database("config").Collection("shards").UpdateByID(limit(t), "sh01", bson.D{e("$addToSet", bson.D{e("tags", "x")})}); err != nil {
		t.Errorf("tags: %v", err)
	}
	// A mongos that dies takes nobody along; one that was early waits for
	// config servers.
	routers[1].end(syscall.SIGKILL)
	if err := first.Database("db").Collection("c").FindOne(limit(t), bson.D{}).Err(); err != nil {
		t.Error(err)
	}
	early := start(t, "mongos", ports[2], "--configdb", "rs/"+net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))+","+members[0].address())
	run(t, direct(t, early), e("ping", 1))
	for _, p := range []*proc{routers[0], early, members[0], shard[0]} {
		if code := p.end(syscall.SIGTERM); code != 0 {
			t.Errorf("%v: exit code %d", p.args, code)
		}
		l, err := net.Listen("tcp", p.address())
		if err != nil {
			t.Errorf("the port of %v is not free: %v", p.args, err)
			continue
		}
		_ = l.Close()
	}
}

// A mongos serves load balancers on a port of their own, which want loadBalanced.
func TestLoadBalanced(t *testing.T) {
	t.Parallel()
	members := set(t, 1, "--configsvr")
	ports := freePorts(t, 2)
	start(t, "mongos", ports[0], "--configdb", "rs/"+members[0].address(), "--setParameter", "loadBalancerPort="+strconv.Itoa(ports[1]))
	balanced := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))
	router := client(t, "mongodb://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])))
	if got := run(t, router, e("getParameter", 1), e("loadBalancerPort", 1)); got.Lookup("loadBalancerPort").Int32() != int32(ports[1]) {
		t.Errorf("getParameter: %v", got)
	}
	c := client(t, "mongodb://"+balanced+"/?loadBalanced=true")
	if _, err := c.Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err != nil {
		t.Error(err)
	}
	plain := client(t, "mongodb://"+balanced+"/?directConnection=true", func(o *options.ClientOptions) { o.SetServerSelectionTimeout(500 * time.Millisecond) })
	if err := plain.Ping(limit(t), nil); err == nil {
		t.Error("a client that knows of no load balancer is served there")
	}
}

// With --fork the child serves when its parent has ended.
func TestFork(t *testing.T) {
	t.Parallel()
	port, dir := freePorts(t, 1)[0], t.TempDir()
	args := []string{"mongod", "--fork", "--port", strconv.Itoa(port), "--dbpath", dir, "--logpath", filepath.Join(dir, "log")}
	out, err := exec.CommandContext(limit(t), utr(t), args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "child process started successfully, parent exiting") {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(dir, "log")); t.Failed() {
			t.Logf("%v: %s", err, log)
		}
	})
	c := client(t, "mongodb://127.0.0.1:"+strconv.Itoa(port)+"/?directConnection=true")
	run(t, c, e("ping", 1))
	again, err := exec.CommandContext(limit(t), utr(t), append(args[:5:5], t.TempDir(), "--logpath", filepath.Join(dir, "other"))...).CombinedOutput()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != 48 || !strings.Contains(string(again), "child process failed, exited with 48") {
		t.Errorf("a port that is taken: %v: %s", err, again)
	}
	if err := c.Database("admin").RunCommand(limit(t), bson.D{e("shutdown", 1)}).Err(); err == nil {
		t.Error("shutdown was answered")
	}
	eventually(t, "the child to end", func() bool {
		lock, err := os.ReadFile(filepath.Join(dir, "mongod.lock"))
		return err == nil && len(lock) == 0
	})
}

// The options of presets that other programs keep: unusual addresses, engines
// and names of old.
func TestPresets(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 1)[0]
	p := start(t, "mongod", port, "--ipv6", "--bind_ip", "127.0.0.1,::1", "--oplogSize", "500", "--journal", "--storageEngine", "inMemory",
		"--setParameter", "diagnosticDataCollectionEnabled=false", "--setParameter", "authenticationMechanisms=SCRAM-SHA-256")
	c := direct(t, p)
	if got := run(t, c, e("getParameter", 1), e("diagnosticDataCollectionEnabled", 1)); got.Lookup("diagnosticDataCollectionEnabled").Boolean() {
		t.Errorf("getParameter: %v", got)
	}
	off := start(t, "mongod", freePorts(t, 1)[0], "--setParameter", "enableTestCommands=0")
	err := direct(t, off).Database("admin").RunCommand(limit(t), bson.D{e("configureFailPoint", "failCommand"), e("mode", "off")}).Err()
	var failure mongo.CommandError
	if !errors.As(err, &failure) || failure.Code != 59 {
		t.Errorf("fail points without test commands: %v", err)
	}
}

// Users are made under the localhost exception, and survive a restart of the
// whole set: so mongo-orchestration switches authentication on.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	members := set(t, 2)
	create := func(c *mongo.Client, name string) error {
		return c.Database("admin").RunCommand(limit(t), bson.D{e("createUser", name), e("pwd", "secret"), e("roles", bson.A{"root"}),
			e("writeConcern", bson.D{e("w", "majority"), e("fsync", true)})}).Err()
	}
	if err := create(client(t, uri(members)), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		m.end(syscall.SIGTERM)
	}
	for _, m := range members {
		m.args = append(m.args, "--auth", "--keyFile", "key")
		m.run()
	}
	if err := client(t, uri(members)).Database("db").Collection("c").FindOne(limit(t), bson.D{}).Err(); err == nil || errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("without a password: %v", err)
	}
	if err := create(client(t, uri(members)), "eve"); err == nil {
		t.Error("the localhost exception holds where there is a user")
	}
	known := client(t, uri(members), func(o *options.ClientOptions) {
		o.SetAuth(options.Credential{Username: "ann", Password: "secret"})
	})
	if _, err := known.Database("db").Collection("c").InsertOne(limit(t), bson.D{}); err != nil {
		t.Errorf("with a password: %v", err)
	}
	for _, m := range members {
		log, err := os.ReadFile(filepath.Join(m.dir, "log"))
		if err != nil || bytes.Contains(log, []byte(`"pwd"`)) || bytes.Contains(log, []byte("payload")) {
			t.Errorf("%v: a secret is in the log", err)
		}
	}

	fresh := start(t, "mongod", freePorts(t, 1)[0], "--auth")
	c := direct(t, fresh)
	if err := c.Database("db").Collection("c").FindOne(limit(t), bson.D{}).Err(); err == nil || errors.Is(err, mongo.ErrNoDocuments) {
		t.Errorf("a stranger reads: %v", err)
	}
	if err := create(c, "ann"); err != nil {
		t.Errorf("the first user: %v", err)
	}
}

// A host does not outlive the members whose folders are gone.
func TestHostEnds(t *testing.T) {
	t.Parallel()
	p := start(t, "mongod", freePorts(t, 1)[0])
	run(t, direct(t, p), e("ping", 1))
	var memory struct{ Host string }
	text, err := os.ReadFile(filepath.Join(p.dir, "utr-host.json"))
	if err == nil {
		err = bson.UnmarshalExtJSON(text, false, &memory)
	}
	if err != nil || memory.Host == "" {
		t.Fatalf("%s: %v", text, err)
	}
	p.end(syscall.SIGKILL)
	nc, err := net.Dial("tcp", memory.Host)
	if err != nil {
		t.Fatalf("the host does not wait: %v", err)
	}
	_ = nc.Close()
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the host to end", func() bool {
		nc, err := net.Dial("tcp", memory.Host)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
}
