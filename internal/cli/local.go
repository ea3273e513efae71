package cli

import (
	"context"
	"slices"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/specs"
)

// LocalSource is a source of clusters that this machine's binaries make.
type LocalSource interface {
	deployment.Source
	// KeepLogs has the logs of the servers outlive the source.
	KeepLogs()
}

// localFlags configure clusters of local mongod and mongos processes.
type localFlags struct {
	deployment.LocalOptions
	opened LocalSource
}

func (l *localFlags) declare(f *flags) {
	l.Shards = 1
	f.text(&l.Where, "local", "DIR|PATH",
		"run on clusters of the mongod and mongos binaries in this folder, or of this mongod; a bare name is looked up in $PATH")
	f.within(&l.Shards, "local-shards", "N", 1, maxLocalShards, "with --local: shards of a sharded cluster")
}

// maxLocalShards is more than one machine can run.
const maxLocalShards = 16

// source opens the clusters, which start when tests need them.
func (l *localFlags) source(ctx context.Context, c *call, r *runFlags, suites []*specs.Suite) (_ deployment.Source, err error) {
	o := l.LocalOptions
	o.EmbeddedOptions = r.deployment.options()
	o.Version = "" // the binaries have their own
	if o.Ledger, err = c.runLedger(); err != nil {
		return nil, err
	}
	o.URIOptions, o.Jobs, o.Parameters, o.Note, o.Secret = r.uriOptions, r.config.Jobs, asksParameters(suites), c.note, c.secrets.Learn
	if l.opened, err = c.program.Local(ctx, o); err != nil {
		return nil, err
	}
	return l.opened, nil
}

// keep keeps the logs of the servers if something failed, unless the run was
// interrupted.
func (l *localFlags) keep(ctx context.Context, err error) {
	if l.opened == nil || ctx.Err() != nil {
		return
	}
	if code := codeOf(err); code == ExitBroken || code == ExitFailed {
		l.opened.KeepLogs()
	}
}

// asksParameters reports whether a requirement depends on parameters of the running
// server.
func asksParameters(suites []*specs.Suite) bool {
	asks := func(r specs.Requirement) bool { return r.ServerParameters != nil || r.AuthMechanism != "" }
	return slices.ContainsFunc(suites, func(s *specs.Suite) bool {
		return slices.ContainsFunc(s.Requirements, asks) || slices.ContainsFunc(s.Tests, func(t *specs.Test) bool {
			return slices.ContainsFunc(t.Requirements, asks)
		})
	})
}
