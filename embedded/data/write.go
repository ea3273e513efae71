package data

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/update"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// maxBatch is the number of statements that one command may have.
const maxBatch = 100000

// batch is a write command under way: its statements and what became of them.
type batch struct {
	s        *scope
	ordered  bool
	stmtID   int64
	stmtIDs  bson.A
	n        int64
	modified int64
	upserted bson.A
	errors   bson.A
	retried  bson.A // the numbers of statements that were done before
}

// newBatch reads what the write commands have in common.
func newBatch(a *args) *batch {
	b := &batch{ordered: true, stmtIDs: a.array("stmtIds"), stmtID: a.number("stmtId", 0)}
	if a.has("ordered") {
		b.ordered = a.flag("ordered")
	}
	return b
}

func checkSize(n int) error {
	if n == 0 || n > maxBatch {
		return command.Errorf(command.CodeInvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.", maxBatch, n)
	}
	return nil
}

// id is the statement number of the i-th statement.
func (b *batch) id(i int) int32 {
	if i < len(b.stmtIDs) {
		n, _ := value.Whole(b.stmtIDs[i])
		return int32(n)
	}
	return int32(b.stmtID) + int32(i)
}

// recorded is the record of a statement that was done before. The caller holds mu.
func (b *batch) recorded(i int) *statement {
	if b.s.session == nil {
		return nil
	}
	st := b.s.session.statements[b.id(i)]
	if st != nil {
		b.retried = append(b.retried, b.id(i))
	}
	return st
}

// retriedFields say which statements were done before, from 6.0 on.
func (b *batch) retriedFields() bson.D {
	if len(b.retried) == 0 || wire(b.s.req) < wire60 {
		return nil
	}
	return bson.D{{Key: "retriedStmtIds", Value: b.retried}}
}

// record remembers a statement. The caller holds mu.
func (b *batch) record(i int, st *statement) {
	if b.s.session != nil && b.s.session.statements != nil {
		b.s.session.statements[b.id(i)] = st
		b.s.work.recorded = append(b.s.work.recorded, b.id(i))
	}
}

// fail notes the error of a statement. It returns an error if the whole
// command fails, and errStop if the batch is ordered and ends here.
var errStop = errors.New("the batch ends here")

func (b *batch) fail(i int, err error) error {
	var e *command.Error
	if !errors.As(err, &e) {
		return err
	}
	if b.s.thrown(e.Code) {
		return err
	}
	w := bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: e.Code}}
	if mongos(b.s.req) && wire(b.s.req) <= 12 {
		w = append(w, bson.E{Key: "codeName", Value: command.CodeName(e.Code)}, bson.E{Key: "errmsg", Value: e.Message})
		for _, x := range e.Extra {
			if x.Key == "errInfo" {
				w = append(w, x)
			}
		}
	} else {
		w = append(w, e.Extra...)
		w = append(w, bson.E{Key: "errmsg", Value: e.Message})
	}
	b.errors = append(b.errors, w)
	if b.ordered || b.s.txn != nil {
		return errStop
	}
	return nil
}

// thrown reports that an error ends the whole command, and is not one of its statement:
// what interrupts it, and in a transaction what is to be tried again with all of it.
func (s *scope) thrown(code int32) bool {
	switch {
	case code == errWriteConflict.Code, command.Interruption.Has(code):
		return true
	case code == command.CodeTransactionTooOld:
		return !mongos(s.req)
	}
	return s.txn != nil && (command.Transient.Has(code) || command.Retriable.Has(code))
}

