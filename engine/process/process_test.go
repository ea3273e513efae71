package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
)

// TestMain also makes this program an adapter, of the mode in the environment.
func TestMain(m *testing.M) {
	if mode := os.Getenv(adapterMode); mode != "" {
		adapter(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	adapterMode = "UTR_TEST_ADAPTER"
	// aliveAt names an address that adapters connect to. Their children inherit the
	// connection, so its end shows that all processes have ended.
	aliveAt = "UTR_TEST_ALIVE"
)

// adapter serves the reference engine, or misbehaves according to the mode.
func adapter(mode string) {
	if address := os.Getenv(aliveAt); address != "" {
		if _, err := net.Dial("tcp", address); err != nil { // open until this process ends
			die(err)
		}
	}
	if misbehave := misbehaviors[mode]; misbehave != nil {
		misbehave()
		return
	}
	e, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	switch {
	case err != nil:
	case mode == "unchecked":
		err = process.Serve(context.Background(), e, os.Stdin, os.Stdout)
	default:
		err = serveChecked(e)
	}
	if err != nil {
		die(err)
	}
}

// die ends the adapter. The test reports the error.
func die(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serveChecked is an adapter that checks all messages against the schema.
func serveChecked(e engine.Engine) error {
	c, err := process.NewConformity()
	if err != nil {
		return err
	}
	return process.Serve(context.Background(), e, io.TeeReader(os.Stdin, c.Lines(process.FromRunner, die)),
		io.MultiWriter(c.Lines(process.FromAdapter, die), os.Stdout))
}

// newEngine returns an engine whose adapter is this program. Closing it must end all
// adapters.
func newEngine(t *testing.T, mode string) *process.Engine {
	t.Helper()
	address, none := alive(t)
	e, err := open(mode, address)
	testkit.Check(t, err)
	t.Cleanup(func() {
		testkit.Check(t, e.Close())
		none()
	})
	return e
}

func open(mode, address string) (*process.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	environment := append(os.Environ(), adapterMode+"="+mode, aliveAt+"="+address)
	return process.New(process.Options{Command: []string{self}, Environment: environment, StartLimit: time.Minute,
		Runner: "test"})
}

// alive listens for adapters. none waits until all of them have ended.
func alive(t *testing.T) (address string, none func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	var all sync.WaitGroup
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() })
		}
	}()
	return l.Addr().String(), func() {
		_ = l.Close()
		<-accepted
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		testkit.Receive(t, "the adapters end", ended)
	}
}

// An engine behind the protocol passes enginetest.
func TestBehaviors(t *testing.T) {
	t.Parallel()
	d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	suitetest.Behaviors(t, newEngine(t, "reference"), d.URI())
}

// Suites pass. Only make soak checks all messages against the schema, because that
// takes most of the time.
func TestSuites(t *testing.T) {
	mode := testkit.Either(os.Getenv("UTR_SOAK") == "1", "reference", "unchecked")
	suites := suitetest.Share(t, 48)
	suitetest.CheckVerdicts(t, suitetest.With(t, newEngine(t, mode), deployment.EmbeddedOptions{}).Run(t, suites),
		result.SkipRequirement)
}

