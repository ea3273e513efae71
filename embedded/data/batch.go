package data

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// maxBatch is the maximum number of statements of a command.
const maxBatch = 100000

// batch is the state of a running write command.
type batch struct {
	s       *scope
	results []effect
	ordered bool
	stmtID  int64
	stmtIDs bson.A
	retried bson.A // ids of the statements that an earlier attempt has performed
}

type effect struct {
	i    int
	kind writeKind
	st   *statement
	err  *command.Error
}

type writeKind uint8

const (
	inserting writeKind = iota
	updating
	deleting
)

// newBatch parses the common fields of write commands.
func newBatch(s *scope, a *args) *batch {
	b := &batch{s: s, ordered: true, stmtIDs: a.array("stmtIds"), stmtID: a.number("stmtId", 0)}
	if a.has("ordered") {
		b.ordered = a.flag("ordered")
	}
	return b
}

// id returns the statement id of the i-th statement.
func (b *batch) id(i int) int32 {
	if i < len(b.stmtIDs) {
		n, _ := value.Int64(b.stmtIDs[i])
		return int32(n)
	}
	return int32(b.stmtID) + int32(i)
}

// recorded returns the result of a statement that an earlier attempt has performed, or nil. The caller holds mu.
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

// retriedFields returns the field retriedStmtIds, which servers report since 6.0.
func (b *batch) retriedFields() bson.D {
	if len(b.retried) == 0 || wire(b.s.req) < wire60 {
		return nil
	}
	return bson.D{{Key: "retriedStmtIds", Value: b.retried}}
}

// record records the result of a statement for retries. The caller holds mu.
func (b *batch) record(i int, st *statement) {
	if b.s.session != nil && b.s.session.statements != nil {
		b.s.session.statements[b.id(i)] = st
		b.s.undoLog = append(b.s.undoLog, func() { delete(b.s.session.statements, b.id(i)) })
	}
}

// errStop means that no further statements are run.
var errStop = errors.New("the batch ends here")

// fail records the error of a statement. It returns the error if the command fails, and errStop if no further
// statements may be run.
func (b *batch) fail(w *write, err error) error {
	var e *command.Error
	if !errors.As(err, &e) || b.s.failsCommand(e.Code) {
		return err
	}
	b.results = append(b.results, effect{i: w.i, kind: w.kind, err: e})
	// An error aborts a transaction, even if the batch is not ordered.
	if b.ordered || b.s.txn != nil {
		return errStop
	}
	return nil
}

// failsCommand reports whether an error of a statement fails the whole command.
func (s *scope) failsCommand(code int32) bool {
	switch {
	case code == errWriteConflict.Code, command.Interruption.Has(code):
		return true
	case code == command.CodeTransactionTooOld:
		return !mongos(s.req) || s.req.Row.Name == "bulkWrite"
	}
	return s.txn != nil && (command.Transient.Has(code) || command.Retriable.Has(code))
}

