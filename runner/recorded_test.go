package runner

import (
	"context"
	"fmt"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/specs"
)

// late is a source whose deployment does not come before the run is interrupted.
type late struct {
	still
	interrupt context.CancelFunc
}

func (s *late) Acquire(context.Context, int) (deployment.Deployment, error) {
	s.interrupt()
	return nil, context.Canceled
}

// A run that is interrupted while its last test waits for a deployment is not green.
func TestInterruptedWhileItWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	defer func() { _ = e.Close() }()
	suite, err := specs.Parse("a.yml", []byte(`{description: d, schemaVersion: "1.0", tests: [{description: a, operations: []}]}`))
	testkit.Check(t, err)
	source := &late{still{deployment.Description{Name: "single 8.0", Topology: deployment.Single, Version: [3]int{8}}}, cancel}
	summary, err := Run(ctx, []*specs.Suite{suite}, Config{Engine: e, Source: source})
	testkit.Check(t, err)
	testkit.Equal(t, "interrupted, and the exit code", fmt.Sprint(summary.Interrupted, summary.ExitCode()), "true 3")
}
