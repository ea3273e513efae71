package data

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// insertion is an insert statement of a batch.
type insertion struct {
	i       int
	doc     bson.D
	raw     bson.Raw
	invalid error // why the document cannot be stored
	retried bool  // an earlier attempt of the command has stored it
}

func newInsertion(req *command.Request, i int, doc bson.D, raw bson.Raw) insertion {
	doc, raw = withID(doc, raw)
	return insertion{i: i, doc: doc, raw: raw, invalid: storable(req, doc, raw)}
}

// insertAll stores consecutive documents together in one transactional write and, if that fails, one by one.
func (b *batch) insertAll(db, name string, items []insertion) error {
	s := b.s
	stored := func(i int) {
		b.results = append(b.results, effect{i: i, st: &statement{n: 1}})
	}
	s.d.reading(func() {
		for i := range items {
			items[i].retried = b.recorded(items[i].i) != nil
		}
	})
	for len(items) > 0 {
		row := slices.IndexFunc(items, func(it insertion) bool { return it.invalid != nil || it.retried })
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
			err := it.invalid
			if err == nil && !it.retried {
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

// store stores documents. The caller holds mu.
func (b *batch) store(db, name string, items []insertion) error {
	c, err := b.s.writable(db, name, true)
	if err != nil {
		return err
	}
	if c.capped && len(items) > 1 {
		return errors.New("documents of a capped collection are stored one by one")
	}
	for _, it := range items {
		if err := b.s.insert(c, it.doc, slices.Clone(it.raw)); err != nil {
			return err
		}
		b.record(it.i, &statement{n: 1})
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
	items := make([]insertion, len(docs))
	for i, doc := range docs {
		raw, _ := raws[i].DocumentOK()
		items[i] = newInsertion(s.req, i, doc, raw)
	}
	return batched(s, a, func(b *batch, name string) error { return b.insertAll(s.req.DB, name, items) })
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
	p.Refuse(len(raw) > maxDocument, command.CodeBSONObjectTooLarge, "object to insert too large. size in bytes: %d, max size: %d", len(raw), maxDocument)
	switch id := doc[0].Value.(type) {
	case bson.D:
		for _, e := range id {
			p.Refuse(strings.HasPrefix(e.Key, "$"), command.CodeDollarPrefixedFieldName, "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", e.Key)
		}
	case bson.A, bson.Regex, bson.Undefined:
		p.Fail(command.CodeInvalidIdField, "The '_id' value cannot be of type %s", value.TypeName(id))
	}
	if wire(req) < wire50 {
		for _, e := range doc {
			p.Refuse(strings.HasPrefix(e.Key, "$"), command.CodeBadValue, "Document can't have $ prefixed field names: %s", e.Key)
		}
	}
	return p.Err
}
