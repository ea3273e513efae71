package reference_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/reference"
)

// Each outcome has the decisions that led to it, with the numbers of their rules. Here the primary closes the
// connection of the first attempt.
func ExampleNew() {
	ctx := context.Background()
	d, err := embedded.Start(ctx, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	_, err = direct.Run(ctx, d.Primary(), nil, "admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}}}})
	if err != nil {
		panic(err)
	}
	e, err := reference.New(reference.Options{Backoff: reference.BackoffNone})
	if err != nil {
		panic(err)
	}
	test, err := e.Begin(ctx)
	if err != nil {
		panic(err)
	}
	defer func() { _ = test.End(ctx) }()
	for _, one := range []engine.Entity{
		{Kind: "client", ID: "client0", URI: d.URI(), Options: options("id", "client0")},
		{Kind: "database", ID: "db", Options: options("client", "client0", "databaseName", "db")},
		{Kind: "collection", ID: "people", Options: options("database", "db", "collectionName", "people")},
	} {
		if err := test.Open(ctx, one); err != nil {
			panic(err)
		}
	}
	outcome := test.Do(ctx, engine.Operation{Object: "people", Name: "find", Arguments: options("filter", bson.D{})})
	for _, decision := range outcome.Decisions {
		fmt.Println(decision.Attempt, decision.Action, decision.Rules)
	}
	// Output:
	// 1 select [R1]
	// 1 send [R5]
	// 2 select [R10 R22 R50]
	// 2 send [R5]
	// 2 return result [R6]
}

func options(fields ...any) bson.Raw {
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
