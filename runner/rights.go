package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/wire"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// rightsCollection does not exist, and no command of CheckRights creates it.
const rightsCollection = "utr.doctor"

// CheckRights tries what a run of the suites requires of the user of an existing deployment: to read whether test
// commands are enabled, and to drop collections in each database of initialData, or without suites in any one. It
// changes nothing, so that another run may use the deployment. The error names the missing right.
func CheckRights(ctx context.Context, suites []*specs.Suite, cfg Config) error {
	r, err := prepare(ctx, cfg)
	if err != nil {
		return err
	}
	for i, offer := range r.offers {
		if len(offer.Hosts) == 0 { // it is not created yet
			continue
		}
		d, err := cfg.Source.Acquire(ctx, i)
		if err != nil {
			return err
		}
		err = r.checkRights(ctx, d, suites)
		cfg.Source.Release(d, false)
		if err != nil {
			return fmt.Errorf("the deployment (%s) cannot be used: %w", offer.Name, err)
		}
	}
	return nil
}

func (r *run) checkRights(ctx context.Context, d deployment.Deployment, suites []*specs.Suite) error {
	if d.Owned() {
		return nil
	}
	c, err := r.dial(d)
	if err != nil {
		return err
	}
	defer c.close()
	s := &site{deployment: d, about: d.Description(), commands: c}
	if err := s.requireTestCommands(ctx); err != nil {
		return err
	}
	var databases []string
	for _, namespace := range DropPlan(suites) {
		database, _, _ := strings.Cut(namespace, ".")
		databases = append(databases, database)
	}
	if len(suites) == 0 {
		databases = []string{"utr"}
	}
	for _, database := range slices.Compact(databases) {
		_, err := retried(ctx, func() (bson.Raw, error) {
			return s.run(ctx, defaultServer, database, bson.D{{Key: "drop", Value: rightsCollection}})
		})
		switch wire.CodeOf(err) {
		case codeUnauthorized:
			return fmt.Errorf("the user of the connection string may not drop collections of the database %s, which requires a role such as root: %w", database, err)
		case 0:
			if err != nil {
				return err
			}
		}
	}
	return nil
}
