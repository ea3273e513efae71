package commands

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/pipeline"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/update"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// write is a statement: an insert, an update or a delete.
type write struct {
	i        int        // position in the command
	kind     store.Kind // Insert, Update or Delete
	db, coll string
	// Of an insert:
	doc     bson.D
	raw     bson.Raw
	invalid error // why the document cannot be stored
	retried bool  // an earlier attempt of the command has stored it
	// Of an update or a delete:
	q, sort       bson.D
	update        any // a document or a pipeline
	opts          update.Options
	multi         bool
	collation     *args // has the field collation
	hint          any
	notRetryable  string  // text of the error of a retryable write with multi
	findAndModify *modify // nil for other commands
	// Set by prepare:
	filter *query.Filter
	order  *query.Order
	u      *update.Update
}

// write parses a statement. query, update and constants are the names of the fields that differ between command.
func (a *args) write(kind store.Kind, let bson.D, query, update, constants string) *write {
	w := &write{kind: kind, q: a.document(query), update: a.any(update), sort: a.document("sort")}
	w.multi, w.hint = a.flag("multi"), a.any("hint")
	w.opts.Constants, w.opts.ArrayFilters = a.document(constants), a.array("arrayFilters")
	w.opts.Let, w.opts.Upsert, w.collation = let, a.flag("upsert"), a
	return w
}

func (s *call) prepare(w *write) (err error) {
	upsert := w.opts.Upsert
	w.opts.Options = s.filters(w.opts.Let, w.collation.collation(s, w.db, w.coll))
	w.opts.Upsert = upsert
	if w.collation.Err != nil {
		return w.collation.Err
	}
	if w.kind == store.Update {
		if w.u, err = update.Compile(w.update, w.opts); err != nil {
			return err
		}
		if w.u.Replaces() && w.multi {
			return fault.Errorf(fault.FailedToParse, "multi update is not supported for replacement-style update")
		}
	}
	if w.filter, err = query.Compile(w.q, w.opts.Options); err != nil {
		if mongos(s.req) && s.req.Row.Name == "delete" && s.has.ErrorContext {
			return fault.Within("Could not parse delete query "+value.Text(w.q), err)
		}
		return err
	}
	if w.order, err = query.CompileOrder(w.sort, w.opts.Collation); err != nil {
		return err
	}
	return w.order.On(w.filter)
}

func (s *call) do(tx *store.Tx, w *write) (*store.Statement, error) {
	c, err := tx.Writable(w.db, w.coll, w.opts.Upsert) // an upsert creates the collection even if it fails
	if err != nil {
		return nil, err
	}
	hits, err := w.find(c)
	if err != nil {
		return nil, err
	}
	st := &store.Statement{Kind: w.kind}
	if len(hits) == 0 && w.opts.Upsert {
		return st, s.upsert(tx, w, c, st)
	}
	for _, r := range hits {
		post, modified, err := s.apply(tx, w, c, r)
		if err != nil {
			return nil, err
		}
		if st.N++; modified {
			st.Modified++
		}
		if w.findAndModify != nil {
			st.Pre, st.Post = r.Raw, post
		}
		if w.multi {
			tx.Keep()
		}
	}
	return st, nil
}

// find returns the records that a write affects. c is nil if the collection does not exist.
func (w *write) find(c *store.Collection) ([]*store.Record, error) {
	if c == nil {
		return nil, nil
	}
	hinted, err := hintedIndex(c, w.hint, canonical{})
	if err != nil {
		return nil, err
	}
	if err := needsText(c, w.filter); err != nil {
		return nil, err
	}
	hits, err := search(c, covered(hinted, c.Current()), w.filter, w.limit())
	if err == nil {
		err = query.Sort(hits, w.order, (*store.Record).Document)
	}
	if !w.multi && len(hits) > 1 {
		hits = hits[:1]
	}
	return hits, err
}

// limit returns how many matching records a write needs; 0 means all.
func (w *write) limit() int64 {
	if w.multi || w.order != nil {
		return 0
	}
	return 1
}