// A misbehaving adapter ends the call with an error that reports the cause. The next
// test gets a new adapter.
func TestMisbehaviors(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // most wait, so that they are not limited to one per core
	defer all.Wait()
	for _, r := range []struct {
		mode, reason string
		contains     []string
	}{
		{"hangs", "a driver can hang",
			[]string{"no reply to find on collection within", "the adapter was killed", "last output:\nwaiting"}},
		{"hangs in end", "closing a client can hang", []string{"no reply to end within", "last output:\nwaiting"}},
		{"endless line", "memory is bounded", []string{"a message of more than 64 MiB"}},
		{"endless lines", "unsolicited replies must not accumulate", []string{"which is not open"}},
		{"floods standard error", "memory is bounded, and the call can be canceled",
			[]string{"no reply to find on collection within", "last output:\n"}},
		{"grandchild", "a process that outlives the adapter holds its output open",
			[]string{"closed its output", "exit status 3"}},
		{"rubbish", "a debugging print writes to standard output", []string{"a line that is not a message: ", "debugging", "print logs to standard error"}},
		{"unknown field", "a misspelled field must not be ignored", []string{`it has the unknown member "vlaue" (did you mean value?): {"`}},
		{"twice", "a second reply could be mistaken for that of a later request", []string{"which is not open"}},
		{"half", "a message is cut off", []string{"in the middle of a message"}},
		{"bad sequence", "a log with a gap hides events", []string{"the sequence of an event is 7, expected 1"}},
		{"talkative", "standard error is bounded", []string{"closed its output", "line 99999"}},
	} {
		all.Go(func() {
			t.Run(r.mode, func(t *testing.T) {
				ctx := testkit.Context(t)
				e := newEngine(t, r.mode)
				test, err := e.Begin(ctx)
				testkit.Check(t, err)
				short, cancel := context.WithCancel(ctx)
				defer cancel()
				if strings.HasPrefix(r.contains[0], "no reply") {
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				out := test.Do(short, engine.Operation{Object: "collection", Name: "find"})
				err = out.Broken
				if r.mode == "hangs in end" {
					err = test.End(short)
				}
				if r.mode == "bad sequence" || r.mode == "twice" { // Do can receive the first of two replies
					_, err = test.Events(ctx, "client", 0, 0)
				}
				if err == nil {
					t.Fatal("no error")
				}
				testkit.ErrorContains(t, err, r.contains...)
				if len(err.Error()) > 8<<10 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
				if err := test.End(ctx); err == nil {
					t.Error("a test whose adapter failed ends without an error")
				}
				_, err = e.Begin(ctx)
				testkit.Check(t, err)
			})
		})
	}
}

// The error of an adapter that hangs begins with the time limit that passed.
func TestHangsUntilALimit(t *testing.T) {
	t.Parallel()
	test, err := newEngine(t, "hangs").Begin(testkit.Context(t))
	testkit.Check(t, err)
	ctx, cancel := context.WithTimeoutCause(testkit.Context(t), 50*time.Millisecond, errors.New("exceeded --limit 50ms"))
	defer cancel()
	out := test.Do(ctx, engine.Operation{Object: "collection", Name: "find"})
	first, _, _ := strings.Cut(fmt.Sprint(out.Broken), ";")
	testkit.Equal(t, "the error", first, "exceeded --limit 50ms: the adapter did not reply to find on collection")
	_ = test.End(testkit.Context(t))
}

// hello reports an adapter that cannot be used.
func TestGreetings(t *testing.T) {
	for _, r := range []struct {
		mode, reason string
		contains     []string
	}{
		{"old", "utr is newer than the adapter", []string{"speaks version 0 of the protocol, utr speaks 1"}},
		{"nameless", "reports include the name", []string{"the adapter answered hello wrongly: "}},
		{"refuses", "the adapter reports the reason", []string{"no driver installed"}},
	} {
		t.Run(r.mode, func(t *testing.T) {
			_, err := newEngine(t, r.mode).Describe(testkit.Context(t))
			testkit.ErrorContains(t, err, r.contains...)
		})
	}
}

// The error of a program that cannot be started says what is wrong with it, and the caller may explain it.
func TestStartErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"text": "", "script": "exit", "lost": "#!/nowhere/sh\n"} {
		testkit.Check(t, os.WriteFile(name, []byte(text), testkit.Either[os.FileMode](name == "text", 0o644, 0o755)))
	}
	for _, r := range []struct{ program, says string }{
		{"nowhere", "cannot start the adapter: there is no program nowhere in the PATH"},
		{"./nowhere", "cannot start the adapter: there is no program ./nowhere"},
		{"./text", "cannot start the adapter: ./text is not an executable file"},
		{"./script", "cannot start the adapter: ./script is not a program for this machine, or a script without #! in its first line"},
		{"./lost", "cannot start the adapter: the interpreter in the first line of ./lost does not exist"},
	} {
		e, err := process.New(process.Options{Command: []string{r.program}, Unavailable: func(err error) error {
			start := (*process.StartError)(nil)
			testkit.Equal(t, r.program+": a StartError", errors.As(err, &start), true)
			return fmt.Errorf("explained: %w", err)
		}})
		testkit.Check(t, err)
		_, err = e.Describe(testkit.Context(t))
		testkit.Equal(t, r.program, fmt.Sprint(err), "explained: "+r.says)
	}
}

