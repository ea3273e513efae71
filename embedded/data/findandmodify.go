package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func (d *Data) findAndModify(s *scope, a *args) (bson.D, error) {
	a.only(" query fields sort hint collation arrayFilters remove update upsert new bypassDocumentValidation let runtimeConstants legacyRuntimeConstants encryptionInformation sampleId ")
	name := a.name()
	remove, upsert, wantsNew := a.flag("remove"), a.flag("upsert"), a.flag("new")
	ch := &change{q: a.document("query"), update: a.any("update"), sort: a.document("sort"), let: a.let(d), arrayFilters: a.array("arrayFilters"),
		collation: a.collation(), upsert: upsert, hint: a.any("hint")}
	fields := a.document("fields")
	a.checkName(s.req.DB, name)
	if a.err != nil {
		return nil, a.err
	}
	switch has := a.has("update"); {
	case remove && has:
		return nil, command.Errorf(command.CodeFailedToParse, "Cannot specify both an update and remove=true")
	case remove && upsert:
		return nil, command.Errorf(command.CodeFailedToParse, "Cannot specify both upsert=true and remove=true ")
	case remove && wantsNew:
		return nil, command.Errorf(command.CodeFailedToParse, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !remove && !has:
		return nil, command.Errorf(command.CodeFailedToParse, "Either an update or remove=true must be specified")
	}
	opts := query.Options{Now: d.opts.Now(), Let: ch.let, Collation: ch.collation, Scripts: s.scripts()}
	proj, err := query.CompileProjection(fields, opts, false)
	if err != nil {
		return nil, err
	}
	b := newBatch(a)
	if b.s = s; a.err != nil {
		return nil, a.err
	}
	var st *statement
	err = s.locked(func() error {
		if st = b.recorded(0); st != nil {
			return retryFits(a, st, remove, upsert, wantsNew)
		}
		st = &statement{isFAM: true, remove: remove, wantsPost: wantsNew, upserted: value.Missing{}}
		if remove {
			f, err := query.Compile(ch.q, opts)
			if err != nil {
				return err
			}
			order, err := query.CompileOrder(ch.sort, ch.collation)
			if err != nil {
				return err
			}
			if st.n, st.pre, err = s.removeMatching(s.req.DB, name, f, order, 1, ch.hint); err != nil {
				return err
			}
		} else {
			if err := s.prepare(ch); err != nil {
				return err
			}
			if st.n, st.modified, st.upserted, st.pre, st.post, err = s.apply(s.req.DB, name, ch); err != nil {
				return err
			}
			st.insertedNew = st.upserted != any(value.Missing{})
		}
		if st.n > 0 {
			b.record(0, st)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	last := bson.D{{Key: "n", Value: value.Int(st.n)}}
	if !remove {
		last = append(last, bson.E{Key: "updatedExisting", Value: st.n > 0 && !st.insertedNew})
		if st.insertedNew {
			last = append(last, bson.E{Key: "upserted", Value: st.upserted})
		}
	}
	raw := st.pre
	if wantsNew {
		raw = st.post
	}
	var result any
	if raw != nil {
		doc := value.Must(raw)
		if proj != nil {
			ok, m, err := ch.matched(doc, opts)
			if err != nil || !ok {
				m = query.Match{Index: -1}
			}
			if doc, err = proj.Apply(doc, m); err != nil {
				return nil, err
			}
		}
		result = doc
	}
	out := bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: result}}
	if b.retriedFields() != nil {
		out = append(out, bson.E{Key: "retriedStmtId", Value: b.id(0)})
	}
	return out, nil
}

// matched reports how the filter of a change matches a document, for a
// positional projection.
func (ch *change) matched(doc bson.D, opts query.Options) (bool, query.Match, error) {
	f := ch.filter
	if f == nil {
		var err error
		if f, err = query.Compile(ch.q, opts); err != nil {
			return false, query.Match{Index: -1}, err
		}
	}
	return f.Find(doc)
}

// retryFits refuses a retry that asks for something else than was recorded.
func retryFits(a *args, st *statement, remove, upsert, wantsNew bool) error {
	request := value.Text(a.doc)
	switch {
	case !st.isFAM:
		return command.Errorf(40606, "findAndModify retry request: %s is not compatible with previous write in the transaction", request)
	case remove && !st.remove && st.wantsPost:
		return command.Errorf(40612, "findAndModify retry request: %s wants the document before update returned, but only after update document is stored", request)
	case remove && !st.remove:
		return command.Errorf(40607, "findAndModify retry request: %s is not compatible with previous write in the transaction of type: update", request)
	case !remove && st.remove:
		return command.Errorf(40608, "findAndModify retry request: %s is not compatible with previous write in the transaction of type: delete", request)
	case !remove && !st.insertedNew && wantsNew && !st.wantsPost:
		return command.Errorf(40611, "findAndModify retry request: %s wants the document after update returned, but only before update document is stored", request)
	case !remove && !st.insertedNew && !wantsNew && st.wantsPost:
		return command.Errorf(40612, "findAndModify retry request: %s wants the document before update returned, but only after update document is stored", request)
	}
	return nil
}
