package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
	"github.com/unified-test-runner/utr/internal/wire"
)

func TestMain(m *testing.M) { utrtest.Main(m, func() error { return goleak.Find() }) }

type proc struct {
	*utrtest.Process
	story *story
	dir   string
	args  []string
}

// start starts the process, or restarts it with more options.
func (p *proc) start(more ...string) {
	p.story.t.Helper()
	before := p.serving()
	p.args = append(p.args, more...)
	p.Process = p.story.launch(p.args)
	testkit.Until(p.story.t, "a process to serve", func() bool { return p.serving() > before || p.Ended() })
	if p.Ended() {
		p.story.t.Fatalf("%q has ended: %s", p.args, p.Errors())
	}
}

func (p *proc) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log")) // it may not exist yet
	return string(text)
}

func (p *proc) serving() int { return strings.Count(p.log(), `"msg":"Waiting for connections"`) }

// end sends a signal and checks the exit code.
func (p *proc) end(signal os.Signal, code int) {
	p.story.t.Helper()
	p.Signal(signal)
	p.End().Want(code)
}

// TestStories runs testdata/stories.txt: processes and clients of the Go driver.
//
//	start a mongod --auth           starts a process
//	again a --auth                  restarts it with more options
//	kill a, terminate a, interrupt a
//	connect c mongodb://HOST(a)     creates client c; client a is connected directly to process a
//	insert c                        inserts a document
//	find c -> 13                    reads a document, or fails with a code
//	count c 3                       counts the documents
//	state c a,b PRIMARY             waits until c reports a or b as PRIMARY
//	c {"ping": 1} -> "ok": 1.0      runs a command on $db (default admin); the reply must contain this
//	c {"ping": 1} -> not "x"        the reply must not contain this
//	c {"ping": 1} -> 8              the command must fail with this code
//	until c {"ping": 1} -> "ok"     repeats the command until it has this result
//	log a createUser & x            the log of a contains this and then x, and no password
//	ended a                         waits until the process exits with code 0
//	run 2 mongod --foo -> text      mongod exits with this code and prints this
//
// HOST(a) is the address of a process, IP(a) and PORT(a) are its parts, PID(a) is its id, DIR(a) its folder.
func TestStories(t *testing.T) {
	testkit.PlaySteps(t, func(t *testing.T, _, steps string) {
		s := newStory(t)
		for line := range strings.Lines(steps) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !t.Failed() {
				s.step(line)
			}
		}
	})
}

// story contains the processes of a test. Each has its own port on an IP address that no other test uses.
type story struct {
	*utrtest.Place
	t       *testing.T
	release string
	host    string
	ports   map[string]int
	dirs    map[string]string
	procs   map[string]*proc
	clients map[string]*mongo.Client
}

func newStory(t *testing.T) *story {
	t.Helper()
	t.Parallel()
	return &story{utrtest.NewPlace(t), t, utrtest.Release(t), utrtest.Address(t), map[string]int{}, map[string]string{}, map[string]*proc{},
		map[string]*mongo.Client{}}
}

// launch starts mongod or mongos with arguments.
func (s *story) launch(words []string) *utrtest.Process {
	s.t.Helper()
	return s.Launch(exec.Command(filepath.Join(s.release, "bin", words[0]), words[1:]...))
}

var places = regexp.MustCompile(`(HOST|IP|PORT|PID|DIR)\((\w+)\)`)

// fill replaces HOST(a) and the like. Names without a process also have a port.
func (s *story) fill(line string) string {
	return places.ReplaceAllStringFunc(line, func(place string) string {
		m := places.FindStringSubmatch(place)
		switch kind, name := m[1], m[2]; kind {
		case "PID":
			return strconv.Itoa(s.procs[name].Process.Process.Pid)
		case "IP":
			return s.host
		case "DIR":
			return s.dir(name)
		case "HOST":
			return s.address(name)
		default:
			_, port, _ := net.SplitHostPort(s.address(name))
			return port
		}
	})
}

func (s *story) dir(name string) string {
	if s.dirs[name] == "" {
		s.dirs[name] = s.t.TempDir()
	}
	return s.dirs[name]
}