// An adapter that does not reply to hello in time is killed.
func TestStartLimit(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	testkit.Check(t, err)
	e, err := process.New(process.Options{Command: []string{self},
		Environment: append(os.Environ(), adapterMode+"=hangs in hello"), StartLimit: time.Millisecond})
	testkit.Check(t, err)
	_, err = e.Describe(testkit.Context(t))
	testkit.ErrorContains(t, err, "exceeded start-timeout 1ms: the adapter did not reply to hello", "the adapter was killed")
	testkit.Check(t, e.Close())
}

// An adapter that ignores the end of its input is killed; newEngine checks that.
func TestDeaf(t *testing.T) {
	t.Parallel()
	_, err := newEngine(t, "deaf").Describe(testkit.Context(t))
	testkit.Check(t, err)
}

// An adapter does not outlive utr, even if it ignores the end of its input. Only Linux
// guarantees that; elsewhere an adapter must end when its input ends.
func TestOrphan(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not verified: only Linux kills a child with its parent")
	}
	address, none := alive(t)
	self, err := os.Executable()
	testkit.Check(t, err)
	parent := exec.CommandContext(testkit.Context(t), self)
	parent.Env = append(os.Environ(), adapterMode+"=parent", aliveAt+"="+address)
	out, err := parent.StdoutPipe()
	testkit.Check(t, err)
	testkit.Check(t, parent.Start())
	_, err = io.ReadFull(out, make([]byte, len("started\n")))
	testkit.Check(t, err)
	testkit.Check(t, parent.Process.Kill())
	_ = parent.Wait()
	none()
}

// misbehaviors are adapters that misbehave in hello or later.
var misbehaviors = map[string]func(){
	"hangs": func() {
		serve(func(int, string) string { fmt.Fprintln(os.Stderr, "waiting"); select {} })
	},
	"hangs in end": func() {
		eachLine(func(line string) {
			if id, method := parse(line); method == "end" {
				fmt.Fprintln(os.Stderr, "waiting")
				time.Sleep(time.Hour)
			} else if method == "hello" {
				fmt.Println(reply(id, greeting))
			} else {
				fmt.Println(reply(id, `{}`))
			}
		})
	},
	"hangs in hello": func() { time.Sleep(time.Hour) },
	"endless line": func() {
		serve(func(int, string) string {
			for {
				fmt.Print(strings.Repeat("x", 1<<20))
			}
		})
	},
	"endless lines": func() {
		serve(func(id int, _ string) string {
			for {
				id++
				fmt.Println(reply(id, `{}`))
			}
		})
	},
	"floods standard error": func() {
		serve(func(int, string) string {
			for {
				fmt.Fprintln(os.Stderr, strings.Repeat("x", 1000))
			}
		})
	},
	"grandchild": func() {
		serve(func(int, string) string { leave("deaf"); os.Exit(3); return "" })
	},
	"deaf": func() { // ignores the end of its input
		go serve(func(id int, _ string) string { return reply(id, `{}`) })
		time.Sleep(time.Hour)
	},
	"parent": func() { // starts an adapter, like utr, and waits to be killed
		e, err := open("deaf", os.Getenv(aliveAt))
		if err == nil {
			_, err = e.Describe(context.Background())
		}
		if err != nil {
			die(err)
		}
		fmt.Println("started")
		time.Sleep(time.Hour)
	},
	"rubbish": func() { serve(func(int, string) string { return "debugging: here" }) },
	"unknown field": func() {
		serve(func(id int, _ string) string { return reply(id, `{"vlaue":null}`) })
	},
	"twice": func() {
		serve(func(id int, _ string) string { return reply(id, `{}`) + "\n" + reply(id, `{}`) })
	},
	"half": func() {
		serve(func(int, string) string { fmt.Print(`{"jsonrpc":`); os.Exit(0); return "" })
	},
	"bad sequence": func() {
		serve(func(id int, method string) string {
			if method == "events" {
				return reply(id, `{"events":[{"sequence":7,"type":"poolReadyEvent"}]}`)
			}
			return reply(id, `{}`)
		})
	},
	"talkative": func() {
		serve(func(int, string) string {
			for i := range 100_000 {
				fmt.Fprintln(os.Stderr, "line", i)
			}
			os.Exit(0)
			return ""
		})
	},
	"old": func() {
		greet(`{"result":{"protocol":0,"name":"n","version":"1","schemaVersion":"1.0","operations":["collection.find"]}`)
	},
	"nameless": func() {
		greet(`{"result":{"protocol":1,"name":"","version":"1","schemaVersion":"1.0","operations":["collection.find"]}`)
	},
	"shared": func() { // with entities that are named for what an operation on them does
		eachLine(func(line string) {
			id, method := parse(line)
			switch {
			case method == "hello":
				fmt.Println(reply(id, strings.Replace(greeting, "{", `{"concurrentTests":4,`, 1)))
			case strings.Contains(line, `"object":"hangs"`):
				fmt.Fprintln(os.Stderr, "waiting")
			case strings.Contains(line, `"object":"exits"`):
				os.Exit(3)
			case strings.Contains(line, `"object":"wrong"`):
				fmt.Println(reply(id, `{"vlaue":null}`))
			case method == "do":
				fmt.Println(reply(id, fmt.Sprintf(`{"value":%d}`, os.Getpid())))
			case id > 0:
				fmt.Println(reply(id, `{}`))
			}
		})
	},
	"refuses": func() { greet(`{"error":{"code":-32603,"message":"no driver installed"}`) },
}

