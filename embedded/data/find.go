package data

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

const findFields = " filter sort projection hint skip limit batchSize singleBatch max min returnKey showRecordId tailable oplogReplay noCursorTimeout awaitData allowPartialResults collation allowDiskUse let ntoreturn options term readOnce requestResumeToken resumeAfter legacyRuntimeConstants runtimeConstants includeQueryStatsMetrics startAt "

type findCommand struct {
	s                                                *scope
	name, ns                                         string
	filter, sort                                     bson.D
	skip, limit, batchSize                           int64
	single, tailable, await, returnKey, showRecordID bool
	hint                                             any
	concern                                          readConcern

	match *query.Filter
	order *query.Order
	proj  *query.Projection
}

func find(s *scope, a *args) action {
	a.old = wire(s.req) < wire50
	a.only(findFields)
	q := &findCommand{s: s, concern: a.readConcern(s), hint: a.any("hint")}
	_, isUUID := a.doc[0].Value.(bson.Binary)
	a.Refuse(isUUID, command.CodeNamespaceNotFound, "Unable to resolve UUID")
	if q.name = a.name(); q.name != "" && a.old && namespace(s.req.DB, q.name) != nil {
		a.Fail(command.CodeInvalidNamespace, "Invalid collection name specified '%s.%s", s.req.DB, q.name) // sic
	}
	a.checkName(s.req.DB, q.name)
	q.ns = s.req.DB + "." + q.name
	q.skip, q.limit, q.batchSize = a.count("skip", "Skip"), a.count("limit", "Limit"), a.number("batchSize", firstBatch)
	a.Refuse(q.batchSize < 0, command.CodeBadValue, "BatchSize value must be non-negative, but received: %d", q.batchSize)
	s.noTimeout = a.flag("noCursorTimeout")
	q.single, q.tailable, q.await = a.flag("singleBatch"), a.flag("tailable"), a.flag("awaitData")
	q.returnKey, q.showRecordID = a.flag("returnKey"), a.flag("showRecordId")
	opts := query.Options{Let: a.let(), Collation: a.collation(), Scripts: s.scripts()}
	q.filter, q.sort = a.document("filter"), a.document("sort")
	projection := a.document("projection")
	a.Refuse(q.await && !q.tailable, command.CodeFailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	if a.Err != nil {
		return nil
	}
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
	now := q.s.d.clock.time()
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
		known: limited || byID || c == nil || q.sort != nil && q.sort[0].Key != "_id" && q.sort[0].Key != "$natural"}
	return q.s.open(q.ns, src, cursorOptions{size: q.batchSize, single: q.single, idFirst: c == nil && !mongos(q.s.req)})
}

// search returns the matching records in order.
func (q *findCommand) search(c *collection) ([]*record, error) {
	if id, ok := q.match.ID(); ok && c.findsByID() && q.concern.at == nil {
		// Looking up one record needs only the read lock.
		var one []*record
		q.s.d.reading(func() { one = c.withID(id) })
		return search(nil, one, q.match, 0)
	}
	records, err := q.s.recordsOf(q.s.req.DB, q.name, q.concern.at, 0)
	if err != nil {
		return nil, err
	}
	stop := int64(0)
	if q.order == nil && q.limit > 0 {
		stop = q.skip + q.limit
	}
	hits, err := search(nil, records, q.match, stop)
	query.Sort(hits, q.order, (*record).document)
	return hits, err
}

// result returns the projection of a record.
func (q *findCommand) result(c *collection, r *record) (bson.Raw, error) {
	switch {
	case q.returnKey:
		return q.indexKey(c, r.doc), nil
	case q.proj == nil && !q.showRecordID:
		return r.raw, nil
	}
	doc, err := q.proj.Apply(r.doc)
	if q.showRecordID {
		doc = append(doc[:len(doc):len(doc)], bson.E{Key: "$recordId", Value: r.rid})
	}
	return value.Encode(doc), err
}

func (q *findCommand) runTailable(c *collection) (bson.D, error) {
	switch {
	case c == nil:
		return cursorReply(&cursor{ns: q.ns}, "firstBatch", nil, nil, true), nil
	case !c.capped:
		return nil, command.Errorf(command.CodeBadValue, "error processing query: ns=%s: tailable cursor requested on non capped collection", q.ns)
	}
	t := &tail{d: q.s.d, db: c.db, name: c.name, uuid: c.uuid, filter: q.match, proj: q.proj}
	return q.s.open(q.ns, t, cursorOptions{size: q.batchSize, single: q.single, await: q.await})
}

// indexKey returns the result of returnKey: the fields of the index that the query uses, or an empty document.
func (q *findCommand) indexKey(c *collection, doc bson.D) bson.Raw {
	out := bson.D{}
	q.s.d.reading(func() {
		used := c.index(q.hint)
		if _, byID := q.match.ID(); used == nil && (byID || q.sort != nil && q.sort[0].Key == "_id") {
			used = c.idIndex()
		}
		if used == nil {
			return
		}
		for _, k := range used.key {
			query.Leaves(doc, strings.Split(k.Key, "."), func(v any) { out = append(out, bson.E{Key: k.Key, Value: v}) })
		}
	})
	return value.Encode(out)
}

// onShard converts the error of a filter with $where: a mongos reports it as an error of the shard.
func (q *findCommand) onShard(err error) error {
	e, ok := err.(*command.Error)
	if _, where := value.Field(q.filter, "$where"); !ok || !where || !mongos(q.s.req) {
		return err
	}
	c := *e
	c.Message = "Encountered non-retryable error during query :: caused by :: " + e.Message
	return &c
}

