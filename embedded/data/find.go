package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// found is a record that a filter matched.
type found struct {
	rec *record
	doc bson.D
}

// search gives the records that match, up to limit (0: all). Where the filter
// asks for one _id and c is given with the lock held, it looks that up.
func search(c *collection, records []*record, f *query.Filter, limit int64) ([]found, error) {
	if id, ok := f.ID(); ok && c != nil && !c.timeseries && !c.frozen {
		r := c.byID(id)
		if r == nil {
			return nil, nil
		}
		records = []*record{r}
	}
	var out []found
	for _, r := range records {
		doc := r.doc()
		ok, err := f.Matches(doc)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, found{r, doc})
			if limit > 0 && int64(len(out)) >= limit {
				break
			}
		}
	}
	return out, nil
}

func foundDoc(f found) bson.D { return f.doc }

const findFields = " filter sort projection hint skip limit batchSize singleBatch max min returnKey showRecordId tailable oplogReplay noCursorTimeout awaitData allowPartialResults collation allowDiskUse let ntoreturn options term readOnce requestResumeToken resumeAfter legacyRuntimeConstants runtimeConstants includeQueryStatsMetrics startAt "

// findCommand is a parsed find.
type findCommand struct {
	args                                             *args
	name, ns                                         string
	filter, sort, projection                         bson.D
	skip, limit, batchSize                           int64
	single, tailable, await, returnKey, showRecordID bool
	hint                                             any
	snapshot                                         bool            // its read concern
	at                                               *bson.Timestamp // the time to read at; nil: now

	match *query.Filter
	order *query.Order
	proj  *query.Projection
}

func (d *Data) find(s *scope, a *args) (bson.D, error) {
	q, err := d.parseFind(s, a)
	if err != nil {
		return nil, err
	}
	p := q.plan(s)
	switch {
	case p.coll != nil && p.coll.isView():
		return q.runOnView(s, p.coll)
	case p.err != nil:
		return nil, p.err
	case q.tailable:
		return q.runTailable(s, p.coll)
	}
	return q.run(s, p)
}

func (d *Data) parseFind(s *scope, a *args) (*findCommand, error) {
	a.old = wire(s.req) < wire50
	for _, e := range a.doc[1:] {
		if !generic[e.Key] && !strings.Contains(findFields, " "+e.Key+" ") {
			if !a.old {
				return nil, command.Errorf(command.CodeIDLUnknownField, "BSON field 'find.%s' is an unknown field.", e.Key)
			}
			return nil, command.Errorf(command.CodeFailedToParse, "Failed to parse: %s. Unrecognized field '%s'.", value.Text(a.doc), e.Key)
		}
	}
	level, at, err := d.readConcern(a)
	if err != nil {
		return nil, err
	}
	q := &findCommand{args: a, name: a.name(), snapshot: level == "snapshot" && s.txn == nil, at: at}
	if _, ok := a.doc[0].Value.(bson.Binary); ok {
		return nil, command.Errorf(command.CodeNamespaceNotFound, "Unable to resolve UUID")
	}
	if a.err != nil {
		return nil, a.err
	}
	if err := namespace(s.req.DB, q.name); err != nil {
		if a.old && q.name != "" {
			err.Message = fmt.Sprintf("Invalid collection name specified '%s.%s", s.req.DB, q.name) // sic
		}
		return nil, err
	}
	q.ns = s.req.DB + "." + q.name
	q.skip, q.limit, q.batchSize = a.count("skip", "Skip"), a.count("limit", "Limit"), a.number("batchSize", firstBatch)
	if q.batchSize < 0 {
		a.fail(command.Errorf(command.CodeBadValue, "BatchSize value must be non-negative, but received: %d", q.batchSize))
	}
	s.lasting = a.flag("noCursorTimeout")
	q.single, q.tailable, q.await = a.flag("singleBatch"), a.flag("tailable"), a.flag("awaitData")
	q.returnKey, q.showRecordID, q.hint = a.flag("returnKey"), a.flag("showRecordId"), a.any("hint")
	opts := query.Options{Let: a.let(d), Collation: a.collation(), Scripts: s.scripts()}
	q.filter, q.sort, q.projection = a.document("filter"), a.document("sort"), a.document("projection")
	if q.await && !q.tailable {
		a.fail(command.Errorf(command.CodeFailedToParse, "Cannot set 'awaitData' without also setting 'tailable'"))
	}
	if a.err != nil {
		return nil, a.err
	}
	if q.match, err = query.Compile(q.filter, opts); err != nil {
		return nil, d.shardQuery(s.req, q.filter, err)
	}
	if q.order, err = query.CompileOrder(q.sort, opts.Collation); err != nil {
		return nil, err
	}
	q.proj, err = query.CompileProjection(q.projection, opts)
	return q, err
}

