package blackpipe_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/runner/blackpipe"
)

// The server closes the connection instead of replying to an insert. The driver sends it again, with the same
// transaction number. In a Go test, ListenT starts the server and closes it.
func Example() {
	script, err := blackpipe.ParseScript("lost-reply.yml", []byte(`
topology: replicaset
steps:
  - expect: { insert: events, txnNumber: 1 }
    hangUp: true
  - expect: { insert: events, txnNumber: 1 }
    reply: { n: 1 }
`))
	if err != nil {
		panic(err)
	}
	server, err := blackpipe.Listen(script.Options)
	if err != nil {
		panic(err)
	}
	defer func() { _ = server.Close() }()
	play := script.Play(server, func(line string) { fmt.Println(line) })

	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI()))
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	_, err = client.Database("app").Collection("events").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println(err, play.End())
	// Output:
	// lost-reply.yml:4:13: insert: hangUp
	// lost-reply.yml:6:13: insert: reply
	// <nil> <nil>
}
