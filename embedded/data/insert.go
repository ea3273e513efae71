package data

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

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