// apply applies a write to a record and returns the new document, or nil after a delete.
func (s *call) apply(tx *store.Tx, w *write, c *store.Collection, r *store.Record) (post bson.Raw, modified bool,
	_ error) {
	if w.kind == store.Delete {
		if err := s.removable(c); err != nil {
			return nil, false, err
		}
		return nil, false, tx.Remove(c, r)
	}
	doc, modified, err := w.u.Apply(r.Document(), false, w.filter)
	if err != nil {
		return nil, false, err
	}
	kind := store.Update
	if w.u.Replaces() {
		kind = store.Replace
	}
	if !s.has.DollarFields {
		var p fault.First
		if noDollars(&p, doc, ""); p.Err != nil {
			return nil, false, p.Err
		}
	}
	if size := len(value.Encode(doc)); c.Capped && size != len(r.Raw) && s.has.CappedSizes {
		return nil, false, fault.Errorf(fault.CannotGrowDocumentInCappedNamespace,
			"Cannot change the size of a document in a capped collection: %d != %d", len(r.Raw), size)
	}
	post, err = tx.Replace(c, r, doc, kind)
	return post, modified || !bytes.Equal(post, r.Raw), err
}

// removable returns an error if no document may be removed from a capped collection: before 5.0 and in a transaction.
func (s *call) removable(c *store.Collection) error {
	switch {
	case !c.Capped:
		return nil
	case !s.has.CappedRemoval:
		return fault.Errorf(fault.IllegalOperation, "cannot remove from a capped collection: %s", c.NS())
	case s.InTransaction():
		return fault.Errorf(fault.IllegalOperation,
			"Cannot remove from a capped collection in a multi-document transaction: %s", c.NS())
	}
	return nil
}

// upsert inserts the document that the update makes from the fields that the filter requires.
func (s *call) upsert(tx *store.Tx, w *write, c *store.Collection, st *store.Statement) error {
	base, err := w.filter.Inserted(w.u.Replaces())
	if err != nil {
		return err
	}
	doc, _, err := w.u.Apply(base, true, nil)
	if err != nil {
		return err
	}
	switch id := value.Get(doc, "_id").(type) {
	case bson.A, bson.Regex, bson.Undefined:
		return fault.Errorf(fault.InvalidIDField, "The '_id' value cannot be of type %s", value.TypeName(id))
	}
	doc, raw := withID(doc, value.Encode(doc))
	if err := storable(s.req, doc, raw); err != nil {
		return err
	}
	st.Kind, st.N, st.ID, st.Post = store.Insert, 1, doc[0].Value, raw
	return tx.Insert(c, doc, raw)
}

// documents returns the documents in an array of a write command.
func (a *args) documents(key string) []bson.D {
	list := a.array(key)
	a.Refuse(len(list) == 0 || len(list) > maxBatch, fault.InvalidLength,
		"Write batch sizes must be between 1 and %d. Got %d operations.", maxBatch, len(list))
	docs := make([]bson.D, len(list))
	for i, v := range list {
		docs[i] = v.(bson.D)
	}
	return docs
}

func (a *args) statements(key string) (out []*args) {
	for _, doc := range a.documents(key) {
		out = append(out, &args{of: a.of + "." + key, doc: doc, First: a.First})
	}
	return out
}

func updateCommand(s *call, a *args) action {
	let := a.let(s.req)
	var writes []*write
	for _, st := range a.statements("updates") {
		w := st.write(store.Update, let, "q", "u", "c")
		w.notRetryable = "(or request) retryable writes with multi=true"
		st.Refuse(!value.Is[bson.D](w.update) && !value.Is[bson.A](w.update) && s.has.IDL, fault.FailedToParse,
			"Update argument must be either an object or an array")
		st.Refuse(w.multi && st.has("sort"), fault.FailedToParse, "Cannot specify sort with multi=true")
		writes = append(writes, w)
	}
	do := batched(s, a, writes)
	return func() (bson.D, error) {
		reply, err := do()
		// The server rejects unknown stages only after it has run the statements, when it counts the stages.
		for _, w := range writes {
			if list, ok := w.update.(bson.A); ok && err == nil {
				err = pipeline.CheckNames(list, wire(s.req))
				s.Unsent = err != nil // a mongos finds it itself
			}
		}
		return reply, err
	}
}

