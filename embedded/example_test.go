package embedded_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
)

// The driver hides the first error of a find: a fail point makes one attempt fail, and the driver retries it.
func Example() {
	ctx := context.Background()
	deployment, err := embedded.Start(ctx, embedded.Options{Topology: embedded.ReplicaSet, Members: 3})
	if err != nil {
		panic(err)
	}
	defer func() { _ = deployment.Close() }()
	client, err := mongo.Connect(options.Client().ApplyURI(deployment.URI()))
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	failPoint := bson.D{{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 262}}}}
	fmt.Println(client.Database("admin").RunCommand(ctx, failPoint).Err())
	fmt.Println(client.Database("db").Collection("people").FindOne(ctx, bson.D{}).Err())
	// Output:
	// <nil>
	// mongo: no documents in result
}
