package cli

import (
	"cmp"
	"context"
	"io"
	"runtime/debug"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/program/internal/night"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// Program is the configuration of the command line. Main may be called concurrently if the streams allow it.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Terminal       func() (columns int, ok bool) // whether standard output is a terminal, and its width
	Machine        func() Machine
	Version        string               // of this binary
	Commit         string               // that it was built from, or ""
	Engines        map[string]NewEngine // drivers under test by name
	// Child runs a cell of a matrix.
	Child func(context.Context, night.Child) (pid, code int, err error)
	Build func() (string, error) // identifies this binary: two builds of the same version differ
	// Open opens a source of deployments. Its options are EmbeddedOptions, ClusterOptions, LocalOptions or
	// OrchestrationOptions of package deployment.
	Open func(ctx context.Context, options any) (deployment.Source, error)
	// Run is runner.Run except in tests.
	Run func(context.Context, []*specs.Suite, runner.Config) (result.Summary, error)
	// Claim is runner.Claim except in tests.
	Claim func(context.Context, []*specs.Suite, runner.Config, bool) error
	// Serve starts an embedded deployment.
	Serve func(context.Context, embedded.Options) (Server, error)
}

// New returns a Program with every engine and deployment of this project. Its environment is empty, and the caller
// sets the streams.
func New() *Program {
	return &Program{
		Getenv:   func(string) string { return "" },
		Terminal: func() (int, bool) { return 0, false },
		Machine:  thisMachine,
		Version:  Version(),
		Commit:   commit(),
		Engines: map[string]NewEngine{
			referenceEngine: func(o reference.Options) (engine.Engine, error) { return reference.New(o) },
			"driver":        withoutOptions("driver", func() (engine.Engine, error) { return driver.New(), nil }),
		},
		Open:  open,
		Serve: func(ctx context.Context, o embedded.Options) (Server, error) { return embedded.Start(ctx, o) },
		Run:   runner.Run,
		Claim: runner.Claim,
		Child: night.RunChild,
		Build: buildID,
	}
}

func open(ctx context.Context, options any) (deployment.Source, error) {
	switch o := options.(type) {
	case deployment.ClusterOptions:
		return deployment.OpenCluster(ctx, o)
	case deployment.OrchestrationOptions:
		return deployment.OpenOrchestration(ctx, o)
	case deployment.LocalOptions:
		return deployment.OpenLocal(ctx, o)
	default:
		return deployment.OpenEmbedded(options.(deployment.EmbeddedOptions))
	}
}

// Version is the version of utr in this binary. That of a build in a checkout names the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/unified-test-runner/utr" {
			return dependency.Version
		}
	}
	return cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
}

// commit is the commit of the checkout in which this binary was built, or "".
func commit() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil || info.Main.Path != "github.com/unified-test-runner/utr" { // another program that contains utr
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
