package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/specs"
)

// usedCollection, in the database of the lock, has a document for each collection that runs have used: its _id is the
// namespace.
const usedCollection = "used"

// ForeignError means that collections that suites name contain documents that no run of utr wrote.
type ForeignError struct {
	Hosts      []string
	Namespaces []string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the deployment at %s has documents that utr did not write, in collections that the suites name: %s",
		strings.Join(e.Hosts, ","), strings.Join(e.Namespaces, ", "))
}

// Claim records that a run of the suites uses the collections that they name, on each existing deployment of the
// source. The error names a missing right, as CheckRights does. Unless overwrite is set, it is a *ForeignError if one
// of the collections contains documents and no earlier run used it. After an error, nothing is changed.
func Claim(ctx context.Context, suites []*specs.Suite, cfg Config, overwrite bool) error {
	all := Namespaces(suites)
	if len(all) == 0 {
		return nil
	}
	return eachExisting(ctx, cfg, func(s *site) error {
		fresh, err := s.checkRights(ctx, all, overwrite)
		if err != nil {
			return err
		}
		return s.use(ctx, fresh)
	})
}

// eachExisting calls a function with each deployment of the source that already exists.
func eachExisting(ctx context.Context, cfg Config, do func(*site) error) error {
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
		err = r.onExisting(d, do)
		cfg.Source.Release(d, false)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) onExisting(d deployment.Deployment, do func(*site) error) error {
	if d.Owned() {
		return nil
	}
	c, err := r.dial(d)
	if err != nil {
		return err
	}
	defer c.close()
	return do(&site{servers: new(servers), deployment: d, about: d.Description(), commands: c})
}

// claim returns the namespaces that no run has used yet. It changes nothing.
func (s *site) claim(ctx context.Context, namespaces []string, overwrite bool) (fresh []string, err error) {
	used, err := s.listed(ctx, lock.Database, bson.D{{Key: "find", Value: usedCollection}})
	if err != nil && direct.CodeOf(err) != codes.Unauthorized {
		return nil, err
	}
	var foreign []string
	for database, collections := range byDatabase(namespaces) {
		existing, err := s.listed(ctx, database, bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true}})
		if err != nil {
			return nil, fmt.Errorf("the collections of the database %s cannot be listed: %w", database, err)
		}
		for _, name := range existing {
			namespace := database + "." + name
			touched := slices.Contains(collections, name) || slices.Contains(collections, wholeDatabase)
			if !touched || slices.Contains(used, namespace) || serverOwned(name) {
				continue
			}
			if found, err := s.holdsDocuments(ctx, database, name); err != nil {
				return nil, err
			} else if found {
				foreign = append(foreign, namespace)
			}
		}
		for _, name := range collections {
			if namespace := database + "." + name; name != wholeDatabase && !slices.Contains(used, namespace) {
				fresh = append(fresh, namespace)
			}
		}
	}
	if slices.Sort(foreign); len(foreign) > 0 && !overwrite {
		return nil, &ForeignError{Hosts: s.about.Servers, Namespaces: foreign}
	}
	slices.Sort(fresh)
	return slices.Compact(slices.Concat(fresh, foreign)), nil
}

// byDatabase returns the collections of namespaces by database.
func byDatabase(namespaces []string) map[string][]string {
	all := map[string][]string{}
	for _, namespace := range namespaces {
		database, collection, _ := strings.Cut(namespace, ".")
		all[database] = append(all[database], collection)
	}
	return all
}

// listed returns the names or _ids in a cursor.
func (s *site) listed(ctx context.Context, database string, command bson.D) (names []string, err error) {
	all, err := retried(ctx, func() ([]bson.Raw, error) { return s.commands.list(ctx, defaultServer, database, command) })
	for _, one := range all {
		for _, key := range []string{"name", "_id"} {
			if name, is := one.Lookup(key).StringValueOK(); is {
				names = append(names, name)
			}
		}
	}
	return names, err
}

func (s *site) holdsDocuments(ctx context.Context, database, collection string) (bool, error) {
	found, err := retried(ctx, func() ([]bson.Raw, error) {
		return s.commands.list(ctx, defaultServer, database,
			bson.D{{Key: "find", Value: collection}, {Key: "limit", Value: 1}})
	})
	return len(found) > 0, err
}

// use records namespaces. If the user may not write the record, each run needs permission to overwrite the collections
// of the last one.
func (s *site) use(ctx context.Context, namespaces []string) error {
	if len(namespaces) == 0 {
		return nil
	}
	var updates bson.A
	for _, namespace := range namespaces {
		id := bson.D{{Key: "_id", Value: namespace}}
		updates = append(updates, bson.D{{Key: "q", Value: id}, {Key: "u", Value: id}, {Key: "upsert", Value: true}})
	}
	_, err := retried(ctx, func() (any, error) {
		return nil, s.write(ctx, lock.Database,
			bson.D{{Key: "update", Value: usedCollection}, {Key: "updates", Value: updates}})
	})
	if direct.CodeOf(err) == codes.Unauthorized {
		return nil
	}
	return err
}
