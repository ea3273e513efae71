package cli

import (
	"context"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
)

// New gives a Program with every engine and deployment of this project.
// Streams and environment are the caller's to fill in.
func New() *Program {
	return &Program{
		Version: Version(),
		Engines: map[string]NewEngine{
			referenceEngine: func(o reference.Options) (engine.Engine, error) { return reference.New(o) },
			"driver":        withoutOptions("driver", func() (engine.Engine, error) { return driver.New(), nil }),
		},
		Open:  open,
		Serve: func(ctx context.Context, o embedded.Options) (Server, error) { return embedded.Start(ctx, o) },
		Run:   runner.Run,
		Child: spawn,
		Build: build,
	}
}

// open is Program.Open.
func open(ctx context.Context, options any) (deployment.Source, error) {
	switch o := options.(type) {
	case deployment.ClusterOptions:
		return deployment.OpenCluster(ctx, o)
	case deployment.OrchestrationOptions:
		return deployment.OpenOrchestration(ctx, o)
	case deployment.LocalOptions:
		return deployment.OpenLocal(ctx, o)
	default:
		return deployment.OpenEmbedded(ctx, options.(deployment.EmbeddedOptions))
	}
}
