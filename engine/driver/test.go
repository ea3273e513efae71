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
	enginekit.Test // of *client, *database, *collection, *session, *bucket, *entityCursor
	driver         *driver
}

func newTest(d *driver) *test {
	t := &test{driver: d}
	t.Test = enginekit.Test{Unsupported: unsupported, Make: t.make, CloseEntity: closeEntity}
	return t
}

// database is a database entity. The driver cannot copy one with other
// options, so these are kept.
type database struct {
	*mongo.Database
	client  *client
	options options.DatabaseOptions
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

func (t *test) make(_ context.Context, e engine.Entity, parent any) (any, error) {
	text := func(field string) string { s, _ := e.Options.Lookup(field).StringValueOK(); return s }
	switch operations.Kind(e.Kind) {
	case operations.Client:
		return newClient(t.driver, e.URI, e.Options)
	case operations.Session:
		return openSession(parent.(*client), e.Options.Lookup("sessionOptions"), e.ClusterTime)
	case operations.Database:
		c := parent.(*client)
		o, err := section[options.DatabaseOptions](e.Options, "databaseOptions")
		return &database{Database: c.Database(text("databaseName"), given(o)), client: c, options: o}, err
	case operations.Collection:
		d := parent.(*database)
		o, err := section[options.CollectionOptions](e.Options, "collectionOptions")
		return &collection{Collection: d.Collection(text("collectionName"), given(o)), db: d}, err
	default:
		d := parent.(*database)
		o, err := section[options.BucketOptions](e.Options, "bucketOptions")
		return &bucket{GridFSBucket: d.GridFSBucket(given(o)), client: d.client}, err
	}
}

// closeEntity ends what has an end. What goes wrong with it is of no interest
// any more, as the format has it for cursors.
func closeEntity(ctx context.Context, e any) {
	ctx, cancel := undated(ctx)
	defer cancel()
	switch e := e.(type) {
	case *entityCursor:
		_ = e.close(ctx)
	case *session:
		e.end(ctx)
	case *client:
		e.close()
	}
}
