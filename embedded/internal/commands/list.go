package commands

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func listCollections(s *call, a *args) action {
	nameOnly, size, f := a.flag("nameOnly"), a.batchSize(), a.filter("filter", query.Options{Wire: wire(s.req)})
	return func() (bson.D, error) {
		var docs []bson.D
		exists := false
		s.View(func(tx *store.Tx) {
			exists = len(tx.Collections(s.req.DB)) > 0
			for _, c := range tx.Collections(s.req.DB) {
				docs = append(docs, s.describe(c)...)
			}
		})
		docs, err := f.Select(docs)
		if err != nil {
			return nil, err
		}
		out := make([]bson.Raw, len(docs))
		for i, doc := range docs {
			if nameOnly {
				doc = doc[:2]
			}
			out[i] = value.Encode(doc)
		}
		reply := s.list(s.req.DB+".$cmd.listCollections", out, size)
		if !exists && mongos(s.req) && s.has.ResultLists {
			reply = append(bson.D{{Key: "result", Value: bson.A{}}}, reply...)
		}
		return reply, nil
	}
}

// describe returns the entries of a collection in listCollections: that of a time series collection and of its buckets.
func (s *call) describe(c *store.Collection) []bson.D {
	entry := func(name, kind string, options bson.D) bson.D {
		info := bson.D{{Key: "readOnly", Value: c.IsView()}}
		info = value.AddIf(info, kind == "collection", "uuid", c.UUID)
		return bson.D{{Key: "name", Value: name}, {Key: "type", Value: kind}, {Key: "options", Value: options},
			{Key: "info", Value: info}}
	}
	if !c.TimeSeries || !s.has.TimeSeries {
		doc := entry(c.Name, c.Kind(), c.Options)
		return []bson.D{value.AddIf(doc, c.Kind() == "collection" && !c.Clustered(), "idIndex", idIndex(c))}
	}
	options, clustered := value.Set(slices.Clone(c.Options), "timeseries", c.Bucketing()), any(true)
	if s.has.FirstViews {
		// 5.0.0 shows the view and no key, according to recordings; the manual describes the options
		options, clustered = c.Definition(), bson.D{}
	}
	return []bson.D{entry(c.Name, c.Kind(), options),
		entry(c.Buckets(), "collection", bson.D{{Key: "validator", Value: bucketValidator(c)},
			{Key: "clusteredIndex", Value: clustered}, {Key: "timeseries", Value: c.Bucketing()}})}
}

// idIndex returns the specification of the index on _id, nil for a view.
func idIndex(c *store.Collection) bson.D {
	if x := c.IDIndex(); x != nil {
		return x.Spec
	}
	return nil
}

// bucketValidator returns the validator of the buckets of a time series collection.
func bucketValidator(c *store.Collection) (validator bson.D) {
	name := value.As[string](c.Bucketing(), "timeField")
	at := bson.D{{Key: "bsonType", Value: "object"}, {Key: "required", Value: bson.A{name}},
		{Key: "properties", Value: bson.D{{Key: name, Value: bson.D{{Key: "bsonType", Value: "date"}}}}}}
	const text = `{"$jsonSchema": {"bsonType": "object", "required": ["_id", "control", "data"], "properties": {"_id": {"bsonType": "objectId"},
		"control": {"bsonType": "object", "required": ["version", "min", "max"], "properties": {"version": {"bsonType": "number"},
			"min": %[1]s, "max": %[1]s, "closed": {"bsonType": "bool"}}},
		"data": {"bsonType": "object"}, "meta": {}}, "additionalProperties": false}}`
	_ = bson.UnmarshalExtJSON(fmt.Appendf(nil, text, value.Encode(at)), false, &validator) // this text is valid
	return validator
}