func deleteCommand(s *call, a *args) action {
	let := a.let(s.req)
	var writes []*write
	for _, st := range a.statements("deletes") {
		limit := value.Float(st.any("limit")) // 0 if it is not a number
		st.Refuse(limit != 0 && limit != 1, fault.FailedToParse,
			"The limit field in delete objects must be 0 or 1. Got %v", limit)
		w := st.write(store.Delete, let, "q", "", "")
		w.multi, w.notRetryable = limit == 0, "(or request) retryable writes with limit=0"
		writes = append(writes, w)
	}
	return batched(s, a, writes)
}

// tally returns the reply of insert, update or delete, with the fields in the server's order. times and retried are
// fields of it.
func tally(req *Request, results []effect, times, retried bson.D) bson.D {
	var n, changed int64
	var inserted, failed bson.A
	for _, r := range results {
		if r.err != nil {
			failed = append(failed, writeError(req, r))
			continue
		}
		n += r.st.N
		changed += r.st.Modified
		if req.Row.Name == "update" && r.st.Kind == store.Insert {
			inserted = append(inserted, value.Doc("index", int32(r.i), "_id", r.st.ID))
		}
	}
	count := value.Doc("n", value.Int(n))
	modified := value.AddIf(nil, req.Row.Name == "update", "nModified", value.Int(changed))
	upserted := value.AddIf(nil, len(inserted) > 0, "upserted", inserted)
	errs := value.AddIf(nil, len(failed) > 0, "writeErrors", failed)
	switch {
	case mongos(req):
		return slices.Concat(modified, count, upserted, errs, retried)
	case !req.Server.Has.ReplyOrder:
		slices.Reverse(times)
		return slices.Concat(count, modified, upserted, errs, retried, times)
	}
	return slices.Concat(count, times, errs, retried, upserted, modified)
}

func writeError(req *Request, r effect) bson.D {
	w := value.Doc("index", int32(r.i), "code", r.err.Code)
	if !mongos(req) || !req.Server.Has.NamedWriteErrors {
		return value.Append(append(w, r.err.Extra...), "errmsg", r.err.Message)
	}
	info, ok := value.Field(r.err.Extra, "errInfo")
	return value.AddIf(value.Append(w, "codeName", fault.Name(r.err.Code), "errmsg", r.err.Message), ok, "errInfo", info)
}

// batched returns the action of insert, update or delete.
func batched(s *call, a *args, writes []*write) action {
	b, name, unacknowledged := newBatch(s, a), a.name(), a.unacknowledged(s.req)
	a.Refuse(b.stmtIDs != nil && len(b.stmtIDs) != len(writes), fault.InvalidLength,
		"Number of statement ids must match the number of batch entries. Got %d statement ids but %d operations",
		len(b.stmtIDs), len(writes))
	for i, w := range writes {
		w.i, w.db, w.coll = i, s.req.DB, name
	}
	return func() (bson.D, error) {
		s.Tried = true // a statement that cannot be parsed has locked the collection
		err := namespace(s.req.DB, name)
		if e, ok := err.(*fault.Error); ok && mongos(s.req) { // reports a write error
			b.results, err = []effect{{err: e}}, nil
		} else if err == nil {
			err = b.runAll(writes)
		}
		switch {
		case err != nil:
			return nil, err
		case unacknowledged:
			if !s.has.Acknowledges || mongos(s.req) {
				return bson.D{}, nil
			}
			return tally(s.req, nil, nil, nil), nil
		}
		return tally(s.req, b.results, s.opTime(b.failed()), b.retriedFields()), nil
	}
}

// unacknowledged reports whether the write concern is w: 0. A mongod acknowledges a write to the journal.
func (a *args) unacknowledged(req *Request) bool {
	concern := a.document("writeConcern")
	return value.Equal(value.Get(concern, "w"), int32(0)) && (mongos(req) || !value.Truthy(value.Get(concern, "j")))
}

