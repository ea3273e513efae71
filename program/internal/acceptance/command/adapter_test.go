//go:build unix

package command

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
)

const adapterMode = "UTR_TEST_ADAPTER"

// faultyEngine returns the engine whose adapter is this program. All its tests run in one process. The command
// {hang: 1} never returns, {exit: 1} ends the process once another test performs {stay: 1}.
func faultyEngine(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	testkit.Check(t, err)
	return fmt.Sprintf("exec:env %s=1 %s", adapterMode, self)
}

func serveFaulty() error {
	e, err := reference.New(reference.Options{})
	if err != nil {
		return err
	}
	return process.Serve(context.Background(), faulty{e, make(chan struct{})}, os.Stdin, os.Stdout)
}

type faulty struct {
	engine.Engine
	staying chan struct{}
}

type faultyTest struct {
	engine.Test
	faulty
}

func (f faulty) Begin(ctx context.Context) (engine.Test, error) {
	t, err := f.Engine.Begin(ctx)
	return faultyTest{t, f}, err
}

func (t faultyTest) Do(ctx context.Context, op engine.Operation) result.Outcome {
	switch command := op.Arguments.String(); {
	case strings.Contains(command, `"hang"`):
		select {}
	case strings.Contains(command, `"stay"`):
		close(t.staying)
		select {}
	case strings.Contains(command, `"exit"`):
		<-t.staying
		os.Exit(3)
	}
	return t.Test.Do(ctx, op)
}

// three returns a suite of three tests with some operations.
func three(operations ...string) string {
	_, head, _ := strings.Cut(armed, "description: \"armed\"\n")
	head, _, _ = strings.Cut(head, "tests:\n")
	suite := "description: \"shared\"\n" + head + "tests:\n"
	for i, name := range []string{"first", "second", "third"} {
		suite += fmt.Sprintf("  - description: %q\n    operations: [%s]\n", name, operations[i])
	}
	return suite
}

func wait(ms int) string {
	return fmt.Sprintf("{name: wait, object: testRunner, arguments: {ms: %d}}", ms)
}

func command(name string) string {
	return fmt.Sprintf("{name: runCommand, object: database, arguments: {commandName: %s, command: {%[1]s: 1}}}", name)
}
