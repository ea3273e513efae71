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
	nameOnly, size, f := a.flag("nameOnly"), a.batchSize(), a.filter("filter", s.options(nil, value.Collation{}))
	return func() (bson.D, error) {
		var docs []bson.D
		s.View(func(tx *store.Tx) {
			for _, c := range tx.Collections(s.req.DB) {
				docs = append(docs, s.describe(c)...)
			}
		})
		exists := len(docs) > 0
		docs, err := f.Select(docs)
		out := make([]bson.Raw, len(docs))
		for i, doc := range docs {
			if nameOnly {
				doc = doc[:2]
			}
			out[i] = value.Encode(doc)
		}
		reply := s.list(s.req.DB+".$cmd.listCollections", out, size)
		if !exists && mongos(s.req) && s.has.ResultLists {
			reply = append(value.Doc("result", bson.A{}), reply...)
		}
		return reply, err
	}
}

// describe returns the entries of a collection in listCollections. A time series collection has two.
func (s *call) describe(c *store.Collection) []bson.D {
	entry := func(name, kind string, options bson.D) bson.D {
		info := value.Doc("readOnly", c.IsView())
		info = value.AddIf(info, kind == "collection", "uuid", c.UUID)
		return value.Doc("name", name, "type", kind, "options", options, "info", info)
	}
	if !c.TimeSeries || !s.has.TimeSeries {
		doc := entry(c.Name, c.Kind(), c.Options)
		if c.Kind() == "collection" && !c.Clustered() {
			doc = value.Append(doc, "idIndex", c.IDIndex().Spec)
		}
		return []bson.D{doc}
	}
	options, clustered := value.Set(slices.Clone(c.Options), "timeseries", c.Bucketing()), any(true)
	if s.has.FirstViews {
		// 5.0.0 shows the view and no key, according to recordings; the manual describes the options
		options, clustered = c.Definition(), bson.D{}
	}
	buckets := value.Doc("validator", bucketValidator(c), "clusteredIndex", clustered, "timeseries", c.Bucketing())
	return []bson.D{entry(c.Name, c.Kind(), options), entry(c.Buckets(), "collection", buckets)}
}

// bucketValidator returns the validator of the buckets of a time series collection.
func bucketValidator(c *store.Collection) (validator bson.D) {
	name := value.As[string](c.Bucketing(), "timeField")
	at := value.Doc("bsonType", "object", "required", bson.A{name},
		"properties", value.Doc(name, value.Doc("bsonType", "date")))
	const text = `{"$jsonSchema": {"bsonType": "object", "required": ["_id", "control", "data"], "properties": {"_id": {"bsonType": "objectId"},
		"control": {"bsonType": "object", "required": ["version", "min", "max"], "properties": {"version": {"bsonType": "number"},
			"min": %[1]s, "max": %[1]s, "closed": {"bsonType": "bool"}}},
		"data": {"bsonType": "object"}, "meta": {}}, "additionalProperties": false}}`
	_ = bson.UnmarshalExtJSON(fmt.Appendf(nil, text, value.Encode(at)), false, &validator) // this text is valid
	return validator
}

func listDatabases(s *call, a *args) action {
	a.Refuse(s.req.DB != "admin", fault.Unauthorized, "listDatabases may only be run against the admin database.")
	nameOnly, f := a.flag("nameOnly"), a.filter("filter", s.options(nil, value.Collation{}))
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
		list, total := bson.A{}, int64(0)
		for _, doc := range docs {
			total += int64(value.Float(doc[1].Value))
			if nameOnly {
				doc = doc[:1]
			}
			list = append(list, doc)
		}
		reply := value.AddIf(value.Doc("databases", list), !nameOnly, "totalSize", s.diskSize(total))
		inMegabytes := !nameOnly && (s.has.LongSizes || mongos(s.req))
		return value.AddIf(reply, inMegabytes, "totalSizeMb", s.diskSize(total>>20)), err
	}
}

