package data

import (
	"context"
	"sort"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func sortRecords(r []*record) {
	sort.Slice(r, func(i, j int) bool { return r[i].rid < r[j].rid })
}

// host is a scope as pipelines see it.
type host struct {
	s    *scope
	db   string
	coll string // empty: the database
}

func (h host) Read(_ context.Context, db, name string) ([]bson.D, error) {
	return h.s.d.documentsOf(h.s, db, name, 0)
}

// documentsOf are the documents of a collection or a view.
func (d *Data) documentsOf(s *scope, db, name string, depth int) ([]bson.D, error) {
	if depth > 20 {
		return nil, command.Errorf(165, "View depth too deep")
	}
	c, records := s.records(db, name)
	if c != nil && c.isView() {
		return d.readView(s, c, nil, depth)
	}
	return documentsIn(records), nil
}

// readView runs the pipeline of a view.
func (d *Data) readView(s *scope, c *collection, let bson.D, depth int) ([]bson.D, error) {
	p, err := pipeline.Compile(c.pipeline, pipeline.Options{DB: c.db, Let: let, Now: d.opts.Now()})
	if err != nil {
		return nil, err
	}
	return p.Run(s.req.Context, host{s, c.db, c.view}, func() ([]bson.D, error) { return d.documentsOf(s, c.db, c.view, depth+1) })
}

func (h host) Source(_ context.Context, stage string, arg any) ([]bson.D, error) {
	d := h.s.d
	switch stage {
	case "$collStats":
		return d.collStatsStage(h.s, h.db, h.coll, arg)
	case "$indexStats":
		return d.indexStats(h.s, h.db, h.coll)
	case "$documents":
		list, ok := arg.(bson.A)
		if !ok {
			return nil, command.Errorf(5858203, "an array is expected by $documents")
		}
		var out []bson.D
		for _, v := range list {
			doc, ok := v.(bson.D)
			if !ok {
				return nil, command.Errorf(40228, "$documents must be an array of objects")
			}
			out = append(out, doc)
		}
		return out, nil
	case "$listLocalSessions", "$listSessions":
		return d.seen.list(address(h.s.req)), nil
	case "$listSearchIndexes":
		_, err := d.noSearch(h.s, nil)
		return nil, err
	case "$currentOp":
		options, _ := arg.(bson.D)
		local, _ := lookup(options, []string{"localOps"})
		var out []bson.D
		for _, o := range h.s.req.Operations(local == true) {
			out = append(out, value.Must(o))
		}
		return out, nil
	}
	return nil, command.Errorf(238, "%s is not implemented by the embedded deployment", stage)
}

func (h host) Out(_ context.Context, db, name string, docs []bson.D) error {
	s, d := h.s, h.s.d
	if err := namespace(db, name); err != nil {
		return err
	}
	return s.locked(func() error {
		old := d.collection(db, name)
		if old != nil && (old.isView() || old.capped) {
			return command.Errorf(17152, "namespace '%s' is a view or capped so it can't be used for $out", old.ns())
		}
		fresh := newCollection(db, name, bson.D{})
		if old != nil {
			fresh.options, fresh.validator = old.options, old.validator
			fresh.indexes = nil
			for _, x := range old.indexes {
				fresh.indexes = append(fresh.indexes, x.fresh())
			}
		}
		var records []*record
		for _, doc := range docs {
			doc, raw := withID(doc, value.Encode(doc))
			if e := fresh.check(doc, 0); e != nil {
				return e
			}
			d.nextRID++
			r := &record{d.nextRID, raw}
			fresh.add(r, doc)
			records = append(records, r)
		}
		// The new collection takes the place of the old one in one step.
		if old != nil {
			d.removeCollection(old)
		}
		d.addCollection(fresh)
		ts := d.tick()
		if old != nil {
			d.log(entry{ts: ts, kind: opDrop, db: db, coll: name, uuid: old.uuid})
			ts = d.tick()
		}
		d.log(entry{ts: ts, kind: opCreate, db: db, coll: name, uuid: fresh.uuid, nsType: fresh.kind(), detail: describeCreate(fresh)})
		for _, r := range records {
			d.log(entry{ts: d.tick(), kind: opInsert, db: db, coll: name, uuid: fresh.uuid, rid: r.rid, post: r.raw})
		}
		s.writes = true
		return nil
	})
}

func (h host) Merge(_ context.Context, m *pipeline.Merge, docs []bson.D) error {
	s, d := h.s, h.s.d
	if err := namespace(m.DB, m.Collection); err != nil {
		return err
	}
	for _, doc := range docs {
		doc, _ := withID(doc, nil)
		err := s.locked(func() error { return d.mergeOne(s, m, doc) })
		if err != nil {
			return err
		}
	}
	if len(docs) == 0 {
		return s.locked(func() error { _, err := s.writable(m.DB, m.Collection, true); return err })
	}
	return nil
}

func (d *Data) mergeOne(s *scope, m *pipeline.Merge, doc bson.D) error {
	c, err := s.writable(m.DB, m.Collection, true)
	if err != nil {
		return err
	}
	old := c.byID(doc[0].Value)
	if old == nil {
		switch m.WhenNotMatched {
		case "discard":
			return nil
		case "fail":
			return command.Errorf(13113, "$merge could not find a matching document in the target collection for at least one document in the source collection")
		}
		return s.insert(c, doc, value.Encode(doc))
	}
	var merged bson.D
	switch m.WhenMatched {
	case "keepExisting":
		return nil
	case "fail":
		return c.duplicate(c.indexes[0], []any{doc[0].Value})
	case "replace":
		merged = doc
	default:
		merged = old.doc()
		for _, e := range doc {
			merged = value.Set(merged, e.Key, e.Value)
		}
	}
	_, _, err = s.replace(c, old, merged, opUpdate)
	return err
}

const aggregateFields = " pipeline cursor explain allowDiskUse bypassDocumentValidation collation hint let exchange fromMongos needsMerge runtimeConstants legacyRuntimeConstants collectionUUID isMapReduceCommand includeQueryStatsMetrics encryptionInformation "

func (d *Data) aggregate(req *command.Request, a *args) (action, error) {
	a.only(aggregateFields)
	name, coll := "", req.DB+".$cmd.aggregate"
	if str, ok := a.any("aggregate").(string); ok {
		name, coll = str, req.DB+"."+str
		if err := namespace(req.DB, name); err != nil {
			return nil, err
		}
	} else if n, ok := value.Whole(a.any("aggregate")); !ok || n != 1 {
		return nil, command.Errorf(9, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	}
	list := a.array("pipeline")
	if !a.has("pipeline") {
		return nil, command.Errorf(40414, "BSON field 'aggregate.pipeline' is missing but a required field")
	}
	if a.err != nil {
		return nil, a.err
	}
	explain := a.flag("explain")
	if !a.has("cursor") && !explain {
		return nil, command.Errorf(9, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	cursorDoc := a.document("cursor")
	if a.err != nil {
		return nil, command.Errorf(14, "cursor field must be missing or an object")
	}
	sizes := &args{of: "aggregate.cursor", doc: cursorDoc}
	size := sizes.number("batchSize", firstBatch)
	if size < 0 {
		return nil, command.Errorf(51024, "BSON field 'batchSize' value must be >= 0, actual value '%d'", size)
	}
	for _, e := range cursorDoc {
		if e.Key != "batchSize" {
			return nil, command.Errorf(40415, "BSON field 'cursor.%s' is an unknown field.", e.Key)
		}
	}
	if sizes.err != nil {
		return nil, sizes.err
	}
	opts := pipeline.Options{DB: req.DB, Let: a.let(d), Now: d.opts.Now(), Collation: a.collation()}
	if a.err != nil {
		return nil, a.err
	}
	if err := pipeline.Named(list); err != nil {
		return nil, err
	}
	return func(s *scope) (bson.D, error) {
		level, at, err := d.readConcern(a)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			if first, ok := list[0].(bson.D); ok && len(first) == 1 && first[0].Key == "$changeStream" {
				return d.changeStream(s, a, name, coll, first[0].Value, list[1:], opts, size)
			}
		}
		p, err := pipeline.Compile(list, opts)
		if err != nil {
			return nil, err
		}
		if p.Writes != "" {
			// Since 5.0 a secondary passes on to the primary what is to be written.
			if s.req.Server != nil && s.req.Server.Role == command.Secondary && wire(s.req) < wire50 {
				return nil, command.Errorf(10107, "not master")
			}
			if s.txn != nil {
				return nil, command.Errorf(263, "%s cannot be used in a transaction", p.Writes)
			}
			if level == "linearizable" {
				return nil, command.Errorf(72, "%s cannot be used with a 'linearizable' read concern level", p.Writes)
			}
		}
		switch {
		case name == "" && p.Source == "":
			return nil, command.Errorf(73, "{aggregate: 1} is not valid for an empty pipeline or one that starts with a stage that needs a collection.")
		case name == "" && (p.Source == "$collStats" || p.Source == "$indexStats"):
			return nil, command.Errorf(73, "%s is not valid for {aggregate: 1}", p.Source)
		case name != "" && (p.Source == "$currentOp" || p.Source == "$listLocalSessions" || p.Source == "$documents"):
			return nil, command.Errorf(73, "%s must be run against the database with {aggregate: 1}, not a collection", p.Source)
		case p.Source == "$currentOp" && s.req.DB != "admin":
			return nil, command.Errorf(73, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
		case p.Source == "$documents" && wire(s.req) > 0 && wire(s.req) < 13:
			return nil, command.Errorf(40324, "Unrecognized pipeline stage name: '$documents'")
		}
		h := host{s, s.req.DB, name}
		if explain {
			return d.explained(s, a.doc), nil
		}
		hint := a.any("hint")
		now := d.clock.time()
		docs, err := p.Run(s.req.Context, h, func() ([]bson.D, error) {
			return d.documentsAt(s, name, hint, at)
		})
		if err != nil {
			return nil, err
		}
		raws := make([]bson.Raw, len(docs))
		for i, doc := range docs {
			if value.Size(doc) <= value.MaxBuilt {
				raws[i] = value.Encode(doc)
			}
			if n := len(raws[i]); n == 0 || n > maxDocument {
				return nil, command.Errorf(10334, "BSONObj size: %d is invalid. Size must be between 0 and 16793600(16MB)", len(raws[i]))
			}
		}
		src := &results{docs: raws}
		if level == "snapshot" && s.txn == nil {
			if at != nil {
				now = *at
			}
			src.at = bson.D{{Key: "atClusterTime", Value: now}}
		}
		if p.Writes != "" && len(raws) == 0 {
			src.known = true
		}
		cur, batch, extra, err := s.open(coll, coll, src, size, false, false)
		if err != nil {
			return nil, err
		}
		return cursorReply(cur, "firstBatch", batch, extra, mongos(s.req) && p.Writes != ""), nil
	}, nil
}

func (d *Data) explained(s *scope, doc bson.D) bson.D {
	return bson.D{
		{Key: "explainVersion", Value: "1"},
		{Key: "queryPlanner", Value: bson.D{{Key: "namespace", Value: s.req.DB}, {Key: "winningPlan", Value: bson.D{{Key: "stage", Value: "COLLSCAN"}}}}},
		{Key: "command", Value: doc},
		{Key: "serverInfo", Value: bson.D{{Key: "host", Value: address(s.req)}}},
	}
}
