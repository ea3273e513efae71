package reference

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

var raw = testkit.Raw // a document in BSON

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a test of the engine with an open client, database, collection and bucket.
type bench struct {
	engine.Test
	t        testing.TB
	uri      string
	callback func() *result.Error // of withTransaction
}

// open returns a bench of a new engine.
func open(t testing.TB, uri string, o Options, client bson.D) *bench {
	t.Helper()
	e, err := New(o)
	testkit.Check(t, err)
	return openOn(t, e, uri, client)
}

func openOn(t testing.TB, e engine.Engine, uri string, client bson.D) *bench {
	t.Helper()
	test, err := e.Begin(t.Context())
	testkit.Check(t, err)
	b := &bench{test, t, uri, nil}
	t.Cleanup(func() {
		testkit.Check(t, test.End(testkit.Context(t)))
		_ = e.Close()
	})
	b.entity("client", "client", client)
	b.entity("database", "database", d("client", "client", "databaseName", "db"))
	b.entity("collection", "collection", d("database", "database", "collectionName", "coll"))
	b.entity("bucket", "bucket", d("database", "database"))
	return b
}

func (b *bench) entity(kind, id string, options bson.D) {
	b.t.Helper()
	testkit.Check(b.t, b.Open(b.t.Context(),
		engine.Entity{Kind: kind, ID: id, URI: b.uri, Options: raw(b.t, append(d("id", id), options...))}))
}

// do performs an operation. It saves a created cursor or change stream as "saved".
func (b *bench) do(object, name string, args bson.D) result.Outcome {
	b.t.Helper()
	op := engine.Operation{Object: object, Name: name, Arguments: raw(b.t, append(bson.D{}, args...))}
	switch name {
	case "withTransaction":
		op.Callback = func(context.Context) *result.Error { return b.callback() }
	case "createFindCursor", "createChangeStream":
		op.SaveAs = "saved"
	}
	return b.Do(b.t.Context(), op)
}

// must performs an operation that succeeds, and returns its result.
func (b *bench) must(object, name string, args bson.D) bson.RawValue {
	b.t.Helper()
	out := b.do(object, name, args)
	if out.Err != nil {
		b.t.Fatalf("%s: %v", name, out.Err)
	}
	return out.Value.RawValue
}

func (b *bench) events(client string) []result.Event {
	b.t.Helper()
	events, err := b.Events(b.t.Context(), client, 0, 0)
	testkit.Check(b.t, err)
	return events
}
