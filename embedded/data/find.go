package data

import (
	"strings"

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
	q := &findCommand{s: s, concern: a.readConcern(s)}
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
	q.returnKey, q.showRecordID, q.hint = a.flag("returnKey"), a.flag("showRecordId"), a.any("hint")
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
		q.s.d.reading(func() {
			if r := c.byID(id); r != nil {
				one = append(one, r)
			}
		})
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
