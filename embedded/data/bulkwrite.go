package data

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// bulk is a bulkWrite under way.
type bulk struct {
	b          *batch
	results    []bson.Raw
	errorsOnly bool
	counts     struct{ errors, inserted, matched, modified, upserted, deleted int64 }
}

// bulkWrite is the command of that name, which 8.0 brought: writes to several
// namespaces, with a cursor over their results.
func (d *Data) bulkWrite(s *scope, a *args) (bson.D, error) {
	a.only(" ops nsInfo ordered bypassDocumentValidation let errorsOnly cursor endpoint ")
	ops, infos, let := a.array("ops"), a.array("nsInfo"), a.let(d)
	b := newBatch(a)
	b.s = s
	a.need("ops")
	a.need("nsInfo")
	a.fail(checkSize(len(ops)))
	size := a.batchSize()
	run := &bulk{b: b, errorsOnly: a.flag("errorsOnly")}
	if a.err != nil {
		return nil, a.err
	}
	type target struct{ db, coll string }
	var targets []target
	for _, v := range infos {
		info, _ := v.(bson.D)
		ns, _ := value.Field(info, "ns")
		str, ok := ns.(string)
		if !ok {
			return nil, command.Errorf(command.CodeIDLFailedToParse, "BSON field 'bulkWrite.nsInfo.ns' is missing but a required field")
		}
		db, coll, _ := strings.Cut(str, ".")
		if err := namespace(db, coll); err != nil {
			return nil, err
		}
		targets = append(targets, target{db, coll})
	}
	for i, v := range ops {
		op, ok := v.(bson.D)
		if !ok || len(op) == 0 {
			return nil, command.Errorf(command.CodeTypeMismatch, "BSON field 'bulkWrite.ops.%d' is the wrong type '%s', expected type 'object'", i, value.TypeName(v))
		}
		switch op[0].Key {
		case "insert", "update", "delete":
		default:
			return nil, command.Errorf(command.CodeIDLUnknownField, "BSON field 'bulkWrite.ops.%s' is an unknown field.", op[0].Key)
		}
		n, ok := value.Whole(op[0].Value)
		if !ok || n < 0 || n >= int64(len(targets)) {
			return nil, command.Errorf(command.CodeBadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", value.Text(op))
		}
	}
	for i := 0; i < len(ops); {
		op := ops[i].(bson.D)
		n, _ := value.Whole(op[0].Value)
		t, end := targets[n], i+1
		var err error
		switch op[0].Key {
		case "insert":
			// Inserts in a row, into the same namespace, are one batch.
			for end < len(ops) && value.Equal(ops[end].(bson.D)[:1], op[:1]) {
				end++
			}
			err = run.insert(t.db, t.coll, i, ops[i:end])
		case "update":
			err = run.update(i, t.db, t.coll, &args{of: "bulkWrite.ops", doc: op}, let)
		default:
			err = run.delete(i, t.db, t.coll, &args{of: "bulkWrite.ops", doc: op}, let)
		}
		if i = end; err == errStop {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	c := run.counts
	reply := bson.D{{Key: "nErrors", Value: value.Int(c.errors)}, {Key: "nInserted", Value: value.Int(c.inserted)}, {Key: "nMatched", Value: value.Int(c.matched)},
		{Key: "nModified", Value: value.Int(c.modified)}, {Key: "nUpserted", Value: value.Int(c.upserted)}, {Key: "nDeleted", Value: value.Int(c.deleted)}}
	cur, docs, _, err := s.open("admin.$cmd.bulkWrite", "admin.$cmd.bulkWrite", &results{docs: run.results, known: true}, size, false, false)
	if err != nil {
		return nil, err
	}
	if w, ok := value.Field(a.document("writeConcern"), "w"); ok && value.IsNumber(w) && value.Compare(w, int32(0)) == 0 {
		return bson.D{}, nil
	}
	reply = append(append(cursorReply(cur, "firstBatch", docs, nil, true), reply...), run.b.retriedFields()...)
	return append(reply, d.opTime(s.req)...), nil
}

// result notes what an operation gave.
func (r *bulk) result(i int, n, modified int64, isUpdate bool, upserted any) {
	if r.errorsOnly {
		return
	}
	doc := bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: int32(i)}, {Key: "n", Value: value.Int(n)}}
	if isUpdate {
		doc = append(doc, bson.E{Key: "nModified", Value: value.Int(modified)})
		if (upserted != any(value.Missing{})) {
			doc = append(doc, bson.E{Key: "upserted", Value: bson.D{{Key: "_id", Value: upserted}}})
		}
	}
	r.results = append(r.results, value.Encode(doc))
}

func (r *bulk) fail(i int, isUpdate bool, err error) error {
	var e *command.Error
	if !errors.As(err, &e) {
		return err
	}
	if r.b.s.thrown(e.Code) || e.Code == command.CodeTransactionTooOld {
		return err
	}
	r.counts.errors++
	doc := bson.D{{Key: "ok", Value: 0.0}, {Key: "idx", Value: int32(i)}, {Key: "code", Value: e.Code}, {Key: "errmsg", Value: e.Message}}
	doc = append(doc, e.Extra...)
	doc = append(doc, bson.E{Key: "n", Value: int32(0)})
	if isUpdate {
		doc = append(doc, bson.E{Key: "nModified", Value: int32(0)})
	}
	r.results = append(r.results, value.Encode(doc))
	// A transaction that failed is over, ordered or not.
	if r.b.ordered || r.b.s.txn != nil {
		return errStop
	}
	return nil
}

func (r *bulk) insert(db, coll string, first int, ops bson.A) error {
	items := make([]insertion, len(ops))
	for n, v := range ops {
		op := &args{of: "bulkWrite.ops", doc: v.(bson.D)}
		if err := unknown("bulkWrite.ops.insert", op.doc, " insert document "); err != nil {
			return err
		}
		doc := op.document("document")
		if op.err != nil {
			return op.err
		}
		items[n] = newInsertion(r.b.s.req, first+n, doc, value.Encode(doc))
	}
	return r.b.insertAll(db, coll, items, func(i int) {
		r.counts.inserted++
		r.result(i, 1, 0, false, value.Missing{})
	}, func(i int, err error) error { return r.fail(i, false, err) })
}

func (r *bulk) update(i int, db, coll string, op *args, let bson.D) error {
	if err := unknown("bulkWrite.ops.update", op.doc, " update filter updateMods multi upsert upsertSupplied arrayFilters hint constants collation sort sampleId allowShardKeyUpdatesWithoutFullShardKeyInQuery "); err != nil {
		return err
	}
	ch := &change{q: op.document("filter"), update: op.any("updateMods"), let: let, constants: op.document("constants"), sort: op.document("sort"),
		arrayFilters: op.array("arrayFilters"), collation: op.collation(), upsert: op.flag("upsert"), multi: op.flag("multi"), hint: op.any("hint")}
	if op.err != nil {
		return op.err
	}
	if r.b.s.session != nil && ch.multi {
		return r.fail(i, true, command.Errorf(command.CodeInvalidOptions, "Cannot use retryable writes with multi=true"))
	}
	did, err := r.b.change(i, db, coll, ch)
	if err != nil {
		return r.fail(i, true, err)
	}
	if (did.upserted != any(value.Missing{})) {
		r.counts.upserted++
	} else {
		r.counts.matched += did.n
	}
	r.counts.modified += did.modified
	r.result(i, did.n, did.modified, true, did.upserted)
	return nil
}

func (r *bulk) delete(i int, db, coll string, op *args, let bson.D) error {
	if err := unknown("bulkWrite.ops.delete", op.doc, " delete filter multi hint collation sampleId "); err != nil {
		return err
	}
	rm := removal{q: op.document("filter"), let: let, collation: op.collation(), limit: 1, hint: op.any("hint")}
	if op.flag("multi") {
		rm.limit = 0
	}
	if op.err != nil {
		return op.err
	}
	if r.b.s.session != nil && rm.limit == 0 {
		return r.fail(i, false, command.Errorf(command.CodeInvalidOptions, "Cannot use retryable writes with multi=true"))
	}
	n, err := r.b.remove(i, db, coll, rm)
	if err != nil {
		return r.fail(i, false, err)
	}
	r.counts.deleted += n
	r.result(i, n, 0, false, value.Missing{})
	return nil
}
