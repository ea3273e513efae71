package runner

import (
	"context"
	"slices"

	"github.com/unified-test-runner/utr/deployment/wire"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// assertCollection lists collections through the internal client
// ("assertCollectionExists", "assertCollectionNotExists").
func assertCollection(want bool) special {
	return func(ctx context.Context, t *testRun, c call) *fault {
		name := c.text("collectionName")
		return t.assertListed(ctx, c, want, "the collection "+c.text("databaseName")+"."+name, name, bson.D{
			{Key: "listCollections", Value: 1},
			{Key: "filter", Value: bson.D{{Key: "name", Value: name}}},
			{Key: "nameOnly", Value: true},
		})
	}
}

// assertIndex lists indexes through the internal client ("assertIndexExists",
// "assertIndexNotExists"). A collection that does not exist has none.
func assertIndex(want bool) special {
	return func(ctx context.Context, t *testRun, c call) *fault {
		collection, name := c.text("collectionName"), c.text("indexName")
		what := "the index " + name + " of " + c.text("databaseName") + "." + collection
		return t.assertListed(ctx, c, want, what, name, bson.D{{Key: "listIndexes", Value: collection}})
	}
}

// assertListed asserts whether a command lists a document of a name.
func (t *testRun) assertListed(ctx context.Context, c call, want bool, what, name string, command bson.D) *fault {
	listed, err := t.site.commands.list(ctx, byDefault, c.text("databaseName"), command)
	if f := ended(ctx, c.path, c.op.Position, command[0].Key); f != nil {
		return f
	}
	if err != nil && wire.CodeOf(err) != codeNamespaceNotFound {
		return breakf("%s: %w", c.op.Name, err)
	}
	exists := slices.ContainsFunc(listed, func(document bson.Raw) bool {
		n, _ := document.Lookup("name").StringValueOK()
		return n == name
	})
	return c.expect(want, exists, what+" exists", what+" does not exist")
}
