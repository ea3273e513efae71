package data

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// maxBatch is the number of statements that one command may have.
const maxBatch = 100000

// batch is a write command under way.
type batch struct {
	s       *scope
	results []effect
	ordered bool
	stmtID  int64
	stmtIDs bson.A
	retried bson.A // the numbers of statements that were done before
}

// effect is what a statement did, or why it failed.
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

// newBatch reads what the write commands have in common.
func newBatch(s *scope, a *args) *batch {
	b := &batch{s: s, ordered: true, stmtIDs: a.array("stmtIds"), stmtID: a.number("stmtId", 0)}
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

// errStop reports that the batch is ordered and ends here.
var errStop = errors.New("the batch ends here")

// fail notes the error of a statement. It returns an error if the whole
// command fails, and errStop if the batch ends here.
func (b *batch) fail(i int, kind writeKind, err error) error {
	var e *command.Error
	if !errors.As(err, &e) || b.s.thrown(e.Code) {
		return err
	}
	b.results = append(b.results, effect{i: i, kind: kind, err: e})
	// A transaction that failed is over, ordered or not.
	if b.ordered || b.s.txn != nil {
		return errStop
	}
	return nil
}

// thrown reports whether an error ends the whole command, and not only a statement: an
// interruption, or in a transaction an error after which all of it is to be retried.
func (s *scope) thrown(code int32) bool {
	switch {
	case code == errWriteConflict.Code, command.Interruption.Has(code):
		return true
	case code == command.CodeTransactionTooOld:
		return !mongos(s.req) || s.req.Row.Name == "bulkWrite"
	}
	return s.txn != nil && (command.Transient.Has(code) || command.Retriable.Has(code))
}

// once does a write as the i-th statement, unless it was done before.
func (b *batch) once(i int, w *write) (st *statement, err error) {
	if err := b.s.prepare(w); err != nil {
		return nil, err
	}
	if err := b.s.rehearse(w); err != nil {
		return nil, err
	}
	err = b.s.locked(func() (err error) {
		if st = b.recorded(i); st != nil {
			return w.repeats(st)
		}
		if st, err = b.s.do(w); err == nil && st.n > 0 {
			b.record(i, st)
		}
		return err
	})
	return st, err
}

// run does a write as the i-th statement, and notes what it did.
func (b *batch) run(i int, w *write) error {
	if b.s.session != nil && w.multi {
		return b.fail(i, w.kind, command.Errorf(command.CodeInvalidOptions, "Cannot use %s", w.notRetried))
	}
	st, err := b.once(i, w)
	if err != nil {
		return b.fail(i, w.kind, err)
	}
	b.results = append(b.results, effect{i: i, kind: w.kind, st: st})
	return nil
}

// opTime are the fields that members of a replica set add to write replies.
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

// insertAll stores documents as a server does: consecutive documents together, as one
// transactional write; if that fails, one by one.
func (b *batch) insertAll(db, name string, items []insertion) error {
	s := b.s
	stored := func(i int) {
		b.results = append(b.results, effect{i: i, st: &statement{n: 1, upserted: value.Missing{}}})
	}
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
			} else if err := b.fail(it.i, inserting, err); err != nil {
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

// insertCommand is the command insert.
func insertCommand(s *scope, a *args) action {
	a.only(" documents ordered bypassDocumentValidation encryptionInformation ")
	docs := a.array("documents")
	a.need("documents")
	a.fail(checkSize(len(docs)))
	if a.err != nil {
		return nil
	}
	raws, _ := s.req.Body.Lookup("documents").Array().Values() // the same, encoded
	items := make([]insertion, len(docs))
	for i, v := range docs {
		doc, ok := v.(bson.D)
		a.refuse(!ok, command.CodeTypeMismatch, "BSON field 'insert.documents.%d' is the wrong type '%s', expected type 'object'", i, value.TypeName(v))
		if a.err != nil {
			return nil
		}
		raw, _ := raws[i].DocumentOK()
		items[i] = newInsertion(s.req, i, doc, raw)
	}
	return batched(s, a, func(b *batch, name string) error { return b.insertAll(s.req.DB, name, items) })
}

// withID returns a document whose first field is its _id, with a new one if it has none.
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
