package server

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// The shards of a cluster are the documents of config.shards. Clients may read and change them, as on the server.

func (x *exchange) listShards() (bson.D, error) {
	reply, err := x.server.internally("config", bson.D{
		{Key: "find", Value: "shards"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "singleBatch",
			Value: true}})
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "shards", Value: value.Encode(reply).Lookup("cursor", "firstBatch")}}, nil
}

// addShard records a shard, or updates its record. It never receives data.
func (x *exchange) addShard() (bson.D, error) {
	host := x.firstText()
	name, named := x.request.Body.Lookup("name").StringValueOK()
	if !named {
		name, _, _ = strings.Cut(host, "/") // the name of the replica set
	}
	shard := bson.D{{Key: "host", Value: host}, {Key: "state", Value: int32(1)},
		{Key: "topologyTime", Value: x.server.now()}}
	update := bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: name}}}, {Key: "u", Value: shard},
		{Key: "upsert", Value: true}}
	_, err := x.server.internally("config", bson.D{{Key: "update", Value: "shards"},
		{Key: "updates", Value: bson.A{update}}})
	return bson.D{{Key: "shardAdded", Value: name}}, err
}
