package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// enableSharding does nothing: every database may be sharded.
func (d *Data) enableSharding(_ *scope, a *args) (bson.D, error) {
	name := a.str("enableSharding")
	if a.err == nil && (name == "" || strings.ContainsAny(name, ". $/\\")) {
		return nil, command.Errorf(command.CodeInvalidNamespace, "invalid db name specified: %s", name)
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
		return nil, command.Errorf(command.CodeBadValue, "Shard key is empty")
	}
	var uuid bson.Binary
	err := s.locked(func() error {
		c, err := s.writable(db, name, true)
		if err != nil {
			return err
		}
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

// checkMetadataConsistency finds nothing: with one shard, all that is known of a
// collection goes together.
func (d *Data) checkMetadataConsistency(s *scope, a *args) (bson.D, error) {
	size := a.batchSize()
	if a.err != nil {
		return nil, a.err
	}
	return s.list(nsText(s.req.DB, "aggregate"), nil, size)
}
