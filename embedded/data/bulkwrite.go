package data

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

type bulk struct {
	*batch
	a          *args
	let        bson.D
	targets    []target
	errorsOnly bool
}

// target is a namespace in nsInfo.
type target struct{ db, coll string }

func bulkWrite(s *scope, a *args) action {
	a.only(" ops nsInfo ordered bypassDocumentValidation let errorsOnly cursor endpoint ")
	r := &bulk{batch: newBatch(s, a), a: a, let: a.let(), errorsOnly: a.flag("errorsOnly")}
	ops, size := r.operations(), a.batchSize()
	return func() (bson.D, error) {
		if err := r.runAll(ops); err != nil && err != errStop {
			return nil, err
		}
		counts, docs := r.tally()
		reply := s.list("admin.$cmd.bulkWrite", docs, size)
		if a.unacknowledged() {
			return bson.D{}, nil
		}
		return slices.Concat(reply, counts, r.retriedFields(), s.opTime()), nil
	}
}

// runAll runs the operations. Consecutive inserts into a namespace are stored together.
func (r *bulk) runAll(ops []*args) (err error) {
	for i := 0; i < len(ops) && err == nil; {
		op, end := ops[i], i+1
		if op.doc[0].Key != "insert" {
			err = r.write(i, op)
		} else {
			for end < len(ops) && value.Equal(ops[end].doc[:1], op.doc[:1]) {
				end++
			}
			err = r.insert(i, ops[i:end])
		}
		i = end
	}
	return err
}

// operations parses nsInfo and the target of each operation.
func (r *bulk) operations() []*args {
	a, docs := r.a, r.a.documents("ops")
	a.need("nsInfo")
	for _, v := range a.array("nsInfo") {
		info, _ := v.(bson.D)
		str, ok := value.Get(info, "ns").(string)
		a.Refuse(!ok, command.CodeIDLFailedToParse, "BSON field 'bulkWrite.nsInfo.ns' is missing but a required field")
		db, coll, _ := strings.Cut(str, ".")
		a.checkName(db, coll)
		r.targets = append(r.targets, target{db, coll})
	}
	var ops []*args
	for i, op := range docs {
		if len(op) == 0 {
			a.Fail(command.CodeTypeMismatch, "BSON field 'bulkWrite.ops.%d' is the wrong type 'object', expected type 'object'", i)
			break
		}
		switch n, ok := value.Int64(op[0].Value); {
		case op[0].Key != "insert" && op[0].Key != "update" && op[0].Key != "delete":
			a.Fail(command.CodeIDLUnknownField, "BSON field 'bulkWrite.ops.%s' is an unknown field.", op[0].Key)
		case !ok || n < 0 || n >= int64(len(r.targets)):
			a.Fail(command.CodeBadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", value.Text(op))
		}
		ops = append(ops, &args{of: "bulkWrite.ops." + op[0].Key, doc: op, FirstError: new(command.FirstError)})
	}
	return ops
}

func (r *bulk) target(op *args) target {
	n, _ := value.Int64(op.doc[0].Value)
	return r.targets[n]
}

// tally returns the counters of the reply and a result document for each operation.
func (r *bulk) tally() (counts bson.D, docs []bson.Raw) {
	var failed, inserted, matched, modified, upserted, deleted int64
	for _, o := range r.results {
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
		if o.err != nil || !r.errorsOnly {
			docs = append(docs, value.Encode(doc))
		}
	}
	return bson.D{
		{Key: "nErrors", Value: value.Int(failed)}, {Key: "nInserted", Value: value.Int(inserted)},
		{Key: "nMatched", Value: value.Int(matched)}, {Key: "nModified", Value: value.Int(modified)},
		{Key: "nUpserted", Value: value.Int(upserted)}, {Key: "nDeleted", Value: value.Int(deleted)},
	}, docs
}

func (r *bulk) insert(first int, ops []*args) error {
	items := make([]insertion, len(ops))
	for n, op := range ops {
		op.only(" insert document ")
		doc := op.document("document")
		if op.Err != nil {
			return op.Err
		}
		items[n] = newInsertion(r.s.req, first+n, doc, value.Encode(doc))
	}
	t := r.target(ops[0])
	return r.insertAll(t.db, t.coll, items)
}

func (r *bulk) write(i int, op *args) error {
	kind, fields := updating, " update filter updateMods multi upsert upsertSupplied arrayFilters hint constants collation sort sampleId allowShardKeyUpdatesWithoutFullShardKeyInQuery "
	if op.doc[0].Key == "delete" {
		kind, fields = deleting, " delete filter multi hint collation sampleId "
	}
	op.only(fields)
	w := op.write(kind, r.let, "filter", "updateMods", "constants")
	if op.Err != nil {
		return op.Err
	}
	t := r.target(op)
	w.db, w.coll, w.notRetryable = t.db, t.coll, "retryable writes with multi=true"
	return r.run(i, w)
}
