package data

import (
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// listCollections lists the collections of a database.
func listCollections(s *scope, a *args) action {
	a.only(" cursor filter nameOnly authorizedCollections includePendingDrops ")
	nameOnly, size, f := a.flag("nameOnly"), a.batchSize(), a.filter("filter", query.Options{})
	return func() (bson.D, error) {
		var docs []bson.D
		exists := false
		s.d.reading(func() {
			exists = len(s.d.databases[s.req.DB]) > 0
			for _, c := range s.d.databases[s.req.DB] {
				docs = append(docs, describe(c))
			}
		})
		docs, err := f.Select(docs)
		if err != nil {
			return nil, err
		}
		var out []bson.Raw
		for _, doc := range docs {
			if nameOnly {
				doc = doc[:2]
			}
			out = append(out, value.Encode(doc))
		}
		reply := s.list(nsText(s.req.DB, "listCollections"), out, size)
		if !exists && mongos(s.req) && wire(s.req) < wire50 {
			reply = append(bson.D{{Key: "result", Value: bson.A{}}}, reply...)
		}
		return reply, nil
	}
}

// describe returns the entry of a collection in listCollections.
func describe(c *collection) bson.D {
	kind, info := c.kind(), bson.D{{Key: "readOnly", Value: c.isView()}}
	info = value.AddIf(info, kind == "collection", "uuid", c.uuid)
	doc := bson.D{{Key: "name", Value: c.name}, {Key: "type", Value: kind}, {Key: "options", Value: c.options}, {Key: "info", Value: info}}
	if kind == "collection" && !c.clustered() {
		doc = append(doc, bson.E{Key: "idIndex", Value: c.indexes[0].spec})
	}
	return doc
}

// listDatabases lists the databases and their sizes.
func listDatabases(s *scope, a *args) action {
	a.Refuse(s.req.DB != "admin", command.CodeUnauthorized, "listDatabases may only be run against the admin database.")
	a.only(" filter nameOnly authorizedDatabases ")
	nameOnly, f := a.flag("nameOnly"), a.filter("filter", query.Options{})
	return func() (bson.D, error) {
		var docs []bson.D
		s.d.reading(func() {
			for _, name := range slices.Sorted(maps.Keys(s.d.databases)) {
				if !mongos(s.req) || name != "local" {
					docs = append(docs, s.describeDatabase(name))
				}
			}
		})
		docs, err := f.Select(docs)
		if err != nil {
			return nil, err
		}
		list, total := bson.A{}, int64(0)
		for _, doc := range docs {
			size, _ := value.Whole(doc[1].Value)
			total += size
			if nameOnly {
				doc = doc[:1]
			}
			list = append(list, doc)
		}
		reply := bson.D{{Key: "databases", Value: list}}
		switch {
		case nameOnly:
		case mongos(s.req):
			reply = append(reply, bson.E{Key: "totalSize", Value: value.Int(total)}, bson.E{Key: "totalSizeMb", Value: value.Int(total >> 20)})
		default:
			reply = append(reply, bson.E{Key: "totalSize", Value: float64(total)})
			reply = value.AddIf(reply, wire(s.req) >= wire50, "totalSizeMb", float64(total>>20))
		}
		return reply, nil
	}
}

// describeDatabase returns the entry of a database in listDatabases. The caller holds mu.
func (s *scope) describeDatabase(name string) bson.D {
	size := int64(0)
	for _, c := range s.d.databases[name] {
		size += c.size + 4096*int64(1+len(c.indexes))
	}
	doc := bson.D{{Key: "name", Value: name}, {Key: "sizeOnDisk", Value: float64(size)}, {Key: "empty", Value: false}}
	if !mongos(s.req) {
		return doc
	}
	shard := s.d.opts.ShardName
	if name == "admin" || name == "config" {
		shard = "config"
	}
	doc[1].Value = value.Int(size)
	return append(doc, bson.E{Key: "shards", Value: bson.D{{Key: shard, Value: value.Int(size)}}})
}
