package proxy

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// With Inside, a server gets the fail points that take effect inside it, until they are turned off, and no others.
func TestInside(t *testing.T) {
	server := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	for _, inside := range []bool{true, false} {
		p, err := Start(Options{Inside: inside}, server.Hosts()...)
		testkit.Check(t, err)
		run := func(address string, command bson.D) (bson.Raw, error) {
			client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + address + "/?directConnection=true"))
			testkit.Check(t, err)
			defer func() { _ = client.Disconnect(testkit.Context(t)) }()
			return client.Database("admin").RunCommand(testkit.Context(t), command).Raw()
		}
		for _, r := range []struct {
			name string
			data bson.D
			on   bool // at the server
		}{
			{"onPrimaryTransactionalWrite", bson.D{{Key: "failBeforeCommitExceptionCode", Value: 8}}, inside},
			{"onPrimaryTransactionalWrite", bson.D{{Key: "closeConnection", Value: true}}, false},
			{"failCommand", bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 8}}, false},
		} {
			for _, mode := range []string{"alwaysOn", "off"} {
				command := bson.D{{Key: "configureFailPoint", Value: r.name}, {Key: "mode", Value: mode}}
				if mode == "alwaysOn" {
					command = append(command, bson.E{Key: "data", Value: r.data})
				}
				_, err := run(p.Address(server.Hosts()[0]), command)
				refused := !inside && mode == "alwaysOn" && r.data[0].Key == "failBeforeCommitExceptionCode"
				testkit.Equal(t, "it is refused", err != nil, refused)
				reply, err := run(server.Hosts()[0], bson.D{{Key: "getParameter", Value: 1}, {Key: "failpoint." + r.name, Value: 1}})
				testkit.Check(t, err)
				is := reply.Lookup("failpoint."+r.name, "mode").AsInt64() != 0
				testkit.Equal(t, r.name+" is on at the server", is, r.on && mode == "alwaysOn")
			}
		}
		p.Close()
	}
}

// A proxy returns the sessions of all commands since the last call, each once.
func TestSessions(t *testing.T) {
	p := &Proxy{}
	session := func(id int32) bson.Raw {
		raw, err := bson.Marshal(bson.D{{Key: "find", Value: "c"}, {Key: "lsid", Value: bson.D{{Key: "id", Value: id}}}})
		testkit.Check(t, err)
		return raw
	}
	p.sessions.see(session(1)) // nobody asks yet
	testkit.Equal(t, "before the first call", len(p.Sessions()), 0)
	for _, id := range []int32{2, 3, 2} {
		p.sessions.see(session(id))
	}
	p.sessions.see(bson.Raw{5, 0, 0, 0, 0}) // without a session
	var sum int32
	all := p.Sessions()
	for _, id := range all {
		sum += id.Int32()
	}
	testkit.Equal(t, "sessions", []int32{int32(len(all)), sum}, []int32{2, 5})
	testkit.Equal(t, "the next call", len(p.Sessions()), 0)
}

// An error of failGetMoreAfterCursorCheckout has the label of change streams, which the servers would add.
func TestChangeStreamLabel(t *testing.T) {
	server := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	p, err := Start(Options{}, server.Hosts()...)
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	ctx := testkit.Context(t)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + p.Address(server.Hosts()[0]) + "/?directConnection=true"))
	testkit.Check(t, err)
	t.Cleanup(func() { _ = client.Disconnect(ctx) })
	db := client.Database("db")
	testkit.Check(t, client.Database("admin").RunCommand(ctx, bson.D{{Key: "configureFailPoint", Value: "failGetMoreAfterCursorCheckout"},
		{Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D{{Key: "errorCode", Value: 6}}}}).Err())
	_, err = db.Collection("c").InsertMany(ctx, []any{bson.D{}, bson.D{}})
	testkit.Check(t, err)
	for _, r := range []struct {
		pipeline bson.A
		labeled  bool
	}{{bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}, true}, {bson.A{}, false}} {
		reply, err := db.RunCommand(ctx, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: r.pipeline},
			{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1}}}}).Raw()
		testkit.Check(t, err)
		err = db.RunCommand(ctx, bson.D{{Key: "getMore", Value: reply.Lookup("cursor", "id")}, {Key: "collection", Value: "c"}}).Err()
		var failed mongo.CommandError
		testkit.Equal(t, "it failed, with the label", []bool{errors.As(err, &failed), failed.HasErrorLabel("ResumableChangeStreamError")},
			[]bool{true, r.labeled})
	}
}
