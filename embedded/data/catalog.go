package data

import (
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// created returns the oplog entry of a new collection.
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

// clusteredIndex returns the option clusteredIndex of create with its defaults, as listCollections shows it. It returns
// nil if the collection is not clustered.
func clusteredIndex(a *args) bson.D {
	if a.any("clusteredIndex") == any(false) || a.any("clusteredIndex") == nil {
		return nil
	}
	c := a.part("clusteredIndex")
	c.only(" v key name unique ")
	key, name := c.document("key"), cmp.Or(c.str("name"), "_id_")
	c.need("key")
	c.need("unique")
	c.Refuse(!c.flag("unique"), 5979700, "The clusteredIndex option requires unique: true to be specified")
	c.Refuse(!value.Equal(key, bson.D{{Key: "_id", Value: int32(1)}}), command.CodeInvalidIndexSpecificationOption,
		"The clusteredIndex option is only supported for key: {_id: 1}")
	return bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "unique", Value: true}}
}

// enableSharding only checks its argument: every database can be sharded.
func enableSharding(_ *scope, a *args) action {
	name := a.str("enableSharding")
	a.Refuse(name == "" || strings.ContainsAny(name, ". $/\\"), command.CodeInvalidNamespace, "invalid db name specified: %s", name)
	return func() (bson.D, error) { return bson.D{}, nil }
}

// shardCollection creates and logs the collection. Its data stays on the only shard.
func shardCollection(s *scope, a *args) action {
	ns, key := a.str("shardCollection"), a.document("key")
	db, name, _ := strings.Cut(ns, ".")
	a.checkName(db, name)
	a.Refuse(len(key) == 0, command.CodeBadValue, "Shard key is empty")
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

// checkMetadataConsistency reports no inconsistencies: there is only one shard.
func checkMetadataConsistency(s *scope, a *args) action {
	size := a.batchSize()
	return func() (bson.D, error) { return s.list(s.req.DB+".$cmd.aggregate", nil, size), nil }
}

const createFields = " capped autoIndexId idIndex size max storageEngine validator validationLevel validationAction indexOptionDefaults viewOn pipeline collation changeStreamPreAndPostImages timeseries expireAfterSeconds clusteredIndex encryptedFields flags temp "

func createCommand(s *scope, a *args) action {
	options := bson.D{} // as listCollections shows them
	for _, e := range a.doc[1:] {
		if !generic[e.Key] && e.Key != "idIndex" && e.Key != "autoIndexId" && e.Key != "clusteredIndex" {
			options = append(options, e)
		}
	}
	clustered := clusteredIndex(a)
	options = value.AddIf(options, clustered != nil, "clusteredIndex", clustered)
	c := newCollection(s.req.DB, a.collection(s.req.DB), options)
	a.only(createFields)
	if clustered != nil {
		id := c.idIndex()
		id.name, id.clustered = value.As[string](clustered, "name"), true
		id.spec = append(slices.Clip(clustered), bson.E{Key: "clustered", Value: true})
	}
	c.view = a.str("viewOn")
	c.capped, c.maxSize, c.maxDocs = a.flag("capped"), a.number("size", 0), a.number("max", 0)
	c.timeseries = len(a.document("timeseries")) > 0
	a.collation()
	a.Refuse(c.capped && c.maxSize <= 0, command.CodeInvalidOptions,
		"the 'size' field is required when 'capped' is true")
	a.Refuse(!c.capped && (a.has("size") || a.has("max")) && !a.has("capped"), command.CodeInvalidOptions,
		"the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	a.Refuse(c.view == "" && a.has("pipeline"), command.CodeInvalidOptions,
		"'pipeline' requires 'viewOn' to also be specified")
	a.Refuse(a.has("expireAfterSeconds") && !c.timeseries && !c.clustered() && wire(s.req) >= wire60, command.CodeInvalidOptions,
		"'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
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
	return func() (bson.D, error) { return bson.D{}, s.locked(func() error { return s.create(c) }) }
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
		s.txn.collections[c.ns()] = c
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

func drop(s *scope, a *args) action {
	a.only(" collectionUUID encryptedFields ")
	name, db, d := a.collection(s.req.DB), s.req.DB, s.d
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

func dropDatabase(s *scope, a *args) action {
	name, d := s.req.DB, s.d
	a.Refuse(internalDB(name), command.CodeIllegalOperation, "Dropping the '%s' database is prohibited.", name)
	return func() (bson.D, error) {
		exists := false
		err := s.locked(func() error {
			collections := d.databases[name]
			if exists = len(collections) > 0; !exists {
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
		case exists:
			return bson.D{{Key: "dropped", Value: name}}, nil
		case mongos(s.req):
			return bson.D{{Key: "info", Value: "database does not exist"}}, nil
		}
		return bson.D{}, nil
	}
}

func renameCollection(s *scope, a *args) action {
	a.only(" to dropTarget stayTemp collectionUUID encryptedFields ")
	from, to, dropTarget, d := a.str("renameCollection"), a.str("to"), a.flag("dropTarget"), s.d
	a.need("to")
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	a.checkName(fromDB, fromName)
	a.checkName(toDB, toName)
	a.Refuse(from == to, command.CodeIllegalOperation, "Can't rename a collection to itself")
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