const greeting = `{"protocol":1,"name":"n","version":"1","schemaVersion":"1.0","operations":["collection.find"]}`

// leave starts this program with the same outputs and does not wait for it.
func leave(mode string) {
	self, err := os.Executable()
	if err == nil {
		c := exec.Command(self)
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), adapterMode+"="+mode), os.Stdout, os.Stderr
		err = c.Start()
	}
	if err != nil {
		die(err)
	}
}

func reply(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

// greet replies to hello.
func greet(answer string) {
	eachLine(func(string) {
		fmt.Println(strings.Replace(answer, "{", `{"jsonrpc":"2.0","id":1,`, 1) + "}")
	})
}

// serve replies correctly to hello, begin and end, and to other requests with answer.
func serve(answer func(id int, method string) string) {
	eachLine(func(line string) {
		id, method := parse(line)
		switch method {
		case "hello":
			fmt.Println(reply(id, greeting))
		case "begin", "end":
			fmt.Println(reply(id, `{}`))
		default:
			fmt.Println(answer(id, method))
		}
	})
}

// eachLine reads requests.
func eachLine(handle func(line string)) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		handle(lines.Text())
	}
}

func parse(line string) (id int, method string) {
	var m struct {
		ID     int
		Method string
	}
	_ = json.Unmarshal([]byte(line), &m)
	return m.ID, m.Method
}

// Some languages write an empty object as []. It is accepted, with a hint.
func TestEmptyArray(t *testing.T) {
	const adapter = `read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":1,"name":"n","version":"1","schemaVersion":"1.28","operations":["collection.find"]}}'
		read x; echo '{"jsonrpc":"2.0","id":2,"result":[]}'
		read x; echo '{"jsonrpc":"2.0","id":3,"result":{"events":[{"sequence":1,"type":"commandSucceededEvent","reply":[]},{"sequence":2,"type":"commandSucceededEvent","reply":[]}]}}'; read x`
	e, err := process.New(process.Options{Command: []string{"sh", "-c", adapter}})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, e.Close()) }()
	test, err := e.Begin(t.Context())
	testkit.Check(t, err)
	events, err := test.Events(t.Context(), "client", 0, 0)
	testkit.Check(t, err)
	testkit.Equal(t, "the length of the reply", len(events[0].Body), 5)
	broke, hints := e.Findings()
	testkit.Equal(t, "a protocol error, and hints", fmt.Sprint(broke, hints),
		"<nil> [the adapter answers begin with [] where {} belongs; utr accepts it "+
			"the adapter answers events with [] at events[].reply where {} belongs; utr accepts it]")
}