// findPlan is how a find gets its documents.
type findPlan struct {
	coll *collection
	err  error // the hint names no index
	// direct: the filter names one _id, and that is looked up. That holds no more than the read lock.
	direct bool
	record *record // that of the _id, nil if it does not exist
	now    bson.Timestamp
}

func (q *findCommand) plan(s *scope) (p findPlan) {
	s.d.reading(func() {
		c := s.collection(s.req.DB, q.name)
		id, byID := q.match.ID()
		p = findPlan{coll: c, err: hintExists(c, q.hint), now: s.d.clock.time(),
			direct: byID && c != nil && !c.isView() && q.at == nil && !c.timeseries && !c.frozen}
		if p.direct {
			p.record = c.byID(id)
		}
	})
	return p
}

// run reads a collection.
func (q *findCommand) run(s *scope, p findPlan) (bson.D, error) {
	hits, err := q.search(s, &p)
	if err != nil {
		return nil, s.d.shardQuery(s.req, q.filter, err)
	}
	hits = hits[min(q.skip, int64(len(hits))):]
	limited := q.limit > 0 && int64(len(hits)) >= q.limit
	if limited {
		hits = hits[:q.limit]
	}
	docs := make([]bson.Raw, len(hits))
	for i, h := range hits {
		if docs[i], err = q.result(s.d, p.coll, h); err != nil {
			return nil, err
		}
	}
	_, byID := q.match.ID()
	src := &results{docs: docs, known: limited || byID || p.coll == nil || q.sort != nil && q.sort[0].Key != "_id" && q.sort[0].Key != "$natural"}
	if q.snapshot {
		src.at = snapshotTime(q.at, p.now)
	}
	cur, batch, extra, err := s.open(q.ns, q.ns, src, q.batchSize, q.single, false)
	if err != nil {
		return nil, err
	}
	return cursorReply(cur, "firstBatch", batch, extra, p.coll == nil && !mongos(s.req)), nil
}

// search finds the records in their order.
func (q *findCommand) search(s *scope, p *findPlan) (hits []found, err error) {
	if p.direct {
		if p.record == nil {
			return nil, nil
		}
		return search(nil, []*record{p.record}, q.match, 0)
	}
	var records []*record
	p.coll, records = s.records(s.req.DB, q.name)
	if q.at != nil {
		if records, err = s.d.history(p.coll, s.req.DB, q.name, records, *q.at); err != nil {
			return nil, err
		}
	}
	stop := int64(0)
	if q.order == nil && q.limit > 0 {
		stop = q.skip + q.limit
	}
	hits, err = search(nil, records, q.match, stop)
	query.Sort(hits, q.order, foundDoc)
	return hits, err
}

// result is what the client gets of a record.
func (q *findCommand) result(d *Data, c *collection, h found) (bson.Raw, error) {
	_, byID := q.match.ID()
	switch {
	case q.returnKey:
		return d.indexKey(c, q.hint, h.rec.doc(), byID || q.sort != nil && q.sort[0].Key == "_id"), nil
	case q.proj == nil && !q.showRecordID:
		return h.rec.raw, nil
	}
	doc, err := q.proj.Apply(h.doc)
	if err != nil {
		return nil, err
	}
	if q.showRecordID {
		doc = append(doc[:len(doc):len(doc)], bson.E{Key: "$recordId", Value: h.rec.rid})
	}
	return value.Encode(doc), nil
}

// snapshotTime is the field of a cursor, or of a reply, with the time that a snapshot was read at.
func snapshotTime(at *bson.Timestamp, now bson.Timestamp) bson.D {
	if at != nil {
		now = *at
	}
	return bson.D{{Key: "atClusterTime", Value: now}}
}

// runTailable opens a cursor that waits for what comes.
func (q *findCommand) runTailable(s *scope, c *collection) (bson.D, error) {
	switch {
	case c == nil:
		return cursorReply(&cursor{ns: q.ns}, "firstBatch", nil, nil, true), nil
	case !c.capped:
		return nil, command.Errorf(command.CodeBadValue, "error processing query: ns=%s: tailable cursor requested on non capped collection", q.ns)
	}
	t := &tail{d: s.d, db: s.req.DB, name: q.name, uuid: c.uuid, filter: q.match, proj: q.proj}
	cur, docs, extra, err := s.open(q.ns, q.ns, t, q.batchSize, q.single, q.await)
	if err != nil {
		return nil, err
	}
	return cursorReply(cur, "firstBatch", docs, extra, false), nil
}

