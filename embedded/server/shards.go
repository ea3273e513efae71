package server

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// The shards of a cluster are the documents of config.shards, as on the
// server: clients may read and change them there.

// internal runs a command of the data side on our own behalf.
func (x *exchange) internal(db string, body bson.D) (bson.Raw, error) {
	raw := marshal(append(body, bson.E{Key: "$db", Value: db}))
	name := firstKey(raw)
	row := x.conn.server.cluster.find(name, x.view.Role)
	if row == nil {
		return nil, fmt.Errorf("there is no command %s", name)
	}
	r := command.Request{
		Context: x.conn.ctx, Row: &row.Row, Name: name, DB: db, Body: raw, Server: &x.view.Server,
		Strikes: func(string) (failpoint.Failure, bool) { return failpoint.Failure{}, false },
	}
	reply, err := row.Run(&r)
	if err != nil {
		return nil, err
	}
	return bson.Marshal(reply)
}

// shardDocuments are those of config.shards, by id.
func (x *exchange) shardDocuments() ([]bson.RawValue, error) {
	reply, err := x.internal("config", bson.D{
		{Key: "find", Value: "shards"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "singleBatch", Value: true}})
	if err != nil {
		return nil, err
	}
	return command.Items(reply.Lookup("cursor", "firstBatch")), nil
}

func (x *exchange) listShards() (bson.D, error) {
	docs, err := x.shardDocuments()
	return bson.D{{Key: "shards", Value: append([]bson.RawValue{}, docs...)}}, err
}

// addShard records a shard. No data goes there.
func (x *exchange) addShard() (bson.D, error) {
	host, ok := x.request.Body.Index(0).Value().StringValueOK()
	if !ok || host == "" {
		return nil, command.Errorf(command.CodeBadValue, "addShard needs the connection string of a shard")
	}
	docs, err := x.shardDocuments()
	if err != nil {
		return nil, err
	}
	set, _, isSet := strings.Cut(host, "/")
	name, _ := x.request.Body.Lookup("name").StringValueOK()
	switch {
	case name != "":
	case isSet:
		name = set
	default:
		name = fmt.Sprintf("shard%04d", len(docs))
	}
	for _, d := range docs {
		id, _ := d.Document().Lookup("_id").StringValueOK()
		at, _ := d.Document().Lookup("host").StringValueOK()
		switch {
		case id == name && at == host:
			return bson.D{{Key: "shardAdded", Value: name}}, nil
		case id == name || at == host:
			return nil, command.Errorf(command.CodeIllegalOperation, "A shard named %s at %s already exists", id, at)
		}
	}
	doc := bson.D{{Key: "_id", Value: name}, {Key: "host", Value: host}, {Key: "state", Value: int32(1)},
		{Key: "topologyTime", Value: x.conn.server.now()}}
	if _, err := x.internal("config", bson.D{{Key: "insert", Value: "shards"}, {Key: "documents", Value: bson.A{doc}}}); err != nil {
		return nil, err
	}
	return bson.D{{Key: "shardAdded", Value: name}}, nil
}
