package runner_test

import (
	"context"
	"fmt"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// A suite runs against an engine, the official Go driver, on embedded deployments.
func ExampleRun() {
	loaded, err := specs.Load([]string{"smoke"}, specs.Options{})
	if err != nil {
		panic(err)
	}
	source, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.ReplicaSet}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = source.Close() }()
	engine := driver.New()
	defer func() { _ = engine.Close() }()
	summary, err := runner.Run(context.Background(), loaded.Suites, runner.Config{Engine: engine, Source: source,
		Notify: func(n result.Note) {
			if end, ok := n.(result.TestFinished); ok {
				fmt.Println(end.Verdict.Status, end.Verdict.Test.Description)
			}
		}})
	fmt.Println(summary.Passed, summary.Failed, err)
	// Output:
	// passed finds inserted documents
	// 1 0 <nil>
}