// indexKey is what returnKey gives of a document: its fields in the index that
// the query used, none without one.
func (d *Data) indexKey(c *collection, hint any, doc bson.D, byID bool) bson.Raw {
	out := bson.D{}
	if c == nil {
		return value.Encode(out)
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	used := c.idIndex()
	if !byID {
		used = nil
	}
	for _, x := range c.indexes {
		if k, ok := hint.(bson.D); ok && value.Equal(k, x.key) || hint == x.name {
			used = x
		}
	}
	if used != nil {
		for _, k := range used.key {
			query.Leaves(doc, strings.Split(k.Key, "."), func(v any) { out = append(out, bson.E{Key: k.Key, Value: v}) })
		}
	}
	return value.Encode(out)
}

// shardQuery is how a mongos reports an error of a filter that its shard found.
func (d *Data) shardQuery(req *command.Request, filter bson.D, err error) error {
	e, ok := err.(*command.Error)
	if !ok || !mongos(req) {
		return err
	}
	if _, where := value.Field(filter, "$where"); where {
		c := *e
		c.Message = "Encountered non-retryable error during query :: caused by :: " + e.Message
		return &c
	}
	return err
}

func wire(req *command.Request) int {
	if req.Server == nil {
		return 0
	}
	return req.Server.Wire
}

// runOnView runs a find on a view as the aggregation that it stands for.
func (q *findCommand) runOnView(s *scope, c *collection) (bson.D, error) {
	list := bson.A{}
	stage := func(there bool, name string, arg any) {
		if there {
			list = append(list, bson.D{{Key: name, Value: arg}})
		}
	}
	stage(len(q.filter) > 0, "$match", q.filter)
	stage(len(q.sort) > 0, "$sort", q.sort)
	stage(q.skip > 0, "$skip", q.skip)
	stage(q.limit > 0, "$limit", q.limit)
	stage(len(q.projection) > 0, "$project", q.projection)
	doc := bson.D{{Key: "aggregate", Value: c.name}, {Key: "pipeline", Value: list},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: q.batchSize}}}}
	for _, key := range []string{"collation", "let", "readConcern"} {
		if v, ok := value.Field(q.args.doc, key); ok {
			doc = append(doc, bson.E{Key: key, Value: v})
		}
	}
	do, err := s.d.aggregate(s.req, &args{of: "aggregate", doc: doc})
	if err != nil {
		return nil, err
	}
	return do(s)
}

// hintExists refuses a hint that names no index.
func hintExists(c *collection, hint any) error {
	if c == nil || hint == nil {
		return nil
	}
	switch h := hint.(type) {
	case string:
		if h == "$natural" || c.index(h) != nil {
			return nil
		}
	case bson.D:
		if len(h) == 0 || h[0].Key == "$natural" {
			return nil
		}
		for _, x := range c.indexes {
			if value.Equal(x.key, h) {
				return nil
			}
		}
	default:
		return command.Errorf(command.CodeFailedToParse, "Failed to parse: hint must be a string or an object")
	}
	return command.Errorf(command.CodeBadValue, "error processing query: ns=%s planner returned error :: caused by :: hint provided does not correspond to an existing index", c.ns())
}

// tail is the source of a tailable cursor on a capped collection.
type tail struct {
	d        *Data
	db, name string
	uuid     bson.Binary
	filter   *query.Filter
	proj     *query.Projection
	last     int64
}

func (t *tail) extra() bson.D { return nil }

// unread are the records that the cursor has not come to. There are none if
// the collection has been dropped.
func (t *tail) unread() (records []*record, there bool) {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	c := t.d.collection(t.db, t.name)
	if c == nil || value.Key(c.uuid) != value.Key(t.uuid) {
		return nil, false
	}
	records = c.snapshot()
	i, _ := c.place(t.last + 1)
	return records[min(i, len(records)):], true
}

func (t *tail) batch(n int64) ([]bson.Raw, bool, error) {
	records, there := t.unread()
	if !there {
		return nil, true, command.Errorf(command.CodeQueryPlanKilled, "collection dropped between getMore calls")
	}
	var out []bson.Raw
	for _, r := range records {
		if n >= 0 && int64(len(out)) >= n {
			break
		}
		doc := r.doc()
		t.last = r.rid
		ok, err := t.filter.Matches(doc)
		if err != nil {
			return nil, true, err
		}
		if !ok {
			continue
		}
		if t.proj != nil {
			p, err := t.proj.Apply(doc)
			if err != nil {
				return nil, true, err
			}
			out = append(out, value.Encode(p))
			continue
		}
		out = append(out, r.raw)
	}
	return out, false, nil
}

