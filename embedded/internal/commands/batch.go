package commands

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

const (
	maxBatch = 100000 // statements of a command
	// An insert commits when it reaches one of these limits: documents (as in 4.4, 5.0 and 8.0; 64 in 7.0 and before
	// 4.4) or bytes.
	maxTogether     = 500
	maxTogetherSize = 256 << 10
)

// batch is the state of a running write command.
type batch struct {
	s       *call
	results []effect
	ordered bool
	stmtID  int64
	stmtIDs bson.A
	retried bson.A // ids of the statements that an earlier attempt has performed
}

type effect struct {
	i    int
	kind store.Kind // of the statement
	st   *store.Statement
	err  *fault.Error
}

// newBatch parses the fields that all write commands have.
func newBatch(s *call, a *args) *batch {
	b := &batch{s: s, ordered: true, stmtIDs: a.array("stmtIds"), stmtID: a.number("stmtId", 0)}
	a.Refuse(a.has("stmtId") && a.has("stmtIds"), fault.InvalidOptions,
		"May not specify both stmtId and stmtIds in write command")
	if a.has("ordered") {
		b.ordered = a.flag("ordered")
	}
	return b
}

// id returns the statement id of the i-th statement.
func (b *batch) id(i int) int32 {
	if i < len(b.stmtIDs) {
		id, _ := b.stmtIDs[i].(int32)
		return id
	}
	return int32(b.stmtID) + int32(i)
}

// recorded returns the result of a statement that an earlier attempt has performed, or nil.
func (b *batch) recorded(tx *store.Tx, i int) *store.Statement {
	st := tx.Recorded(b.id(i))
	if st != nil {
		b.retried, b.s.Tried = append(b.retried, b.id(i)), true
	}
	return st
}

// retriedFields returns the field retriedStmtIds, which servers report since 6.0.
func (b *batch) retriedFields() bson.D {
	if len(b.retried) == 0 || !b.s.has.RetriedStatements {
		return nil
	}
	return value.Doc("retriedStmtIds", b.retried)
}

func (b *batch) failed() bool {
	return slices.ContainsFunc(b.results, func(e effect) bool { return e.err != nil })
}

// errStop means that no further statements are run.
var errStop = errors.New("the batch ends here")

// fail records the error of a statement. It returns the error if the command fails, and errStop if no further
// statements may be run.
func (b *batch) fail(w *write, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || b.s.failsCommand(e.Code) {
		return err
	}
	b.results = append(b.results, effect{i: w.i, kind: w.kind, err: e})
	// An error aborts a transaction, even if the batch is not ordered.
	if b.ordered || b.s.InTransaction() {
		return errStop
	}
	return nil
}

// failsCommand reports whether an error of a statement fails the whole command. Outside of a transaction only a fail
// point causes a write conflict. It is an error of the statement: servers since 5.0.14 try again (SERVER-54284).
func (s *call) failsCommand(code int32) bool {
	return code == incompatibleRetry || fault.Interruption.Has(code) ||
		s.InTransaction() && (fault.Transient.Has(code) || fault.Retriable.Has(code))
}

// once performs an update or a delete unless an earlier attempt has performed it.
func (b *batch) once(w *write) (st *store.Statement, err error) {
	if err := b.s.prepare(w); err != nil {
		if w.opts.Upsert && w.findAndModify == nil { // a server creates the collection before it parses the update
			_ = b.s.Update(func(tx *store.Tx) error { _, _ = tx.Writable(w.db, w.coll, true); return err })
		}
		return nil, err
	}
	if err := b.s.runScripts(w); err != nil {
		return nil, err
	}
	err = b.s.Update(func(tx *store.Tx) (err error) {
		if st = b.recorded(tx, w.i); st != nil {
			st, err = w.again(st)
			return err
		}
		if st, err = b.s.do(tx, w); err == nil && st.Wrote() {
			tx.Record(b.id(w.i), w.record(*st))
		}
		if w.findAndModify != nil && b.s.has.ErrorContext {
			err = fault.Within("Plan executor error during findAndModify", err)
		}
		return err
	})
	return st, err
}

