package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
)

// lockedSource removes the lock from the ledger once it is released.
type lockedSource struct {
	deployment.Source
	gone func() error
}

// openCluster opens an existing deployment, and records its lock in the ledger: after a run
// that was killed, utr clean removes the lock and turns off fail points. Without a
// ledger the run continues, since a lock expires.
func (c *call) openCluster(ctx context.Context, o deployment.ClusterOptions) (deployment.Source, error) {
	gone := func() error { return nil }
	book, err := c.runLedger()
	if err == nil {
		gone, err = book.Add(ledger.Entry{Kind: ledger.Lock, URI: secret.Hide(o.URI), Name: deployment.LockDatabase + "." + deployment.LockCollection})
	}
	if err != nil {
		c.note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
		gone = func() error { return nil }
	}
	source, err := c.program.Cluster(ctx, o)
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
