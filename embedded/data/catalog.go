package data

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// created is the log's entry of a new collection.
func (c *collection) created() entry {
	e := entry{kind: opCreate, db: c.db, coll: c.name, uuid: c.uuid, nsType: c.kind()}
	switch {
	case c.clustered():
		e.detail = c.options
	case !c.isView():
		e.detail = append(bson.D{{Key: "idIndex", Value: c.indexes[0].spec}}, c.options...)
	}
	return e
}

const createFields = " capped autoIndexId idIndex size max storageEngine validator validationLevel validationAction indexOptionDefaults viewOn pipeline collation changeStreamPreAndPostImages timeseries expireAfterSeconds clusteredIndex encryptedFields flags temp "

// createCommand is the command create.
func createCommand(s *scope, a *args) action {
	c := newCollection(s.req.DB, a.name(), a.createOptions())
	c.fromArgs(s.req, a)
	return func() (bson.D, error) { return bson.D{}, s.locked(func() error { return s.addNew(c) }) }
}

// fromArgs reads what a create says of a new collection.
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
		a.failf(command.CodeInvalidOptions, "the 'size' field is required when 'capped' is true")
	case !c.capped && (a.has("size") || a.has("max")) && !a.has("capped"):
		a.failf(command.CodeInvalidOptions, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	case c.view == "" && a.has("pipeline"):
		a.failf(command.CodeInvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
	case a.has("expireAfterSeconds") && !c.timeseries && !c.clustered() && wire(req) >= wire60:
		a.failf(command.CodeInvalidOptions, "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
	}
	if c.capped {
		c.maxSize = (c.maxSize + 255) / 256 * 256
		c.options = value.Set(c.options, "size", value.Int(c.maxSize))
	}
	if c.isView() {
		var err error
		c.pipeline, err = pipeline.Compile(a.array("pipeline"), query.Options{})
		a.fail(err)
		c.indexes = nil
		if a.any("pipeline") == nil {
			c.options = value.Set(c.options, "pipeline", bson.A{})
		}
	}
	if a.has("validator") {
		c.validator = a.filter("validator", query.Options{})
	}
}

// createOptions are the options of a create as listCollections shows them.
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

// addNew adds a collection that a command has made. The caller holds mu.
func (s *scope) addNew(c *collection) error {
	d := s.d
	if old := s.collection(c.db, c.name); old != nil {
		if mongos(s.req) && value.Equal(old.options, c.options) {
			return nil // a router makes sure that it is there
		}
		if wire(s.req) >= 14 {
			return command.Errorf(command.CodeNamespaceExists, "Collection %s already exists.", c.ns())
		}
		return command.Errorf(command.CodeNamespaceExists, "Collection already exists. NS: %s", c.ns())
	}
	if s.txn != nil {
		return s.createLater(c)
	}
	if s.blocked(lockKey{ns: c.ns()}) {
		return errBlocked
	}
	d.addCollection(c)
	if c.isView() && d.collection(c.db, "system.views") == nil {
		d.addCollection(newCollection(c.db, "system.views", bson.D{}))
	}
	s.changed(c.created())
	return nil
}

// createLater makes a collection that others see when the transaction
// commits.
func (s *scope) createLater(c *collection) error {
	if s.d.collection(c.db, c.name) != nil {
		return errWriteConflict
	}
	if err := s.d.lock(s.txn, lockKey{ns: c.ns()}); err != nil {
		return err
	}
	s.txn.copies[c.ns()] = c
	s.txn.created = append(s.txn.created, c)
	return nil
}

// clusteredIndex reads the option of create and fills in what it leaves out, as
// listCollections shows it; nil if the collection is not clustered.
func clusteredIndex(a *args) bson.D {
	if a.any("clusteredIndex") == any(false) || a.any("clusteredIndex") == nil {
		return nil
	}
	c := a.part("clusteredIndex")
	c.only(" v key name unique ")
	key, name := c.document("key"), c.str("name")
	c.need("key")
	c.need("unique")
	switch {
	case !c.flag("unique"):
		c.failf(5979700, "The clusteredIndex option requires unique: true to be specified")
	case !value.Equal(key, bson.D{{Key: "_id", Value: int32(1)}}):
		c.failf(command.CodeInvalidIndexSpecificationOption, "The clusteredIndex option is only supported for key: {_id: 1}")
	}
	if name == "" {
		name = "_id_"
	}
	return bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "unique", Value: true}}
}

// cluster gives the index of _id the name that clusteredIndex has for it.
func (c *collection) cluster(spec bson.D) {
	id := c.idIndex()
	id.name = value.As[string](spec, "name")
	id.clustered = true
	id.spec = append(spec[:len(spec):len(spec)], bson.E{Key: "clustered", Value: true})
}