func (s *story) address(name string) string {
	if s.ports[name] == 0 {
		s.ports[name] = utrtest.Ports + len(s.ports)
	}
	return net.JoinHostPort(s.host, strconv.Itoa(s.ports[name]))
}

func (s *story) client(name string) *mongo.Client {
	if s.clients[name] == nil {
		s.clients[name] = client(s.t, "mongodb://"+s.address(name)+"/?directConnection=true")
	}
	return s.clients[name]
}

func (s *story) step(line string) {
	t := s.t
	t.Helper()
	line = s.fill(line)
	words := strings.Fields(line)
	_, want, _ := strings.Cut(line, " -> ")
	code, _ := strconv.Atoi(want)
	c := func() *mongo.Collection { return s.client(words[1]).Database("db").Collection("c") }
	switch name := words[1]; words[0] {
	case "start":
		p := &proc{story: s, dir: s.dir(name)}
		p.args = append([]string{words[2], "--bind_ip", s.host, "--port", s.fill("PORT(" + name + ")"), "--setParameter",
			"enableTestCommands=1",
			"-v", "--logpath", filepath.Join(p.dir, "log"), "--logappend"}, words[3:]...)
		if words[2] == "mongod" {
			p.args = append(p.args, "--dbpath", p.dir)
		}
		s.procs[name] = p
		p.start()
	case "again":
		s.procs[name].start(words[2:]...)
	case "kill":
		delete(s.clients, name)
		s.procs[name].end(syscall.SIGKILL, -1)
	case "terminate":
		delete(s.clients, name)
		s.procs[name].end(syscall.SIGTERM, 0)
	case "interrupt":
		delete(s.clients, name)
		s.procs[name].end(syscall.SIGINT, 0)
	case "connect":
		s.clients[name] = client(t, words[2])
	case "insert":
		_, err := c().InsertOne(testkit.Context(t), bson.D{})
		testkit.Equal(t, line, err, nil)
	case "find":
		if err := c().FindOne(testkit.Context(t), bson.D{}).Err(); !errors.Is(err, mongo.ErrNoDocuments) &&
			codeOf(err) != code {
			t.Errorf("%s: got %v", line, err)
		}
	case "count":
		n, err := c().CountDocuments(testkit.Context(t), bson.D{})
		testkit.Equal(t, line, fmt.Sprint(n, err), words[2]+" <nil>")
	case "state":
		state := strings.Join(words[3:], " ")
		testkit.Until(t, line, func() bool {
			raw, _ := s.client(name).Database("admin").RunCommand(testkit.Context(t),
				bson.D{{Key: "replSetGetStatus", Value: 1}}).Raw()
			members, _ := raw.Lookup("members").Array().Values()
			return slices.ContainsFunc(members, func(m bson.RawValue) bool {
				return m.Document().Lookup("stateStr").StringValue() == state && slices.ContainsFunc(strings.Split(words[2], ","),
					func(name string) bool { return m.Document().Lookup("name").StringValue() == s.address(name) })
			})
		})
	case "until":
		testkit.Until(t, line, func() bool { return s.run(strings.TrimPrefix(line, "until ")) == "" })
	case "log":
		rest := s.procs[name].log()
		if testkit.Contains(t, rest); strings.Contains(rest, "payload") {
			t.Errorf("the log contains authentication messages: %s", rest)
		}
		for part := range strings.SplitSeq(strings.TrimPrefix(line, "log "+name+" "), " & ") {
			var found bool
			if _, rest, found = strings.Cut(rest, part); !found {
				t.Fatalf("%s is missing or too early in:\n%s", part, s.procs[name].log())
			}
		}
		for entry := range strings.Lines(s.procs[name].log()) {
			var doc bson.D
			if err := bson.UnmarshalExtJSON([]byte(entry), false, &doc); err != nil || len(doc) < 6 || doc[0].Key != "t" {
				t.Errorf("invalid entry: %v: %s", err, entry)
			}
		}
	case "ended":
		s.procs[name].End().Want(0)
	case "run":
		code, _ := strconv.Atoi(name)
		args, _, _ := strings.Cut(line, " -> ")
		s.launch(strings.Fields(args)[2:]).End().Want(code, want)
	default:
		if wrong := s.run(line); wrong != "" {
			t.Errorf("%s: got %s", line, wrong)
		}
	}
}

