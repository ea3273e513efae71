package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
)

// lockFlags say how a run locks a deployment that it did not start.
type lockFlags struct {
	wait *time.Duration
	name *string
}

func (f *flags) lock() *lockFlags {
	return &lockFlags{
		wait: f.duration("wait-for-lock", "with --uri: how long to wait for another run that uses the deployment (default not at all)"),
		name: f.text("lock-name", "NAME", "",
			"with --uri: name of this run for others that find the deployment locked, such as the URL of a CI job"),
	}
}

// options say that the run locks an existing deployment, and ends if the lock is lost.
func (l *lockFlags) options(lost context.CancelCauseFunc) *lock.Options {
	return &lock.Options{Name: *l.name, Wait: *l.wait, Lost: func(err error) { lost(err) }}
}

// open opens an existing deployment, and records its lock in the ledger: after a run
// that was killed, utr clean removes the lock and turns off fail points. Without a
// ledger the run continues, since a lock expires.
func (l *lockFlags) open(ctx context.Context, c *call, o deployment.ClusterOptions, lost context.CancelCauseFunc) (_ deployment.Source, err error) {
	if o.Ledger, err = c.runLedger(); err != nil {
		c.note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
	}
	o.Lock, o.Note = l.options(lost), c.note
	return c.program.Cluster(ctx, o)
}