// collMod changes the options of a collection, or an index.
func collMod(s *scope, a *args) action {
	name, d := a.name(), s.d
	a.only(" index validator validationLevel validationAction changeStreamPreAndPostImages expireAfterSeconds ")
	a.document("changeStreamPreAndPostImages")
	index := parseIndexChange(s.req, a)
	a.checkName(s.req.DB, name)
	validator := a.filter("validator", query.Options{})
	return func() (bson.D, error) {
		reply := bson.D{}
		err := s.locked(func() error {
			c := d.collection(s.req.DB, name)
			if c == nil {
				return command.Errorf(command.CodeNamespaceNotFound, "ns does not exist")
			}
			// Readers may hold the collection: another takes its place.
			next := *c
			if index != nil {
				if d.lockedIn(c.db, c.name) {
					return errBlocked
				}
				var err error
				if reply, err = index.apply(&next); err != nil {
					return err
				}
			}
			next.options = slices.Clone(c.options)
			for _, e := range a.doc[1:] {
				switch e.Key {
				case "validator", "validationLevel", "validationAction", "expireAfterSeconds", "changeStreamPreAndPostImages":
					next.options = value.Set(next.options, e.Key, e.Value)
				}
			}
			if a.has("validator") {
				next.validator = validator
			}
			d.substitute(c, &next)
			s.changed(entry{kind: opModify, db: c.db, coll: c.name, uuid: c.uuid})
			return nil
		})
		return s.onShard(reply, err)
	}
}

// indexChange is what the field index of collMod asks for.
type indexChange struct {
	which   any // its name or its key
	unique  bool
	prepare *bool // prepareUnique; nil: it stays
}

// parseIndexChange reads the field index of collMod; nil if it is not there.
func parseIndexChange(req *command.Request, a *args) *indexChange {
	if !a.has("index") {
		return nil
	}
	x := a.part("index")
	x.only(" name keyPattern unique prepareUnique ")
	x.fail(tooNew(req, x.of, x.doc))
	ch := &indexChange{which: x.document("keyPattern"), unique: x.flag("unique")}
	if name := x.str("name"); name != "" {
		ch.which = name
	}
	if prepare := x.flag("prepareUnique"); x.has("prepareUnique") {
		ch.prepare = &prepare
	}
	switch {
	case x.has("name") && x.has("keyPattern"):
		x.failf(command.CodeInvalidOptions, "Cannot specify both key pattern and name.")
	case !x.has("name") && !x.has("keyPattern"):
		x.failf(command.CodeInvalidOptions, "Must specify either index name or key pattern.")
	case ch.prepare == nil && !x.has("unique"):
		x.failf(command.CodeInvalidOptions, "no unique or prepareUnique field")
	case ch.prepare == nil && !ch.unique:
		x.failf(command.CodeBadValue, "Cannot make index non-unique")
	}
	return ch
}