// run runs a command. It returns the reply if that is not the expected one.
func (s *story) run(line string) string {
	s.t.Helper()
	name, rest, _ := strings.Cut(line, " ")
	text, want, _ := strings.Cut(rest, " -> ")
	var command bson.D
	testkit.Check(s.t, bson.UnmarshalExtJSON([]byte(text), false, &command))
	db := "admin"
	if last := len(command) - 1; command[last].Key == "$db" {
		db, command = command[last].Value.(string), command[:last]
	}
	raw, err := s.client(name).Database(db).RunCommand(testkit.Context(s.t), command).Raw()
	reply, _ := bson.MarshalExtJSON(raw, false, false)
	if command[0].Key == "replSetInitiate" && err == nil {
		delete(s.clients, name) // its connections are closed: the host serves new ones
	}
	answer := strings.ReplaceAll(strings.ReplaceAll(string(reply), `":`, `": `), ",\"", ", \"")
	code, noCode := strconv.Atoi(want)
	fine := noCode == nil && codeOf(err) == code || noCode != nil && err == nil
	for part := range strings.SplitSeq(want, " & ") {
		unwanted, not := strings.CutPrefix(part, "not ")
		fine = fine && (noCode == nil || strings.Contains(answer, unwanted) != not)
	}
	if fine {
		return ""
	}
	return fmt.Sprintf("%s, %v", answer, err)
}

// codeOf returns the code of an error, 0 without an error, -1 without a code.
func codeOf(err error) int {
	var failure mongo.CommandError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failure) && failure.Code != 0:
		return int(failure.Code)
	}
	return -1
}

func client(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(testkit.Patience).SetHeartbeatInterval(500 * time.Millisecond))
	testkit.Check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // do not send endSessions to servers that have exited
		_ = c.Disconnect(ctx)
	})
	return c
}

func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(testkit.Patience))
	return nc.(*net.TCPConn)
}

// say sends text and returns what it receives until the connection ends.
func say(t *testing.T, address, text string) string {
	t.Helper()
	nc := connect(t, address)
	_, _ = io.WriteString(nc, text) // the server may close the connection early
	reply, _ := io.ReadAll(nc)
	return strings.TrimSpace(string(reply))
}

// A client that has closed its side of the connection still gets the reply.
func TestHalfClosed(t *testing.T) {
	s := newStory(t)
	s.step(`start a mongod --replSet rs`)
	s.step(`a {"replSetInitiate": {}} -> "ok": 1.0`)
	s.step(`a {"configureFailPoint": "failCommand", "mode": {"times": 1},
		"data": {"failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 100}} -> "ok": 1.0`)
	nc := connect(t, s.address("a"))
	_, err := nc.Write(wire.AppendMsg(nil, 1, 0, 0, testkit.Raw(t, testkit.D("ping", 1, "$db", "admin"))))
	testkit.Check(t, err)
	testkit.Check(t, nc.CloseWrite())
	if _, _, err := wire.ReadMessage(nc); err != nil {
		t.Errorf("no reply: %v", err)
	}
	if n, err := nc.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the reply: %d bytes, %v", n, err)
	}
}

// A host exits when all fronts have exited and their folders were deleted.
func TestHostEnds(t *testing.T) {
	s := newStory(t)
	s.step(`start a mongod`)
	s.step(`a {"ping": 1} -> "ok": 1.0`)
	var memory struct{ Host struct{ Address string } }
	text, err := os.ReadFile(s.fill("DIR(a)/utr-host.json"))
	if err == nil {
		err = json.Unmarshal(text, &memory)
	}
	if err != nil || memory.Host.Address == "" {
		t.Fatalf("%s: %v", text, err)
	}
	s.step(`kill a`)
	connect(t, memory.Host.Address) // the host waits for a restart of the process
	testkit.Check(t, os.RemoveAll(s.dir("a")))
	testkit.Until(t, "the host to end", func() bool {
		nc, err := net.Dial("tcp", memory.Host.Address)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
}
