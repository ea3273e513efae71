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

// create makes a collection and logs that. The caller holds mu.
func (d *Data) create(db, name string, options bson.D) *collection {
	c := newCollection(db, name, options)
	d.addCollection(c)
	d.log(entry{ts: d.tick(), kind: opCreate, db: db, coll: name, uuid: c.uuid, nsType: c.kind(), detail: describeCreate(c)})
	return c
}

func describeCreate(c *collection) bson.D {
	if c.clustered() {
		return c.options
	}
	return append(bson.D{{Key: "idIndex", Value: c.indexes[0].spec}}, c.options...)
}

const createFields = " capped autoIndexId idIndex size max storageEngine validator validationLevel validationAction indexOptionDefaults viewOn pipeline collation changeStreamPreAndPostImages timeseries expireAfterSeconds clusteredIndex encryptedFields flags temp "

func (d *Data) createCommand(s *scope, a *args) (bson.D, error) {
	c, err := d.parseCreate(s.req, a)
	if err != nil {
		return nil, err
	}
	return bson.D{}, s.locked(func() error { return s.addNew(c) })
}

// parseCreate makes the collection that a create describes, without placing it.
func (d *Data) parseCreate(req *command.Request, a *args) (*collection, error) {
	a.only(createFields)
	name := a.name()
	a.checkName(req.DB, name)
	c := newCollection(req.DB, name, a.createOptions())
	if spec, ok := value.Field(c.options, "clusteredIndex"); ok {
		c.cluster(spec.(bson.D))
	}
	c.view, c.pipeline = a.str("viewOn"), a.array("pipeline")
	c.capped, c.maxSize, c.maxDocs = a.flag("capped"), a.number("size", 0), a.number("max", 0)
	c.timeseries = len(a.document("timeseries")) > 0
	validator := a.document("validator")
	a.collation()
	switch {
	case c.capped && c.maxSize <= 0:
		a.fail(command.Errorf(command.CodeInvalidOptions, "the 'size' field is required when 'capped' is true"))
	case !c.capped && (a.has("size") || a.has("max")) && !a.has("capped"):
		a.fail(command.Errorf(command.CodeInvalidOptions, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present"))
	case c.view == "" && a.has("pipeline"):
		a.fail(command.Errorf(command.CodeInvalidOptions, "'pipeline' requires 'viewOn' to also be specified"))
	case c.timeseries && wire(req) > 0 && wire(req) < wire50:
		a.fail(command.Errorf(command.CodeIDLUnknownField, "BSON field 'create.timeseries' is an unknown field."))
	case a.has("expireAfterSeconds") && !c.timeseries && !c.clustered() && (wire(req) == 0 || wire(req) >= wire60):
		a.fail(command.Errorf(command.CodeInvalidOptions, "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified"))
	}
	if a.err != nil {
		return nil, a.err
	}
	if c.capped {
		c.maxSize = (c.maxSize + 255) / 256 * 256
		c.options = value.Set(c.options, "size", value.Int(c.maxSize))
	}
	if c.isView() {
		if _, err := pipeline.Compile(c.pipeline, query.Options{}); err != nil {
			return nil, err
		}
		c.indexes = nil
		if c.pipeline == nil {
			c.options = value.Set(c.options, "pipeline", bson.A{})
		}
	}
	if len(validator) == 0 {
		return c, nil
	}
	var err error
	c.validator, err = query.Compile(validator, query.Options{})
	return c, err
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
	if c.timeseries {
		d.addCollection(newCollection(c.db, "system.buckets."+c.name, bson.D{}))
	}
	e := entry{ts: d.tick(), kind: opCreate, db: c.db, coll: c.name, uuid: c.uuid, nsType: c.kind()}
	if !c.isView() {
		e.detail = describeCreate(c)
	}
	d.log(e)
	s.writes = true
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

func (d *Data) drop(s *scope, a *args) (bson.D, error) {
	a.only(" collectionUUID encryptedFields ")
	name, db := a.name(), s.req.DB
	if a.err != nil {
		return nil, a.err
	}
	if err := namespace(db, name); err != nil {
		return nil, err
	}
	var c *collection
	err := s.locked(func() error {
		if c = d.collection(db, name); c == nil {
			return nil
		}
		for k := range d.locks {
			if k.ns == c.ns() {
				return errBlocked
			}
		}
		d.removeCollection(c)
		if c.timeseries {
			if b := d.collection(db, "system.buckets."+name); b != nil {
				d.removeCollection(b)
			}
		}
		d.log(entry{ts: d.tick(), kind: opDrop, db: db, coll: name, uuid: c.uuid})
		s.writes = true
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case mongos(s.req):
		return bson.D{}, nil
	case c == nil && wire(s.req) >= 21:
		return bson.D{}, nil
	case c == nil:
		return nil, command.Errorf(command.CodeNamespaceNotFound, "ns not found")
	case c.isView():
		return bson.D{{Key: "ns", Value: c.ns()}}, nil
	}
	return bson.D{{Key: "nIndexesWas", Value: int32(c.catalogued())}, {Key: "ns", Value: c.ns()}}, nil
}

func (d *Data) dropDatabase(s *scope, _ *args) (bson.D, error) {
	name := s.req.DB
	if name == "admin" || name == "config" || name == "local" {
		return nil, command.Errorf(command.CodeIllegalOperation, "Dropping the '%s' database is prohibited.", name)
	}
	there := false
	err := s.locked(func() error {
		db := d.databases[name]
		if db == nil {
			return nil
		}
		there = true
		for k := range d.locks {
			if strings.HasPrefix(k.ns, name+".") {
				return errBlocked
			}
		}
		for _, c := range slices.Clone(db.order) {
			d.log(entry{ts: d.tick(), kind: opDrop, db: name, coll: c.name, uuid: c.uuid})
		}
		delete(d.databases, name)
		d.log(entry{ts: d.tick(), kind: opDropDatabase, db: name})
		s.writes = true
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

// onShard wraps what a shard answered as a mongos passes it on.
func (d *Data) onShard(s *scope, reply bson.D, err error) (bson.D, error) {
	if !mongos(s.req) {
		if err != nil {
			return nil, err
		}
		return reply, nil
	}
	if e, ok := err.(*command.Error); ok {
		raw := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: e.Message}, {Key: "code", Value: e.Code}, {Key: "codeName", Value: command.CodeName(e.Code)}}
		raw = append(raw, e.Extra...)
		return bson.D{
			{Key: "raw", Value: bson.D{{Key: d.opts.ShardHost, Value: raw}}},
			{Key: "code", Value: e.Code}, {Key: "codeName", Value: command.CodeName(e.Code)},
		}, &command.Error{Message: e.Message, Extra: e.Extra}
	}
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "raw", Value: bson.D{{Key: d.opts.ShardHost, Value: append(reply, bson.E{Key: "ok", Value: 1.0})}}}}, nil
}

func (d *Data) createIndexes(s *scope, a *args) (bson.D, error) {
	a.only(" indexes ignoreUnknownIndexOptions commitQuorum v ")
	name, list := a.name(), a.array("indexes")
	if a.err != nil {
		return nil, a.err
	}
	if len(list) == 0 {
		return nil, command.Errorf(command.CodeBadValue, "Must specify at least one index to create")
	}
	if err := namespace(s.req.DB, name); err != nil {
		return nil, err
	}
	if a.has("commitQuorum") && !d.logged() {
		return nil, command.Errorf(command.CodeBadValue, "Standalones can't specify commitQuorum")
	}
	var specs []*index
	for _, v := range list {
		spec, ok := v.(bson.D)
		if !ok {
			return nil, command.Errorf(command.CodeTypeMismatch, "The elements of the 'indexes' array must be objects, but got %s", value.TypeName(v))
		}
		x, err := d.parseIndex(spec, wire(s.req))
		if err != nil {
			return nil, err
		}
		specs = append(specs, x)
	}
	reply, err := d.buildIndexes(s, name, specs)
	return d.onShard(s, reply, err)
}

// indexOptions are the options of an index, in the order in which listIndexes
// shows them after v, key and name.
const indexOptions = " v key name unique background expireAfterSeconds collation hidden clustered prepareUnique "

// indexOptionsSince are the wire versions that brought some of them.
var indexOptionsSince = map[string]int{"hidden": wire44, "clustered": wire60, "prepareUnique": wire60}

func (d *Data) parseIndex(spec bson.D, wire int) (*index, error) {
	a := &args{of: "createIndexes.indexes", doc: spec}
	x := &index{key: a.document("key"), name: a.str("name"), unique: a.flag("unique"), fold: a.collation(),
		prepared: a.flag("prepareUnique") && !a.flag("unique"), clustered: a.flag("clustered")}
	if a.err != nil {
		return nil, a.err
	}
	if !a.has("key") {
		return nil, command.Errorf(command.CodeFailedToParse, "Error in specification %s :: caused by :: The 'key' field is a required property of an index specification", value.Text(spec))
	}
	if len(x.key) == 0 {
		return nil, command.Errorf(command.CodeCannotCreateIndex, "Error in specification %s :: caused by :: Index keys cannot be an empty object", value.Text(spec))
	}
	if !a.has("name") {
		return nil, command.Errorf(command.CodeFailedToParse, "Error in specification %s :: caused by :: The 'name' field is a required property of an index specification", value.Text(spec))
	}
	for _, k := range x.key {
		switch t := k.Value.(type) {
		case string:
			if t == "" {
				return nil, command.Errorf(command.CodeCannotCreateIndex, "Error in specification %s :: caused by :: Index key plugin can't be empty", value.Text(spec))
			}
		default:
			if !value.IsNumber(t) {
				return nil, command.Errorf(command.CodeCannotCreateIndex, "Error in specification %s :: caused by :: Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", value.Text(spec), value.TypeName(t))
			}
			if value.Compare(t, int32(0)) == 0 {
				return nil, command.Errorf(command.CodeCannotCreateIndex, "Error in specification %s :: caused by :: Values in the index key pattern cannot be 0.", value.Text(spec))
			}
		}
	}
	for _, e := range spec {
		if !strings.Contains(indexOptions, " "+e.Key+" ") || wire > 0 && wire < indexOptionsSince[e.Key] {
			return nil, command.Errorf(command.CodeInvalidIndexSpecificationOption, "Error in specification %s :: caused by :: The field '%s' is not valid for an index specification. Specification: %s", value.Text(spec), e.Key, value.Text(spec))
		}
	}
	if x.unique {
		x.entries = map[string]*record{}
	}
	x.spec = bson.D{{Key: "v", Value: int32(2)}}
	if x.unique {
		x.spec = append(x.spec, bson.E{Key: "unique", Value: true})
	}
	x.spec = append(x.spec, bson.E{Key: "key", Value: x.key}, bson.E{Key: "name", Value: x.name})
	for _, e := range spec {
		switch e.Key {
		case "v", "key", "name", "unique":
		case "background", "hidden":
			if value.Truthy(e.Value) {
				x.spec = append(x.spec, bson.E{Key: e.Key, Value: e.Value})
			}
		default:
			x.spec = append(x.spec, e)
		}
	}
	return x, nil
}

func (d *Data) buildIndexes(s *scope, name string, specs []*index) (bson.D, error) {
	var reply bson.D
	err := s.locked(func() error {
		made := s.collection(s.req.DB, name) == nil
		c, err := s.writable(s.req.DB, name, true)
		if err != nil {
			return err
		}
		before := len(c.indexes)
		var add []*index
		for _, x := range specs {
			same, err := clash(c, x)
			if err != nil {
				return err
			}
			if !same {
				for _, r := range c.docs {
					for _, k := range x.keysIfUnique(r) {
						if x.entries[value.Key(bson.A(k))] != nil {
							return c.duplicate(x, k)
						}
						x.entries[value.Key(bson.A(k))] = r
					}
				}
				add = append(add, x)
			}
		}
		// Readers may hold the list of indexes: it is replaced, not changed.
		c.indexes = append(slices.Clone(c.indexes), add...)
		if s.txn != nil && !slices.Contains(s.txn.created, c) {
			return command.Errorf(command.CodeOperationNotSupportedInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", c.ns())
		}
		reply = bson.D{}
		if len(add) == 0 {
			reply = append(reply, bson.E{Key: "numIndexesBefore", Value: int32(before)}, bson.E{Key: "numIndexesAfter", Value: int32(before)},
				bson.E{Key: "note", Value: "all indexes already exist"})
			return nil
		}
		reply = append(reply, bson.E{Key: "createdCollectionAutomatically", Value: made}, bson.E{Key: "numIndexesBefore", Value: int32(before)},
			bson.E{Key: "numIndexesAfter", Value: int32(len(c.indexes))})
		if d.logged() && s.txn == nil {
			reply = append(reply, bson.E{Key: "commitQuorum", Value: "votingMembers"})
		}
		var list bson.A
		for _, x := range add {
			list = append(list, x.spec)
		}
		if s.txn != nil {
			return nil
		}
		d.log(entry{ts: d.tick(), kind: opCreateIndexes, db: c.db, coll: c.name, uuid: c.uuid, detail: bson.D{{Key: "indexes", Value: list}}})
		s.writes = true
		return nil
	})
	return reply, err
}

func (x *index) keysIfUnique(r *record) [][]any {
	if !x.unique {
		return nil
	}
	return x.keys(r.doc())
}

// clash reports whether an index is there already, or one that stands in its
// way.
func clash(c *collection, x *index) (bool, error) {
	id := c.idIndex()
	for _, y := range c.indexes {
		sameKey := value.Equal(x.key, y.key) && sameOption(x.spec, y.spec, "collation")
		sameRest := x.unique == y.unique && sameOption(x.spec, y.spec, "expireAfterSeconds") || y == id
		switch {
		case sameKey && x.name == y.name && sameRest:
			return true, nil
		case sameKey && y == id:
			return true, nil
		case sameKey && !sameRest && x.name != y.name:
			return false, command.Errorf(command.CodeIndexOptionsConflict, "An equivalent index already exists with a different name and options. Requested index: %s, existing index: %s", value.Text(x.spec), value.Text(y.spec))
		case sameKey && !sameRest:
			return false, command.Errorf(command.CodeIndexOptionsConflict, "An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s", value.Text(x.spec), value.Text(y.spec))
		case sameKey:
			return false, command.Errorf(command.CodeIndexOptionsConflict, "Index already exists with a different name: %s", y.name)
		case x.name == y.name:
			return false, command.Errorf(command.CodeIndexKeySpecsConflict, "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", value.Text(x.spec), value.Text(y.spec))
		}
	}
	return false, nil
}

func sameOption(a, b bson.D, key string) bool {
	x, _ := value.Field(a, key)
	y, _ := value.Field(b, key)
	return value.Equal(x, y)
}

func (d *Data) dropIndexes(s *scope, a *args) (bson.D, error) {
	a.only(" index collectionUUID isTimeseriesNamespace ")
	name := a.name()
	a.checkName(s.req.DB, name)
	a.need("index")
	if a.err != nil {
		return nil, a.err
	}
	reply, err := d.removeIndexes(s, name, a.any("index"))
	return d.onShard(s, reply, err)
}

func (d *Data) removeIndexes(s *scope, name string, which any) (bson.D, error) {
	var reply bson.D
	err := s.locked(func() error {
		c := d.collection(s.req.DB, name)
		if c == nil || c.isView() {
			return command.Errorf(command.CodeNamespaceNotFound, "ns not found %s.%s", s.req.DB, name)
		}
		reply = bson.D{{Key: "nIndexesWas", Value: int32(c.catalogued())}}
		gone := map[*index]bool{}
		for _, n := range indexNames(which) {
			switch w := n.(type) {
			case string:
				if w == "*" {
					for _, x := range c.indexes[1:] {
						gone[x] = true
					}
					reply = append(reply, bson.E{Key: "msg", Value: "non-_id indexes dropped for collection"})
					continue
				}
				x := c.index(w)
				if x == nil {
					return command.Errorf(command.CodeIndexNotFound, "index not found with name [%s]", w)
				}
				if x == c.idIndex() {
					return command.Errorf(command.CodeInvalidOptions, "cannot drop _id index")
				}
				gone[x] = true
			case bson.D:
				found := false
				for _, x := range c.indexes {
					if value.Equal(x.key, w) {
						if x == c.idIndex() {
							return command.Errorf(command.CodeInvalidOptions, "cannot drop _id index")
						}
						gone[x], found = true, true
					}
				}
				if !found {
					return command.Errorf(command.CodeIndexNotFound, "can't find index with key: %s", value.Text(w))
				}
			default:
				return command.Errorf(command.CodeTypeMismatch, "BSON field 'dropIndexes.index' is the wrong type '%s', expected types '[string, object, array']", value.TypeName(n))
			}
		}
		if len(gone) == 0 {
			return nil
		}
		var kept []*index
		var list bson.A
		for _, x := range c.indexes {
			if gone[x] {
				list = append(list, x.spec)
			} else {
				kept = append(kept, x)
			}
		}
		c.indexes = kept
		d.log(entry{ts: d.tick(), kind: opDropIndexes, db: c.db, coll: c.name, uuid: c.uuid, detail: bson.D{{Key: "indexes", Value: list}}})
		s.writes = true
		return nil
	})
	return reply, err
}

// indexNames is what dropIndexes names: one index or several.
func indexNames(which any) bson.A {
	if l, ok := which.(bson.A); ok {
		return l
	}
	return bson.A{which}
}

func (d *Data) listIndexes(s *scope, a *args) (bson.D, error) {
	a.only(" cursor includeBuildUUIDs includeIndexBuildInfo ")
	name := a.name()
	size := a.batchSize()
	a.checkName(s.req.DB, name)
	if a.err != nil {
		return nil, a.err
	}
	ns := s.req.DB + "." + name
	var c *collection
	var specs []bson.Raw
	d.reading(func() {
		if c = s.collection(s.req.DB, name); c == nil {
			return
		}
		for _, x := range c.indexes {
			specs = append(specs, value.Encode(x.spec))
		}
	})
	if c == nil {
		return nil, command.Errorf(command.CodeNamespaceNotFound, "ns does not exist: %s", ns)
	}
	if c.isView() {
		return nil, onView(c)
	}
	return s.list(ns, specs, size)
}

func (d *Data) listCollections(s *scope, a *args) (bson.D, error) {
	a.only(" cursor filter nameOnly authorizedCollections includePendingDrops ")
	nameOnly, filter := a.flag("nameOnly"), a.document("filter")
	size := a.batchSize()
	if a.err != nil {
		return nil, a.err
	}
	f, err := query.Compile(filter, query.Options{})
	if err != nil {
		return nil, err
	}
	var docs []bson.D
	var db *database
	d.reading(func() {
		if db = d.databases[s.req.DB]; db != nil {
			for _, c := range db.order {
				docs = append(docs, describe(c))
			}
		}
	})
	if docs, err = f.Select(docs); err != nil {
		return nil, err
	}
	var out []bson.Raw
	for _, doc := range docs {
		if nameOnly {
			doc = doc[:2]
		}
		out = append(out, value.Encode(doc))
	}
	reply, err := s.list(nsText(s.req.DB, "listCollections"), out, size)
	if err == nil && db == nil && mongos(s.req) && wire(s.req) <= 12 {
		reply = append(bson.D{{Key: "result", Value: bson.A{}}}, reply...)
	}
	return reply, err
}

// describe is a collection as listCollections shows it.
func describe(c *collection) bson.D {
	kind, info := c.kind(), bson.D{{Key: "readOnly", Value: c.isView()}}
	if kind == "collection" {
		info = append(info, bson.E{Key: "uuid", Value: c.uuid})
	}
	doc := bson.D{{Key: "name", Value: c.name}, {Key: "type", Value: kind}, {Key: "options", Value: c.options}, {Key: "info", Value: info}}
	if kind == "collection" && !c.clustered() {
		doc = append(doc, bson.E{Key: "idIndex", Value: c.indexes[0].spec})
	}
	return doc
}

func (d *Data) listDatabases(s *scope, a *args) (bson.D, error) {
	if s.req.DB != "admin" {
		return nil, command.Errorf(command.CodeUnauthorized, "listDatabases may only be run against the admin database.")
	}
	a.only(" filter nameOnly authorizedDatabases ")
	nameOnly, filter := a.flag("nameOnly"), a.document("filter")
	if a.err != nil {
		return nil, a.err
	}
	f, err := query.Compile(filter, query.Options{})
	if err != nil {
		return nil, err
	}
	type entry struct {
		name string
		size int64
	}
	var all []entry
	d.reading(func() {
		for name, db := range d.databases {
			size := int64(0)
			for _, c := range db.order {
				size += c.size + 4096*int64(1+len(c.indexes))
			}
			if mongos(s.req) && name == "local" {
				continue
			}
			all = append(all, entry{name, size})
		}
	})
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	list, total := bson.A{}, int64(0)
	for _, e := range all {
		doc := bson.D{{Key: "name", Value: e.name}, {Key: "sizeOnDisk", Value: float64(e.size)}, {Key: "empty", Value: false}}
		if mongos(s.req) {
			shard := d.opts.ShardName
			if e.name == "admin" || e.name == "config" {
				shard = "config"
			}
			doc = bson.D{doc[0], {Key: "sizeOnDisk", Value: value.Int(e.size)}, doc[2],
				{Key: "shards", Value: bson.D{{Key: shard, Value: value.Int(e.size)}}}}
		}
		ok, err := f.Matches(doc)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		total += e.size
		if nameOnly {
			doc = doc[:1]
		}
		list = append(list, doc)
	}
	reply := bson.D{{Key: "databases", Value: list}}
	switch {
	case nameOnly:
	case mongos(s.req):
		reply = append(reply, bson.E{Key: "totalSize", Value: value.Int(total)}, bson.E{Key: "totalSizeMb", Value: value.Int(total >> 20)})
	default:
		reply = append(reply, bson.E{Key: "totalSize", Value: float64(total)})
		if wire(s.req) >= 13 {
			reply = append(reply, bson.E{Key: "totalSizeMb", Value: float64(total >> 20)})
		}
	}
	return reply, nil
}

func (d *Data) renameCollection(s *scope, a *args) (bson.D, error) {
	a.only(" to dropTarget stayTemp collectionUUID encryptedFields ")
	from, to, dropTarget := a.str("renameCollection"), a.str("to"), a.flag("dropTarget")
	a.need("to")
	if a.err != nil {
		return nil, a.err
	}
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	for _, err := range []*command.Error{namespace(fromDB, fromName), namespace(toDB, toName)} {
		if err != nil {
			return nil, err
		}
	}
	if from == to {
		return nil, command.Errorf(command.CodeIllegalOperation, "Can't rename a collection to itself")
	}
	return bson.D{}, s.locked(func() error {
		c, target := d.collection(fromDB, fromName), d.collection(toDB, toName)
		if c == nil {
			return command.Errorf(command.CodeNamespaceNotFound, "Source collection %s does not exist", from)
		}
		if c.isView() {
			return command.Errorf(command.CodeCommandNotSupportedOnView, "cannot rename view: %s", from)
		}
		if target != nil {
			if !dropTarget {
				return command.Errorf(command.CodeNamespaceExists, "target namespace exists")
			}
			d.removeCollection(target)
		}
		d.removeCollection(c)
		e := entry{ts: d.tick(), kind: opRename, db: fromDB, coll: fromName, uuid: c.uuid, to: to}
		if target != nil {
			e.dropped = &target.uuid
		}
		moved := *c
		moved.db, moved.name = toDB, toName
		d.addCollection(&moved)
		d.log(e)
		s.writes = true
		return nil
	})
}
