package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// A seedling is a collection as this run made it: what a later look has to
// find, byte for byte, for the collection to be left alone.
//
// Leaving it alone is safe where nobody can tell the difference from a drop
// and an insert. So these are always made anew: collections that this run did
// not make itself, since they may be sharded or otherwise unlike what a look
// can show; those with createOptions; and all, after a test that failed, was
// cut short, or did something other than read and write documents. After
// writes, a majority barrier keeps reads of any concern and member as they
// would be after a majority insert.
type seedling struct {
	documents []bson.Raw
	metadata  []byte // its entries in listCollections, with the UUID, and in listIndexes
	written   bool   // since it was made, or since the last barrier
}

// collection is an element of initialData, ready to be inserted.
type collection struct {
	database, name string
	options        bson.Raw // nil if absent
	documents      []bson.Raw
}

func (c *collection) namespace() string { return c.database + "." + c.name }

// encrypted names the collections that belong to a queryable encryption
// collection and are dropped with it.
func (c *collection) encrypted() []string {
	return []string{"enxcol_." + c.name + ".esc", "enxcol_." + c.name + ".ecoc"}
}

func collectionOf(d specs.CollectionData) (*collection, error) {
	c := &collection{database: d.DatabaseName, name: d.CollectionName}
	if d.CreateOptions != nil {
		options, err := d.CreateOptions.Raw()
		if err != nil {
			return nil, err
		}
		c.options = options
	}
	for _, v := range d.Documents {
		doc, err := v.Raw()
		if err != nil {
			return nil, err
		}
		c.documents = append(c.documents, doc)
	}
	return c, nil
}

// seed makes the initial data of a test ("Executing a Test"), leaving alone
// what is already as it should be.
func (s *site) seed(ctx context.Context, data []specs.CollectionData, mode Reseed) error {
	for _, d := range data {
		c, err := collectionOf(d)
		if err != nil {
			return err
		}
		if mode != ReseedAlways && s.standing(ctx, c) {
			continue
		}
		delete(s.seeded, c.namespace())
		if err := retriedAfter(ctx, crossed, func() error { return s.make(ctx, c) }); err != nil {
			return fmt.Errorf("initial data of %s: %w", c.namespace(), err)
		}
		if mode == ReseedAlways || c.options != nil {
			continue
		}
		if metadata, err := s.metadata(ctx, c); err == nil && metadata != nil {
			s.seeded[c.namespace()] = &seedling{documents: c.documents, metadata: metadata}
		}
	}
	return nil
}

// attempts is how often set-up is tried where a server steps down or a
// connection of the internal client turns out to be dead.
const attempts = 3

// retried tries again what failed for a reason that passes.
func retried(ctx context.Context, do func() error) error {
	return retriedAfter(ctx, deployment.Passing, do)
}

// retriedAfter tries again what failed for some errors.
func retriedAfter(ctx context.Context, passes func(error) bool, do func() error) error {
	for i := 1; ; i++ {
		err := do()
		if err == nil || i == attempts || ctx.Err() != nil || !passes(err) {
			return err
		}
	}
}

// crossed tells errors of making a collection that pass, too: something is
// there again just after the drop, since a write that an earlier test did not
// wait for came only then.
func crossed(err error) bool {
	return deployment.Passing(err) || mongo.IsDuplicateKeyError(err) || deployment.CodeOf(err) == codeNamespaceExists
}

// make drops, creates and inserts, with majority write concern.
func (s *site) make(ctx context.Context, c *collection) error {
	db := c.database
	majority := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}
	for _, name := range append([]string{c.name}, c.encrypted()...) {
		_, err := s.run(ctx, db, bson.D{{Key: "drop", Value: name}, majority})
		if err != nil && deployment.CodeOf(err) != codeNamespaceNotFound {
			return err
		}
	}
	if c.options != nil || len(c.documents) == 0 {
		command := bson.D{{Key: "create", Value: c.name}}
		elements, err := c.options.Elements()
		if c.options != nil && err != nil {
			return err
		}
		for _, e := range elements {
			command = append(command, bson.E{Key: e.Key(), Value: e.Value()})
		}
		if _, err := s.run(ctx, db, append(command, majority)); err != nil {
			return err
		}
	}
	for _, batch := range batches(c.documents) {
		reply, err := s.run(ctx, db, bson.D{{Key: "insert", Value: c.name}, {Key: "documents", Value: batch}, majority})
		if err != nil {
			return err
		}
		for _, fault := range []string{"writeErrors", "writeConcernError"} {
			if v, err := reply.LookupErr(fault); err == nil {
				return fmt.Errorf("insert: %s: %s", fault, v)
			}
		}
	}
	return nil
}