func listDatabases(s *call, a *args) action {
	a.Refuse(s.req.DB != "admin", fault.Unauthorized, "listDatabases may only be run against the admin database.")
	nameOnly, f := a.flag("nameOnly"), a.filter("filter", query.Options{Wire: wire(s.req)})
	return func() (bson.D, error) {
		var docs []bson.D
		all := s.req.Reads == nil || s.req.Reads("")
		if refused := a.any("authorizedDatabases"); !all && refused != nil && !value.Truthy(refused) {
			return nil, fault.Errorf(fault.Unauthorized, "Insufficient permissions to list all databases")
		}
		s.View(func(tx *store.Tx) {
			for _, name := range tx.Databases() {
				if (!mongos(s.req) || name != "local") && (all || s.req.Reads(name)) {
					docs = append(docs, s.describeDatabase(tx, name))
				}
			}
		})
		docs, err := f.Select(docs)
		if err != nil {
			return nil, err
		}
		list, total := bson.A{}, int64(0)
		for _, doc := range docs {
			size, _ := value.Int64(doc[1].Value)
			total += size
			if nameOnly {
				doc = doc[:1]
			}
			list = append(list, doc)
		}
		reply := bson.D{{Key: "databases", Value: list}}
		switch {
		case nameOnly:
		case s.has.LongSizes:
			reply = append(reply, bson.E{Key: "totalSize", Value: total}, bson.E{Key: "totalSizeMb", Value: total >> 20})
		case mongos(s.req):
			reply = append(reply, bson.E{Key: "totalSize", Value: value.Int(total)},
				bson.E{Key: "totalSizeMb", Value: value.Int(total >> 20)})
		default:
			reply = append(reply, bson.E{Key: "totalSize", Value: float64(total)})
		}
		return reply, nil
	}
}

// describeDatabase returns the entry of a database in listDatabases.
func (s *call) describeDatabase(tx *store.Tx, name string) bson.D {
	size := int64(0)
	for _, c := range tx.Collections(name) {
		size += c.Size() + 4096*int64(1+len(c.Indexes))
	}
	doc := bson.D{{Key: "name", Value: name}, {Key: "sizeOnDisk", Value: any(float64(size))}, {Key: "empty", Value: false}}
	if s.has.LongSizes {
		doc[1].Value = size
	}
	if !mongos(s.req) {
		return doc
	}
	shard := s.d.opts.ShardName
	if name == "admin" || name == "config" {
		shard = "config"
	}
	if !s.has.LongSizes {
		doc[1].Value = value.Int(size)
	}
	return append(doc, bson.E{Key: "shards", Value: bson.D{{Key: shard, Value: doc[1].Value}}})
}

func (s *call) collStatsStage(db, name string, arg any) ([]bson.D, error) {
	doc, ok := arg.(bson.D)
	if !ok {
		return nil, fault.Errorf(5447000, "$collStats must take a nested object but found: $collStats: %s", value.Text(arg))
	}
	c, records := s.Records(db, name)
	out := bson.D{{Key: "ns", Value: db + "." + name}}
	out = value.AddIf(out, mongos(s.req), "shard", s.d.opts.ShardName)
	out = append(out, bson.E{Key: "host", Value: s.host()},
		bson.E{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())})
	for _, e := range doc {
		switch {
		case e.Key == "latencyStats":
			none := bson.D{{Key: "latency", Value: int64(0)}, {Key: "ops", Value: int64(0)}}
			out = append(out, bson.E{Key: e.Key,
				Value: bson.D{{Key: "reads", Value: none}, {Key: "writes", Value: none}, {Key: "commands", Value: none},
					{Key: "transactions", Value: none}}})
		case e.Key == "queryExecStats":
			return nil, fault.Errorf(fault.NotImplemented, "queryExecStats is not implemented by the embedded deployment")
		case e.Key != "count" && e.Key != "storageStats":
			return nil, fault.Errorf(fault.IDLUnknownField, "BSON field '$collStats.%s' is an unknown field.", e.Key)
		case c == nil:
			return nil, fault.Errorf(fault.NamespaceNotFound,
				"Unable to retrieve %s in $collStats stage :: caused by :: Collection [%s.%s] not found.", e.Key, db, name)
		case c.IsView():
			return nil, store.OnView(c)
		case e.Key == "count":
			out = append(out, bson.E{Key: "count", Value: value.Int(int64(len(records)))})
		default:
			options, _ := e.Value.(bson.D)
			scale, _ := value.Int64(value.Get(options, "scale"))
			out = append(out, bson.E{Key: "storageStats", Value: storageStats(c, records, scale)})
		}
	}
	return []bson.D{out}, nil
}

// host returns the address of the server with the data.
func (s *call) host() string {
	if mongos(s.req) {
		_, host, _ := strings.Cut(s.d.opts.ShardHost, "/")
		return host
	}
	return address(s.req)
}

