package process_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"go.uber.org/goleak"
)

// TestMain also makes an adapter of this program: what the variable names.
func TestMain(m *testing.M) {
	if mode := os.Getenv(adapterMode); mode != "" {
		adapter(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

const adapterMode = "UTR_TEST_ADAPTER"

// adapter serves the reference engine, or misbehaves as the mode says.
func adapter(mode string) {
	if misbehave := misbehaviours[mode]; misbehave != nil {
		misbehave()
		return
	}
	e, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	if err == nil {
		err = serveChecked(e)
	}
	if err != nil {
		die(err)
	}
}

// die breaks the test that is running, which shows the error.
func die(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serveChecked is an adapter in which all messages must conform to the schema.
func serveChecked(e engine.Engine) error {
	c, err := process.NewConformity()
	if err != nil {
		return err
	}
	return process.Serve(context.Background(), e, io.TeeReader(os.Stdin, c.Lines(process.FromRunner, die)),
		io.MultiWriter(c.Lines(process.FromAdapter, die), os.Stdout))
}

// newEngine is an engine behind this program as an adapter.
func newEngine(t *testing.T, mode string) *process.Engine {
	t.Helper()
	self, err := os.Executable()
	testkit.Check(t, err)
	e, err := process.New(process.Options{Command: []string{self}, Environment: append(os.Environ(), adapterMode+"="+mode), Runner: "test"})
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, e.Close()) })
	return e
}

// An engine behind the protocol shows what every engine must show.
func TestBehaviours(t *testing.T) {
	d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	enginetest.Test(t, newEngine(t, "reference"), d.URI())
}

// The verdicts of suites are those of the engine itself.
func TestSuites(t *testing.T) {
	every := testkit.Chance(t, 16)
	for _, spec := range bench.Specifications() {
		suites := bench.Some(bench.Load(t, bench.Own(t, spec)), every)
		through := bench.With(t, newEngine(t, "reference"), deployment.EmbeddedOptions{}).Run(t, suites)
		bench.AllWell(t, through, result.SkipRequirement)
	}
}

// Each way in which an adapter can go wrong ends the call with an error that says what
// happened. The next test gets a new adapter.
func TestMisbehaviours(t *testing.T) {
	for _, r := range []struct {
		mode, reason string
		says         []string
	}{
		{"exits", "an adapter can end at any time", []string{"closed its output", "exit status 3", "last words:\nout of luck"}},
		{"rubbish", "a print statement for debugging lands in standard output", []string{"not a message", "debugging"}},
		{"unknown field", "a misspelt field must not be ignored", []string{"unknown field", "vlaue"}},
		{"wrong id", "a reply to another request must not be taken for this one", []string{"request 99, which is not open"}},
		{"twice", "a second reply could be taken for that of a later request", []string{"which is not open"}},
		{"half", "a message is cut off", []string{"in the middle of a message"}},
		{"no extended JSON", "a type that is misspelt would be taken for a document", []string{"the result of find on collection", "$numberInt"}},
		{"bad sequence", "a log with a gap hides events", []string{"the sequence of an event is 7, expected 1"}},
		{"talkative", "standard error is bounded", []string{"closed its output", "line 99999"}},
	} {
		t.Run(r.mode, func(t *testing.T) {
			ctx := testkit.Context(t)
			e := newEngine(t, r.mode)
			test, err := e.Begin(ctx)
			testkit.Check(t, err)
			out := test.Do(ctx, engine.Operation{Object: "collection", Name: "find"})
			err = out.Broken
			if r.mode == "bad sequence" {
				_, err = test.Events(ctx, "client", 0, 0)
			}
			if r.mode == "twice" { // the first reply may come in time
				_, err = test.Events(ctx, "client", 0, 0)
			}
			if err == nil {
				t.Fatal("no error")
			}
			testkit.Fails(t, err, r.says...)
			if len(err.Error()) > 8<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if err := test.End(ctx); err == nil {
				t.Error("a test whose adapter failed ends without an error")
			}
			_, err = e.Begin(ctx)
			testkit.Check(t, err)
		})
	}
}

// An adapter that cannot be used is reported at the greeting.
func TestGreetings(t *testing.T) {
	for _, r := range []struct {
		mode, reason string
		says         []string
	}{
		{"old", "a newer utr meets an adapter of yesterday", []string{"speaks version 0 of the protocol, utr speaks 1"}},
		{"nameless", "reports name the engine", []string{"no name, no schemaVersion or no operations"}},
		{"refuses", "the adapter says why", []string{"no driver installed"}},
	} {
		t.Run(r.mode, func(t *testing.T) {
			_, err := newEngine(t, r.mode).Describe(testkit.Context(t))
			testkit.Fails(t, err, r.says...)
		})
	}
	e, err := process.New(process.Options{Command: []string{"/nowhere/adapter"}})
	testkit.Check(t, err)
	_, err = e.Describe(testkit.Context(t))
	testkit.Fails(t, err, "cannot start the adapter", "/nowhere/adapter")
}

// misbehaviours are adapters that go wrong after a good greeting, or in it.
var misbehaviours = map[string]func(){
	"exits": func() {
		serve(func(_ int, _ string) string { fmt.Fprintln(os.Stderr, "out of luck"); os.Exit(3); return "" })
	},
	"rubbish": func() { serve(func(int, string) string { return "debugging: here" }) },
	"unknown field": func() {
		serve(func(id int, _ string) string { return reply(id, `{"vlaue":null}`) })
	},
	"wrong id": func() { serve(func(int, string) string { return reply(99, `{}`) }) },
	"twice": func() {
		serve(func(id int, _ string) string { return reply(id, `{}`) + "\n" + reply(id, `{}`) })
	},
	"half": func() {
		serve(func(int, string) string { fmt.Print(`{"jsonrpc":`); os.Exit(0); return "" })
	},
	"no extended JSON": func() {
		serve(func(id int, _ string) string { return reply(id, `{"value":{"$numberInt":true}}`) })
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
	"refuses": func() { greet(`{"error":{"code":-32603,"message":"no driver installed"}`) },
}

func reply(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

// greet answers the greeting and waits for its end.
func greet(answer string) {
	eachLine(func(line string) {
		fmt.Println(strings.Replace(answer, "{", `{"jsonrpc":"2.0","id":1,`, 1) + "}")
	})
}

// serve answers the greeting, begin and end well, and all else with a line.
func serve(answer func(id int, method string) string) {
	eachLine(func(line string) {
		id, method := parse(line)
		switch method {
		case "hello":
			fmt.Println(reply(id, `{"protocol":1,"name":"n","version":"1","schemaVersion":"1.0","operations":["collection.find"]}`))
		case "begin", "end":
			fmt.Println(reply(id, `{}`))
		default:
			fmt.Println(answer(id, method))
		}
	})
}