// reply is the reply of insert, update and delete.
func (b *batch) reply(a *args, isUpdate bool) bson.D {
	wc := a.document("writeConcern")
	if w, ok := value.Field(wc, "w"); ok && value.IsNumber(w) && value.Compare(w, int32(0)) == 0 {
		return bson.D{}
	}
	n := bson.E{Key: "n", Value: value.Int(b.n)}
	var out bson.D
	switch {
	case isUpdate && mongos(b.s.req):
		out = bson.D{{Key: "nModified", Value: value.Int(b.modified)}, n}
	case isUpdate:
		out = bson.D{n, {Key: "nModified", Value: value.Int(b.modified)}}
	default:
		out = bson.D{n}
	}
	if len(b.upserted) > 0 {
		out = append(out, bson.E{Key: "upserted", Value: b.upserted})
	}
	if len(b.errors) > 0 {
		out = append(out, bson.E{Key: "writeErrors", Value: b.errors})
	}
	return append(append(out, b.retriedFields()...), b.s.d.opTime(b.s.req)...)
}

// opTime are the fields that members of a replica set add to write replies.
func (d *Data) opTime(req *command.Request) bson.D {
	if !d.opts.ReplicaSet || d.opts.Sharded || req.Server == nil || mongos(req) {
		return nil
	}
	ts := d.clock.time()
	return bson.D{
		{Key: "opTime", Value: bson.D{{Key: "ts", Value: ts}, {Key: "t", Value: req.Server.Term}}},
		{Key: "electionId", Value: req.Server.ElectionID},
	}
}

// badName refuses the namespace of a write; a mongos says so of the statement.
func (b *batch) badName(a *args, name string, isUpdate bool) (bson.D, error) {
	e := namespace(b.s.req.DB, name)
	switch {
	case e == nil:
		return nil, nil
	case !mongos(b.s.req):
		return nil, e
	}
	_ = b.fail(0, e)
	return b.reply(a, isUpdate), nil
}

// insertion is a document that is to be stored, as one statement of a batch.
type insertion struct {
	i      int
	doc    bson.D
	raw    bson.Raw
	wrong  error // why it cannot be stored
	before bool  // it was stored by the same command, sent before
}

func newInsertion(req *command.Request, i int, doc bson.D, raw bson.Raw) insertion {
	doc, raw = withID(doc, raw)
	return insertion{i: i, doc: doc, raw: raw, wrong: storable(req, doc, raw)}
}

// insertAll stores documents as a server does: those in a row that can be stored together,
// which is one transactional write; if that fails one by one, which are as many. failed
// reports whether to go on, by nil.
func (b *batch) insertAll(db, name string, items []insertion, stored func(i int), failed func(i int, err error) error) error {
	s := b.s
	s.d.reading(func() {
		for i := range items {
			items[i].before = b.recorded(items[i].i) != nil
		}
	})
	for len(items) > 0 {
		row := slices.IndexFunc(items, func(it insertion) bool { return it.wrong != nil || it.before })
		if row < 0 {
			row = len(items)
		}
		if row > 1 && s.txn == nil {
			if _, err := s.attempt(func() error { return b.store(db, name, items[:row]) }); err == nil {
				for _, it := range items[:row] {
					stored(it.i)
				}
				items = items[row:]
				continue
			}
		}
		for n, it := range items[:min(row+1, len(items))] {
			err := it.wrong
			if err == nil && !it.before {
				err = s.locked(func() error { return b.store(db, name, items[n:n+1]) })
			}
			if err == nil {
				stored(it.i)
			} else if err := failed(it.i, err); err != nil {
				return err
			}
		}
		items = items[min(row+1, len(items)):]
	}
	return nil
}

// errOneByOne reports that documents cannot be stored together.
var errOneByOne = errors.New("one by one")

// store stores documents. The caller holds mu.
func (b *batch) store(db, name string, items []insertion) error {
	c, err := b.s.writable(db, name, true)
	if err != nil {
		return err
	}
	if c.capped && len(items) > 1 {
		return errOneByOne
	}
	for _, it := range items {
		if err := b.s.insert(c, it.doc, slices.Clone(it.raw)); err != nil {
			return err
		}
		b.record(it.i, &statement{n: 1, upserted: value.Missing{}})
	}
	return nil
}

