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

// A test whose threads ask the same at once passes and cannot be judged: nobody knows
// which answer belongs to which thread.
func TestRacingThreads(t *testing.T) {
	suite, err := specs.Parse("a.yml", []byte(`{description: d, schemaVersion: "1.10", runOnRequirements: [{topologies: [single]}],
createEntities: [{client: {id: c}}, {database: {id: d, client: c, databaseName: utr-racing}}, {collection: {id: k, database: d, collectionName: x}},
  {thread: {id: one}}, {thread: {id: two}}],
tests: [{description: at once, operations: [
  {name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: failCommand, mode: alwaysOn,
    data: {failCommands: [find], blockConnection: true, blockTimeMS: 200}}}},
  {name: runOnThread, object: testRunner, arguments: {thread: one, operation: {name: find, object: k, arguments: {filter: {}}}}},
  {name: runOnThread, object: testRunner, arguments: {thread: two, operation: {name: find, object: k, arguments: {filter: {}}}}},
  {name: waitForThread, object: testRunner, arguments: {thread: one}},
  {name: waitForThread, object: testRunner, arguments: {thread: two}}]},
 {description: alone, operations: [{name: find, object: k, arguments: {filter: {}}, expectResult: []}]}]}`))
	testkit.Check(t, err)
	rec := record(t, "", []*specs.Suite{suite})
	testkit.Equal(t, "tests that can be judged, and that cannot", [2]int{len(rec.Passed), len(rec.Racing)}, [2]int{1, 1})
	for id := range rec.Racing {
		testkit.Equal(t, "the racing one", id.Description, "at once")
	}
}

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