// apply puts a changed index in the place of the one that is named, and gives the
// fields of the reply. On failure the collection is as it was.
func (ch *indexChange) apply(c *collection) (bson.D, error) {
	if c.isView() {
		return nil, command.Errorf(command.CodeInvalidOptions, "option not supported on a view: index")
	}
	x := c.index(ch.which)
	if x == nil {
		what, ok := ch.which.(string)
		if !ok {
			what = value.Text(ch.which)
		}
		return nil, command.Errorf(command.CodeIndexNotFound, "cannot find index %s for ns %s", what, c.ns())
	}
	y := *x
	reply := bson.D{}
	switch {
	case x.unique:
		return reply, nil
	case ch.unique && !x.prepared:
		return nil, command.Errorf(command.CodeInvalidOptions, "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
	case ch.unique:
		if found := x.violations(c.docs); len(found) > 0 {
			e := command.Errorf(command.CodeCannotConvertIndexToUnique, "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.")
			e.Extra = bson.D{{Key: "violations", Value: found}}
			return nil, e
		}
		y.unique, y.prepared = true, false
		reply = bson.D{{Key: "unique_new", Value: true}}
		y.option("unique", true)
		y.option("prepareUnique", false)
	case x.prepared != *ch.prepare:
		reply = bson.D{{Key: "prepareUnique_old", Value: x.prepared}, {Key: "prepareUnique_new", Value: *ch.prepare}}
		y.prepared = *ch.prepare
		y.option("prepareUnique", y.prepared)
		y = *y.fresh()
		y.fill(c.docs)
	}
	c.indexes = slices.Clone(c.indexes)
	c.indexes[slices.Index(c.indexes, x)] = &y
	return reply, nil
}

// violations groups the _ids of documents that have the same key in an index.
func (x *index) violations(docs []*record) bson.A {
	holders := map[string]bson.A{}
	var shared []string
	for _, r := range docs {
		for _, k := range x.keys(r.doc) {
			key := value.Key(bson.A(k))
			if holders[key] = append(holders[key], value.Get(r.doc, "_id")); len(holders[key]) == 2 {
				shared = append(shared, key)
			}
		}
	}
	var groups bson.A
	for _, key := range shared {
		groups = append(groups, bson.D{{Key: "ids", Value: holders[key]}})
	}
	return groups
}

// option sets an option of a copied index in what listIndexes shows of it. One
// that is false is not shown.
func (x *index) option(key string, v any) {
	x.spec = slices.Clone(value.Delete(x.spec, key))
	x.spec = value.AddIf(x.spec, v != false, key, v)
}

// drop removes a collection.
func drop(s *scope, a *args) action {
	a.only(" collectionUUID encryptedFields ")
	name, db, d := a.name(), s.req.DB, s.d
	a.checkName(db, name)
	return func() (bson.D, error) {
		var c *collection
		err := s.locked(func() error {
			if c = d.collection(db, name); c == nil {
				return nil
			}
			if d.lockedIn(db, name) {
				return errBlocked
			}
			d.removeCollection(c)
			s.changed(entry{kind: opDrop, db: db, coll: name, uuid: c.uuid})
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case mongos(s.req), c == nil && wire(s.req) >= wire70:
			return bson.D{}, nil
		case c == nil:
			return nil, command.Errorf(command.CodeNamespaceNotFound, "ns not found")
		case c.isView():
			return bson.D{{Key: "ns", Value: c.ns()}}, nil
		}
		return bson.D{{Key: "nIndexesWas", Value: int32(c.catalogued())}, {Key: "ns", Value: c.ns()}}, nil
	}
}

// dropDatabase removes a database with its collections.
func dropDatabase(s *scope, a *args) action {
	name, d := s.req.DB, s.d
	a.refuse(internalDB(name), command.CodeIllegalOperation, "Dropping the '%s' database is prohibited.", name)
	return func() (bson.D, error) {
		there := false
		err := s.locked(func() error {
			collections := d.databases[name]
			if there = len(collections) > 0; !there {
				return nil
			}
			if d.lockedIn(name, "") {
				return errBlocked
			}
			for _, c := range collections {
				s.changed(entry{kind: opDrop, db: name, coll: c.name, uuid: c.uuid})
			}
			delete(d.databases, name)
			s.changed(entry{kind: opDropDatabase, db: name})
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case there:
			return bson.D{{Key: "dropped", Value: name}}, nil
		case mongos(s.req):
			return bson.D{{Key: "info", Value: "database does not exist"}}, nil
		}
		return bson.D{}, nil
	}
}

// renameCollection gives a collection another name.
func renameCollection(s *scope, a *args) action {
	a.only(" to dropTarget stayTemp collectionUUID encryptedFields ")
	from, to, dropTarget, d := a.str("renameCollection"), a.str("to"), a.flag("dropTarget"), s.d
	a.need("to")
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	a.checkName(fromDB, fromName)
	a.checkName(toDB, toName)
	a.refuse(from == to, command.CodeIllegalOperation, "Can't rename a collection to itself")
	return func() (bson.D, error) {
		return bson.D{}, s.locked(func() error {
			c, target := d.collection(fromDB, fromName), d.collection(toDB, toName)
			e := entry{kind: opRename, db: fromDB, coll: fromName, to: to}
			switch {
			case c == nil:
				return command.Errorf(command.CodeNamespaceNotFound, "Source collection %s does not exist", from)
			case c.isView():
				return command.Errorf(command.CodeCommandNotSupportedOnView, "cannot rename view: %s", from)
			case target != nil && !dropTarget:
				return command.Errorf(command.CodeNamespaceExists, "target namespace exists")
			case target != nil:
				d.removeCollection(target)
				e.dropped = &target.uuid
			}
			d.removeCollection(c)
			moved := *c
			moved.db, moved.name = toDB, toName
			d.addCollection(&moved)
			e.uuid = c.uuid
			s.changed(e)
			return nil
		})
	}
}

// enableSharding does nothing: every database may be sharded.
func enableSharding(_ *scope, a *args) action {
	if name := a.str("enableSharding"); name == "" || strings.ContainsAny(name, ". $/\\") {
		a.failf(command.CodeInvalidNamespace, "invalid db name specified: %s", name)
	}
	return func() (bson.D, error) { return bson.D{}, nil }
}

// shardCollection marks a collection as sharded; all of it stays on the one
// shard.
func shardCollection(s *scope, a *args) action {
	ns, key := a.str("shardCollection"), a.document("key")
	db, name, _ := strings.Cut(ns, ".")
	a.checkName(db, name)
	a.refuse(len(key) == 0, command.CodeBadValue, "Shard key is empty")
	return func() (bson.D, error) {
		var uuid bson.Binary
		err := s.locked(func() error {
			c, err := s.writable(db, name, true)
			if err != nil {
				return err
			}
			uuid = c.uuid
			s.changed(entry{kind: opShard, db: db, coll: name, uuid: uuid, detail: bson.D{
				{Key: "shardKey", Value: key}, {Key: "unique", Value: a.flag("unique")}, {Key: "numInitialChunks", Value: int64(1)},
			}})
			return nil
		})
		return bson.D{{Key: "collectionsharded", Value: ns}, {Key: "collectionUUID", Value: uuid}}, err
	}
}

// checkMetadataConsistency finds nothing: with one shard, all that is known of a
// collection goes together.
func checkMetadataConsistency(s *scope, a *args) action {
	size := a.batchSize()
	return func() (bson.D, error) { return s.list(nsText(s.req.DB, "aggregate"), nil, size), nil }
}