func (d *Data) insert(req *command.Request, a *args) (action, error) {
	a.only(" documents ordered bypassDocumentValidation encryptionInformation ")
	name, docs := a.name(), a.array("documents")
	b := newBatch(a)
	a.need("documents")
	if a.err != nil {
		return nil, a.err
	}
	if err := checkSize(len(docs)); err != nil {
		return nil, err
	}
	raws, err := req.Body.Lookup("documents").Array().Values()
	if err != nil || len(raws) != len(docs) {
		return nil, command.Errorf(command.CodeInvalidBSON, "documents is no valid array")
	}
	items := make([]insertion, len(docs))
	for i, v := range docs {
		doc, ok := v.(bson.D)
		if !ok {
			return nil, command.Errorf(command.CodeTypeMismatch, "BSON field 'insert.documents.%d' is the wrong type '%s', expected type 'object'", i, value.TypeName(v))
		}
		raw, _ := raws[i].DocumentOK()
		items[i] = newInsertion(req, i, doc, raw)
	}
	return func(s *scope) (bson.D, error) {
		b.s = s
		if reply, err := b.badName(a, name, false); reply != nil || err != nil {
			return reply, err
		}
		err := b.insertAll(s.req.DB, name, items, func(int) { b.n++ }, b.fail)
		if err != nil && err != errStop {
			return nil, err
		}
		return b.reply(a, false), nil
	}, nil
}

// withID is a document with its _id in first place, made if it is missing.
func withID(doc bson.D, raw bson.Raw) (bson.D, bson.Raw) {
	if len(doc) > 0 && doc[0].Key == "_id" {
		return doc, raw
	}
	id, ok := value.Field(doc, "_id")
	if !ok {
		id = bson.NewObjectID()
	}
	doc = append(bson.D{{Key: "_id", Value: id}}, value.Delete(doc, "_id")...)
	return doc, value.Encode(doc)
}

// storable refuses documents that cannot be stored.
func storable(req *command.Request, doc bson.D, raw bson.Raw) error {
	if len(raw) > maxDocument {
		return command.Errorf(command.CodeBSONObjectTooLarge, "object to insert too large. size in bytes: %d, max size: %d", len(raw), maxDocument)
	}
	switch id := doc[0].Value.(type) {
	case bson.D:
		for _, e := range id {
			if strings.HasPrefix(e.Key, "$") {
				return command.Errorf(command.CodeDollarPrefixedFieldName, "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", e.Key)
			}
		}
	case bson.A, bson.Regex, bson.Undefined:
		return command.Errorf(command.CodeInvalidIdField, "The '_id' value cannot be of type %s", value.TypeName(doc[0].Value))
	}
	if wire(req) < 13 {
		for _, e := range doc {
			if strings.HasPrefix(e.Key, "$") {
				return command.Errorf(command.CodeBadValue, "Document can't have $ prefixed field names: %s", e.Key)
			}
		}
	}
	return nil
}

// change is one statement that updates.
type change struct {
	q              bson.D
	update         any // a document, or a pipeline
	let, constants bson.D
	sort           bson.D
	arrayFilters   bson.A
	collation      *query.Collation
	upsert, multi  bool
	hint           any
	// What prepare makes of these.
	filter      *query.Filter
	u           *update.Update
	order       *query.Order
	kind        opKind
	replacement bool
}

// parseUpdate parses what a change does to a document.
func (ch *change) parseUpdate(now time.Time) (err error) {
	opts := update.Options{ArrayFilters: ch.arrayFilters, Now: now, Collation: ch.collation}
	switch x := ch.update.(type) {
	case bson.A:
		if len(ch.arrayFilters) > 0 {
			return command.Errorf(command.CodeFailedToParse, "Cannot specify arrayFilters on a pipeline-style update")
		}
		vars := append(append(bson.D{}, ch.let...), ch.constants...)
		if opts.Transform, err = pipeline.CompileUpdate(x, pipeline.Options{Let: vars, Now: now, Collation: ch.collation}); err == nil {
			ch.u, err = update.Compile(nil, opts)
		}
		return err
	case bson.D:
		if len(ch.constants) > 0 {
			return command.Errorf(51198, "Constant values may only be specified for pipeline updates")
		}
		ch.u, err = update.Compile(x, opts)
		return err
	}
	return command.Errorf(command.CodeFailedToParse, "Update argument must be either an object or an array")
}

