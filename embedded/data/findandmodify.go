package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// modify contains the options of findAndModify that a retry must repeat.
type modify struct {
	remove, returnNew bool
}

func findAndModify(s *scope, a *args) action {
	a.only(" query fields sort hint collation arrayFilters remove update upsert new bypassDocumentValidation let runtimeConstants legacyRuntimeConstants encryptionInformation sampleId ")
	m := &modify{remove: a.flag("remove"), returnNew: a.flag("new")}
	w := a.write(updating, a.let(), "query", "update", "")
	w.db, w.coll, w.findAndModify, w.request = s.req.DB, a.collection(s.req.DB), m, a.doc
	fields, b := a.document("fields"), newBatch(s, a)
	switch has := a.has("update"); {
	case m.remove && has:
		a.Fail(command.CodeFailedToParse, "Cannot specify both an update and remove=true")
	case m.remove && w.upsert:
		a.Fail(command.CodeFailedToParse, "Cannot specify both upsert=true and remove=true ")
	case m.remove && m.returnNew:
		a.Fail(command.CodeFailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !m.remove && !has:
		a.Fail(command.CodeFailedToParse, "Either an update or remove=true must be specified")
	case m.remove:
		w.kind = deleting
	}
	proj, err := query.CompileProjection(fields, query.Options{Let: w.let, Collation: w.collation})
	a.Note(err)
	return func() (bson.D, error) {
		st, err := b.once(w)
		if err != nil {
			return nil, err
		}
		last := bson.D{{Key: "n", Value: value.Int(st.n)}}
		last = value.AddIf(last, !m.remove, "updatedExisting", st.n > 0 && !st.inserted)
		last = value.AddIf(last, st.inserted, "upserted", st.upserted)
		raw := st.pre
		if m.returnNew {
			raw = st.post
		}
		var result any
		if raw != nil {
			if result, err = proj.Apply(value.Must(raw)); err != nil {
				return nil, err
			}
		}
		out := bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: result}}
		return value.AddIf(out, b.retriedFields() != nil, "retriedStmtId", b.id(0)), nil
	}
}

// checkRetry returns an error if the retry of a findAndModify differs from the recorded statement.
func (w *write) checkRetry(st *statement) error {
	m := w.findAndModify
	if m == nil {
		return nil
	}
	fail := func(code int32, problem string) error {
		return command.Errorf(code, "findAndModify retry request: %s %s", value.Text(w.request), problem)
	}
	first := st.findAndModify
	switch {
	case first == nil:
		return fail(40606, "is not compatible with previous write in the transaction")
	case m.remove && !first.remove && first.returnNew, !m.remove && !st.inserted && !m.returnNew && first.returnNew:
		return fail(40612, "wants the document before update returned, but only after update document is stored")
	case m.remove && !first.remove:
		return fail(40607, "is not compatible with previous write in the transaction of type: update")
	case !m.remove && first.remove:
		return fail(40608, "is not compatible with previous write in the transaction of type: delete")
	case !m.remove && !st.inserted && m.returnNew && !first.returnNew:
		return fail(40611, "wants the document after update returned, but only before update document is stored")
	}
	return nil
}
