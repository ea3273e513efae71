package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/deployment"
)

// lockFlags say how a run takes the lock of a deployment that it did not
// start.
type lockFlags struct {
	wait *time.Duration
	name *string
}

func (f *flags) lock() *lockFlags {
	return &lockFlags{
		wait: f.duration("wait-for-lock", "with --uri: how long to wait for another run that uses the deployment (default: refuse at once)"),
		name: f.text("lock-name", "NAME", "", "with --uri: what the lock in the deployment tells others of this run, such as the URL of a CI job"),
	}
}

// cluster completes the options of a deployment of somebody else: it is locked
// for the run, which ends where the lock is lost.
func (l *lockFlags) cluster(c *call, o deployment.ClusterOptions, lost context.CancelCauseFunc) deployment.ClusterOptions {
	o.Lock = &deployment.LockOptions{Name: *l.name, Wait: *l.wait, Lost: func(err error) { lost(err) }}
	o.Note = func(line string) { _, _ = fmt.Fprintf(c.errors, "utr: %s\n", line) }
	return o
}
