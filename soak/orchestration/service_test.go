//go:build unix

package orchestration

import (
	"fmt"
	"maps"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

type body = map[string]any

// writes reports whether a client can write, and read what it wrote.
func writes(t *testing.T, uri any) error {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(fmt.Sprint(uri)))
	testkit.Check(t, err)
	ctx := testkit.Context(t)
	defer func() { _ = client.Disconnect(ctx) }()
	one := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	if _, err := client.Database("db").Collection("c").InsertOne(ctx, one); err != nil {
		return err
	}
	return client.Database("db").Collection("c").FindOne(ctx, one).Err()
}

// The service creates, changes, uses and deletes all kinds of clusters with our
// release, without and with users.
func TestService(t *testing.T) {
	for reason, user := range map[string]body{"open": nil, "with users": {"login": "ann", "password": "secret", "auth_key": "key"}} {
		t.Run(reason, func(t *testing.T) {
			o := utrtest.Orchestrate(t)
			with := func(b body) body { maps.Copy(b, user); return b }
			check := func(created body) {
				t.Helper()
				uri := created["mongodb_uri"]
				if user != nil {
					testkit.Fails(t, writes(t, uri)) // as a stranger
					uri = created["mongodb_auth_uri"]
				}
				testkit.Check(t, writes(t, uri))
			}

			single := o.Call("POST", "servers", with(body{"name": "mongod"}))
			check(single)
			for _, action := range []string{"stop", "start", "restart", "reset"} {
				o.Call("POST", "servers/"+fmt.Sprint(single["id"]), body{"action": action})
			}
			check(single)
			o.Call("DELETE", "servers/"+fmt.Sprint(single["id"]), nil)

			set := o.Call("POST", "replica_sets", with(body{"id": "repl0", "members": []any{
				body{"rsParams": body{"priority": 99, "tags": body{"dc": "ny"}}}, body{"rsParams": body{"priority": 1.1}}, body{"rsParams": body{"arbiterOnly": true}},
			}}))
			check(set)
			testkit.Equal(t, "the primary, by priority", o.Call("GET", "replica_sets/repl0/primary", nil)["_id"], 0)
			secondary := o.Call("GET", "replica_sets/repl0/members/1", nil)
			for _, action := range []string{"stop", "start", "restart"} {
				o.Call("POST", "servers/"+fmt.Sprint(secondary["server_id"]), body{"action": action})
			}
			o.Call("POST", "replica_sets/repl0", body{"action": "reset"})
			check(set)
			o.Call("DELETE", "replica_sets/repl0", nil)

			shard := func(id string) body { return body{"id": id, "shardParams": body{"members": []any{body{}}}} }
			cluster := o.Call("POST", "sharded_clusters", with(body{"id": "cluster", "configsvrs": []any{body{"members": []any{body{}}}},
				"shards": []any{shard("sh01"), shard("sh02")}, "routers": []any{body{}, body{}}}))
			check(cluster)
			list, _ := cluster["shards"].([]any)
			testkit.Equal(t, "shards", len(list), 2)
			o.Call("DELETE", "sharded_clusters/cluster", nil)
			o.Vacant()
		})
	}
}
