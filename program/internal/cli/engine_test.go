package cli

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
)

// limitedEngine is an engine that only supports find, and lists it twice.
type limitedEngine struct{ engine.Engine }

func (limitedEngine) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Name: "poor", Version: "1", SchemaVersion: "1.4",
		Operations: []string{"collection.find", "collection.find"}}, nil
}

func TestEngineCheck(t *testing.T) {
	b := realBench(t)
	testkit.Check(t, b.AddEngine("poor", func() (engine.Engine, error) { return limitedEngine{driver.New()}, nil }))
	testkit.Check(t, os.Symlink(self(t), adapterName))
	write(t, "x.yml", strings.NewReplacer("MODE", "alwaysOn", "ERROR", "errorCode: 2").Replace(failing))
	write(t, "new.yml", `{description: x, schemaVersion: "1.5", tests: [{description: only, operations: []}]}`)
	for _, r := range []struct {
		reason, args string
		code         int
		says         string
	}{
		{"an adapter has a behavior", "--run itself exec:./adapter x.yml", 0,
			"reference current: schema version 1.28, … features: client backpressure … ✔ describes itself\n1 of 1 behavior\n\n2 of 2 tests would run\n"},
		{"one behavior is missing, another is not", "--run describes --run 'own commands' poor x.yml", ExitFailed,
			"features: none\n\n✘ describes itself\n    the operations are not sorted, or contain duplicates\n    It matters because the runner checks capabilities, " +
				"and reports include the name of the engine.\n✔ does not log the runner's own commands\n1 of 2 behaviors\n"},
		{"tests need what it lacks", "--run 'own commands' poor x.yml new.yml", 0,
			"1 of 3 tests would run\n\nwould run  needed by  in the order of what each unlocks\n        2          1  a newer schema version\n        2          1  $configureFailPoint\n        3          1  collection.insertOne\n"},
		{"a pattern matches nothing", "--run nothing reference", ExitUsage, "--run matches no behavior"},
		{"an engine is needed", "", ExitUsage, "engine check: requires an engine"},
		{"the engine is unknown", "nobody", ExitUsage, `unknown engine "nobody"`},
		{"a missing suite", "reference nowhere.yml", ExitUsage, "nowhere.yml"},
		{"the adapter exits at once", "'exec:./adapter sorry' x.yml", ExitBroken,
			"the engine cannot be used: … sorry: I am in the folder"},
	} {
		b.expect(t, r.reason, "engine check "+r.args, r.code, r.says)
	}
	b.ctx = canceled(t.Context())
	b.expect(t, "interrupted", "engine check reference x.yml", ExitBroken, "interrupted")
	b.expect(t, "no command", "engine", ExitUsage, "requires a command: init, check or record")
	b.expect(t, "an unknown command", "engine tickle", ExitUsage, `unknown command "tickle"`)
}

// An engine in Go answers as an adapter does.
func TestEngineRecord(t *testing.T) {
	b := realBench(t)
	testkit.Check(t, os.Symlink(self(t), adapterName))
	write(t, "x.yml", strings.NewReplacer("MODE", "alwaysOn", "ERROR", "errorCode: 2").Replace(failing))
	var calls [][]string
	for _, name := range []string{"reference", "exec:./adapter"} {
		b.expect(t, name, "engine record --topology replicaset --run both "+name+" x.yml", 0, "1 passed, 0 failed")
		for line := range strings.Lines(b.out.String()) {
			if !strings.HasPrefix(line, `-> {"jsonrpc":"2.0",`) && !strings.HasPrefix(line, `<- {"jsonrpc":"2.0",`) {
				t.Errorf("%s: not a message: %s", name, line)
			}
		}
		calls = append(calls, regexp.MustCompile(`"method":"\w+"|"value":\[`).FindAllString(b.out.String(), -1))
	}
	testkit.Equal(t, "calls of the adapter", calls[1], calls[0])
	if !slices.Contains(calls[0], `"method":"end"`) {
		t.Errorf("the end is missing: %s", calls[0])
	}
	b.expect(t, "a test fails", "engine record reference x.yml", ExitFailed, "1 passed, 1 failed")
	b.expect(t, "no suite", "engine record reference", ExitUsage, "requires an engine and a suite")
	b.expect(t, "a pattern matches nothing", "engine record --run nothing reference x.yml", ExitUsage, "matches no test")
	b.Stdout = broken{os.ErrClosed}
	b.expect(t, "standard output is closed", "engine record reference x.yml", ExitBroken, "cannot write the transcript")
}

// adapterName is the name under which this program is an adapter of the reference engine.
const adapterName = "adapter"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == adapterName {
		os.Exit(adapt(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// adapt serves the reference engine. With an argument it exits at once instead, and prints its folder; after "until",
// it crashes when a request has this text.
func adapt(args []string) (code int) {
	var in io.Reader = os.Stdin
	if len(args) > 1 && args[0] == "until" {
		in = fragile{in, args[1]}
	} else if len(args) > 0 {
		dir, _ := os.Getwd()
		fmt.Fprintf(os.Stderr, "%s: I am in the folder %s; MOOD is %q\n", args[0], filepath.Base(dir), os.Getenv("MOOD"))
		return 7
	}
	e, err := reference.New(reference.Options{})
	if err == nil {
		err = process.Serve(context.Background(), e, in, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fragile is an input whose reader crashes at a text.
type fragile struct {
	io.Reader
	at string
}

func (f fragile) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if bytes.Contains(p[:n], []byte(f.at)) {
		fmt.Fprintln(os.Stderr, "Traceback (most recent call last):\n"+
			strings.Repeat("  File \"adapter.py\", line 7, in call\n    return handlers[name](**arguments)\n", 8)+
			"KeyError: 'deleteMany'")
		os.Exit(1)
	}
	return n, err
}

func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	testkit.Check(t, err)
	return file
}