// runAll performs statements in order. Consecutive inserts into a collection are stored together.
func (b *batch) runAll(writes []*write) error {
	var err error
	for len(writes) > 0 && err == nil {
		w, n := writes[0], 1
		if w.kind == store.Insert {
			for n < len(writes) && writes[n].kind == store.Insert && writes[n].db == w.db && writes[n].coll == w.coll {
				n++
			}
			err = b.insertAll(writes[:n])
		} else {
			err = b.run(w)
		}
		writes = writes[n:]
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (b *batch) run(w *write) error {
	if b.s.Retryable() && w.multi {
		return b.fail(w, fault.Errorf(fault.InvalidOptions, "Cannot use %s", w.notRetryable))
	}
	st, err := b.once(w)
	if err != nil {
		return b.fail(w, err)
	}
	b.results = append(b.results, effect{i: w.i, kind: w.kind, st: st})
	return nil
}

func bulkWrite(s *call, a *args) action {
	b, errorsOnly := newBatch(s, a), a.flag("errorsOnly")
	writes, size := a.operations(s.req), a.batchSize()
	return func() (bson.D, error) {
		if err := b.runAll(writes); err != nil {
			return nil, err
		}
		counts, docs := b.tally(errorsOnly)
		reply := s.list("admin.$cmd.bulkWrite", docs, size)
		if a.unacknowledged(s.req) {
			return bson.D{}, nil
		}
		return slices.Concat(reply, counts, b.retriedFields(), s.opTime(false)), nil
	}
}

// operations returns the statements in ops. They name their collections by position in nsInfo.
func (a *args) operations(req *Request) (writes []*write) {
	docs, let := a.documents("ops"), a.let(req)
	var collections [][2]string
	for _, v := range a.array("nsInfo") {
		db, coll, _ := strings.Cut(value.As[string](v.(bson.D), "ns"), ".")
		a.checkName(db, coll)
		collections = append(collections, [2]string{db, coll})
	}
	for i, doc := range docs {
		if len(doc) == 0 {
			a.Fail(fault.TypeMismatch, "BSON field 'bulkWrite.ops.%d' is the wrong type 'object', expected type 'object'", i)
			break
		}
		n, ok := value.Int64(doc[0].Value)
		if !ok || n < 0 || n >= int64(len(collections)) {
			a.Fail(fault.BadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", value.Text(doc))
			break
		}
		w, of := new(write), "bulkWrite.ops."+doc[0].Key
		if shapes()[of] == nil {
			a.Fail(fault.IDLUnknownField, "BSON field '%s' is an unknown field.", of)
			break
		}
		a.Note(CheckDocument(req, of, doc))
		switch op := (&args{of: of, doc: doc, First: a.First}); doc[0].Key {
		case "insert":
			inserted := op.document("document")
			w = newInsert(req, inserted, value.Encode(inserted))
		case "update":
			w = op.write(store.Update, let, "filter", "updateMods", "constants")
		case "delete":
			w = op.write(store.Delete, let, "filter", "", "")
		}
		w.i, w.db, w.coll, w.notRetryable = i, collections[n][0], collections[n][1], "retryable writes with multi=true"
		writes = append(writes, w)
	}
	return writes
}

// tally returns the counters of the reply and a result document for each operation.
func (b *batch) tally(errorsOnly bool) (counts bson.D, docs []bson.Raw) {
	var failed, inserted, matched, modified, upserted, deleted int64
	for _, o := range b.results {
		doc := value.Doc("ok", 1.0, "idx", int32(o.i))
		st := o.st
		if o.err != nil {
			st = &store.Statement{}
			failed++
			doc[0].Value = 0.0
			doc = value.Append(doc, "code", o.err.Code, "errmsg", o.err.Message)
			doc = append(doc, o.err.Extra...)
		}
		switch {
		case o.kind == store.Insert:
			inserted += st.N
		case o.kind == store.Delete:
			deleted += st.N
		case st.Kind == store.Insert:
			upserted++
		default:
			matched += st.N
		}
		modified += st.Modified
		doc = value.Append(doc, "n", value.Int(st.N))
		doc = value.AddIf(doc, o.kind == store.Update, "nModified", value.Int(st.Modified))
		doc = value.AddIf(doc, o.kind == store.Update && st.Kind == store.Insert, "upserted", value.Doc("_id", st.ID))
		if o.err != nil || !errorsOnly {
			docs = append(docs, value.Encode(doc))
		}
	}
	return value.Doc("nErrors", value.Int(failed), "nInserted", value.Int(inserted), "nMatched", value.Int(matched),
		"nModified", value.Int(modified), "nUpserted", value.Int(upserted), "nDeleted", value.Int(deleted)), docs
}

// newInsert returns a statement that inserts a document.
func newInsert(req *Request, doc bson.D, raw bson.Raw) *write {
	doc, raw = withID(doc, raw)
	return &write{kind: store.Insert, doc: doc, raw: raw, invalid: storable(req, doc, raw)}
}

// together returns how many of the first documents are stored in one transactional write.
func together(inserts []*write) (n int) {
	size := 0
	for n < len(inserts) && n < maxTogether && size < maxTogetherSize && inserts[n].invalid == nil && !inserts[n].retried {
		size += len(inserts[n].raw)
		n++
	}
	return n
}

// insertAll stores documents of a collection in transactional writes of as many documents as a server stores together,
// and the documents of a write that fails one by one.
func (b *batch) insertAll(inserts []*write) error {
	s := b.s
	s.View(func(tx *store.Tx) {
		for _, w := range inserts {
			w.retried = b.recorded(tx, w.i) != nil
		}
	})
	for len(inserts) > 0 {
		n := max(together(inserts), 1)
		stored := n > 1 && !s.InTransaction() &&
			s.Try(func(tx *store.Tx) error { return b.store(tx, inserts[:n]...) }) == nil
		for _, w := range inserts[:n] {
			err := w.invalid
			if err == nil && !w.retried && !stored {
				err = s.Update(func(tx *store.Tx) error { return b.store(tx, w) })
			}
			if err == nil {
				b.results = append(b.results, effect{i: w.i, kind: w.kind, st: &store.Statement{Kind: w.kind, N: 1}})
			} else if err := b.fail(w, err); err != nil {
				return err
			}
		}
		inserts = inserts[n:]
	}
	return nil
}

func (b *batch) store(tx *store.Tx, inserts ...*write) error {
	c, err := tx.Writable(inserts[0].db, inserts[0].coll, true)
	if err != nil {
		return err
	}
	if c.Capped && b.s.InTransaction() && b.s.has.TransactionErrors {
		return fault.Errorf(fault.OperationNotSupportedInTransaction,
			"Collection '%s' is a capped collection. Writes in transactions are not allowed on capped collections.", c.NS())
	}
	if c.Capped && len(inserts) > 1 {
		return errors.New("documents of a capped collection are stored one by one")
	}
	for _, w := range inserts {
		if err := tx.Insert(c, w.doc, slices.Clone(w.raw)); err != nil {
			return err
		}
		tx.Record(b.id(w.i), &store.Statement{Kind: store.Insert, N: 1, ID: w.doc[0].Value})
	}
	return nil
}

func insertCommand(s *call, a *args) action {
	docs := a.documents("documents")
	if a.Err != nil {
		return nil
	}
	inserts := make([]*write, len(docs))
	for i, raw := range value.Documents(s.req.Body.Lookup("documents")) { // docs, encoded
		inserts[i] = newInsert(s.req, docs[i], raw)
	}
	return batched(s, a, inserts)
}

// withID returns a document with _id as its first field. It generates a missing _id.
func withID(doc bson.D, raw bson.Raw) (bson.D, bson.Raw) {
	if len(doc) > 0 && doc[0].Key == "_id" {
		return doc, raw
	}
	id, ok := value.Field(doc, "_id")
	if !ok {
		id = bson.NewObjectID()
	}
	doc = append(value.Doc("_id", id), value.Delete(doc, "_id")...)
	return doc, value.Encode(doc)
}

// storable returns an error if a document cannot be stored.
func storable(req *Request, doc bson.D, raw bson.Raw) error {
	var p fault.First
	p.Refuse(len(raw) > store.MaxDocument, fault.BadValue,
		"object to insert too large. size in bytes: %d, max size: %d", len(raw), store.MaxDocument)
	switch id := doc[0].Value.(type) {
	case bson.D:
		for _, e := range id {
			p.Refuse(strings.HasPrefix(e.Key, "$"), fault.DollarPrefixedFieldName,
				"_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", e.Key)
		}
	case bson.A, bson.Regex, bson.Undefined:
		p.Fail(fault.BadValue, "can't use %s for _id",
			map[string]string{"array": "an array", "regex": "a regex", "undefined": "a undefined"}[value.TypeName(id)])
	}
	if !req.Server.Has.DollarFields {
		for _, e := range doc {
			p.Refuse(strings.HasPrefix(e.Key, "$"), fault.BadValue, "Document can't have $ prefixed field names: %s", e.Key)
		}
	}
	return p.Err
}
