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
func (x *exchange) shardDocuments() ([]bson.Raw, error) {
	reply, err := x.internal("config", bson.D{
		{Key: "find", Value: "shards"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "singleBatch", Value: true}})
	if err != nil {
		return nil, err
	}
	list, _ := reply.Lookup("cursor", "firstBatch").ArrayOK()
	values, err := list.Values()
	if err != nil {
		return nil, err
	}
	var out []bson.Raw
	for _, v := range values {
		if doc, ok := v.DocumentOK(); ok {
			out = append(out, doc)
		}
	}
	return out, nil
}

// listShards has one shard, a replica set behind the mongoses that no client
// can reach, unless there is addShard.
func (x *exchange) listShards() (bson.D, error) {
	if x.conn.server.cluster.Shards {
		docs, err := x.shardDocuments()
		list := bson.A{}
		for _, d := range docs {
			list = append(list, d)
		}
		return bson.D{{Key: "shards", Value: list}}, err
	}
	return bson.D{{Key: "shards", Value: bson.A{bson.D{
		{Key: "_id", Value: ShardName},
		{Key: "host", Value: ShardHost(x.view.setName)},
		{Key: "state", Value: int32(1)},
		{Key: "topologyTime", Value: bson.Timestamp{T: 1, I: 1}},
	}}}}, nil
}

// addShard records a shard. No data goes there.
func (x *exchange) addShard() (bson.D, error) {
	if !x.conn.server.cluster.Shards {
		return nil, command.Errorf(command.CodeIllegalOperation, "the one shard of this cluster can not be joined by others")
	}
	host, ok := x.request.Body.Index(0).Value().StringValueOK()
	if !ok || host == "" {
		return nil, command.Errorf(command.CodeBadValue, "addShard needs the connection string of a shard")
	}
	set, seeds, isSet := strings.Cut(host, "/")
	if isSet && (set == "" || seeds == "") {
		return nil, command.Errorf(command.CodeFailedToParse, "Cannot parse connection string %s", host)
	}
	docs, err := x.shardDocuments()
	if err != nil {
		return nil, err
	}
	taken := map[string]string{} // hosts by name
	for _, d := range docs {
		name, _ := d.Lookup("_id").StringValueOK()
		taken[name], _ = d.Lookup("host").StringValueOK()
	}
	name, _ := x.request.Body.Lookup("name").StringValueOK()
	if name == "" && isSet {
		name = set
	}
	for i := 0; name == ""; i++ {
		if free := fmt.Sprintf("shard%04d", i); taken[free] == "" {
			name = free
		}
	}
	if old, ok := taken[name]; ok {
		if old == host {
			return bson.D{{Key: "shardAdded", Value: name}}, nil
		}
		return nil, command.Errorf(command.CodeIllegalOperation, "A shard named %s containing the replica set '%s' already exists", name, set)
	}
	for other, hosts := range taken {
		if hosts == host {
			return nil, command.Errorf(command.CodeIllegalOperation,
				"A shard already exists containing the replica set '%s' by the name %s", set, other)
		}
	}
	doc := bson.D{{Key: "_id", Value: name}, {Key: "host", Value: host}, {Key: "state", Value: int32(1)},
		{Key: "topologyTime", Value: x.conn.server.now()}}
	if _, err := x.internal("config", bson.D{{Key: "insert", Value: "shards"}, {Key: "documents", Value: bson.A{doc}}}); err != nil {
		return nil, err
	}
	return bson.D{{Key: "shardAdded", Value: name}}, nil
}
