package commands

import (
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/script"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// host is the pipeline.Host of a scope.
type host struct {
	s    *call
	db   string
	coll string // empty for a database
}

func (h host) Read(name string) ([]bson.D, error) { return h.s.documentsOf(h.db, name, nil, 0) }

// Source also checks the options that fields.txt does not list.
func (h host) Source(stage string, arg any) (out []bson.D, _ error) {
	var p fault.First
	options, isDocument := arg.(bson.D)
	switch stage {
	case "$collStats":
		return h.s.collStatsStage(h.db, h.coll, arg)
	case "$documents":
		list, ok := arg.(bson.A)
		p.Refuse(!ok, 5858203, "an array is expected by $documents")
		for _, v := range list {
			doc, ok := v.(bson.D)
			p.Refuse(!ok, 40228, "$documents must be an array of objects")
			out = append(out, doc)
		}
	case "$indexStats":
		p.Refuse(!isDocument || len(options) > 0, 28803,
			"The $indexStats stage specification must be an empty object, found %s", value.Text(arg))
		out = h.s.indexStats(h.db, h.coll)
	case "$planCacheStats": // plans are not cached
		p.Refuse(!isDocument, fault.FailedToParse, "$planCacheStats value must be an object. Found: %s", value.TypeName(arg))
		p.Refuse(len(options) > 0, fault.FailedToParse, "$planCacheStats parameters object must be empty. Found: %s",
			value.Text(arg))
	case "$listLocalSessions":
		p.Refuse(!isDocument, fault.TypeMismatch, "$listLocalSessions options must be specified in an object, but found: %s",
			value.TypeName(arg))
		p.Note(CheckDocument(h.s.req, stage, options))
		out = h.s.d.cursors.localSessions(address(h.s.req))
	case "$listSearchIndexes":
		_, err := searchNotEnabled(h.s)
		return nil, err
	case "$currentOp":
		p.Refuse(!isDocument, fault.FailedToParse, "$currentOp options must be specified in an object, but found: %s",
			value.TypeName(arg))
		known := strings.Fields("allUsers idleConnections truncateOps localOps idleSessions idleCursors backtrace")
		for _, e := range options {
			p.Refuse(!slices.Contains(known, e.Key), fault.FailedToParse, "Unrecognized option '%s' in $currentOp stage.", e.Key)
			p.Refuse(!value.Is[bool](e.Value), fault.FailedToParse,
				"The '%s' parameter of the $currentOp stage must be a boolean value, but found: %s", e.Key, value.TypeName(e.Value))
		}
		out = h.s.inProgress(options)
	default: // $changeStream in a view or in another stage
		p.Fail(fault.NotImplemented, "%s is not implemented by the embedded deployment", stage)
	}
	return out, p.Err
}

func (h host) Out(db, name string, docs []bson.D) error {
	s, db := h.s, cmp.Or(db, h.db)
	withIDs := make([]bson.D, len(docs))
	for i, doc := range docs {
		withIDs[i], _ = withID(doc, nil)
	}
	if err := namespace(db, name); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		old := tx.Main(db, name)
		if old != nil && (old.IsView() || old.Capped) {
			return fault.Errorf(17152, "namespace '%s' is a view or capped so it can't be used for $out", old.NS())
		}
		out := store.NewCollection(db, name, bson.D{})
		if old != nil {
			out.Options, out.Validator, out.Indexes = old.Options, old.Validator, old.EmptyIndexes()
			out.Collation = old.Collation
		}
		return tx.Exchange(old, out, withIDs)
	})
}

