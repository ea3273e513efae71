package cli

import (
	"context"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
)

// New gives a Program with every engine and deployment of this project.
// Streams and environment are the caller's to fill in.
func New() *Program {
	return &Program{
		Version: Version(),
		Engines: map[string]NewEngine{
			"reference": func(o EngineOptions) (engine.Engine, error) {
				return reference.New(reference.Options{Policy: o.Policy})
			},
		},
		Embedded: deployment.OpenEmbedded,
		Cluster:  deployment.OpenCluster,
		Serve:    func(ctx context.Context, o embedded.Options) (Server, error) { return embedded.Start(ctx, o) },
		Run:      runner.Run,
	}
}