// indexStats returns the output of $indexStats. Uses of indexes are not counted.
func (s *call) indexStats(db, name string) (out []bson.D) {
	host := s.host()
	s.View(func(tx *store.Tx) {
		c := tx.Collection(db, name)
		if c == nil {
			return
		}
		for _, x := range c.Indexes {
			out = append(out, bson.D{{Key: "name", Value: x.Name}, {Key: "key", Value: x.Key}, {Key: "host", Value: host},
				{Key: "accesses", Value: bson.D{{Key: "ops", Value: int64(0)},
					{Key: "since", Value: bson.NewDateTimeFromTime(time.Now())}}},
				{Key: "spec", Value: x.Spec}})
		}
	})
	return out
}

// storageStats returns sizes in units of scale bytes.
func storageStats(c *store.Collection, records []*store.Record, scale int64) bson.D {
	share := func(n int64) any { return value.Int(n / max(scale, 1)) }
	size, n := int64(0), int64(len(records))
	for _, r := range records {
		size += int64(len(r.Raw))
	}
	out := bson.D{{Key: "size", Value: share(size)}, {Key: "count", Value: value.Int(n)}}
	out = value.AddIf(out, n > 0, "avgObjSize", value.Int(size/max(n, 1)))
	out = append(out, bson.E{Key: "storageSize", Value: share(4096 + size)},
		bson.E{Key: "freeStorageSize", Value: int32(0)}, bson.E{Key: "capped", Value: c.Capped})
	out = value.AddIf(out, c.Capped, "max", value.Int(c.MaxDocs))
	out = value.AddIf(out, c.Capped, "maxSize", share(c.MaxSize))
	sizes := bson.D{}
	for _, x := range c.Indexes {
		sizes = append(sizes, bson.E{Key: x.Name, Value: share(4096)})
	}
	total := int64(4096 * len(c.Indexes))
	return append(out, bson.E{Key: "nindexes", Value: int32(len(c.Indexes))}, bson.E{Key: "indexBuilds", Value: bson.A{}},
		bson.E{Key: "totalIndexSize", Value: share(total)},
		bson.E{Key: "totalSize", Value: share(4096 + size + total)},
		bson.E{Key: "indexSizes", Value: sizes}, bson.E{Key: "scaleFactor", Value: value.Int(max(scale, 1))})
}

func collStats(s *call, a *args) action {
	name, scale := a.collection(s.req.DB), a.number("scale", 1)
	return func() (bson.D, error) {
		c, records := s.Records(s.req.DB, name)
		reply := bson.D{{Key: "ns", Value: s.req.DB + "." + name}}
		switch {
		case c == nil:
			for _, key := range []string{"size", "count", "storageSize", "totalSize", "nindexes", "totalIndexSize"} {
				reply = append(reply, bson.E{Key: key, Value: int32(0)})
			}
			return append(reply, bson.E{Key: "indexDetails", Value: bson.D{}}, bson.E{Key: "indexSizes", Value: bson.D{}},
				bson.E{Key: "scaleFactor", Value: value.Int(scale)}), nil
		case c.IsView():
			return nil, store.OnView(c)
		}
		return append(reply, storageStats(c, records, scale)...), nil
	}
}

