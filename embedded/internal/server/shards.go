package server

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
)

// The shards of a cluster are the documents of config.shards, which clients may read and change, as on the server.

// internal runs a command of the backend.
func (x *exchange) internal(db string, body bson.D) (bson.Raw, error) {
	raw := marshal(append(body, bson.E{Key: "$db", Value: db}))
	name := firstKey(raw)
	row := x.conn.server.cluster.find(name, x.view.Role)
	if row == nil {
		return nil, fmt.Errorf("unknown command %s", name)
	}
	r := commands.Request{
		Context: x.conn.ctx, Row: &row.Row, Name: name, DB: db, Body: raw, Server: &x.view.Server,
		FailPoint: func(string) (failpoint.Failure, bool) { return failpoint.Failure{}, false },
	}
	reply, err := row.Run(&r)
	if err != nil {
		return nil, err
	}
	return bson.Marshal(reply)
}

func (x *exchange) listShards() (bson.D, error) {
	reply, err := x.internal("config", bson.D{
		{Key: "find", Value: "shards"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "singleBatch",
			Value: true}})
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "shards", Value: reply.Lookup("cursor", "firstBatch")}}, nil
}

// addShard records a shard, or updates its record. It never receives data.
func (x *exchange) addShard() (bson.D, error) {
	host, _ := x.request.Body.Index(0).Value().StringValueOK()
	name, named := x.request.Body.Lookup("name").StringValueOK()
	if !named {
		name, _, _ = strings.Cut(host, "/") // the name of the replica set
	}
	shard := bson.D{{Key: "host", Value: host}, {Key: "state", Value: int32(1)},
		{Key: "topologyTime", Value: x.conn.server.now()}}
	update := bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: name}}}, {Key: "u", Value: shard},
		{Key: "upsert", Value: true}}
	_, err := x.internal("config", bson.D{{Key: "update", Value: "shards"}, {Key: "updates", Value: bson.A{update}}})
	return bson.D{{Key: "shardAdded", Value: name}}, err
}
