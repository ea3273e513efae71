// Package driver implements an engine with the official Go driver (go.mongodb.org/mongo-driver/v2). It converts
// entities and operations of the format to calls of the driver's public API, and their results to outcomes and
// events.
//
// The package does not change the behavior of the driver: it never retries, times out or corrects anything itself. An
// argument, option or operation that the driver does not have is never ignored: it is rejected with a *result.Error
// that names it as Unsupported, so that the test is skipped.
package driver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/version"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

// New returns the engine. The functions in change are called last, concurrently, and
// modify the options of each client before it connects.
func New(change ...func(*options.ClientOptions)) engine.Engine {
	d := &driver{table: enginekit.NewTable(rows()), change: change}
	d.NewTest = func() engine.Test {
		return &test{driver: d, Test: enginekit.Test{Unsupported: unsupported, Make: d.make, CloseEntity: closeEntity}}
	}
	d.Description = engine.Description{
		Name:          "driver",
		Version:       version.Driver,
		SchemaVersion: enginekit.SchemaVersion,
		Operations:    d.table.Names(),
		Lacks: map[string]string{
			"client.listDatabaseObjects":     "the Go driver has no method that returns the databases as *mongo.Database",
			"collection.count":               "the Go driver has no Collection.Count, and EstimatedDocumentCount has no filter",
			"collection.mapReduce":           "the Go driver has no Collection.MapReduce",
			"database.listCollectionObjects": "the Go driver has no method that returns the collections as *mongo.Collection",
		},
		Features: []string{"client backpressure", "csot", "retryable reads", "retryable writes", "sessions", "transactions"},
	}
	return d
}

// driver is the engine.
type driver struct {
	enginekit.Engine
	table  enginekit.Table[row]
	change []func(*options.ClientOptions)
}

// test holds the entities of one test.
type test struct {
	enginekit.Test // entities: *client, *database, *collection, *session, *bucket, *entityCursor
	driver         *driver
}

// database is a database entity. The driver cannot clone a database with other options, so they are kept.
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

func (d *driver) make(_ context.Context, e engine.Entity, parent any) (any, error) {
	text := func(field string) string { s, _ := e.Options.Lookup(field).StringValueOK(); return s }
	switch entities.Kind(e.Kind) {
	case entities.Client:
		return newClient(d, e.URI, e.Options)
	case entities.Session:
		return openSession(parent.(*client), e)
	case entities.Database:
		c := parent.(*client)
		o, err := section[options.DatabaseOptions](e.Options, "databaseOptions")
		return &database{Database: c.Database(text("databaseName"), given(o)), client: c, options: o}, err
	case entities.Collection:
		db := parent.(*database)
		o, err := section[options.CollectionOptions](e.Options, "collectionOptions")
		return &collection{Collection: db.Collection(text("collectionName"), given(o)), db: db}, err
	default:
		db := parent.(*database)
		o, err := section[options.BucketOptions](e.Options, "bucketOptions")
		return &bucket{GridFSBucket: db.GridFSBucket(given(o)), client: db.client}, err
	}
}

// closeEntity closes an entity if it can be closed. Errors are ignored, as the format requires for cursors.
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