func dbStats(s *call, a *args) action {
	scale, code := a.number("scale", 1), int32(0)
	if s.has.ScaleCode {
		code = fault.BadValue
	}
	a.Refuse(a.any("scale") != nil && !value.IsNumber(a.any("scale")), code, "scale has to be a number > 0")
	a.Refuse(scale <= 0, code, "scale has to be > 0")
	db, isText := a.any("dbStats").(string)
	a.Refuse(isText && s.has.Namespaces && !mongos(s.req), fault.InvalidNamespace, "Invalid db name: %s.%s", s.req.DB, db)
	return func() (bson.D, error) {
		var colls, views, objects, size, indexes int64
		s.View(func(tx *store.Tx) {
			for _, c := range tx.Collections(s.req.DB) {
				if c.Definition() != nil {
					views++
				}
				if c.IsView() {
					continue
				}
				colls++
				objects += int64(c.Len())
				size += c.Size()
				indexes += int64(c.Catalogued())
			}
		})
		share := func(n int64) any { return float64(n) / float64(scale) }
		storage, indexSize := 4096*colls, 4096*indexes
		reply := bson.D{{Key: "db", Value: s.req.DB}, {Key: "collections", Value: value.Int(colls)},
			{Key: "views", Value: value.Int(views)},
			{Key: "objects", Value: value.Int(objects)}, {Key: "avgObjSize", Value: float64(size) / float64(max(objects, 1))},
			{Key: "dataSize", Value: share(size)}, {Key: "storageSize", Value: share(storage)}, {Key: "freeStorageSize",
				Value: 0.0},
			{Key: "indexes", Value: value.Int(indexes)}, {Key: "indexSize",
				Value: share(indexSize)}, {Key: "indexFreeStorageSize", Value: 0.0},
			{Key: "totalSize", Value: share(storage + indexSize)}, {Key: "totalFreeStorageSize",
				Value: 0.0}, {Key: "scaleFactor", Value: float64(scale)},
			{Key: "fsUsedSize", Value: float64(1 << 36)}, {Key: "fsTotalSize", Value: float64(1 << 38)}}
		if !mongos(s.req) {
			return reply, nil
		}
		raw := bson.D{{Key: "raw", Value: bson.D{{Key: s.d.opts.ShardHost,
			Value: append(reply, bson.E{Key: "ok", Value: 1.0})}}}}
		for _, key := range []string{"objects", "avgObjSize", "dataSize", "storageSize", "totalSize", "indexes", "indexSize",
			"scaleFactor"} {
			n := int64(value.Float(value.Get(reply, key)))
			raw = append(raw, bson.E{Key: key, Value: value.Int(n)})
			if key == "avgObjSize" {
				raw[len(raw)-1].Value = float64(n)
			}
		}
		return append(raw, bson.E{Key: "fileSize", Value: int32(0)}), nil
	}
}

// validate reports that a collection is valid: its records and indexes cannot be broken here.
func validate(s *call, a *args) action {
	name := a.collection(s.req.DB)
	a.Refuse(a.flag("full") && a.flag("background"), fault.CommandFailed,
		"Running the validate command with both { background: true } and { full: true } is not supported.")
	return func() (bson.D, error) {
		c, records := s.Records(s.req.DB, name)
		switch {
		case c == nil:
			return nil, fault.Errorf(fault.NamespaceNotFound, "Collection '%s.%s' does not exist to validate.", s.req.DB, name)
		case c.IsView():
			return nil, fault.Errorf(fault.CommandNotSupportedOnView, "Cannot validate a view")
		}
		keys, details := bson.D{}, bson.D{}
		for _, x := range c.Indexes {
			keys = append(keys, bson.E{Key: x.Name, Value: value.Int(int64(len(records)))})
			details = append(details, bson.E{Key: x.Name, Value: bson.D{{Key: "valid", Value: true}}})
		}
		out := bson.D{{Key: "ns", Value: c.NS()}, {Key: "nInvalidDocuments", Value: int32(0)},
			{Key: "nrecords", Value: value.Int(int64(len(records)))},
			{Key: "nIndexes", Value: int32(len(c.Indexes))}, {Key: "keysPerIndex", Value: keys}, {Key: "indexDetails",
				Value: details},
			{Key: "valid", Value: true}, {Key: "repaired", Value: false}}
		for _, list := range []string{"warnings", "errors", "extraIndexEntries", "missingIndexEntries", "corruptRecords"} {
			out = append(out, bson.E{Key: list, Value: bson.A{}})
		}
		if !mongos(s.req) {
			return out, nil
		}
		raw := bson.D{{Key: s.d.opts.ShardName, Value: append(out, bson.E{Key: "ok", Value: 1.0})}}
		return bson.D{{Key: "raw", Value: raw}, {Key: "valid", Value: true}}, nil
	}
}

// currentOp lists the commands in progress. Its own fields are a filter.
func currentOp(s *call, a *args) action {
	filter := slices.DeleteFunc(slices.Clone(a.doc[1:]),
		func(e bson.E) bool { return generic(e.Key) || e.Key == "$all" || e.Key == "$ownOps" })
	f, err := query.Compile(filter, query.Options{})
	a.Note(err)
	return func() (bson.D, error) {
		docs, err := f.Select(s.inProgress(nil))
		list := bson.A{}
		for _, doc := range docs {
			list = append(list, doc)
		}
		return bson.D{{Key: "inprog", Value: list}}, err
	}
}
