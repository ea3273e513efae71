package engine_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/result"
)

// What the runner does with an engine: it begins a test, opens entities, performs an operation, and reads the events.
func Example() {
	ctx := context.Background()
	deployment, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = deployment.Close() }()
	test, err := driver.New().Begin(ctx)
	if err != nil {
		panic(err)
	}
	defer func() { _ = test.End(ctx) }()
	for _, e := range []engine.Entity{
		{Kind: "client", ID: "client0", URI: deployment.URI(), Options: document("id", "client0")},
		{Kind: "database", ID: "database0", Options: document("client", "client0", "databaseName", "db")},
		{Kind: "collection", ID: "people", Options: document("database", "database0", "collectionName", "people")},
	} {
		if err := test.Open(ctx, e); err != nil {
			panic(err)
		}
	}
	outcome := test.Do(ctx, engine.Operation{
		Object: "people", Name: "insertOne", Arguments: document("document", document("_id", 1))})
	fmt.Println(outcome.Value, outcome.Err)
	events, err := test.Events(ctx, "client0", 0, 0)
	if err != nil {
		panic(err)
	}
	for _, e := range events {
		if e.Type.Monitor() == result.MonitorCommand {
			fmt.Println(e.Type, e.CommandName)
		}
	}
	// Output:
	// {"insertedId": {"$numberInt":"1"}} <nil>
	// commandStartedEvent insert
	// commandSucceededEvent insert
}

func document(fields ...any) bson.Raw {
	var d bson.D
	for i := 0; i < len(fields); i += 2 {
		d = append(d, bson.E{Key: fields[i].(string), Value: fields[i+1]})
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return raw
}
