package data

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// collStatsStage returns the output of the stage $collStats.
func (s *scope) collStatsStage(db, name string, arg any) ([]bson.D, error) {
	doc, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(5447000, "$collStats must take a nested object but found: $collStats: %s", value.Text(arg))
	}
	c, records := s.records(db, name)
	out := bson.D{{Key: "ns", Value: db + "." + name}}
	host := address(s.req)
	if mongos(s.req) {
		out = append(out, bson.E{Key: "shard", Value: s.d.opts.ShardName})
		_, host, _ = strings.Cut(s.d.opts.ShardHost, "/")
	}
	out = append(out, bson.E{Key: "host", Value: host}, bson.E{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())})
	for _, e := range doc {
		switch {
		case e.Key != "count" && e.Key != "storageStats":
			return nil, command.Errorf(command.CodeIDLUnknownField, "BSON field '$collStats.%s' is an unknown field.", e.Key)
		case c == nil:
			return nil, command.Errorf(command.CodeNamespaceNotFound, "Unable to retrieve %s in $collStats stage :: caused by :: Collection [%s.%s] not found.", e.Key, db, name)
		case c.isView():
			return nil, onView(c)
		case e.Key == "count":
			out = append(out, bson.E{Key: "count", Value: value.Int(int64(len(records)))})
		default:
			out = append(out, bson.E{Key: "storageStats", Value: storageStats(c, records)})
		}
	}
	return []bson.D{out}, nil
}

func storageStats(c *collection, records []*record) bson.D {
	size, n := int64(0), int64(len(records))
	for _, r := range records {
		size += int64(len(r.raw))
	}
	out := bson.D{{Key: "size", Value: value.Int(size)}, {Key: "count", Value: value.Int(n)}}
	if n > 0 {
		out = append(out, bson.E{Key: "avgObjSize", Value: value.Int(size / n)})
	}
	out = append(out, bson.E{Key: "storageSize", Value: value.Int(4096 + size)}, bson.E{Key: "capped", Value: c.capped})
	if c.capped {
		out = append(out, bson.E{Key: "max", Value: value.Int(c.maxDocs)}, bson.E{Key: "maxSize", Value: value.Int(c.maxSize)})
	}
	sizes := bson.D{}
	for _, x := range c.indexes {
		sizes = append(sizes, bson.E{Key: x.name, Value: int32(4096)})
	}
	return append(out, bson.E{Key: "nindexes", Value: int32(len(c.indexes))}, bson.E{Key: "totalIndexSize", Value: int32(4096 * len(c.indexes))},
		bson.E{Key: "indexSizes", Value: sizes})
}

// collStats returns the statistics of a collection.
func collStats(s *scope, a *args) action {
	name := a.name()
	a.checkName(s.req.DB, name)
	return func() (bson.D, error) {
		c, records := s.records(s.req.DB, name)
		switch {
		case c == nil:
			c = &collection{}
		case c.isView():
			return nil, onView(c)
		}
		return append(bson.D{{Key: "ns", Value: s.req.DB + "." + name}}, storageStats(c, records)...), nil
	}
}

// dbStats returns the statistics of a database.
func dbStats(s *scope, _ *args) action {
	return func() (bson.D, error) {
		var colls, views, objects, size, indexes int64
		s.d.reading(func() {
			for _, c := range s.d.databases[s.req.DB] {
				if c.isView() {
					views++
					continue
				}
				colls++
				objects += int64(len(c.docs))
				size += c.size
				indexes += int64(len(c.indexes))
			}
		})
		return bson.D{{Key: "db", Value: s.req.DB}, {Key: "collections", Value: value.Int(colls)}, {Key: "views", Value: value.Int(views)},
			{Key: "objects", Value: value.Int(objects)}, {Key: "dataSize", Value: float64(size)}, {Key: "storageSize", Value: float64(size)},
			{Key: "indexes", Value: value.Int(indexes)}, {Key: "indexSize", Value: float64(4096 * indexes)}}, nil
	}
}
