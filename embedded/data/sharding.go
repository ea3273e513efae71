package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// enableSharding does nothing: every database may be sharded.
func (d *Data) enableSharding(_ *scope, a *args) (bson.D, error) {
	name := a.str("enableSharding")
	if a.err == nil && (name == "" || strings.ContainsAny(name, ". $/\\")) {
		return nil, command.Errorf(73, "invalid db name specified: %s", name)
	}
	return bson.D{}, a.err
}

// shardCollection marks a collection as sharded; all of it stays on the one
// shard.
func (d *Data) shardCollection(s *scope, a *args) (bson.D, error) {
	ns, key := a.str("shardCollection"), a.document("key")
	if a.err != nil {
		return nil, a.err
	}
	db, name, _ := strings.Cut(ns, ".")
	if err := namespace(db, name); err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return nil, command.Errorf(2, "Shard key is empty")
	}
	var uuid bson.Binary
	err := s.locked(func() error {
		c, err := s.writable(db, name, true)
		if err != nil {
			return err
		}
		c.sharded = true
		uuid = c.uuid
		d.log(entry{ts: d.tick(), kind: opShard, db: db, coll: name, uuid: uuid, detail: bson.D{
			{Key: "shardKey", Value: key}, {Key: "unique", Value: a.flag("unique")}, {Key: "numInitialChunks", Value: int64(1)},
		}})
		s.writes = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "collectionsharded", Value: ns}, {Key: "collectionUUID", Value: uuid}}, nil
}

// checkMetadataConsistency looks for what the shards and the config server tell
// of collections that does not go together. With one shard nothing can.
func (d *Data) checkMetadataConsistency(s *scope, a *args) (bson.D, error) {
	name := "$cmd.aggregate"
	if str, ok := a.any("checkMetadataConsistency").(string); ok {
		name = str
		if err := namespace(s.req.DB, name); err != nil {
			return nil, err
		}
		if s.req.DB == "admin" {
			return nil, command.Errorf(73, "checkMetadataConsistency command on admin database can only be run without collection name. Found unexpected collection name: %s", name)
		}
	} else if n, ok := value.Whole(a.any("checkMetadataConsistency")); !ok || n != 1 {
		return nil, command.Errorf(9, "Invalid command format: the 'checkMetadataConsistency' field must specify a collection name or 1")
	}
	sizes := &args{of: "checkMetadataConsistency.cursor", doc: a.document("cursor")}
	size := sizes.number("batchSize", -1)
	if err := cmpErr(a.err, sizes.err); err != nil {
		return nil, err
	}
	there := false
	d.reading(func() { there = d.databases[s.req.DB] != nil })
	if !there && s.req.DB != "admin" {
		return nil, command.Errorf(26, "database %s not found", s.req.DB)
	}
	ns := s.req.DB + "." + name
	cur, batch, _, err := s.open(ns, ns, &results{known: true}, size, false, false)
	if err != nil {
		return nil, err
	}
	return cursorReply(cur, "firstBatch", batch, nil, true), nil
}