// apply runs a change on a collection, c nil if it does not exist. The caller
// holds mu.
func (s *scope) apply(db, name string, ch *change) (n, modified int64, upserted any, pre, post bson.Raw, err error) {
	upserted = value.Missing{}
	c, err := s.writable(db, name, false)
	if err != nil {
		return
	}
	if err = hintExists(c, ch.hint); err != nil {
		return
	}
	var hits []found
	if c != nil {
		limit := int64(1)
		if ch.multi || ch.order != nil {
			limit = 0
		}
		if hits, err = search(c, c.docs, ch.filter, limit); err != nil {
			return
		}
		query.Sort(hits, ch.order, foundDoc)
		if !ch.multi && len(hits) > 1 {
			hits = hits[:1]
		}
	}
	if len(hits) == 0 {
		if !ch.upsert {
			return
		}
		var doc bson.D
		if doc, err = seedDocument(ch); err != nil {
			return
		}
		var raw bson.Raw
		doc, raw = withID(doc, value.Encode(doc))
		if err = storable(s.req, doc, raw); err != nil {
			return
		}
		if c, err = s.writable(db, name, true); err != nil {
			return
		}
		if err = s.insert(c, doc, raw); err != nil {
			return
		}
		return 1, 0, doc[0].Value, nil, raw, nil
	}
	for _, h := range hits {
		var doc bson.D
		if doc, err = ch.u.Apply(h.doc, h.match, false); err != nil {
			return
		}
		var did bool
		var raw bson.Raw
		if did, raw, err = s.replace(c, h.rec, doc, ch.kind); err != nil {
			return
		}
		n++
		if did {
			modified++
		}
		pre, post = h.rec.raw, raw
		if ch.multi {
			s.keep()
		}
	}
	return
}

// seedDocument is the document that an upsert inserts.
func seedDocument(ch *change) (bson.D, error) {
	base := bson.D{}
	var err error
	if !ch.replacement {
		base, err = equalities(base, ch.q)
		if err != nil {
			return nil, err
		}
	} else if id, ok := ch.filter.ID(); ok {
		base = bson.D{{Key: "_id", Value: id}}
	}
	return ch.u.Apply(base, query.Match{Index: -1}, true)
}

