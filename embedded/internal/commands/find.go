package commands

import (
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

type findCommand struct {
	s         *call
	name      string
	canonical canonical

	filter, sort, min, max                           bson.D
	skip, limit, batchSize                           int64
	single, tailable, await, returnKey, showRecordID bool
	hint                                             any
	collation                                        value.Collation
	concern                                          readConcern

	match *query.Filter
	order *query.Order // of the results
	proj  *query.Projection
	plan
}

// plan is how a server would read the documents of a query.
type plan struct {
	c        *store.Collection // or view; nil if it does not exist
	hinted   *store.Index      // that the hint names, or nil
	index    *store.Index      // that a server would scan, or nil
	blocking bool              // the sort has to read everything first
}

func find(s *call, a *args) action { return newFind(s, a).run }

func newFind(s *call, a *args) *findCommand {
	q := &findCommand{s: s, concern: a.readConcern(s), hint: a.any("hint")}
	a.Refuse(value.Is[bson.Binary](a.doc[0].Value), fault.NamespaceNotFound, "Unable to resolve UUID")
	if q.name = a.name(); q.name != "" && s.has.FindNames && namespace(s.req.DB, q.name) != nil {
		a.Fail(fault.InvalidNamespace, "Invalid collection name specified '%s.%s", s.req.DB, q.name) // sic
	}
	a.checkName(s.req.DB, q.name)
	q.skip, q.limit = a.number("skip", 0), a.number("limit", 0)
	q.batchSize = a.number("batchSize", a.number("ntoreturn", firstBatch))
	a.Refuse(a.has("ntoreturn") && (a.has("batchSize") || a.has("limit")), fault.BadValue,
		"'limit' or 'batchSize' fields can not be set with 'ntoreturn' field.")
	s.noTimeout = a.flag("noCursorTimeout")
	q.single, q.tailable, q.await = a.flag("singleBatch"), a.flag("tailable"), a.flag("awaitData")
	q.returnKey, q.showRecordID = a.flag("returnKey"), a.flag("showRecordId")
	q.collation = a.collation(s, s.req.DB, q.name)
	opts := s.filters(a.let(s.req), q.collation)
	q.filter, q.sort = a.document("filter"), a.document("sort")
	opts = opts.InSlots(q.filter, q.sort)
	q.min, q.max = a.document("min"), a.document("max")
	a.Refuse(len(q.min) > 0 && len(q.max) > 0 && !sameKeys(q.min, q.max), 51176,
		"min and max must have the same field names")
	projection := a.document("projection")
	a.Refuse(q.await && !q.tailable, fault.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	a.Refuse(q.tailable && len(q.sort) > 0 && !value.Equal(q.sort, value.Doc("$natural", int32(1))), fault.BadValue,
		"cannot use tailable option with a sort other than {$natural: 1}")
	a.Refuse(q.tailable && q.single, fault.BadValue, "cannot use tailable option with the 'singleBatch' option")
	q.canonical = canonical{s.req.DB + "." + q.name, a.number("batchSize", 0), q.limit, q.skip, q.filter, q.sort,
		projection}
	var err error
	q.match, err = query.Compile(q.filter, opts)
	if _, where := value.Field(q.filter, "$where"); where && mongos(s.req) { // the shard parses it
		err = fault.Within("Encountered non-retryable error during query", err)
	}
	a.Note(err)
	q.order, err = query.CompileOrder(q.sort, opts.Collation)
	a.Note(err)
	a.Note(q.order.On(q.match))
	opts.Match = q.match
	q.proj, err = query.CompileProjection(projection, opts)
	a.Note(err)
	return q
}

func (q *findCommand) choosePlan() (err error) {
	q.s.View(func(tx *store.Tx) {
		q.c = tx.Collection(q.s.req.DB, q.name)
		if q.hinted, err = hintedIndex(q.c, q.hint, q.canonical); err == nil {
			q.index = q.choose(q.c)
		}
	})
	q.blocking = q.order != nil && !q.sortedBy(q.index) && natural(q.sort) == 0
	return cmp.Or(err, needsText(q.c, q.match), q.bounded())
}

func (q *findCommand) run() (bson.D, error) {
	now := q.s.d.Now()
	if err := cmp.Or(q.allowed(), q.choosePlan()); err != nil {
		return nil, err
	}
	if q.tailable {
		return q.runTailable()
	}
	_, byID := q.match.ID()
	if q.order == nil && !byID {
		q.order = q.scanOrder()
	}
	records, err := q.records()
	if err != nil {
		return nil, err
	}
	missing, onMongos := q.c == nil, mongos(q.s.req)
	src := &scan{q: q, c: q.c, left: q.limit}
	if !missing || onMongos { // a mongod does not take a snapshot of a missing collection
		src.at = q.concern.time(now)
	}
	if src.planned, err = q.hits(records); err != nil {
		return nil, err
	}
	if !missing && !q.c.IsView() && q.seesChanges() {
		src.read = records
	}
	limited := q.limit > 0 && int64(len(src.planned)) >= q.limit && !q.s.has.SlotEngine
	src.known = limited || byID || q.blocking || missing && !(onMongos && q.batchSize == 0)
	return q.s.open(q.canonical.ns, src, cursorOptions{size: q.batchSize, single: q.single, idFirst: missing && !onMongos})
}

// allowed returns an error if the command cannot run in the transaction.
func (q *findCommand) allowed() error {
	var p fault.First
	inside := q.s.InTransaction()
	p.Refuse(inside && q.tailable, fault.InvalidOptions, "It is illegal to open a tailable cursor in a transaction")
	p.Refuse(inside && q.s.has.TransactionErrors && q.name == "system.views", 51071,
		"Cannot query system.views within a transaction")
	return p.Err
}

// seesChanges reports whether a getMore returns what has been written since the first batch.
func (q *findCommand) seesChanges() bool {
	return !q.s.InTransaction() && !q.concern.snapshot && natural(q.hint) >= 0 && natural(q.sort) >= 0
}

// bounded returns an error if min and max are not bounds of the index.
func (q *findCommand) bounded() error {
	var p fault.First
	p.Refuse(len(q.min)+len(q.max) > 0 && q.hint == nil, 51173,
		"When using min()/max() a hint of which index to use must be provided")
	for _, bound := range []bson.D{q.min, q.max} {
		p.Refuse(len(bound) > 0 && q.c != nil && (q.hinted == nil || !sameKeys(q.hinted.Key, bound)), 51174,
			"The index chosen is not compatible with min/max")
	}
	p.Refuse(len(q.min) > 0 && len(q.max) > 0 && value.Compare(q.min, q.max) >= 0, 51175,
		"The value provided for min() does not come before the value provided for max().")
	return p.Err
}

// sameKeys reports whether two documents have the same names of fields.
func sameKeys(a, b bson.D) bool {
	return slices.EqualFunc(a, b, func(x, y bson.E) bool { return x.Key == y.Key })
}

// scanOrder returns the order in which a server finds the documents without a sort; nil is the order of the records.
func (q *findCommand) scanOrder() *query.Order {
	if q.index != nil {
		return query.IndexOrder(q.index.Key, q.index.Collation)
	}
	key, _ := q.hint.(bson.D)
	if natural(key) == 0 {
		return nil
	}
	return query.IndexOrder(key, value.Collation{})
}

// records returns the records to search.
func (q *findCommand) records() (out []*store.Record, err error) {
	if id, ok := q.match.ID(); ok && q.c.FindsByID() && q.concern.at == nil && len(q.min)+len(q.max) == 0 {
		// Looking up one record needs only the read lock.
		q.s.View(func(tx *store.Tx) { out = q.c.WithID(id) })
		return out, nil
	}
	out, err = q.s.recordsOf(q.s.req.DB, q.name, q.concern.at, 0)
	return covered(q.hinted, out), err
}

// hits returns the matching records in order, after skip.
func (q *findCommand) hits(records []*store.Record) ([]*store.Record, error) {
	stop := int64(0)
	if len(q.min)+len(q.max) > 0 {
		records = slices.DeleteFunc(slices.Clone(records), func(r *store.Record) bool {
			keys, _ := q.hinted.Keys(r.Document()) // without error: the index exists
			return !slices.ContainsFunc(keys, func(key []any) bool {
				return q.compareBound(key, q.min) >= 0 && (len(q.max) == 0 || q.compareBound(key, q.max) < 0)
			})
		})
	}
	if q.order == nil && q.limit > 0 {
		stop = q.skip + q.limit
	}
	hits, err := search(nil, records, q.match, stop)
	unsorted := fault.Within("Executor error during find command", query.Sort(hits, q.order, (*store.Record).Document))
	return hits[min(q.skip, int64(len(hits))):], cmp.Or(err, unsorted)
}

// covered returns the records that a scan of an index finds, or all without one: a sparse one lacks documents.
func covered(x *store.Index, records []*store.Record) []*store.Record {
	if x == nil || !x.Sparse {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), func(r *store.Record) bool { return !x.Covers(r.Document()) })
}

// compareBound compares a key of the index with a bound, in the order of the index.
func (q *findCommand) compareBound(key []any, bound bson.D) int {
	for i, e := range bound {
		if n := value.Compare(key[i], q.hinted.Collation.Fold(e.Value)); n != 0 {
			return n * value.Compare(q.hinted.Key[i].Value, int32(0))
		}
	}
	return 0
}

func (q *findCommand) result(r *store.Record) (bson.Raw, error) {
	switch {
	case q.returnKey:
		return q.indexKey(r.Document()), nil
	case q.proj == nil && !q.showRecordID:
		return r.Raw, nil
	}
	doc, err := q.proj.Apply(r.Document())
	if q.showRecordID {
		doc = value.Append(doc[:len(doc):len(doc)], "$recordId", r.ID)
	}
	return value.Encode(doc), err
}

func (q *findCommand) runTailable() (bson.D, error) {
	c := q.c
	if c == nil {
		return cursorReply(0, q.canonical.ns, "firstBatch", nil, nil, !mongos(q.s.req)), nil
	}
	if !c.Capped {
		return nil, fault.Errorf(fault.BadValue,
			"error processing query: %s tailable cursor requested on non capped collection", q.canonical)
	}
	size := q.batchSize
	if q.limit > 0 {
		size = min(size, q.limit)
	}
	// An empty collection has no position to continue from.
	if _, records := q.s.Records(c.DB, c.Name); len(records) == 0 && q.s.has.TailPositions &&
		!(mongos(q.s.req) && size == 0) {
		return cursorReply(0, q.canonical.ns, "firstBatch", nil, nil, false), nil
	}
	return q.s.open(q.canonical.ns, &tail{q: q, c: c, skip: q.skip}, cursorOptions{size: size, await: q.await})
}

// indexKey returns the result of returnKey: the fields of the index that the query uses, or an empty document.
func (q *findCommand) indexKey(doc bson.D) bson.Raw {
	out := bson.D{}
	if q.index == nil {
		return value.Encode(out)
	}
	if keys, _ := q.index.Keys(doc); len(keys) > 0 { // without error: the index exists
		for i, k := range q.index.Key {
			out = value.Append(out, k.Key, keys[0][i])
		}
	}
	return value.Encode(out)
}

func count(s *call, a *args) action {
	name, skip, limit := a.collection(s.req.DB), a.number("skip", 0), a.number("limit", 0)
	for _, key := range []string{"limit", "skip"} {
		v, given := value.Field(a.doc, key)
		n, whole := value.Int64(v)
		a.Refuse(given && !value.IsNumber(v), fault.BadValue, "%s value is not a valid number", key)
		a.Refuse(v != nil && !whole, fault.FailedToParse, "Expected an integer: %s: %s", key, value.Text(v))
		a.Refuse(key == "skip" && n < 0, fault.FailedToParse, "Expected a positive number in: %s: %s", key, value.Text(v))
	}
	f := a.filter("query", s.filters(nil, a.collation(s, s.req.DB, name)))
	return func() (bson.D, error) {
		docs, err := s.matching(name, a.any("hint"), readConcern{}, f)
		n := int64(len(docs))
		if len(a.document("query")) == 0 && !a.has("hint") {
			n += s.Uncommitted(s.req.DB, name)
		}
		n = max(n-skip, 0)
		if limit != 0 {
			n = min(n, max(limit, -limit))
		}
		reply := value.Doc("n", value.Int(n))
		if mongos(s.req) {
			reply = append(value.Doc("shards", value.Doc(s.d.opts.ShardName, value.Int(n))), reply...)
		}
		return reply, err
	}
}

func distinct(s *call, a *args) action {
	concern := a.readConcern(s)
	name, key := a.collection(s.req.DB), a.str("key")
	a.Refuse(key == "", 40352, "FieldPath cannot be constructed with empty string")
	collation := a.collation(s, s.req.DB, name)
	f := a.filter("query", s.filters(nil, collation))
	return func() (bson.D, error) {
		now := s.d.Now()
		docs, err := s.matching(name, a.any("hint"), concern, f)
		values, seen := bson.A{}, map[string]bool{}
		for _, doc := range docs {
			query.Along(doc, strings.Split(key, "."), func(v any) {
				if k := collation.Key(v); !seen[k] {
					seen[k] = true
					values = append(values, v)
				}
			})
		}
		slices.SortFunc(values, collation.Compare)
		return append(value.Doc("values", values), concern.time(now)...), err
	}
}

// search returns the records that match, at most limit of them (0: all). If c is not nil, search looks up the _id that
// the filter requires, and the caller holds mu.
func search(c *store.Collection, records []*store.Record, f *query.Filter, limit int64) ([]*store.Record, error) {
	if id, ok := f.ID(); ok && c.FindsByID() {
		records = c.WithID(id)
	}
	return query.Select(f, records, (*store.Record).Document, limit)
}

// recordsOf returns the records of a collection or a view; with at, the records of a collection at that time. depth is
// the number of enclosing views.
func (s *call) recordsOf(db, name string, at *bson.Timestamp, depth int) (_ []*store.Record, err error) {
	c, records := s.Records(db, name)
	switch {
	case depth > 20:
		return nil, fault.Errorf(fault.ViewDepthLimitExceeded, "View depth too deep")
	case c != nil && c.IsView():
		view, err := pipeline.Compile(value.As[bson.A](c.Options, "pipeline"), s.options(nil, c.Collation))
		if err != nil {
			return nil, err
		}
		docs, err := view.Run(host{s, db, c.ViewOn},
			func() ([]bson.D, error) { return s.documentsOf(db, c.ViewOn, nil, depth+1) })
		records := make([]*store.Record, len(docs))
		for i, doc := range docs {
			records[i] = store.NewRecord(0, value.Encode(doc))
		}
		return records, err
	case at != nil:
		return s.RecordsAt(db, name, records, *at)
	}
	s.View(func(tx *store.Tx) { err = tx.Seen(db, name) })
	return records, err
}

func (s *call) documentsOf(db, name string, at *bson.Timestamp, depth int) ([]bson.D, error) {
	records, err := s.recordsOf(db, name, at, depth)
	return store.Documents(records), err
}

// documents returns the documents that the plan of a query reads.
func (q *findCommand) documents() ([]bson.D, error) {
	if err := q.choosePlan(); err != nil {
		return nil, err
	}
	records, err := q.records()
	return store.Documents(records), err
}

// matching returns the documents of a collection or a view that match a filter.
func (s *call) matching(name string, hint any, concern readConcern, f *query.Filter) ([]bson.D, error) {
	docs, err := (&findCommand{s: s, name: name, hint: hint, match: f, concern: concern}).documents()
	if err != nil {
		return nil, err
	}
	return f.Select(docs)
}
