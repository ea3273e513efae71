package runner

import (
	"context"
	"slices"

	"github.com/unified-test-runner/utr/deployment"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// assertCollection lists collections through the internal client
// ("assertCollectionExists", "assertCollectionNotExists").
func assertCollection(want bool) func(context.Context, *testRun, call) *fault {
	return func(ctx context.Context, t *testRun, c call) *fault {
		database, name := c.text("databaseName"), c.text("collectionName")
		found, err := t.site.batch(ctx, database, bson.D{
			{Key: "listCollections", Value: 1},
			{Key: "filter", Value: bson.D{{Key: "name", Value: name}}},
			{Key: "nameOnly", Value: true},
		})
		if f := ended(ctx, c.path, c.op.Position, "listCollections"); f != nil {
			return f
		}
		switch exists := len(found) > 0; {
		case err != nil:
			return breakf("%s: %w", c.op.Name, err)
		case exists && !want:
			return c.failf("there is a collection %s.%s", database, name)
		case !exists && want:
			return c.failf("there is no collection %s.%s", database, name)
		}
		return nil
	}
}

// assertIndex lists indexes through the internal client ("assertIndexExists",
// "assertIndexNotExists"). A collection that is not there has none.
func assertIndex(want bool) func(context.Context, *testRun, call) *fault {
	return func(ctx context.Context, t *testRun, c call) *fault {
		database, collection, name := c.text("databaseName"), c.text("collectionName"), c.text("indexName")
		indexes, err := t.site.batch(ctx, database, bson.D{{Key: "listIndexes", Value: collection}})
		if f := ended(ctx, c.path, c.op.Position, "listIndexes"); f != nil {
			return f
		}
		if err != nil && deployment.CodeOf(err) != codeNamespaceNotFound {
			return breakf("%s: %w", c.op.Name, err)
		}
		exists := slices.ContainsFunc(indexes, func(index bson.Raw) bool {
			n, _ := index.Lookup("name").StringValueOK()
			return n == name
		})
		switch {
		case exists && !want:
			return c.failf("there is an index %s on %s.%s", name, database, collection)
		case !exists && want:
			return c.failf("there is no index %s on %s.%s", name, database, collection)
		}
		return nil
	}
}
