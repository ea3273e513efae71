package reference_test

import (
	"context"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A pipeline that writes goes to the primary of a replica set before 5.0 also
// while only a secondary is known: what counts is known once a server is. Later
// ones write through the secondary, which is there first.
func TestWriteStageOfANewClient(t *testing.T) {
	for _, r := range []struct {
		version   string
		toPrimary bool
	}{{"4.2", true}, {"4.4", true}, {"5.0", false}, {"8.0", false}} {
		t.Run(r.version, func(t *testing.T) {
			t.Parallel()
			d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet, Members: 2, Version: r.version})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			// The primary's greeting is slow, for this client, or does not come at all.
			slow, patience := bson.D{{Key: "times", Value: 1}}, 1500*time.Millisecond
			if !r.toPrimary {
				slow, patience = bson.D{{Key: "times", Value: 1000}}, time.Hour
			}
			primary := d.Hosts()[0]
			admin, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + primary + "/?directConnection=true"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = admin.Disconnect(ctx) }()
			if err := admin.Database("admin").RunCommand(ctx, bson.D{
				{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: slow},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"hello", "isMaster"}}, {Key: "appName", Value: "new"},
					{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: patience.Milliseconds()}}},
			}).Err(); err != nil {
				t.Fatal(err)
			}
			s := visit(t, d.URI(), bson.D{{Key: "appName", Value: "new"}, {Key: "readPreference", Value: "secondaryPreferred"}})
			out := s.do("collection", "aggregate", bson.D{{Key: "pipeline", Value: bson.A{bson.D{{Key: "$out", Value: "o"}}}}})
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			events, err := s.Events(ctx, "client", 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Type != result.CommandStarted || e.Command.CommandName != "aggregate" {
					continue
				}
				if (e.Address == primary) != r.toPrimary {
					t.Errorf("it went to %s", e.Address)
				}
				if _, err := e.Command.Command.LookupErr("$readPreference"); (err != nil) != r.toPrimary {
					t.Errorf("it is sent so: %s", e.Command.Command)
				}
			}
		})
	}
}
