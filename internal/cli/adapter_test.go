package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
)

// adapterName is a name for this program under which it is an adapter of the reference
// engine.
const adapterName = "adapter"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == adapterName {
		os.Exit(adapt(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// adapt serves the reference engine. With an argument it ends at once instead, and its
// last words say where it is.
func adapt(args []string) (code int) {
	if len(args) > 0 {
		dir, _ := os.Getwd()
		fmt.Fprintf(os.Stderr, "%s: I am in the folder %s; MOOD is %q\n", args[0], filepath.Base(dir), os.Getenv("MOOD"))
		return 7
	}
	e, err := reference.New(reference.Options{})
	if err == nil {
		err = process.Serve(context.Background(), e, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// self is the file of this program.
func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	testkit.Check(t, err)
	return file
}