func count(s *scope, a *args) action {
	a.readConcern(s)
	a.only(" query limit skip hint collation fields ")
	name, skip, limit := a.collection(s.req.DB), a.number("skip", 0), a.number("limit", 0)
	a.Refuse(skip < 0, command.CodeBadValue, "Skip value is negative in the count query")
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

func distinct(s *scope, a *args) action {
	concern := a.readConcern(s)
	a.only(" key query collation hint ")
	name, key, collation := a.collection(s.req.DB), a.str("key"), a.collation()
	a.need("key")
	f := a.filter("query", query.Options{Collation: collation, Scripts: s.scripts()})
	return func() (bson.D, error) {
		now := s.d.clock.time()
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
func search(c *collection, records []*record, f *query.Filter, limit int64) ([]*record, error) {
	if id, ok := f.ID(); ok && c.findsByID() {
		records = c.withID(id)
	}
	return query.Select(f, records, (*record).document, limit)
}

// recordsOf returns the records of a collection or a view; with at, those of a collection at that time. depth is the
// number of enclosing views.
func (s *scope) recordsOf(db, name string, at *bson.Timestamp, depth int) ([]*record, error) {
	c, records := s.records(db, name)
	switch {
	case depth > 20:
		return nil, command.Errorf(command.CodeViewDepthLimitExceeded, "View depth too deep")
	case c != nil && c.isView():
		docs, err := c.pipeline.Run(host{s, db, c.view}, func() ([]bson.D, error) { return s.documentsOf(db, c.view, nil, depth+1) })
		records := make([]*record, len(docs))
		for i, doc := range docs {
			records[i] = &record{raw: value.Encode(doc), doc: doc}
		}
		return records, err
	case at != nil:
		return s.d.history(db, name, records, *at)
	}
	return records, nil
}

func (s *scope) documentsOf(db, name string, at *bson.Timestamp, depth int) ([]bson.D, error) {
	records, err := s.recordsOf(db, name, at, depth)
	return documentsIn(records), err
}

// documents returns the documents of a collection or a view that match a filter, or all if it is nil.
func (s *scope) documents(name string, hint any, at *bson.Timestamp, f *query.Filter) ([]bson.D, error) {
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
func (s *scope) hinted(name string, hint any) (c *collection, err error) {
	s.d.reading(func() {
		c = s.collection(s.req.DB, name)
		err = hintExists(c, hint)
	})
	return c, err
}

// hintExists returns an error if a hint does not name an index.
func hintExists(c *collection, hint any) error {
	_, isName := hint.(string)
	key, isKey := hint.(bson.D)
	natural := hint == any("$natural") || isKey && (len(key) == 0 || key[0].Key == "$natural")
	switch {
	case c == nil, hint == nil, natural, c.index(hint) != nil:
		return nil
	case !isName && !isKey:
		return command.Errorf(command.CodeFailedToParse, "Failed to parse: hint must be a string or an object")
	}
	return command.Errorf(command.CodeBadValue, "error processing query: ns=%s planner returned error :: caused by :: hint provided does not correspond to an existing index", c.ns())
}

// history returns the records of a collection at an earlier time: the current records with later writes undone.
func (d *Data) history(db, name string, records []*record, at bson.Timestamp) ([]*record, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if at.Compare(d.oplog.from) < 0 {
		return nil, command.Errorf(command.CodeSnapshotTooOld, "Read timestamp %s is older than the oldest available timestamp.", value.Text(at))
	}
	byRID := map[int64]*record{}
	for _, r := range records {
		byRID[r.rid] = r
	}
	for _, e := range slices.Backward(d.oplog.entries) {
		if e.ts.Compare(at) <= 0 {
			break
		}
		if e.db != db || e.coll != name {
			continue
		}
		switch e.kind {
		case opInsert:
			delete(byRID, e.new.rid)
		case opUpdate, opReplace, opDelete:
			byRID[e.old.rid] = e.old
		case opCreate, opDrop, opRename, opDropDatabase:
			return nil, command.Errorf(command.CodeSnapshotUnavailable, "Unable to read from a snapshot due to pending collection catalog changes")
		}
	}
	return slices.SortedFunc(maps.Values(byRID), func(a, b *record) int { return cmp.Compare(a.rid, b.rid) }), nil
}

// scripts returns the environment of $where in the filters of the command.
func (s *scope) scripts() *query.Scripts {
	return &query.Scripts{Disabled: s.d.opts.NoScripting, Sleep: s.sleep, Stopped: s.stopped}
}

// rehearse runs the scripts of a write without the lock, because they may sleep. With the lock, sleep does nothing.
func (s *scope) rehearse(w *write) error {
	if !w.filter.Scripted() {
		return nil
	}
	_, records := s.records(w.db, w.coll)
	_, err := search(nil, records, w.filter, w.limit())
	s.slept = true
	return err
}

func timedOut() error {
	return command.Errorf(command.CodeMaxTimeMSExpired, "operation exceeded time limit")
}
func interrupted() error { return command.Errorf(command.CodeInterrupted, "operation was interrupted") }

// stopped returns an error if the time limit of the command has expired or the command was interrupted.
func (s *scope) stopped() error {
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return timedOut()
	}
	if s.req.Context.Err() != nil {
		return interrupted()
	}
	return nil
}

// sleep sleeps, at most until the time limit of the command expires or the command is interrupted.
func (s *scope) sleep(d time.Duration) error {
	if s.slept {
		return nil
	}
	if !s.deadline.IsZero() {
		d = min(d, time.Until(s.deadline))
	}
	select {
	case <-time.After(d):
	case <-s.req.Context.Done():
	}
	return s.stopped()
}

// deadline returns the time at which maxTimeMS expires, or zero without it.
func deadline(req *command.Request) (t time.Time) {
	v, _ := value.FromRaw(req.Body.Lookup("maxTimeMS"))
	if ms, _ := value.Int64(v); ms > 0 {
		t = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return t
}
