package data

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

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
			a.Fail(command.CodeTypeMismatch, "BSON field 'bulkWrite.ops.%d' is the wrong type 'object', expected type 'object'", i)
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
			op.only(" update filter updateMods multi upsert upsertSupplied arrayFilters hint constants collation sort sampleId allowShardKeyUpdatesWithoutFullShardKeyInQuery ")
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
