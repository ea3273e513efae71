package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// created returns the oplog entry of a new collection.
func (c *collection) created() entry {
	e := entry{kind: opCreate, db: c.db, coll: c.name, uuid: c.uuid, nsType: c.kind()}
	switch {
	case c.clustered():
		e.detail = c.options
	case !c.isView():
		e.detail = append(bson.D{{Key: "idIndex", Value: c.indexes[0].spec}}, c.options...)
	}
	return e
}

// clusteredIndex returns the option clusteredIndex of create with its defaults, as listCollections shows it. It returns
// nil if the collection is not clustered.
func clusteredIndex(a *args) bson.D {
	if a.any("clusteredIndex") == any(false) || a.any("clusteredIndex") == nil {
		return nil
	}
	c := a.part("clusteredIndex")
	c.only(" v key name unique ")
	key, name := c.document("key"), c.str("name")
	c.need("key")
	c.need("unique")
	switch {
	case !c.flag("unique"):
		c.Fail(5979700, "The clusteredIndex option requires unique: true to be specified")
	case !value.Equal(key, bson.D{{Key: "_id", Value: int32(1)}}):
		c.Fail(command.CodeInvalidIndexSpecificationOption, "The clusteredIndex option is only supported for key: {_id: 1}")
	}
	if name == "" {
		name = "_id_"
	}
	return bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "unique", Value: true}}
}

// cluster makes the _id index the clustered index that spec describes.
func (c *collection) cluster(spec bson.D) {
	id := c.idIndex()
	id.name = value.As[string](spec, "name")
	id.clustered = true
	id.spec = append(spec[:len(spec):len(spec)], bson.E{Key: "clustered", Value: true})
}

// enableSharding only checks its argument: every database can be sharded.
func enableSharding(_ *scope, a *args) action {
	if name := a.str("enableSharding"); name == "" || strings.ContainsAny(name, ". $/\\") {
		a.Fail(command.CodeInvalidNamespace, "invalid db name specified: %s", name)
	}
	return func() (bson.D, error) { return bson.D{}, nil }
}

// shardCollection creates and logs the collection. Its data stays on the only shard.
func shardCollection(s *scope, a *args) action {
	ns, key := a.str("shardCollection"), a.document("key")
	db, name, _ := strings.Cut(ns, ".")
	a.checkName(db, name)
	a.Refuse(len(key) == 0, command.CodeBadValue, "Shard key is empty")
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

// checkMetadataConsistency reports no inconsistencies: there is only one shard.
func checkMetadataConsistency(s *scope, a *args) action {
	size := a.batchSize()
	return func() (bson.D, error) { return s.list(nsText(s.req.DB, "aggregate"), nil, size), nil }
}
