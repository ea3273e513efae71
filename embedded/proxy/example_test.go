package proxy_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/proxy"
)

// A server without test commands fails a command.
func Example() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{Parameters: bson.D{{Key: "enableTestCommands", Value: false}}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = server.Close() }()
	p, err := proxy.Start(proxy.Options{}, server.Hosts()...)
	if err != nil {
		panic(err)
	}
	defer p.Close()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + p.Address(server.Hosts()[0]) +
		"/?directConnection=true"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	failPoint := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"ping"}}, {Key: "errorCode", Value: 8}}}}
	admin := client.Database("admin")
	fmt.Println(admin.RunCommand(ctx, failPoint).Err())
	fmt.Println(admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err())
	// Output:
	// <nil>
	// (UnknownError) Failing command via 'failCommand' failpoint
}
