package runner

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/specs"
)

// collection is an element of initialData, or another collection that a test names. Such a collection is absent before
// the test, since a test of another suite may have left documents there.
//
// The format drops and creates every collection of initialData before each test. Unless a difference could be observed,
// the runner keeps a collection that tests cannot have changed (operations.Effect). If they can have changed only its
// documents, the runner replaces these. It always drops collections that it did not create itself, and collections with
// createOptions. It drops all collections after a test that did not complete or can have changed anything else.
type collection struct {
	database, name string
	options        bson.D // nil if absent
	documents      []bson.Raw
	absent         bool
	changed        operations.Effect // what tests can have changed
}

// record updates the state of the collections after a test. If other tests use the servers, it updates only the
// collections that the test uses.
func (s *site) record(e operations.Effect, uses footprint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for namespace, c := range s.seeded {
		if !s.about.Shared || uses.includes(namespace) {
			c.changed = c.changed.And(e)
		}
	}
}

// seededAs returns what earlier tests have left in a collection, or nil.
func (s *site) seededAs(namespace string) *collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seeded[namespace]
}

// note sets what the next test finds in a collection, or nil if that is unknown.
func (s *site) note(namespace string, c *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.seeded, namespace); c != nil {
		s.seeded[namespace] = c
	}
}

func (c *collection) namespace() string { return c.database + "." + c.name }

func collectionOf(d specs.CollectionData) (*collection, error) {
	c := &collection{database: d.DatabaseName, name: d.CollectionName, changed: operations.Reads}
	options, err := d.CreateOptions.Raw()
	if options != nil {
		err = bson.Unmarshal(options, &c.options)
	}
	if err != nil {
		return nil, err
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

// collectionsOf returns the collections that a test names, as they are before it.
func collectionsOf(s *specs.Suite, t *specs.Test) ([]*collection, error) {
	all := unfilled(t, s.InitialData)
	for _, d := range s.InitialData {
		c, err := collectionOf(d)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// seed creates the initial data of a test ("Executing a Test"), except for collections that already have it. If others
// read the same data, it changes only collections that none of them has filled, which are in another cluster.
func (s *site) seed(ctx context.Context, suite *specs.Suite, t *specs.Test, mode Reseed, shared bool) error {
	all, err := collectionsOf(suite, t)
	if err != nil {
		return err
	}
	if shared {
		s.filling.Lock()
		defer s.filling.Unlock()
	}
	for _, c := range all {
		was := s.seededAs(c.namespace())
		if shared && was != nil {
			continue
		}
		if was == nil && c.absent && s.deployment.Owned() { // it is new
			was = c
		}
		again := c.options != nil || mode == ReseedAlways && !c.absent
		if !again && c.intact(was) {
			s.note(c.namespace(), was)
			continue
		}
		s.note(c.namespace(), nil)
		if err := s.fill(ctx, c, was, again); err != nil {
			return fmt.Errorf("initial data of %s: %w", c.namespace(), err)
		}
		if again {
			c.changed = operations.Anything
		}
		s.note(c.namespace(), c)
	}
	return nil
}

// intact reports whether an earlier test left a collection as this one requires it.
func (c *collection) intact(was *collection) bool {
	return was != nil && was.changed == operations.Reads && was.absent == c.absent &&
		slices.EqualFunc(was.documents, c.documents, func(a, b bson.Raw) bool { return bytes.Equal(a, b) })
}

// fill replaces the documents of a collection if that is enough, or else creates it again.
func (s *site) fill(ctx context.Context, c, was *collection, again bool) error {
	if again || was == nil || was.changed == operations.Anything || c.absent || was.absent || s.refill(ctx, c) != nil {
		_, err := retriedAfter(ctx, passingForSeed, func() (any, error) { return nil, s.create(ctx, c) })
		return err
	}
	return nil
}

// attempts is the number of attempts of retried.
const attempts = 3

// retried calls a function again after transient errors, such as a stepdown or a closed connection.
func retried[T any](ctx context.Context, do func() (T, error)) (T, error) {
	return retriedAfter(ctx, direct.Transient, do)
}

func retriedAfter[T any](ctx context.Context, passes func(error) bool, do func() (T, error)) (T, error) {
	for i := 1; ; i++ {
		value, err := do()
		if err == nil || i == attempts || ctx.Err() != nil || !passes(err) {
			return value, err
		}
	}
}

// passingForSeed also includes errors of a write of an earlier test that arrived between drop and create.
func passingForSeed(err error) bool {
	return direct.Transient(err) || mongo.IsDuplicateKeyError(err) || direct.CodeOf(err) == codes.NamespaceExists
}

// create drops a collection and its state collections of queryable encryption. Unless it is absent before a test, it
// creates it and inserts the documents, with majority write concern.
func (s *site) create(ctx context.Context, c *collection) error {
	db := c.database
	for _, name := range []string{c.name, "enxcol_." + c.name + ".esc", "enxcol_." + c.name + ".ecoc"} {
		_, err := s.run(ctx, defaultServer, db, bson.D{{Key: "drop", Value: name}, majority})
		if err != nil && !direct.Absent(err) {
			return err
		}
	}
	if c.absent {
		return nil
	}
	if c.options != nil || len(c.documents) == 0 {
		create := append(bson.D{{Key: "create", Value: c.name}}, c.options...)
		if _, err := s.run(ctx, defaultServer, db, append(create, majority)); err != nil {
			return err
		}
	}
	return s.insert(ctx, c)
}

// refill replaces the documents of a collection, with one command on 8.0 or later.
func (s *site) refill(ctx context.Context, c *collection) error {
	if s.about.Version[0] >= 8 && len(batches(c.documents)) <= 1 {
		ops := bson.A{bson.D{{Key: "delete", Value: 0}, {Key: "filter", Value: bson.D{}}, {Key: "multi", Value: true}}}
		for _, document := range c.documents {
			ops = append(ops, bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: document}})
		}
		return s.write(ctx, "admin", bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: ops},
			{Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: c.namespace()}}}}, {Key: "errorsOnly", Value: true}})
	}
	all := bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}
	if err := s.write(ctx, c.database,
		bson.D{{Key: "delete", Value: c.name}, {Key: "deletes", Value: bson.A{all}}}); err != nil {
		return err
	}
	return s.insert(ctx, c)
}

func (s *site) insert(ctx context.Context, c *collection) error {
	for _, batch := range batches(c.documents) {
		if err := s.write(ctx, c.database,
			bson.D{{Key: "insert", Value: c.name}, {Key: "documents", Value: batch}}); err != nil {
			return err
		}
	}
	return nil
}

// write runs a write command with majority write concern. The driver returns write
// errors and write concern errors. It excludes the errors of bulkWrite.
func (s *site) write(ctx context.Context, database string, command bson.D) error {
	reply, err := s.run(ctx, defaultServer, database, append(command, majority))
	if err != nil {
		return err
	}
	if n, _ := reply.Lookup("nErrors").AsInt64OK(); n > 0 {
		return fmt.Errorf("%s: %s", command[0].Key, reply.Lookup("cursor", "firstBatch"))
	}
	return nil
}

var majority = bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}

// batches splits documents into inserts within the limits of a command.
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