// once performs an update or a delete unless an earlier attempt has performed it.
func (b *batch) once(w *write) (st *statement, err error) {
	if err := b.s.prepare(w); err != nil {
		return nil, err
	}
	if err := b.s.rehearse(w); err != nil {
		return nil, err
	}
	err = b.s.locked(func() (err error) {
		if st = b.recorded(w.i); st != nil {
			return w.checkRetry(st)
		}
		if st, err = b.s.do(w); err == nil && st.n > 0 {
			b.record(w.i, st)
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
		if w.kind == inserting {
			for n < len(writes) && writes[n].kind == inserting && writes[n].db == w.db && writes[n].coll == w.coll {
				n++
			}
			err = b.insertAll(writes[:n])
		} else {
			err = b.run(w)
		}
		writes = writes[n:]
	}
	if err == errStop {
		return nil
	}
	return err
}

// run performs an update or a delete and records its result or error.
func (b *batch) run(w *write) error {
	if b.s.session != nil && w.multi {
		return b.fail(w, command.Errorf(command.CodeInvalidOptions, "Cannot use %s", w.notRetryable))
	}
	st, err := b.once(w)
	if err != nil {
		return b.fail(w, err)
	}
	b.results = append(b.results, effect{i: w.i, kind: w.kind, st: st})
	return nil
}

// opTime returns the fields that members of a replica set add to write replies.
func (s *scope) opTime() bson.D {
	d, req := s.d, s.req
	if !d.opts.ReplicaSet || d.opts.Sharded || mongos(req) {
		return nil
	}
	ts := d.clock.time()
	return bson.D{
		{Key: "opTime", Value: bson.D{{Key: "ts", Value: ts}, {Key: "t", Value: req.Server.Term}}},
		{Key: "electionId", Value: req.Server.ElectionID},
	}
}

func bulkWrite(s *scope, a *args) action {
	a.only(" ops nsInfo ordered bypassDocumentValidation let errorsOnly cursor endpoint ")
	b, errorsOnly := newBatch(s, a), a.flag("errorsOnly")
	writes, size := a.operations(s.req), a.batchSize()
	return func() (bson.D, error) {
		if err := b.runAll(writes); err != nil {
			return nil, err
		}
		counts, docs := b.tally(errorsOnly)
		reply := s.list("admin.$cmd.bulkWrite", docs, size)
		if a.unacknowledged() {
			return bson.D{}, nil
		}
		return slices.Concat(reply, counts, b.retriedFields(), s.opTime()), nil
	}
}

const bulkUpdateFields = " update filter updateMods multi upsert upsertSupplied arrayFilters hint constants collation sort sampleId allowShardKeyUpdatesWithoutFullShardKeyInQuery "

// operations returns the statements in ops, which name their collections by their position in nsInfo.
func (a *args) operations(req *command.Request) (writes []*write) {
	docs, let := a.documents("ops"), a.let()
	a.need("nsInfo")
	var collections [][2]string
	for _, v := range a.array("nsInfo") {
		info, _ := v.(bson.D)
		str, ok := value.Get(info, "ns").(string)
		a.Refuse(!ok, command.CodeIDLFailedToParse, "BSON field 'bulkWrite.nsInfo.ns' is missing but a required field")
		db, coll, _ := strings.Cut(str, ".")
		a.checkName(db, coll)
		collections = append(collections, [2]string{db, coll})
	}
	for i, doc := range docs {
		if len(doc) == 0 {
			a.Fail(command.CodeTypeMismatch,
				"BSON field 'bulkWrite.ops.%d' is the wrong type 'object', expected type 'object'", i)
			break
		}
		n, ok := value.Int64(doc[0].Value)
		if !ok || n < 0 || n >= int64(len(collections)) {
			a.Fail(command.CodeBadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", value.Text(doc))
			break
		}
		w := new(write)
		switch op := (&args{of: "bulkWrite.ops." + doc[0].Key, doc: doc, FirstError: a.FirstError}); doc[0].Key {
		case "insert":
			op.only(" insert document ")
			inserted := op.document("document")
			w = newInsert(req, inserted, value.Encode(inserted))
		case "update":
			op.only(bulkUpdateFields)
			w = op.write(updating, let, "filter", "updateMods", "constants")
		case "delete":
			op.only(" delete filter multi hint collation sampleId ")
			w = op.write(deleting, let, "filter", "", "")
		default:
			a.Fail(command.CodeIDLUnknownField, "BSON field 'bulkWrite.ops.%s' is an unknown field.", doc[0].Key)
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
		doc := bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: int32(o.i)}}
		st := o.st
		if o.err != nil {
			st = &statement{}
			failed++
			doc[0].Value = 0.0
			doc = append(doc, bson.E{Key: "code", Value: o.err.Code}, bson.E{Key: "errmsg", Value: o.err.Message})
			doc = append(doc, o.err.Extra...)
		}
		switch {
		case o.kind == inserting:
			inserted += st.n
		case o.kind == deleting:
			deleted += st.n
		case st.inserted:
			upserted++
		default:
			matched += st.n
		}
		modified += st.modified
		doc = append(doc, bson.E{Key: "n", Value: value.Int(st.n)})
		doc = value.AddIf(doc, o.kind == updating, "nModified", value.Int(st.modified))
		doc = value.AddIf(doc, st.inserted, "upserted", bson.D{{Key: "_id", Value: st.upserted}})
		if o.err != nil || !errorsOnly {
			docs = append(docs, value.Encode(doc))
		}
	}
	return bson.D{
		{Key: "nErrors", Value: value.Int(failed)}, {Key: "nInserted", Value: value.Int(inserted)},
		{Key: "nMatched", Value: value.Int(matched)}, {Key: "nModified", Value: value.Int(modified)},
		{Key: "nUpserted", Value: value.Int(upserted)}, {Key: "nDeleted", Value: value.Int(deleted)},
	}, docs
}

// newInsert returns a statement that inserts a document.
func newInsert(req *command.Request, doc bson.D, raw bson.Raw) *write {
	doc, raw = withID(doc, raw)
	return &write{kind: inserting, doc: doc, raw: raw, invalid: storable(req, doc, raw)}
}

// insertAll stores documents of a collection together in one transactional write and, if that fails, one by one.
func (b *batch) insertAll(inserts []*write) error {
	s := b.s
	stored := func(inserts ...*write) {
		for _, w := range inserts {
			b.results = append(b.results, effect{i: w.i, st: &statement{n: 1}})
		}
	}
	s.d.reading(func() {
		for _, w := range inserts {
			w.retried = b.recorded(w.i) != nil
		}
	})
	for len(inserts) > 0 {
		row := slices.IndexFunc(inserts, func(w *write) bool { return w.invalid != nil || w.retried })
		if row < 0 {
			row = len(inserts)
		}
		if row > 1 && s.txn == nil {
			if _, err := s.attempt(func() error { return b.store(inserts[:row]...) }); err == nil {
				stored(inserts[:row]...)
				inserts = inserts[row:]
				continue
			}
		}
		single := inserts[:min(row+1, len(inserts))]
		for _, w := range single {
			err := w.invalid
			if err == nil && !w.retried {
				err = s.locked(func() error { return b.store(w) })
			}
			if err == nil {
				stored(w)
			} else if err := b.fail(w, err); err != nil {
				return err
			}
		}
		inserts = inserts[len(single):]
	}
	return nil
}

// store stores documents of a collection. The caller holds mu.
func (b *batch) store(inserts ...*write) error {
	c, err := b.s.writable(inserts[0].db, inserts[0].coll, true)
	if err != nil {
		return err
	}
	if c.capped && len(inserts) > 1 {
		return errors.New("documents of a capped collection are stored one by one")
	}
	for _, w := range inserts {
		if err := b.s.insert(c, w.doc, slices.Clone(w.raw)); err != nil {
			return err
		}
		b.record(w.i, &statement{n: 1})
	}
	return nil
}

func insertCommand(s *scope, a *args) action {
	a.only(" documents ordered bypassDocumentValidation encryptionInformation ")
	docs := a.documents("documents")
	if a.Err != nil {
		return nil
	}
	raws, _ := s.req.Body.Lookup("documents").Array().Values() // docs, encoded
	inserts := make([]*write, len(docs))
	for i, doc := range docs {
		raw, _ := raws[i].DocumentOK()
		inserts[i] = newInsert(s.req, doc, raw)
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
	doc = append(bson.D{{Key: "_id", Value: id}}, value.Delete(doc, "_id")...)
	return doc, value.Encode(doc)
}

// storable returns an error if a document cannot be stored.
func storable(req *command.Request, doc bson.D, raw bson.Raw) error {
	var p command.FirstError
	p.Refuse(len(raw) > maxDocument, command.CodeBSONObjectTooLarge,
		"object to insert too large. size in bytes: %d, max size: %d", len(raw), maxDocument)
	switch id := doc[0].Value.(type) {
	case bson.D:
		for _, e := range id {
			p.Refuse(strings.HasPrefix(e.Key, "$"), command.CodeDollarPrefixedFieldName,
				"_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", e.Key)
		}
	case bson.A, bson.Regex, bson.Undefined:
		p.Fail(command.CodeInvalidIdField, "The '_id' value cannot be of type %s", value.TypeName(id))
	}
	if wire(req) < wire50 {
		for _, e := range doc {
			p.Refuse(strings.HasPrefix(e.Key, "$"), command.CodeBadValue,
				"Document can't have $ prefixed field names: %s", e.Key)
		}
	}
	return p.Err
}
