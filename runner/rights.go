package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/specs"
)

// rightsCollection does not exist, and no command of CheckRights creates it.
const rightsCollection = "utr.doctor"

// CheckRights checks that the user of an existing deployment may do what a run of the suites requires: read whether
// test commands are enabled, and drop collections in each database that the suites name. Without suites, it checks any
// database. The error names the missing right. It is a *ForeignError if Claim would return one. CheckRights changes
// nothing: another run may use the deployment.
func CheckRights(ctx context.Context, suites []*specs.Suite, cfg Config, overwrite bool) error {
	return eachExisting(ctx, cfg, func(s *site) error {
		_, err := s.checkRights(ctx, Namespaces(suites), overwrite)
		return err
	})
}

// checkRights returns the namespaces that no run has used yet.
func (s *site) checkRights(ctx context.Context, namespaces []string, overwrite bool) (fresh []string, err error) {
	if err = s.requireTestCommands(ctx); err == nil {
		err = s.mayDrop(ctx, namespaces)
	}
	if err != nil {
		return nil, fmt.Errorf("the deployment (%s) cannot be used: %w", s.about.Name, err)
	}
	return s.claim(ctx, namespaces, overwrite)
}

func (s *site) mayDrop(ctx context.Context, namespaces []string) error {
	databases := slices.Sorted(maps.Keys(byDatabase(namespaces)))
	if len(databases) == 0 {
		databases = []string{lock.Database}
	}
	for _, database := range databases {
		_, err := retried(ctx, func() (bson.Raw, error) {
			return s.run(ctx, defaultServer, database, bson.D{{Key: "drop", Value: rightsCollection}})
		})
		switch {
		case direct.CodeOf(err) == codes.Unauthorized:
			return fmt.Errorf("the user of the connection string may not drop collections of the database %s, which requires a role such as root: %w", database, err)
		case err != nil && !direct.Refused(err):
			return err
		}
	}
	return nil
}