// equalities collects the fields that a filter fixes.
func equalities(doc, q bson.D) (bson.D, error) {
	var err error
	for _, e := range q {
		v := e.Value
		switch x := v.(type) {
		case bson.Regex:
			continue
		case bson.A:
			if e.Key == "$and" {
				for _, item := range x {
					if d, ok := item.(bson.D); ok {
						if doc, err = equalities(doc, d); err != nil {
							return nil, err
						}
					}
				}
				continue
			}
		case bson.D:
			if len(x) > 0 && strings.HasPrefix(x[0].Key, "$") {
				eq, ok := value.Field(x, "$eq")
				if !ok {
					if in, isIn := value.Field(x, "$in"); isIn {
						if l, isList := in.(bson.A); isList && len(l) == 1 {
							eq, ok = l[0], true
						}
					}
				}
				if !ok {
					continue
				}
				v = eq
			}
		}
		if strings.HasPrefix(e.Key, "$") {
			continue
		}
		up, err := update.Compile(bson.D{{Key: "$set", Value: bson.D{{Key: e.Key, Value: v}}}}, update.Options{})
		if err != nil {
			return nil, err
		}
		if doc, err = up.Apply(doc, query.Match{Index: -1}, true); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// statements are the statements of a write command.
func (a *args) statements(req *command.Request, key, fields string, required ...string) []*args {
	list := a.array(key)
	a.need(key)
	a.fail(checkSize(len(list)))
	var out []*args
	for i, v := range list {
		doc, ok := v.(bson.D)
		if !ok {
			a.fail(command.Errorf(command.CodeTypeMismatch, "BSON field '%s.%s.%d' is the wrong type '%s', expected type 'object'", a.of, key, i, value.TypeName(v)))
		}
		st := &args{of: a.of + "." + key, doc: doc, in: a}
		st.only(fields)
		st.fail(tooNew(req, st.of, doc))
		for _, r := range required {
			st.need(r)
		}
		out = append(out, st)
	}
	return out
}

// each does the statements one after the other, until one fails for all.
func (b *batch) each(statements []*args, do func(i int, st *args) error) error {
	for i, st := range statements {
		if err := do(i, st); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (d *Data) update(req *command.Request, a *args) (action, error) {
	a.only(" updates ordered bypassDocumentValidation let legacyRuntimeConstants runtimeConstants encryptionInformation ")
	name, let := a.name(), a.let(d)
	b := newBatch(a)
	statements := a.statements(req, "updates", " q u c arrayFilters multi upsert upsertSupplied collation hint sort sampleId allowShardKeyUpdatesWithoutFullShardKeyInQuery ", "q", "u")
	if a.err != nil {
		return nil, a.err
	}
	return func(s *scope) (bson.D, error) {
		b.s = s
		if reply, err := b.badName(a, name, true); reply != nil || err != nil {
			return reply, err
		}
		if err := b.each(statements, func(i int, st *args) error { return b.updateOne(name, i, st, let) }); err != nil {
			return nil, err
		}
		// When all is done the server counts the stages, and fails of those that it
		// does not know.
		for _, st := range statements {
			if list, ok := st.any("u").(bson.A); ok {
				if err := pipeline.Named(list); err != nil {
					return nil, err
				}
			}
		}
		return b.reply(a, true), nil
	}, nil
}

func (b *batch) updateOne(name string, i int, st *args, let bson.D) error {
	ch := &change{q: st.document("q"), update: st.any("u"), let: let, constants: st.document("c"), sort: st.document("sort"),
		arrayFilters: st.array("arrayFilters"), collation: st.collation(), upsert: st.flag("upsert"), multi: st.flag("multi"), hint: st.any("hint")}
	if ch.multi && st.has("sort") {
		st.fail(command.Errorf(command.CodeFailedToParse, "Cannot specify sort with multi=true"))
	}
	if st.err != nil {
		return st.err
	}
	if b.s.session != nil && ch.multi {
		return b.fail(i, command.Errorf(command.CodeInvalidOptions, "Cannot use (or request) retryable writes with multi=true"))
	}
	did, err := b.change(i, b.s.req.DB, name, ch)
	if err != nil {
		return b.fail(i, err)
	}
	b.n += did.n
	b.modified += did.modified
	b.addUpserted(i, did.upserted)
	return nil
}

// change does an update as the i-th statement, unless it was done before.
func (b *batch) change(i int, db, coll string, ch *change) (*statement, error) {
	var did *statement
	err := b.s.locked(func() (err error) {
		if did = b.recorded(i); did != nil {
			return nil
		}
		if err := b.s.prepare(ch); err != nil {
			return err
		}
		did = &statement{}
		if did.n, did.modified, did.upserted, _, _, err = b.s.apply(db, coll, ch); err == nil && did.n > 0 {
			b.record(i, did)
		}
		return err
	})
	return did, err
}

func (b *batch) addUpserted(i int, id any) {
	if (id != any(value.Missing{})) {
		b.upserted = append(b.upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: id}})
	}
}

// prepare parses the parts of a change.
func (s *scope) prepare(ch *change) error {
	now := s.d.opts.Now()
	opts := query.Options{Now: now, Let: ch.let, Collation: ch.collation, Scripts: s.scripts(), Upsert: ch.upsert}
	var err error
	if err = ch.parseUpdate(now); err != nil {
		return err
	}
	ch.kind = opUpdate
	if ch.replacement = ch.u.Replaces(); ch.replacement {
		ch.kind = opReplace
		if ch.multi {
			return command.Errorf(command.CodeFailedToParse, "multi update is not supported for replacement-style update")
		}
	}
	if ch.filter, err = query.Compile(ch.q, opts); err != nil {
		return err
	}
	ch.order, err = query.CompileOrder(ch.sort, ch.collation)
	return err
}

func (d *Data) delete(req *command.Request, a *args) (action, error) {
	a.only(" deletes ordered let legacyRuntimeConstants runtimeConstants encryptionInformation bypassDocumentValidation ")
	name, let := a.name(), a.let(d)
	b := newBatch(a)
	statements := a.statements(req, "deletes", " q limit collation hint sampleId ", "q", "limit")
	for _, st := range statements {
		if limit := st.number("limit", 0); limit != 0 && limit != 1 {
			st.fail(command.Errorf(command.CodeFailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", limit))
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	return func(s *scope) (bson.D, error) {
		b.s = s
		if reply, err := b.badName(a, name, false); reply != nil || err != nil {
			return reply, err
		}
		if err := b.each(statements, func(i int, st *args) error { return b.deleteOne(name, i, st, let) }); err != nil {
			return nil, err
		}
		return b.reply(a, false), nil
	}, nil
}

// removal is one statement that deletes, up to limit documents (0: all).
type removal struct {
	q, let    bson.D
	collation *query.Collation
	limit     int64
	hint      any
}

func (b *batch) deleteOne(name string, i int, st *args, let bson.D) error {
	r := removal{q: st.document("q"), let: let, collation: st.collation(), limit: st.number("limit", 0), hint: st.any("hint")}
	if st.err != nil {
		return st.err
	}
	if b.s.session != nil && r.limit == 0 {
		return b.fail(i, command.Errorf(command.CodeInvalidOptions, "Cannot use (or request) retryable writes with limit=0"))
	}
	n, err := b.remove(i, b.s.req.DB, name, r)
	if err != nil {
		return b.fail(i, err)
	}
	b.n += n
	return nil
}

// remove does a delete as the i-th statement, unless it was done before.
func (b *batch) remove(i int, db, coll string, r removal) (n int64, err error) {
	err = b.s.locked(func() error {
		if did := b.recorded(i); did != nil {
			n = did.n
			return nil
		}
		f, err := query.Compile(r.q, query.Options{Now: b.s.d.opts.Now(), Let: r.let, Collation: r.collation, Scripts: b.s.scripts()})
		if err != nil {
			return err
		}
		if n, _, err = b.s.removeMatching(db, coll, f, nil, r.limit, r.hint); err == nil && n > 0 {
			b.record(i, &statement{n: n, upserted: value.Missing{}})
		}
		return err
	})
	return n, err
}

// removeMatching deletes what matches, up to limit (0: all), and gives the
// last. The caller holds mu.
func (s *scope) removeMatching(db, name string, f *query.Filter, order *query.Order, limit int64, hint any) (int64, bson.Raw, error) {
	c, err := s.writable(db, name, false)
	if err != nil || c == nil {
		return 0, nil, err
	}
	if err := hintExists(c, hint); err != nil {
		return 0, nil, err
	}
	stop := limit
	if order != nil {
		stop = 0
	}
	hits, err := search(c, c.docs[:len(c.docs):len(c.docs)], f, stop)
	if err != nil {
		return 0, nil, err
	}
	query.Sort(hits, order, foundDoc)
	if limit > 0 && int64(len(hits)) > limit {
		hits = hits[:limit]
	}
	var last bson.Raw
	for _, h := range hits {
		if err := s.remove(c, h.rec); err != nil {
			return 0, nil, err
		}
		last = h.rec.raw
	}
	return int64(len(hits)), last, nil
}
