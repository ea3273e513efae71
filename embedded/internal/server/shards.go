package server

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// The shards of a cluster are the documents of config.shards. Clients may read and change them, as on the server.

func (x *exchange) listShards() (bson.D, error) {
	reply, err := x.server.internally("config", value.Doc("find", "shards", "sort", value.Doc("_id", 1),
		"singleBatch", true))
	if err != nil {
		return nil, err
	}
	return value.Doc("shards", value.Encode(reply).Lookup("cursor", "firstBatch")), nil
}

// addShard records a shard, or updates its record. It never receives data.
func (x *exchange) addShard() (bson.D, error) {
	host := x.firstText()
	name, named := x.request.Body.Lookup("name").StringValueOK()
	if !named {
		name, _, _ = strings.Cut(host, "/") // the name of the replica set
	}
	shard := value.Doc("host", host, "state", int32(1), "topologyTime", x.server.now())
	update := value.Doc("q", value.Doc("_id", name), "u", shard, "upsert", true)
	_, err := x.server.internally("config", value.Doc("update", "shards", "updates", bson.A{update}))
	return value.Doc("shardAdded", name), err
}
