package cli

import (
	"context"
	"fmt"

	"github.com/unified-test-runner/utr/deployment"
)

// openCluster opens an existing deployment, and records its lock in the ledger: after a run
// that was killed, utr clean removes the lock and turns off fail points. Without a
// ledger the run continues, since a lock expires.
func (c *call) openCluster(ctx context.Context, o deployment.ClusterOptions) (_ deployment.Source, err error) {
	if o.Ledger, err = c.runLedger(); err != nil {
		c.note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
	}
	return c.program.Cluster(ctx, o)
}
