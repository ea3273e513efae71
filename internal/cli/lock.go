package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
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

// cluster completes the options of an existing deployment: the run locks it, and ends
// if the lock is lost.
func (l *lockFlags) cluster(c *call, o deployment.ClusterOptions, lost context.CancelCauseFunc) deployment.ClusterOptions {
	o.Lock = &deployment.LockOptions{Name: *l.name, Wait: *l.wait, Lost: func(err error) { lost(err) }}
	o.Note = func(line string) { c.note(line) }
	return o
}

// lockedSource removes the lock from the ledger once it is released.
type lockedSource struct {
	deployment.Source
	gone func() error
}

// open opens an existing deployment, and records its lock in the ledger: after a run
// that was killed, utr clean removes the lock and turns off fail points. Without a
// ledger the run continues, since a lock expires.
func (l *lockFlags) open(ctx context.Context, c *call, o deployment.ClusterOptions, lost context.CancelCauseFunc) (deployment.Source, error) {
	gone := func() error { return nil }
	book, err := c.runLedger()
	if err == nil {
		gone, err = book.Add(ledger.Entry{Kind: ledger.Lock, URI: secret.Hide(o.URI), Name: deployment.LockDatabase + "." + deployment.LockCollection})
	}
	if err != nil {
		c.note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
		gone = func() error { return nil }
	}
	source, err := c.program.Cluster(ctx, l.cluster(c, o, lost))
	if err != nil {
		return nil, errors.Join(err, gone())
	}
	return &lockedSource{source, gone}, nil
}

// Close releases the lock. A lock that cannot be removed stays in the ledger.
func (s *lockedSource) Close() error {
	if err := s.Source.Close(); err != nil {
		return err
	}
	return s.gone()
}