// history is what a collection held at an earlier time: its records of now
// with the writes since undone.
func (d *Data) history(c *collection, db, name string, records []*record, at bson.Timestamp) ([]*record, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if at.Compare(d.oplog.from) < 0 {
		return nil, command.Errorf(command.CodeSnapshotTooOld, "Read timestamp %s is older than the oldest available timestamp.", value.Text(at))
	}
	byRID := map[int64]*record{}
	for _, r := range records {
		byRID[r.rid] = r
	}
	changed := false
	for i := len(d.oplog.entries) - 1; i >= 0; i-- {
		e := &d.oplog.entries[i]
		if e.ts.Compare(at) <= 0 {
			break
		}
		if e.db != db || e.coll != name {
			continue
		}
		changed = true
		switch e.kind {
		case opInsert:
			delete(byRID, e.rid)
		case opUpdate, opReplace, opDelete:
			byRID[e.rid] = &record{e.rid, e.pre}
		case opCreate, opDrop, opRename, opDropDatabase:
			return nil, command.Errorf(command.CodeSnapshotUnavailable, "Unable to read from a snapshot due to pending collection catalog changes")
		}
	}
	if !changed {
		return records, nil
	}
	return slices.SortedFunc(maps.Values(byRID), func(a, b *record) int { return cmp.Compare(a.rid, b.rid) }), nil
}

func (d *Data) count(s *scope, a *args) (bson.D, error) {
	if _, _, err := d.readConcern(a); err != nil {
		return nil, err
	}
	a.only(" query limit skip hint collation fields ")
	name := a.name()
	skip, limit := a.number("skip", 0), a.number("limit", 0)
	if limit < 0 {
		limit = -limit
	}
	opts := query.Options{Collation: a.collation(), Scripts: s.scripts()}
	filter := a.document("query")
	a.checkName(s.req.DB, name)
	if a.err != nil {
		return nil, a.err
	}
	if skip < 0 {
		return nil, command.Errorf(command.CodeBadValue, "Skip value is negative in the count query")
	}
	f, err := query.Compile(filter, opts)
	if err != nil {
		return nil, err
	}
	docs, err := d.documents(s, name, a.any("hint"))
	if err != nil {
		return nil, err
	}
	if docs, err = f.Select(docs); err != nil {
		return nil, err
	}
	n := max(int64(len(docs))-skip, 0)
	if limit > 0 {
		n = min(n, limit)
	}
	if mongos(s.req) {
		return bson.D{{Key: "shards", Value: bson.D{{Key: d.opts.ShardName, Value: value.Int(n)}}}, {Key: "n", Value: value.Int(n)}}, nil
	}
	return bson.D{{Key: "n", Value: value.Int(n)}}, nil
}

// documentsAt are the documents of a collection at an earlier time, or those of
// a collection or a view now, if at is nil.
func (d *Data) documentsAt(s *scope, name string, hint any, at *bson.Timestamp) ([]bson.D, error) {
	if at == nil {
		return d.documents(s, name, hint)
	}
	c, records := s.records(s.req.DB, name)
	records, err := d.history(c, s.req.DB, name, records, *at)
	if err != nil {
		return nil, err
	}
	return documentsIn(records), nil
}

// documents are the documents of a collection or a view.
func (d *Data) documents(s *scope, name string, hint any) ([]bson.D, error) {
	var (
		c       *collection
		records []*record
		err     error
	)
	d.changing(func() { // a snapshot marks the collection
		c = s.collection(s.req.DB, name)
		records = c.snapshot()
		err = hintExists(c, hint)
	})
	if c != nil && c.isView() {
		return d.readView(s, c, 0)
	}
	if err != nil {
		return nil, err
	}
	return documentsIn(records), nil
}

func (d *Data) distinct(s *scope, a *args) (bson.D, error) {
	level, at, err := d.readConcern(a)
	if err != nil {
		return nil, err
	}
	a.only(" key query collation hint ")
	name, key := a.name(), a.str("key")
	opts := query.Options{Collation: a.collation(), Scripts: s.scripts()}
	filter := a.document("query")
	a.need("key")
	a.checkName(s.req.DB, name)
	if a.err != nil {
		return nil, a.err
	}
	f, err := query.Compile(filter, opts)
	if err != nil {
		return nil, err
	}
	now := d.clock.time()
	docs, err := d.documentsAt(s, name, a.any("hint"), at)
	if err != nil {
		return nil, err
	}
	if docs, err = f.Select(docs); err != nil {
		return nil, err
	}
	values, seen := bson.A{}, map[string]bool{}
	for _, doc := range docs {
		query.Leaves(doc, strings.Split(key, "."), func(v any) {
			switch v.(type) {
			case bson.Undefined, value.Missing:
				return
			}
			if k := value.Key(opts.Collation.Fold(v)); !seen[k] {
				seen[k] = true
				values = append(values, v)
			}
		})
	}
	out := bson.D{{Key: "values", Value: values}}
	if level == "snapshot" && s.txn == nil {
		out = append(out, snapshotTime(at, now)...)
	}
	return out, nil
}
