package data

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// host is the pipeline.Host of a scope.
type host struct {
	s    *scope
	db   string
	coll string // empty for a database
}

func (h host) Read(name string) ([]bson.D, error) { return h.s.documentsOf(h.db, name, nil, 0) }

func (h host) Source(stage string, arg any) ([]bson.D, error) {
	switch stage {
	case "$collStats":
		return h.s.collStatsStage(h.db, h.coll, arg)
	case "$documents":
		var p command.FirstError
		list, ok := arg.(bson.A)
		p.Refuse(!ok, 5858203, "an array is expected by $documents")
		out := make([]bson.D, len(list))
		for i, v := range list {
			out[i], ok = v.(bson.D)
			p.Refuse(!ok, 40228, "$documents must be an array of objects")
		}
		return out, p.Err
	case "$listLocalSessions":
		return h.s.d.localSessions(address(h.s.req)), nil
	case "$listSearchIndexes":
		return nil, searchNotEnabled()
	case "$currentOp":
		options, _ := arg.(bson.D)
		var out []bson.D
		for _, o := range h.s.req.Operations(value.Get(options, "localOps") == true) {
			out = append(out, value.Must(o))
		}
		return out, nil
	}
	return nil, command.Errorf(command.CodeNotImplemented, "%s is not implemented by the embedded deployment", stage)
}

func (h host) Out(name string, docs []bson.D) error {
	s, d, db := h.s, h.s.d, h.db
	if err := namespace(db, name); err != nil {
		return err
	}
	return s.locked(func() error {
		old := d.collection(db, name)
		if old != nil && (old.isView() || old.capped) {
			return command.Errorf(17152, "namespace '%s' is a view or capped so it can't be used for $out", old.ns())
		}
		out := newCollection(db, name, bson.D{})
		if old != nil {
			out.options, out.validator, out.indexes = old.options, old.validator, old.emptyIndexes()
		}
		for _, doc := range docs {
			doc, raw := withID(doc, value.Encode(doc))
			if e := out.check(doc, 0); e != nil {
				return e
			}
			d.nextRID++
			out.swap(nil, newRecord(d.nextRID, raw))
		}
		if old != nil {
			d.removeCollection(old)
			s.changed(entry{kind: opDrop, db: db, coll: name, uuid: old.uuid})
		}
		d.addCollection(out)
		s.changed(out.created())
		for _, r := range out.docs {
			s.changed(entry{kind: opInsert, db: db, coll: name, uuid: out.uuid, new: r})
		}
		return nil
	})
}

func (h host) Merge(name string, fail bool, docs []bson.D) error {
	s := h.s
	if err := namespace(h.db, name); err != nil {
		return err
	}
	if len(docs) == 0 {
		return s.locked(func() error { _, err := s.writable(h.db, name, true); return err })
	}
	for _, doc := range docs {
		doc, _ := withID(doc, nil)
		if err := s.locked(func() error { return s.merge(h.db, name, fail, doc) }); err != nil {
			return err
		}
	}
	return nil
}

// merge inserts a document or, without fail, sets its fields in the document with the same _id. The caller holds mu.
func (s *scope) merge(db, name string, fail bool, doc bson.D) error {
	c, err := s.writable(db, name, true)
	if err != nil {
		return err
	}
	old := c.withID(doc[0].Value)
	switch {
	case len(old) == 0:
		return s.insert(c, doc, value.Encode(doc))
	case fail:
		return c.duplicate(c.indexes[0], []any{doc[0].Value})
	}
	merged := slices.Clone(old[0].doc)
	for _, e := range doc {
		merged = value.Set(merged, e.Key, e.Value)
	}
	_, err = s.replace(c, old[0], merged, opUpdate)
	return err
}

const aggregateFields = " pipeline cursor allowDiskUse bypassDocumentValidation collation hint let exchange fromMongos needsMerge runtimeConstants legacyRuntimeConstants collectionUUID isMapReduceCommand includeQueryStatsMetrics encryptionInformation "