// describeDatabase returns the entry of a database in listDatabases.
func (s *call) describeDatabase(tx *store.Tx, name string) bson.D {
	size := int64(0)
	for _, c := range tx.Collections(name) {
		size += c.Size() + 4096*int64(1+len(c.Indexes))
	}
	shard := s.d.opts.ShardName
	if name == "admin" || name == "config" {
		shard = "config"
	}
	doc := value.Doc("name", name, "sizeOnDisk", s.diskSize(size), "empty", false)
	return value.AddIf(doc, mongos(s.req), "shards", value.Doc(shard, s.diskSize(size)))
}

// diskSize returns a size in the type that listDatabases has for it.
func (s *call) diskSize(n int64) any {
	switch {
	case s.has.LongSizes:
		return n
	case mongos(s.req):
		return value.Int(n)
	}
	return float64(n)
}

func (s *call) collStatsStage(db, name string, arg any) ([]bson.D, error) {
	doc, ok := arg.(bson.D)
	if !ok {
		return nil, fault.Errorf(5447000, "$collStats must take a nested object but found: $collStats: %s", value.Text(arg))
	}
	if err := CheckDocument(s.req, "$collStats", doc); err != nil {
		return nil, err
	}
	c, records := s.Records(db, name)
	out := value.Doc("ns", db+"."+name)
	out = value.AddIf(out, mongos(s.req), "shard", s.d.opts.ShardName)
	out = value.Append(out, "host", s.host(), "localTime", bson.NewDateTimeFromTime(time.Now()))
	for _, e := range doc {
		switch {
		case e.Key == "latencyStats":
			none := value.Doc("latency", int64(0), "ops", int64(0))
			out = value.Append(out, e.Key, value.Doc("reads", none, "writes", none, "commands", none, "transactions", none))
		case c == nil:
			return nil, fault.Errorf(fault.NamespaceNotFound,
				"Unable to retrieve %s in $collStats stage :: caused by :: Collection [%s.%s] not found.", e.Key, db, name)
		case c.IsView():
			return nil, store.OnView(c)
		case e.Key == "count":
			out = value.Append(out, "count", value.Int(int64(len(records))))
		default:
			options, _ := e.Value.(bson.D)
			scale, _ := value.Int64(value.Get(options, "scale"))
			out = value.Append(out, "storageStats", storageStats(c, records, scale))
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
			accesses := value.Doc("ops", int64(0), "since", bson.NewDateTimeFromTime(time.Now()))
			out = append(out, value.Doc("name", x.Name, "key", x.Key, "host", host, "accesses", accesses, "spec", x.Spec))
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
	out := value.Doc("size", share(size), "count", value.Int(n))
	out = value.AddIf(out, n > 0, "avgObjSize", value.Int(size/max(n, 1)))
	out = value.Append(out, "storageSize", share(4096+size), "freeStorageSize", int32(0), "capped", c.Capped)
	out = value.AddIf(out, c.Capped, "max", value.Int(c.MaxDocs))
	out = value.AddIf(out, c.Capped, "maxSize", share(c.MaxSize))
	sizes := bson.D{}
	for _, x := range c.Indexes {
		sizes = value.Append(sizes, x.Name, share(4096))
	}
	total := int64(4096 * len(c.Indexes))
	return value.Append(out, "nindexes", int32(len(c.Indexes)), "indexBuilds", bson.A{}, "totalIndexSize", share(total),
		"totalSize", share(4096+size+total), "indexSizes", sizes, "scaleFactor", value.Int(max(scale, 1)))
}

func collStats(s *call, a *args) action {
	name, scale := a.collection(s.req.DB), a.number("scale", 1)
	return func() (bson.D, error) {
		c, records := s.Records(s.req.DB, name)
		reply := value.Doc("ns", s.req.DB+"."+name)
		switch {
		case c == nil:
			return value.Append(reply, "size", int32(0), "count", int32(0), "storageSize", int32(0), "totalSize", int32(0),
				"nindexes", int32(0), "totalIndexSize", int32(0), "indexDetails", bson.D{}, "indexSizes", bson.D{},
				"scaleFactor", value.Int(scale)), nil
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
		reply := value.Doc("db", s.req.DB, "collections", value.Int(colls), "views", value.Int(views),
			"objects", value.Int(objects), "avgObjSize", float64(size)/float64(max(objects, 1)), "dataSize", share(size),
			"storageSize", share(storage), "freeStorageSize", 0.0, "indexes", value.Int(indexes), "indexSize", share(indexSize),
			"indexFreeStorageSize", 0.0, "totalSize", share(storage+indexSize), "totalFreeStorageSize", 0.0,
			"scaleFactor", float64(scale), "fsUsedSize", float64(1<<36), "fsTotalSize", float64(1<<38))
		if !mongos(s.req) {
			return reply, nil
		}
		raw := value.Doc("raw", value.Doc(s.d.opts.ShardHost, value.Append(reply, "ok", 1.0)))
		for _, key := range []string{"objects", "avgObjSize", "dataSize", "storageSize", "totalSize", "indexes", "indexSize",
			"scaleFactor"} {
			n := int64(value.Float(value.Get(reply, key)))
			raw = value.Append(raw, key, value.Int(n))
			if key == "avgObjSize" {
				raw[len(raw)-1].Value = float64(n)
			}
		}
		return value.Append(raw, "fileSize", int32(0)), nil
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
			keys = value.Append(keys, x.Name, value.Int(int64(len(records))))
			details = value.Append(details, x.Name, value.Doc("valid", true))
		}
		out := value.Doc("ns", c.NS(), "nInvalidDocuments", int32(0), "nrecords", value.Int(int64(len(records))),
			"nIndexes", int32(len(c.Indexes)), "keysPerIndex", keys, "indexDetails", details, "valid", true, "repaired", false)
		out = value.Append(out, "warnings", bson.A{}, "errors", bson.A{}, "extraIndexEntries", bson.A{},
			"missingIndexEntries", bson.A{}, "corruptRecords", bson.A{})
		if !mongos(s.req) {
			return out, nil
		}
		raw := value.Doc(s.d.opts.ShardName, value.Append(out, "ok", 1.0))
		return value.Doc("raw", raw, "valid", true), nil
	}
}

// currentOp lists the commands in progress. Its own fields are a filter.
func currentOp(s *call, a *args) action {
	filter := slices.DeleteFunc(slices.Clone(a.doc[1:]),
		func(e bson.E) bool { return Generic(e.Key) || e.Key == "$all" || e.Key == "$ownOps" })
	f, err := query.Compile(filter, s.options(nil, value.Collation{}))
	a.Note(err)
	return func() (bson.D, error) {
		docs, err := f.Select(s.inProgress(nil))
		return value.Doc("inprog", value.Array(docs)), err
	}
}

// inProgress returns the documents of $currentOp: commands in progress, open transactions unless idleSessions is false,
// and open cursors if idleCursors is true.
func (s *call) inProgress(options bson.D) (out []bson.D) {
	for _, o := range s.req.Operations(value.Get(options, "localOps") == true) {
		out = append(out, value.Must(o))
	}
	idle := func(kind string, fields ...any) {
		out = append(out, value.Append(value.Doc("type", kind, "host", address(s.req)), fields...))
	}
	if value.Get(options, "idleSessions") != false {
		for _, t := range s.d.OpenTransactions() {
			idle("idleSession", "desc", "inactive transaction", "active", false,
				"lsid", withDigest(value.FromRaw(t.LSID.Lookup("id"))), "transaction", value.Doc("parameters", value.Doc("txnNumber", t.Number, "autocommit", false)))
		}
	}
	if value.Get(options, "idleCursors") == true {
		for _, c := range s.d.cursors.idle(address(s.req)) {
			idle("idleCursor", "ns", c.ns, "cursor", value.Doc("cursorId", c.id, "tailable", c.await, "awaitData", c.await,
				"noCursorTimeout", c.noTimeout, "lastAccessDate", bson.NewDateTimeFromTime(c.used)))
		}
	}
	return out
}

// withDigest returns a session id as servers show it, with the digest of its user.
func withDigest(id any) bson.D {
	return value.Doc("id", id, "uid", store.UserDigest(""))
}

// idle returns copies of the cursors of a server that no command uses, in the order of their ids.
func (all *cursors) idle(server string) (out []cursor) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, c := range all.open {
		if c.server == server && !c.busy {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b cursor) int { return int(a.id>>32) - int(b.id>>32) })
	return out
}
