package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// enableSharding does nothing: every database may be sharded.
func enableSharding(_ *scope, a *args) action {
	if name := a.str("enableSharding"); name == "" || strings.ContainsAny(name, ". $/\\") {
		a.failf(command.CodeInvalidNamespace, "invalid db name specified: %s", name)
	}
	return func() (bson.D, error) { return bson.D{}, nil }
}

// shardCollection marks a collection as sharded; all of it stays on the one
// shard.
func shardCollection(s *scope, a *args) action {
	ns, key := a.str("shardCollection"), a.document("key")
	db, name, _ := strings.Cut(ns, ".")
	a.checkName(db, name)
	a.refuse(len(key) == 0, command.CodeBadValue, "Shard key is empty")
	return func() (bson.D, error) {
		var uuid bson.Binary
		err := s.locked(func() error {
			c, err := s.writable(db, name, true)
			if err != nil {
				return err
			}
			uuid = c.uuid
			s.changed(entry{kind: opShard, db: db, coll: name, uuid: uuid, detail: bson.D{
				{Key: "shardKey", Value: key}, {Key: "unique", Value: a.flag("unique")}, {Key: "numInitialChunks", Value: int64(1)},
			}})
			return nil
		})
		return bson.D{{Key: "collectionsharded", Value: ns}, {Key: "collectionUUID", Value: uuid}}, err
	}
}

// checkMetadataConsistency finds nothing: with one shard, all that is known of a
// collection goes together.
func checkMetadataConsistency(s *scope, a *args) action {
	size := a.batchSize()
	return func() (bson.D, error) { return s.list(nsText(s.req.DB, "aggregate"), nil, size) }
}
