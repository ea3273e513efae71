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

	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
)

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
