package driver

import (
	"context"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// test holds the entities of one test.
type test struct {
	enginekit.Test // of *client, *database, *collection, *session, *bucket, iterator
	driver         *driver
}

func newTest(d *driver) *test {
	t := &test{driver: d}
	t.Test = enginekit.Test{Fields: fields(), Unsupported: unsupported, Make: t.make, KindOf: kindOf, CloseEntity: closeEntity, LogOf: logOf,
		Ended: func() { d.open.Forget(t) }}
	return t
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
func fields() map[string][]string {
	return map[string][]string{
		"client": {"awaitMinPoolSizeMS", "id", "ignoreCommandMonitoringEvents", "observeEvents", "observeSensitiveCommands",
			"serverApi", "storeEventsAsEntities", "uriOptions", "useMultipleMongoses"},
		"database":   {"client", "databaseName", "databaseOptions", "id"},
		"collection": {"collectionName", "collectionOptions", "database", "id"},
		"session":    {"client", "id", "sessionOptions"},
		"bucket":     {"bucketOptions", "database", "id"},
	}
}

func (t *test) make(_ context.Context, e engine.Entity) (any, error) {
	text := func(field string) string { s, _ := e.Options.Lookup(field).StringValueOK(); return s }
	switch e.Kind {
	case "client":
		return newClient(t.driver, e.URI, e.Options)
	case "session":
		c, err := enginekit.Named[*client](&t.Entities, e.Options, "client")
		if err != nil {
			return nil, err
		}
		return openSession(c, e.Options.Lookup("sessionOptions"), e.ClusterTime)
	case "database":
		c, err := enginekit.Named[*client](&t.Entities, e.Options, "client")
		if err != nil {
			return nil, err
		}
		o, err := checked[options.DatabaseOptions]("databaseOptions", e.Options.Lookup("databaseOptions"))
		if err != nil {
			return nil, err
		}
		return &database{Database: c.Database(text("databaseName"), o), client: c, options: o}, nil
	}
	d, err := enginekit.Named[*database](&t.Entities, e.Options, "database")
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

func logOf(e any) (*enginekit.EventLog, bool) {
	c, ok := e.(*client)
	if !ok {
		return nil, false
	}
	return c.log, true
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
