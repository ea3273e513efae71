package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// test holds the entities of one test.
type test struct {
	driver   *driver
	entities enginekit.Entities // *client, *database, *collection, *session, *bucket, iterator
}

// database is a database entity. The driver cannot copy one with other
// options, so these are kept.
type database struct {
	*mongo.Database
	client  *client
	options options.Lister[options.DatabaseOptions]
}

// collection is a collection entity.
type collection struct {
	*mongo.Collection
	db *database
}

// bucket is a GridFS bucket entity.
type bucket struct {
	*mongo.GridFSBucket
	client *client
}

// fields lists what an entity's document may hold. What of a client is the
// runner's matter (which events a test sees) has no effect here.
func fields(kind string) []string {
	return map[string][]string{
		"client": {"awaitMinPoolSizeMS", "id", "ignoreCommandMonitoringEvents", "observeEvents", "observeSensitiveCommands",
			"serverApi", "storeEventsAsEntities", "uriOptions", "useMultipleMongoses"},
		"database":   {"client", "databaseName", "databaseOptions", "id"},
		"collection": {"collectionName", "collectionOptions", "database", "id"},
		"session":    {"client", "id", "sessionOptions"},
		"bucket":     {"bucketOptions", "database", "id"},
	}[kind]
}

// Open creates an entity.
func (t *test) Open(_ context.Context, e engine.Entity) error {
	known := fields(e.Kind)
	if known == nil {
		return unsupported("entity " + e.Kind)
	}
	elements, err := e.Options.Elements()
	if err != nil {
		return fmt.Errorf("entity %q: %w", e.ID, err)
	}
	for _, el := range elements {
		if !slices.Contains(known, el.Key()) {
			return unsupported("option " + el.Key() + " of a " + e.Kind)
		}
	}
	made, err := t.make(e)
	if err != nil {
		var already *result.Error
		if errors.As(err, &already) {
			return already
		}
		return argument("entity %q: %v", e.ID, err)
	}
	if err := t.entities.Put(e.ID, made); err != nil {
		if c, ok := made.(*client); ok {
			c.close()
		}
		return err
	}
	return nil
}

func (t *test) make(e engine.Entity) (any, error) {
	text := func(field string) string { s, _ := e.Options.Lookup(field).StringValueOK(); return s }
	switch e.Kind {
	case "client":
		return newClient(t.driver, e.URI, e.Options)
	case "session":
		c, err := enginekit.Named[*client](&t.entities, e.Options, "client")
		if err != nil {
			return nil, err
		}
		return openSession(c, e.Options.Lookup("sessionOptions"), e.ClusterTime)
	case "database":
		c, err := enginekit.Named[*client](&t.entities, e.Options, "client")
		if err != nil {
			return nil, err
		}
		o, err := checked[options.DatabaseOptions]("databaseOptions", e.Options.Lookup("databaseOptions"))
		if err != nil {
			return nil, err
		}
		return &database{Database: c.Database(text("databaseName"), o), client: c, options: o}, nil
	}
	d, err := enginekit.Named[*database](&t.entities, e.Options, "database")
	if err != nil {
		return nil, err
	}
	if e.Kind == "collection" {
		o, err := checked[options.CollectionOptions]("collectionOptions", e.Options.Lookup("collectionOptions"))
		if err != nil {
			return nil, err
		}
		return &collection{Collection: d.Collection(text("collectionName"), o), db: d}, nil
	}
	o, err := checked[options.BucketOptions]("bucketOptions", e.Options.Lookup("bucketOptions"))
	if err != nil {
		return nil, err
	}
	return &bucket{GridFSBucket: d.GridFSBucket(o), client: d.client}, nil
}

// Events reads the log of a client.
func (t *test) Events(ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error) {
	e, err := t.entities.Get(id)
	if err != nil {
		return nil, err
	}
	c, ok := e.(*client)
	if !ok {
		return nil, fmt.Errorf("entity %q is no client", id)
	}
	return c.log.After(ctx, after, wait)
}

// Close closes one entity. It stays known: closing again is no error, and the
// events of a client can still be read.
func (t *test) Close(ctx context.Context, id string) error {
	e, err := t.entities.Get(id)
	if err != nil {
		return err
	}
	closeEntity(ctx, e)
	return nil
}

// closeEntity ends what has an end. What goes wrong with it is of no interest
// any more, as the format has it for cursors.
func closeEntity(ctx context.Context, e any) {
	ctx, cancel := undated(ctx)
	defer cancel()
	switch e := e.(type) {
	case iterator:
		_ = e.close(ctx)
	case *session:
		e.end(ctx)
	case *client:
		e.close()
	}
}

// End closes cursors before sessions before clients.
func (t *test) End(ctx context.Context) error {
	t.entities.End(kindOf, func(e any) { closeEntity(ctx, e) })
	t.driver.open.Forget(t)
	return nil
}

// kindOf gives the operations' kind of an entity.
func kindOf(e any) operations.Kind {
	switch e.(type) {
	case *client:
		return operations.Client
	case *database:
		return operations.Database
	case *collection:
		return operations.Collection
	case *session:
		return operations.Session
	case *bucket:
		return operations.Bucket
	default:
		return operations.Cursor
	}
}
