package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// modify is how a findAndModify asks.
type modify struct {
	remove, wantsNew bool
}

// findAndModify is the command of that name.
func findAndModify(s *scope, a *args) action {
	a.only(" query fields sort hint collation arrayFilters remove update upsert new bypassDocumentValidation let runtimeConstants legacyRuntimeConstants encryptionInformation sampleId ")
	m := &modify{remove: a.flag("remove"), wantsNew: a.flag("new")}
	w := a.write(updating, a.let(), "query", "update", "")
	w.db, w.coll, w.findAndModify, w.request = s.req.DB, a.name(), m, a.doc
	fields, b := a.document("fields"), newBatch(s, a)
	a.checkName(w.db, w.coll)
	switch has := a.has("update"); {
	case m.remove && has:
		a.failf(command.CodeFailedToParse, "Cannot specify both an update and remove=true")
	case m.remove && w.upsert:
		a.failf(command.CodeFailedToParse, "Cannot specify both upsert=true and remove=true ")
	case m.remove && m.wantsNew:
		a.failf(command.CodeFailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !m.remove && !has:
		a.failf(command.CodeFailedToParse, "Either an update or remove=true must be specified")
	case m.remove:
		w.kind = deleting
	}
	proj, err := query.CompileProjection(fields, query.Options{Let: w.let, Collation: w.collation})
	a.fail(err)
	return func() (bson.D, error) {
		st, err := b.once(0, w)
		if err != nil {
			return nil, err
		}
		last := bson.D{{Key: "n", Value: value.Int(st.n)}}
		last = value.AddIf(last, !m.remove, "updatedExisting", st.n > 0 && !st.inserted())
		last = value.AddIf(last, st.inserted(), "upserted", st.upserted)
		raw := st.pre
		if m.wantsNew {
			raw = st.post
		}
		var result any
		if raw != nil {
			if result, err = proj.Apply(value.Must(raw)); err != nil {
				return nil, err
			}
		}
		out := bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: result}}
		out = value.AddIf(out, b.retriedFields() != nil, "retriedStmtId", b.id(0))
		return out, nil
	}
}

// repeats refuses the retry of a findAndModify that differs from what was recorded under its number.
func (w *write) repeats(st *statement) error {
	m := w.findAndModify
	if m == nil {
		return nil
	}
	refuse := func(code int32, format string) error { return command.Errorf(code, format, value.Text(w.request)) }
	was := st.as
	switch {
	case was == nil:
		return refuse(40606, "findAndModify retry request: %s is not compatible with previous write in the transaction")
	case m.remove && !was.remove && was.wantsNew, !m.remove && !st.inserted() && !m.wantsNew && was.wantsNew:
		return refuse(40612, "findAndModify retry request: %s wants the document before update returned, but only after update document is stored")
	case m.remove && !was.remove:
		return refuse(40607, "findAndModify retry request: %s is not compatible with previous write in the transaction of type: update")
	case !m.remove && was.remove:
		return refuse(40608, "findAndModify retry request: %s is not compatible with previous write in the transaction of type: delete")
	case !m.remove && !st.inserted() && m.wantsNew && !was.wantsNew:
		return refuse(40611, "findAndModify retry request: %s wants the document after update returned, but only before update document is stored")
	}
	return nil
}