// batches splits documents so that each insert stays below the largest
// message and the largest number of writes.
func batches(documents []bson.Raw) [][]bson.Raw {
	const maxBytes, maxCount = 12 << 20, 10_000
	var out [][]bson.Raw
	size := 0
	for _, d := range documents {
		if last := len(out) - 1; last < 0 || size+len(d) > maxBytes || len(out[last]) == maxCount {
			out, size = append(out, nil), 0
		}
		size += len(d)
		out[len(out)-1] = append(out[len(out)-1], d)
	}
	return out
}

// standing reports whether a collection is exactly as making it anew would
// leave it. Whatever cannot be read is taken to differ.
func (s *site) standing(ctx context.Context, c *collection) bool {
	was := s.seeded[c.namespace()]
	if was == nil || c.options != nil || !sameDocuments(was.documents, c.documents) {
		return false
	}
	metadata, err := s.metadata(ctx, c)
	if err != nil || !bytes.Equal(metadata, was.metadata) {
		return false
	}
	documents, err := s.contents(ctx, c)
	if err != nil || !sameDocuments(documents, c.documents) {
		return false
	}
	if was.written {
		if err := s.barrier(ctx, c); err != nil {
			return false
		}
		was.written = false
	}
	return true
}

func sameDocuments(a, b []bson.Raw) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// metadata gives what the server lists of a collection, its UUID among it, or
// nil if the collection is not there, is not alone, or has no UUID by which a
// successor could be told from it.
func (s *site) metadata(ctx context.Context, c *collection) ([]byte, error) {
	db := c.database
	names := append([]string{c.name, "enxcol_." + c.name + ".ecc"}, c.encrypted()...)
	listed, err := s.batch(ctx, db, bson.D{
		{Key: "listCollections", Value: 1},
		{Key: "filter", Value: bson.D{{Key: "name", Value: bson.D{{Key: "$in", Value: names}}}}},
	})
	if err != nil || len(listed) != 1 {
		return nil, err
	}
	if _, err := listed[0].LookupErr("info", "uuid"); err != nil {
		return nil, nil //nolint:nilerr // a collection without UUID is no error
	}
	indexes, err := s.batch(ctx, db, bson.D{{Key: "listIndexes", Value: c.name}})
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(listed[0])
	for _, index := range indexes {
		out = append(out, index...)
	}
	return out, nil
}

// contents reads a collection in its natural order, which is the order of
// insertion.
func (s *site) contents(ctx context.Context, c *collection) ([]bson.Raw, error) {
	size := int64(len(c.documents) + 1) // one more shows that there is one too many
	return s.batch(ctx, c.database, bson.D{
		{Key: "find", Value: c.name},
		{Key: "limit", Value: size},
		{Key: "batchSize", Value: size},
		{Key: "singleBatch", Value: true},
	})
}

// batch runs a command that answers with a cursor, and gives all that it has
// if that is in the first batch.
func (s *site) batch(ctx context.Context, database string, command bson.D) ([]bson.Raw, error) {
	reply, err := s.run(ctx, database, command)
	if err != nil {
		return nil, err
	}
	if id, _ := reply.Lookup("cursor", "id").AsInt64OK(); id != 0 {
		_, _ = s.run(ctx, database, bson.D{{Key: "killCursors", Value: command[0].Value}, {Key: "cursors", Value: bson.A{id}}})
		return nil, errors.New("more than one batch")
	}
	array, ok := reply.Lookup("cursor", "firstBatch").ArrayOK()
	if !ok {
		return nil, fmt.Errorf("%s: reply without a first batch", command[0].Key)
	}
	values, err := array.Values()
	if err != nil {
		return nil, err
	}
	out := make([]bson.Raw, len(values))
	for i, v := range values {
		if out[i], ok = v.DocumentOK(); !ok {
			return nil, fmt.Errorf("%s: a document of the first batch is none", command[0].Key)
		}
	}
	return out, nil
}

// barrier waits until all earlier writes are acknowledged by a majority: a
// write that changes nothing waits for the newest operation of the oplog.
func (s *site) barrier(ctx context.Context, c *collection) error {
	nobody := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	_, err := s.run(ctx, c.database, bson.D{
		{Key: "delete", Value: c.name},
		{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: nobody}, {Key: "limit", Value: 1}}}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	})
	return err
}