func findAndModify(s *call, a *args) action {
	m := &modify{remove: a.flag("remove"), returnNew: a.flag("new"), request: a.doc}
	w := a.write(store.Update, a.let(s.req), "query", "update", "")
	w.db, w.coll, w.findAndModify = s.req.DB, a.collection(s.req.DB), m
	fields, b := a.document("fields"), newBatch(s, a)
	if m.remove {
		w.kind = store.Delete
	}
	const code = fault.FailedToParse
	a.Refuse(m.remove && a.has("update"), code, "Cannot specify both an update and remove=true")
	a.Refuse(m.remove && a.has("arrayFilters"), code, "Cannot specify arrayFilters and remove=true")
	a.Refuse(m.remove && w.opts.Upsert, code, "Cannot specify both upsert=true and remove=true ")
	a.Refuse(m.remove && m.returnNew, code,
		"Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	a.Refuse(!m.remove && !a.has("update"), code, "Either an update or remove=true must be specified")
	opts := w.opts.Options
	opts.Match = &query.Filter{} // until the filter of the command is compiled
	proj, err := query.CompileProjection(fields, opts)
	a.Note(err)
	return func() (bson.D, error) {
		st, err := b.once(w)
		if err != nil {
			return nil, err
		}
		proj.On(w.filter)
		last := value.Doc("n", value.Int(st.N))
		// A retry returns what is recorded, even if it was of another kind.
		last = value.AddIf(last, !m.remove || len(b.retried) > 0 && st.Kind != store.Delete, "updatedExisting", st.N > 0 &&
			st.Kind != store.Insert)
		last = value.AddIf(last, st.Kind == store.Insert, "upserted", st.ID)
		raw := st.Pre
		if m.returnNew {
			raw = st.Post
		}
		var result any
		if len(b.retried) > 0 {
			proj = nil // a retry returns the recorded document
		}
		if raw != nil {
			if result, err = proj.Apply(value.Must(raw)); err != nil {
				return nil, err
			}
		}
		out := value.Doc("lastErrorObject", last, "value", result)
		return value.AddIf(out, b.retriedFields() != nil, "retriedStmtId", b.id(0)), nil
	}
}

const incompatibleRetry = 40638

// modify contains the options of findAndModify that decide what a retry returns.
type modify struct {
	remove, returnNew bool
	request           bson.D
}

// record returns what is recorded of a statement: of the documents before and after it only the one that is returned.
func (w *write) record(st store.Statement) *store.Statement {
	if m := w.findAndModify; m == nil || m.returnNew {
		st.Pre = nil
	} else {
		st.Post = nil
	}
	return &st
}

// again returns the result of the retry of a recorded statement. The record and the command decide it.
func (w *write) again(st *store.Statement) (*store.Statement, error) {
	if w.findAndModify != nil {
		return st, w.findAndModify.check(w, st)
	}
	switch {
	case w.kind == store.Delete:
		return &store.Statement{Kind: store.Delete, N: 1}, nil
	case st.Kind == store.Delete:
		return nil, fault.Errorf(incompatibleRetry,
			"update retry request is not compatible with previous write in the transaction of type: d")
	case st.Kind == store.Insert:
		return st, nil
	}
	return &store.Statement{Kind: store.Update, N: 1, Modified: 1}, nil
}

// check returns an error if the retry of a findAndModify does not fit the recorded statement.
func (m *modify) check(w *write, st *store.Statement) error {
	fail := func(code int32, problem string) error {
		request := slices.DeleteFunc(slices.Clone(m.request), func(e bson.E) bool { return Generic(e.Key) })
		return fault.Errorf(code, "findAndModify retry request: %s %s", value.Text(request), problem)
	}
	const incompatible = "is not compatible with previous write in the transaction of type: "
	switch {
	case st.Kind == store.Delete && !m.remove:
		return fail(40606, incompatible+"d")
	case st.Kind == store.Delete && st.Pre == nil:
		return fail(40607, "has no pre-image")
	case st.Kind == store.Delete:
	case st.Kind == store.Insert && !w.opts.Upsert:
		return fail(40608, incompatible+"i")
	case st.Kind == store.Insert:
	case m.returnNew && st.Post == nil:
		return fail(40611, "wants the document after update returned, but only before update document is stored")
	case !m.returnNew && st.Pre == nil:
		return fail(40612, "wants the document before update returned, but only after update document is stored")
	}
	return nil
}

// noDollars notes an error for a field with a leading dollar in a value. Servers before 5.0 did not store one.
func noDollars(p *fault.First, v any, path string) {
	switch x := v.(type) {
	case bson.D:
		for _, e := range x {
			reference := e.Key == "$ref" || e.Key == "$id" || e.Key == "$db"
			p.Refuse(strings.HasPrefix(e.Key, "$") && !reference, fault.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", e.Key, path+e.Key)
			noDollars(p, e.Value, path+e.Key+".")
		}
	case bson.A:
		for _, item := range x {
			noDollars(p, item, path)
		}
	}
}