type aggregation struct {
	s         *scope
	args      *args
	name, ns  string // name: empty for a database
	list      bson.A
	opts      query.Options
	batchSize int64
	concern   readConcern
}

// aggregate implements aggregate. Stage names and the read concern are checked first and last, respectively.
func aggregate(s *scope, a *args) action {
	a.only(aggregateFields)
	g := &aggregation{s: s, args: a, ns: s.req.DB + ".$cmd.aggregate"}
	if str, ok := a.any("aggregate").(string); ok {
		g.name, g.ns = str, s.req.DB+"."+str
		a.checkName(s.req.DB, str)
	} else if n, ok := value.Int64(a.any("aggregate")); !ok || n != 1 {
		a.Fail(command.CodeFailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	}
	g.list = a.array("pipeline")
	a.need("pipeline")
	a.Refuse(!a.has("cursor"), command.CodeFailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	_, ok := a.any("cursor").(bson.D)
	a.Refuse(!ok && a.any("cursor") != nil, command.CodeTypeMismatch, "cursor field must be missing or an object")
	c := a.part("cursor")
	g.batchSize = c.number("batchSize", firstBatch)
	a.Refuse(g.batchSize < 0, command.CodeValueTooSmall, "BSON field 'batchSize' value must be >= 0, actual value '%d'", g.batchSize)
	for _, e := range c.doc {
		a.Refuse(e.Key != "batchSize", command.CodeIDLUnknownField, "BSON field 'cursor.%s' is an unknown field.", e.Key)
	}
	g.opts = query.Options{Let: a.let(), Collation: a.collation()}
	if a.Err == nil {
		a.Note(pipeline.CheckNames(g.list))
	}
	return g.run
}

func (g *aggregation) run() (bson.D, error) {
	s := g.s
	late := &args{of: g.args.of, doc: g.args.doc, FirstError: new(command.FirstError)}
	if g.concern = late.readConcern(s); late.Err != nil {
		return nil, late.Err
	}
	if len(g.list) > 0 {
		if first := g.list[0].(bson.D)[0]; first.Key == "$changeStream" {
			return g.watch(first.Value)
		}
	}
	p, err := pipeline.Compile(g.list, g.opts)
	if err == nil {
		err = g.allowed(p)
	}
	if err != nil {
		return nil, err
	}
	now := s.d.clock.time()
	docs, err := p.Run(host{s, s.req.DB, g.name}, func() ([]bson.D, error) {
		return s.documents(g.name, g.args.any("hint"), g.concern.at, nil)
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
			return nil, command.Errorf(command.CodeBSONObjectTooLarge, "BSONObj size: %d is invalid. Size must be between 0 and 16793600(16MB)", n)
		}
	}
	src := &results{docs: raws, known: p.Writes != "" && len(raws) == 0, at: g.concern.time(now)}
	return s.open(g.ns, src, cursorOptions{size: g.batchSize, idFirst: mongos(s.req) && p.Writes != ""})
}

// allowed returns an error if a pipeline cannot run here.
func (g *aggregation) allowed(p *pipeline.Pipeline) error {
	s, database := g.s, g.name == ""
	var f command.FirstError
	// Since 5.0, a secondary forwards the writes to the primary.
	f.Refuse(p.Writes != "" && s.req.Server.Role == command.Secondary && wire(s.req) < wire50, command.CodeNotWritablePrimary,
		"not master")
	f.Refuse(p.Writes != "" && s.txn != nil, command.CodeOperationNotSupportedInTransaction,
		"%s cannot be used in a transaction", p.Writes)
	f.Refuse(p.Writes != "" && g.concern.level == "linearizable", command.CodeInvalidOptions,
		"%s cannot be used with a 'linearizable' read concern level", p.Writes)
	f.Refuse(database && p.Source == "", command.CodeInvalidNamespace,
		"{aggregate: 1} is not valid for an empty pipeline or one that starts with a stage that needs a collection.")
	f.Refuse(database && p.Source == "$collStats", command.CodeInvalidNamespace,
		"%s is not valid for {aggregate: 1}", p.Source)
	f.Refuse(!database && (p.Source == "$currentOp" || p.Source == "$listLocalSessions" || p.Source == "$documents"), command.CodeInvalidNamespace,
		"%s must be run against the database with {aggregate: 1}, not a collection", p.Source)
	f.Refuse(p.Source == "$currentOp" && s.req.DB != "admin", command.CodeInvalidNamespace,
		"$currentOp must be run against the 'admin' database with {aggregate: 1}")
	f.Refuse(p.Source == "$documents" && wire(s.req) < wire50, 40324, "Unrecognized pipeline stage name: '$documents'")
	return f.Err
}

// mapReduce implements mapReduce with inline results.
func mapReduce(s *scope, a *args) action {
	a.readConcern(s)
	a.only(" map reduce out query verbose ") // verbose has no effect
	a.flag("verbose")
	a.Refuse(s.d.opts.NoScripting, 16149, "cannot run map reduce without the js engine")
	name, m := a.name(), &mapReducer{stopped: s.stopped, mapper: a.function("map"), reducer: a.function("reduce"), byKey: map[string]int{}}
	if out, ok := a.any("out").(bson.D); !ok || len(out) != 1 || out[0].Key != "inline" {
		a.Fail(command.CodeNotImplemented, "mapReduce with out: %s is not implemented by the embedded deployment", value.Text(a.any("out")))
	}
	f := a.filter("query", query.Options{Scripts: s.scripts()})
	return func() (bson.D, error) {
		c, records := s.records(s.req.DB, name)
		if c != nil && c.isView() {
			return nil, onView(c)
		}
		docs, err := f.Select(documentsIn(records))
		if err != nil {
			return nil, err
		}
		results, err := m.run(docs)
		return bson.D{{Key: "results", Value: results}}, err
	}
}

func (a *args) function(key string) *script.Function {
	a.need(key)
	source, ok := a.any(key).(string)
	if code, isCode := a.any(key).(bson.JavaScript); isCode {
		source, ok = string(code), true
	}
	a.Refuse(!ok, command.CodeTypeMismatch, "'%s' must be of string or code type", key)
	f, err := script.Parse(source)
	a.Note(err)
	return f
}

type mapReducer struct {
	mapper, reducer *script.Function
	stopped         func() error
	keys            []any
	values          []bson.A
	byKey           map[string]int // positions in keys and values
}

func (m *mapReducer) emit(args []any) (any, error) {
	if len(args) != 2 {
		return nil, command.Errorf(command.CodeJSInterpreterFailure, "emit takes 2 args")
	}
	k := value.Key(args[0])
	i, ok := m.byKey[k]
	if !ok {
		i = len(m.keys)
		m.byKey[k] = i
		m.keys = append(m.keys, args[0])
		m.values = append(m.values, nil)
	}
	m.values[i] = append(m.values[i], args[1])
	return nil, nil
}

// run maps documents and reduces the emitted values.
func (m *mapReducer) run(docs []bson.D) (bson.A, error) {
	for _, doc := range docs {
		if _, err := m.mapper.Call(m.stopped, doc, map[string]script.Builtin{"emit": m.emit}); err != nil {
			return nil, err
		}
	}
	out := bson.A{}
	for i, key := range m.keys {
		v := m.values[i][0]
		if len(m.values[i]) > 1 {
			var err error
			if v, err = m.reducer.Call(m.stopped, nil, nil, key, m.values[i]); err != nil {
				return nil, err
			}
		}
		out = append(out, bson.D{{Key: "_id", Value: key}, {Key: "value", Value: v}})
	}
	return out, nil
}