func (h host) Merge(m pipeline.Merge, docs []bson.D) error {
	s := h.s
	m.DB = cmp.Or(m.DB, h.db)
	if err := namespace(m.DB, m.Coll); err != nil {
		return err
	}
	identified := slices.Equal(m.On, []string{"_id"})
	s.View(func(tx *store.Tx) {
		c := tx.Collection(m.DB, m.Coll)
		identified = identified || c != nil && slices.ContainsFunc(c.Indexes, func(x *store.Index) bool {
			return x.Unique && x.Partial == nil && len(x.Key) == len(m.On) &&
				!slices.ContainsFunc(x.Key, func(k bson.E) bool { return !slices.Contains(m.On, k.Key) })
		})
	})
	if !identified {
		return fault.Errorf(51183, "Cannot find index to verify that join fields will be unique")
	}
	if len(docs) == 0 {
		return s.Update(func(tx *store.Tx) error { _, err := tx.Writable(m.DB, m.Coll, true); return err })
	}
	for _, doc := range docs {
		doc, _ := withID(doc, nil)
		err := s.Stopped()
		if err == nil {
			err = s.Update(func(tx *store.Tx) error { return merge(tx, &m, doc) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func merge(tx *store.Tx, m *pipeline.Merge, doc bson.D) error {
	c, err := tx.Writable(m.DB, m.Coll, true)
	if err != nil {
		return err
	}
	filter, key := bson.D{}, []any{}
	for _, name := range m.On {
		key = append(key, value.Get(doc, name))
		filter = value.Append(filter, name, value.Doc("$eq", value.Get(doc, name)))
	}
	f, err := query.Compile(filter, m.Options)
	if err != nil {
		return err
	}
	old, err := search(c, c.Current(), f, 1)
	switch {
	case err != nil:
		return err
	case len(old) == 0 && m.NotMatched == "fail":
		return fault.Errorf(fault.MergeStageNoMatchingDocument,
			"$merge could not find a matching document in the target collection for at least one document in the source collection")
	case len(old) == 0 && m.NotMatched == "discard":
		return nil
	case len(old) == 0:
		return tx.Insert(c, doc, value.Encode(doc))
	case m.Pipeline == nil && m.Matched == "fail":
		return c.Duplicate(c.Indexes[0], key)
	case m.Pipeline == nil && m.Matched == "keepExisting":
		return nil
	}
	merged, err := m.Combine(old[0].Document(), doc)
	if err == nil {
		_, err = tx.Replace(c, old[0], merged, store.Update)
	}
	return err
}

type aggregation struct {
	s         *call
	args      *args
	name, ns  string // name: empty for a database
	list      bson.A
	first     bson.E // the first stage; zero without one
	opts      query.Options
	batchSize int64
	concern   readConcern
}

// aggregate implements aggregate. The names of its stages are checked first.
func aggregate(s *call, a *args) action {
	g := &aggregation{s: s, args: a, ns: s.req.DB + ".$cmd.aggregate"}
	if str, ok := a.any("aggregate").(string); ok {
		g.name, g.ns = str, s.req.DB+"."+str
		a.checkName(s.req.DB, str)
	} else if n, ok := value.Int64(a.any("aggregate")); !ok || n != 1 {
		a.Refuse(!value.IsNumber(a.any("aggregate")) && s.has.IDL, fault.TypeMismatch,
			"collection name has invalid type: %s", value.TypeName(a.any("aggregate")))
		a.Fail(fault.FailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	}
	g.list = a.array("pipeline")
	a.Refuse(!value.Is[bson.A](a.any("pipeline")), fault.TypeMismatch, "'pipeline' option must be specified as an array")
	a.Refuse(a.has("explain") && !value.Is[bool](a.any("explain")), fault.TypeMismatch, "explain must be a boolean")
	explains := a.flag("explain")
	a.Refuse(!a.has("cursor") && !explains, fault.FailedToParse,
		"The 'cursor' option is required, except for aggregate with the explain argument")
	a.Refuse(a.has("cursor") && !value.Is[bson.D](a.any("cursor")), fault.TypeMismatch, "cursor field must be missing or an object")
	c := a.part("cursor")
	a.Note(CheckDocument(s.req, "cursor", c.doc))
	g.batchSize = c.number("batchSize", firstBatch)
	g.opts = s.options(a.let(s.req), a.collation(s, s.req.DB, g.name))
	if a.Err == nil {
		a.Note(pipeline.CheckNames(g.list, g.opts.Wire))
	}
	if explains {
		x := newExplanation(s, a, value.Delete(a.doc, "$db"))
		return func() (bson.D, error) { return x.run("queryPlanner") }
	}
	return g.run
}

func (g *aggregation) run() (bson.D, error) {
	s := g.s
	g.concern = g.args.readConcern(s)
	if len(g.list) > 0 {
		g.first = g.list[0].(bson.D)[0]
	}
	if g.first.Key == "$changeStream" {
		return g.watch(g.first.Value)
	}
	p, err := pipeline.Compile(g.list, g.opts)
	if err == nil {
		err = g.allowed(p)
	}
	if err != nil {
		return nil, err
	}
	now := s.d.Now()
	src := &results{at: g.concern.time(now)}
	if g.batchSize == 0 && p.Writes != "" { // the first getMore runs it
		src.later = func() ([]bson.Raw, error) { return g.results(p) }
	} else if src.docs, err = g.results(p); err != nil {
		return nil, err
	}
	src.known = p.Writes != "" && src.later == nil
	return s.open(g.ns, src, cursorOptions{size: g.batchSize, openFirst: mongos(s.req),
		idFirst: mongos(s.req) && (p.Writes != "" || p.Source == "$planCacheStats")})
}

// results runs a pipeline.
func (g *aggregation) results(p *pipeline.Pipeline) ([]bson.Raw, error) {
	s := g.s
	docs, err := p.Run(host{s, s.req.DB, g.name}, func() ([]bson.D, error) { return g.input(p) })
	if err != nil {
		return nil, err
	}
	raws := make([]bson.Raw, len(docs))
	for i, doc := range docs {
		if value.Size(doc) <= value.MaxBuilt {
			raws[i] = value.Encode(doc)
		}
		if n := len(raws[i]); n == 0 || n > store.MaxDocument {
			return nil, fault.Errorf(fault.BSONObjectTooLarge,
				"BSONObj size: %d is invalid. Size must be between 0 and 16793600(16MB)", n)
		}
	}
	return raws, nil
}

// input returns the documents of the collection, in the order of the index that a first $match would use.
func (g *aggregation) input(p *pipeline.Pipeline) ([]bson.D, error) {
	q := &findCommand{s: g.s, name: g.name, hint: g.args.any("hint"), collation: g.opts.Collation, match: p.Text,
		concern: g.concern}
	if g.first.Key == "$match" {
		q.filter, _ = g.first.Value.(bson.D)
	}
	docs, err := q.documents()
	if order := q.scanOrder(); order != nil {
		err = cmp.Or(err, query.Sort(docs, order, func(d bson.D) bson.D { return d }))
	}
	return docs, err
}

// allowed returns an error if a pipeline cannot run here.
func (g *aggregation) allowed(p *pipeline.Pipeline) error {
	s, database := g.s, g.name == ""
	var f fault.First
	f.Refuse(p.Writes != "" && s.req.Server.Role == Secondary && !s.has.ForwardsOut, fault.NotWritablePrimary,
		"not master")
	f.Refuse(p.Writes != "" && s.InTransaction(), fault.OperationNotSupportedInTransaction,
		"%s cannot be used in a transaction", p.Writes)
	if s.InTransaction() {
		f.Note(s.unfit(p.Source))
	}
	independent := slices.Contains([]string{"$currentOp", "$listLocalSessions", "$documents"}, p.Source)
	f.Refuse(database && len(g.list) == 0, fault.InvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.")
	f.Refuse(database && !independent, fault.InvalidNamespace,
		"{aggregate: 1} is not valid for '%s'; a collection is required.", g.first.Key)
	f.Refuse(!database && independent, fault.InvalidNamespace, "'%s' can only be run with {aggregate: 1}", g.first.Key)
	f.Refuse(p.Source == "$currentOp" && s.req.DB != "admin", fault.InvalidNamespace,
		"$currentOp must be run against the 'admin' database with {aggregate: 1}")
	return f.Err
}

// mapReduce returns its results inline.
func mapReduce(s *call, a *args) action {
	a.flag("verbose")
	a.Refuse(s.d.opts.NoScripting, 16149, "cannot run map reduce without the js engine")
	name, m := a.collection(s.req.DB), &mapReducer{stopped: s.Stopped, mapper: a.function("map"),
		reducer: a.function("reduce"), byKey: map[string]*emitted{}}
	if out, ok := a.any("out").(bson.D); !ok || len(out) != 1 || out[0].Key != "inline" {
		a.Fail(fault.NotImplemented, "mapReduce with out: %s is not implemented by the embedded deployment",
			value.Text(a.any("out")))
	}
	f := a.filter("query", s.filters(nil, a.collation(s, s.req.DB, name)))
	return func() (bson.D, error) {
		c, records := s.Records(s.req.DB, name)
		if c != nil && c.IsView() {
			return nil, store.OnView(c)
		}
		docs, err := f.Select(store.Documents(records))
		if err != nil {
			return nil, err
		}
		results, err := m.run(docs)
		return value.Doc("results", results), err
	}
}

func (a *args) function(key string) *script.Function {
	source, ok := a.any(key).(string)
	if code, isCode := a.any(key).(bson.JavaScript); isCode {
		source, ok = string(code), true
	}
	a.Refuse(!ok, fault.TypeMismatch, "'%s' must be of string or code type", key)
	f, err := script.Parse(source)
	a.Note(err)
	return f
}

type mapReducer struct {
	mapper, reducer *script.Function
	stopped         func() error
	groups          []*emitted
	byKey           map[string]*emitted
}

// emitted are the values that were emitted with a key.
type emitted struct {
	key    any
	values bson.A
}

func (m *mapReducer) emit(args []any) (any, error) {
	if len(args) != 2 {
		return nil, fault.Errorf(fault.JSInterpreterFailure, "emit takes 2 args")
	}
	k := value.Key(args[0])
	if m.byKey[k] == nil {
		m.byKey[k] = &emitted{key: args[0]}
		m.groups = append(m.groups, m.byKey[k])
	}
	m.byKey[k].values = append(m.byKey[k].values, args[1])
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
	for _, g := range m.groups {
		v := g.values[0]
		if len(g.values) > 1 {
			var err error
			if v, err = m.reducer.Call(m.stopped, nil, nil, g.key, g.values); err != nil {
				return nil, err
			}
		}
		out = append(out, value.Doc("_id", g.key, "value", v))
	}
	return out, nil
}
