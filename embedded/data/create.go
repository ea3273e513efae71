package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

const createFields = " capped autoIndexId idIndex size max storageEngine validator validationLevel validationAction indexOptionDefaults viewOn pipeline collation changeStreamPreAndPostImages timeseries expireAfterSeconds clusteredIndex encryptedFields flags temp "

// createCommand is the command create.
func createCommand(s *scope, a *args) action {
	c := newCollection(s.req.DB, a.name(), a.createOptions())
	c.fromArgs(s.req, a)
	return func() (bson.D, error) { return bson.D{}, s.locked(func() error { return s.create(c) }) }
}

// fromArgs applies the arguments of create to a new collection.
func (c *collection) fromArgs(req *command.Request, a *args) {
	a.only(createFields)
	a.checkName(c.db, c.name)
	if spec, ok := value.Field(c.options, "clusteredIndex"); ok {
		c.cluster(spec.(bson.D))
	}
	c.view = a.str("viewOn")
	c.capped, c.maxSize, c.maxDocs = a.flag("capped"), a.number("size", 0), a.number("max", 0)
	c.timeseries = len(a.document("timeseries")) > 0
	a.collation()
	switch {
	case c.capped && c.maxSize <= 0:
		a.Fail(command.CodeInvalidOptions, "the 'size' field is required when 'capped' is true")
	case !c.capped && (a.has("size") || a.has("max")) && !a.has("capped"):
		a.Fail(command.CodeInvalidOptions, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	case c.view == "" && a.has("pipeline"):
		a.Fail(command.CodeInvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
	case a.has("expireAfterSeconds") && !c.timeseries && !c.clustered() && wire(req) >= wire60:
		a.Fail(command.CodeInvalidOptions, "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
	}
	if c.capped {
		c.maxSize = (c.maxSize + 255) / 256 * 256
		c.options = value.Set(c.options, "size", value.Int(c.maxSize))
	}
	if c.isView() {
		var err error
		c.pipeline, err = pipeline.Compile(a.array("pipeline"), query.Options{})
		a.Note(err)
		c.indexes = nil
		if a.any("pipeline") == nil {
			c.options = value.Set(c.options, "pipeline", bson.A{})
		}
	}
	if a.has("validator") {
		c.validator = a.filter("validator", query.Options{})
	}
}

// createOptions returns the options of create as listCollections shows them.
func (a *args) createOptions() bson.D {
	options := bson.D{}
	for _, e := range a.doc[1:] {
		if !generic[e.Key] && e.Key != "idIndex" && e.Key != "autoIndexId" && e.Key != "clusteredIndex" {
			options = append(options, e)
		}
	}
	if clustered := clusteredIndex(a); clustered != nil {
		options = append(options, bson.E{Key: "clusteredIndex", Value: clustered})
	}
	return options
}

// create creates a collection. The caller holds mu.
func (s *scope) create(c *collection) error {
	old := s.collection(c.db, c.name)
	switch {
	case old == nil:
		return s.add(c)
	case mongos(s.req) && value.Equal(old.options, c.options):
		return nil // on a mongos, create is idempotent
	case wire(s.req) >= 14:
		return command.Errorf(command.CodeNamespaceExists, "Collection %s already exists.", c.ns())
	}
	return command.Errorf(command.CodeNamespaceExists, "Collection already exists. NS: %s", c.ns())
}

// add adds a new collection. In a transaction, others see it after the commit. The caller holds mu.
func (s *scope) add(c *collection) error {
	d, k := s.d, lockKey{ns: c.ns()}
	if err := s.blocked(k); err != nil {
		return err
	}
	if s.txn != nil {
		if d.collection(c.db, c.name) != nil {
			return errWriteConflict
		}
		d.lock(s.txn, k)
		s.txn.copies[c.ns()] = c
		s.txn.created = append(s.txn.created, c)
		return nil
	}
	d.addCollection(c)
	if c.isView() && d.collection(c.db, "system.views") == nil {
		d.addCollection(newCollection(c.db, "system.views", bson.D{}))
	}
	s.changed(c.created())
	return nil
}
