package server

import (
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
