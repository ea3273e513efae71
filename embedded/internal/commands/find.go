package commands

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

type findCommand struct {
	s                                                *call
	name, ns                                         string
	filter, sort, min, max                           bson.D
	skip, limit, batchSize                           int64
	single, tailable, await, returnKey, showRecordID bool
	hint                                             any
	concern                                          readConcern

	match *query.Filter
	order *query.Order
	proj  *query.Projection
}

func find(s *call, a *args) action {
	q := &findCommand{s: s, concern: a.readConcern(s), hint: a.any("hint")}
	_, isUUID := a.doc[0].Value.(bson.Binary)
	a.Refuse(isUUID, fault.NamespaceNotFound, "Unable to resolve UUID")
	if q.name = a.name(); q.name != "" && s.old() && namespace(s.req.DB, q.name) != nil {
		a.Fail(fault.InvalidNamespace, "Invalid collection name specified '%s.%s", s.req.DB, q.name) // sic
	}
	a.checkName(s.req.DB, q.name)
	q.ns = s.req.DB + "." + q.name
	q.skip, q.limit, q.batchSize = a.count(s, "skip", "Skip", 0), a.count(s, "limit", "Limit", 0), a.count(s, "batchSize", "BatchSize", firstBatch)
	s.noTimeout = a.flag("noCursorTimeout")
	q.single, q.tailable, q.await = a.flag("singleBatch"), a.flag("tailable"), a.flag("awaitData")
	q.returnKey, q.showRecordID = a.flag("returnKey"), a.flag("showRecordId")
	opts := query.Options{Let: a.let(), Collation: a.collation(), Scripts: s.scripts()}
	q.filter, q.sort = a.document("filter"), a.document("sort")
	q.min, q.max = a.document("min"), a.document("max")
	a.Refuse(len(q.min)+len(q.max) > 0 && q.hint == nil, 51173, "When using min()/max() a hint of which index to use must be provided")
	projection := a.document("projection")
	a.Refuse(q.await && !q.tailable, fault.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	var err error
	q.match, err = query.Compile(q.filter, opts)
	a.Note(q.onShard(err))
	q.order, err = query.CompileOrder(q.sort, opts.Collation)
	a.Note(err)
	q.proj, err = query.CompileProjection(projection, opts)
	a.Note(err)
	return q.run
}

func (q *findCommand) run() (bson.D, error) {
	now := q.s.d.Now()
	c, err := q.s.hinted(q.name, q.hint)
	switch {
	case err != nil:
		return nil, err
	case q.tailable:
		return q.runTailable(c)
	}
	hits, err := q.search(c)
	if err != nil {
		return nil, q.onShard(err)
	}
	hits = hits[min(q.skip, int64(len(hits))):]
	limited := q.limit > 0 && int64(len(hits)) >= q.limit
	if limited {
		hits = hits[:q.limit]
	}
	docs := make([]bson.Raw, len(hits))
	for i, h := range hits {
		if docs[i], err = q.result(c, h); err != nil {
			return nil, err
		}
	}
	_, byID := q.match.ID()
	src := &results{docs: docs, at: q.concern.time(now),
		known: limited && wire(q.s.req) != wire50 || byID || c == nil || q.sort != nil && q.sort[0].Key != "_id" && q.sort[0].Key != "$natural"}
	return q.s.open(q.ns, src, cursorOptions{size: q.batchSize, single: q.single, idFirst: c == nil && !mongos(q.s.req)})
}

// search returns the matching records in order.
func (q *findCommand) search(c *store.Collection) ([]*store.Record, error) {
	if id, ok := q.match.ID(); ok && c.FindsByID() && q.concern.at == nil && len(q.min)+len(q.max) == 0 {
		// Looking up one record needs only the read lock.
		var one []*store.Record
		q.s.View(func(tx *store.Tx) { one = c.WithID(id) })
		return search(nil, one, q.match, 0)
	}
	records, err := q.s.recordsOf(q.s.req.DB, q.name, q.concern.at, 0)
	if err != nil {
		return nil, err
	}
	stop := int64(0)
	if len(q.min)+len(q.max) > 0 {
		records = slices.DeleteFunc(slices.Clone(records), func(r *store.Record) bool {
			return compareFields(r.Document(), q.min) < 0 || len(q.max) > 0 && compareFields(r.Document(), q.max) >= 0
		})
	}
	if q.order == nil && q.limit > 0 {
		stop = q.skip + q.limit
	}
	hits, err := search(nil, records, q.match, stop)
	query.Sort(hits, q.order, (*store.Record).Document)
	return hits, err
}

// compareFields compares the fields of a document with those of a bound, in the order of the bound.
func compareFields(doc, bound bson.D) int {
	for _, e := range bound {
		var v any
		query.Leaves(doc, strings.Split(e.Key, "."), func(leaf any) { v = leaf })
		if n := value.Compare(value.OrNull(v), e.Value); n != 0 {
			return n
		}
	}
	return 0
}

// result returns the projection of a record.
func (q *findCommand) result(c *store.Collection, r *store.Record) (bson.Raw, error) {
	switch {
	case q.returnKey:
		return q.indexKey(c, r.Document()), nil
	case q.proj == nil && !q.showRecordID:
		return r.Raw, nil
	}
	doc, err := q.proj.Apply(r.Document())
	if q.showRecordID {
		doc = append(doc[:len(doc):len(doc)], bson.E{Key: "$recordId", Value: r.ID})
	}
	return value.Encode(doc), err
}

func (q *findCommand) runTailable(c *store.Collection) (bson.D, error) {
	switch {
	case c == nil:
		return cursorReply(&cursor{ns: q.ns}, "firstBatch", nil, nil, true), nil
	case q.single:
		return nil, fault.Errorf(fault.BadValue, "cannot use tailable option with the 'singleBatch' option")
	case q.sort != nil && !value.Equal(q.sort, bson.D{{Key: "$natural", Value: int32(1)}}):
		return nil, fault.Errorf(fault.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
	case !c.Capped:
		return nil, fault.Errorf(fault.BadValue, "error processing query: ns=%s: tailable cursor requested on non capped collection", q.ns)
	}
	if _, records := q.s.Records(c.DB, c.Name); len(records) == 0 && !q.s.old() { // there is no position to continue from
		return cursorReply(&cursor{ns: q.ns}, "firstBatch", nil, nil, mongos(q.s.req)), nil
	}
	t := &tail{d: q.s.d, old: q.s.old(), db: c.DB, name: c.Name, uuid: c.UUID, filter: q.match, proj: q.proj}
	return q.s.open(q.ns, t, cursorOptions{size: q.batchSize, single: q.single, await: q.await})
}

// indexKey returns the result of returnKey: the fields of the index that the query uses, or an empty document.
func (q *findCommand) indexKey(c *store.Collection, doc bson.D) bson.Raw {
	out := bson.D{}
	q.s.View(func(tx *store.Tx) {
		used := c.Index(q.hint)
		if _, byID := q.match.ID(); used == nil && (byID || q.sort != nil && q.sort[0].Key == "_id") {
			used = c.IDIndex()
		}
		if used == nil {
			return
		}
		for _, k := range used.Key {
			query.Leaves(doc, strings.Split(k.Key, "."), func(v any) { out = append(out, bson.E{Key: k.Key, Value: v}) })
		}
	})
	return value.Encode(out)
}

// onShard converts the error of a filter with $where: a mongos reports it as an error of the shard.
func (q *findCommand) onShard(err error) error {
	e, ok := err.(*fault.Error)
	if _, where := value.Field(q.filter, "$where"); !ok || !where || !mongos(q.s.req) {
		return err
	}
	return prefixed("Encountered non-retryable error during query", e)
}

func count(s *call, a *args) action {
	name, skip, limit := a.collection(s.req.DB), a.number("skip", 0), a.number("limit", 0)
	a.Refuse(skip < 0, fault.BadValue, "Skip value is negative in the count query")
	f := a.filter("query", query.Options{Collation: a.collation(), Scripts: s.scripts()})
	return func() (bson.D, error) {
		docs, err := s.documents(name, a.any("hint"), nil, f)
		if err != nil {
			return nil, err
		}
		n := max(int64(len(docs))-skip, 0)
		if limit != 0 {
			n = min(n, max(limit, -limit))
		}
		reply := bson.D{{Key: "n", Value: value.Int(n)}}
		if mongos(s.req) {
			reply = append(bson.D{{Key: "shards", Value: bson.D{{Key: s.d.opts.ShardName, Value: value.Int(n)}}}}, reply...)
		}
		return reply, nil
	}
}

func distinct(s *call, a *args) action {
	concern := a.readConcern(s)
	name, key, collation := a.collection(s.req.DB), a.str("key"), a.collation()
	f := a.filter("query", query.Options{Collation: collation, Scripts: s.scripts()})
	return func() (bson.D, error) {
		now := s.d.Now()
		docs, err := s.documents(name, a.any("hint"), concern.at, f)
		if err != nil {
			return nil, err
		}
		values, seen := bson.A{}, map[string]bool{}
		for _, doc := range docs {
			query.Leaves(doc, strings.Split(key, "."), func(v any) {
				switch v.(type) {
				case bson.Undefined, value.Missing:
					return
				}
				if k := value.Key(collation.Fold(v)); !seen[k] {
					seen[k] = true
					values = append(values, v)
				}
			})
		}
		return append(bson.D{{Key: "values", Value: values}}, concern.time(now)...), nil
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

// recordsOf returns the records of a collection or a view; with at, those of a collection at that time. depth is the
// number of enclosing views.
func (s *call) recordsOf(db, name string, at *bson.Timestamp, depth int) ([]*store.Record, error) {
	c, records := s.Records(db, name)
	switch {
	case depth > 20:
		return nil, fault.Errorf(fault.ViewDepthLimitExceeded, "View depth too deep")
	case c != nil && c.IsView():
		docs, err := c.Pipeline.Run(host{s, db, c.ViewOn}, func() ([]bson.D, error) { return s.documentsOf(db, c.ViewOn, nil, depth+1) })
		records := make([]*store.Record, len(docs))
		for i, doc := range docs {
			records[i] = store.NewRecord(0, value.Encode(doc))
		}
		return records, err
	case at != nil:
		return s.d.RecordsAt(db, name, records, *at)
	}
	return records, nil
}

func (s *call) documentsOf(db, name string, at *bson.Timestamp, depth int) ([]bson.D, error) {
	records, err := s.recordsOf(db, name, at, depth)
	return store.Documents(records), err
}

// documents returns the documents of a collection or a view that match a filter, or all if it is nil.
func (s *call) documents(name string, hint any, at *bson.Timestamp, f *query.Filter) ([]bson.D, error) {
	if _, err := s.hinted(name, hint); err != nil {
		return nil, err
	}
	docs, err := s.documentsOf(s.req.DB, name, at, 0)
	if err != nil {
		return nil, err
	}
	return f.Select(docs)
}

// hinted returns a collection or view, or nil, and checks the hint.
func (s *call) hinted(name string, hint any) (c *store.Collection, err error) {
	s.View(func(tx *store.Tx) {
		c = tx.Collection(s.req.DB, name)
		err = hintExists(c, hint)
	})
	return c, err
}

// hintExists returns an error if a hint does not name an index.
func hintExists(c *store.Collection, hint any) error {
	_, isName := hint.(string)
	key, isKey := hint.(bson.D)
	natural := hint == any("$natural") || isKey && (len(key) == 0 || key[0].Key == "$natural")
	switch {
	case c == nil, hint == nil, natural, c.Index(hint) != nil:
		return nil
	case !isName && !isKey:
		return fault.Errorf(fault.FailedToParse, "Failed to parse: hint must be a string or an object")
	}
	return fault.Errorf(fault.BadValue, "error processing query: ns=%s planner returned error :: caused by :: hint provided does not correspond to an existing index", c.NS())
}
