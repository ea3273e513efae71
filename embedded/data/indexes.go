package data

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func createIndexes(s *scope, a *args) action {
	a.only(" indexes ignoreUnknownIndexOptions commitQuorum v ")
	name, list := a.collection(s.req.DB), a.array("indexes")
	a.Refuse(len(list) == 0, command.CodeBadValue, "Must specify at least one index to create")
	a.Refuse(a.has("commitQuorum") && !s.d.logged(), command.CodeBadValue, "Standalones can't specify commitQuorum")
	specs := make([]*index, len(list))
	for i, v := range list {
		spec, ok := v.(bson.D)
		a.Refuse(!ok, command.CodeTypeMismatch, "The elements of the 'indexes' array must be objects, but got %s", value.TypeName(v))
		specs[i] = parseIndex(&args{of: "createIndexes.indexes", doc: spec, FirstError: a.FirstError}, wire(s.req))
	}
	return func() (bson.D, error) {
		reply, err := s.buildIndexes(name, specs)
		return s.onShard(reply, err)
	}
}

// indexOptions maps the options of an index to the wire versions that added them.
var indexOptions = map[string]int{"v": 0, "key": 0, "name": 0, "unique": 0, "background": 0, "expireAfterSeconds": 0,
	"collation": 0, "hidden": wire44, "clustered": wire60, "prepareUnique": wire60}

func parseIndex(a *args, wire int) *index {
	x := &index{key: a.document("key"), name: a.str("name"), unique: a.flag("unique"), collation: a.collation(),
		prepared: a.flag("prepareUnique") && !a.flag("unique"), clustered: a.flag("clustered")}
	refuse := func(when bool, code int32, format string, values ...any) {
		a.Refuse(when, code,
			"Error in specification %s :: caused by :: %s", value.Text(a.doc), fmt.Sprintf(format, values...))
	}
	refuse(!a.has("key"), command.CodeFailedToParse, "The 'key' field is a required property of an index specification")
	refuse(len(x.key) == 0, command.CodeCannotCreateIndex, "Index keys cannot be an empty object")
	refuse(!a.has("name"), command.CodeFailedToParse,
		"The 'name' field is a required property of an index specification")
	for _, k := range x.key {
		_, plugin := k.Value.(string)
		refuse(k.Value == "", command.CodeCannotCreateIndex, "Index key plugin can't be empty")
		refuse(!plugin && !value.IsNumber(k.Value), command.CodeCannotCreateIndex,
			"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", value.TypeName(k.Value))
		refuse(value.Equal(k.Value, int32(0)), command.CodeCannotCreateIndex,
			"Values in the index key pattern cannot be 0.")
	}
	x.spec = bson.D{{Key: "v", Value: int32(2)}}
	x.spec = value.AddIf(x.spec, x.unique, "unique", true)
	x.spec = append(x.spec, bson.E{Key: "key", Value: x.key}, bson.E{Key: "name", Value: x.name})
	for _, e := range a.doc {
		since, known := indexOptions[e.Key]
		refuse(!known || wire > 0 && wire < since, command.CodeInvalidIndexSpecificationOption,
			"The field '%s' is not valid for an index specification. Specification: %s", e.Key, value.Text(a.doc))
		switch e.Key {
		case "v", "key", "name", "unique":
		case "background", "hidden":
			if value.Truthy(e.Value) {
				x.spec = append(x.spec, e)
			}
		default:
			x.spec = append(x.spec, e)
		}
	}
	return x
}

func (s *scope) buildIndexes(name string, specs []*index) (bson.D, error) {
	var reply bson.D
	err := s.locked(func() error {
		created := s.collection(s.req.DB, name) == nil
		c, err := s.writable(s.req.DB, name, true)
		if err != nil {
			return err
		}
		before := len(c.indexes)
		var added []*index
		var list bson.A
		for _, x := range specs {
			exists, err := c.hasIndex(x)
			if err != nil {
				return err
			}
			if !exists {
				x = x.empty()
				if key := x.fill(c.docs); key != nil {
					return c.duplicate(x, key)
				}
				added = append(added, x)
				list = append(list, x.spec)
			}
		}
		// Readers may hold the list of indexes, so it is replaced, not changed.
		c.indexes = slices.Concat(c.indexes, added)
		if s.txn != nil && !slices.Contains(s.txn.created, c) {
			return command.Errorf(command.CodeOperationNotSupportedInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", c.ns())
		}
		counts := bson.D{{Key: "numIndexesBefore", Value: int32(before)}, {Key: "numIndexesAfter", Value: int32(len(c.indexes))}}
		if len(added) == 0 {
			reply = append(counts, bson.E{Key: "note", Value: "all indexes already exist"})
			return nil
		}
		reply = append(bson.D{{Key: "createdCollectionAutomatically", Value: created}}, counts...)
		if s.txn == nil {
			reply = value.AddIf(reply, s.d.logged(), "commitQuorum", "votingMembers")
			s.changed(entry{kind: opCreateIndexes, db: c.db, coll: c.name, uuid: c.uuid, detail: bson.D{{Key: "indexes", Value: list}}})
		}
		return nil
	})
	return reply, err
}

// fill adds the keys of records. It stops at the first duplicate in a unique index and returns it.
func (x *index) fill(docs []*record) (duplicate []any) {
	if x.entries == nil {
		return nil
	}
	for _, r := range docs {
		for _, k := range x.keys(r.doc) {
			key := value.Key(bson.A(k))
			if x.entries[key] = append(x.entries[key], r); x.unique && len(x.entries[key]) > 1 {
				return k
			}
		}
	}
	return nil
}

// hasIndex reports whether an index exists. An existing index that conflicts with it is an error.
func (c *collection) hasIndex(x *index) (bool, error) {
	for _, y := range c.indexes {
		sameKey := value.Equal(x.key, y.key) && sameOption(x.spec, y.spec, "collation")
		sameRest := x.unique == y.unique && sameOption(x.spec, y.spec, "expireAfterSeconds")
		switch {
		case sameKey && (x.name == y.name && sameRest || y == c.idIndex()):
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
	return value.Equal(value.Get(a, key), value.Get(b, key))
}

func dropIndexes(s *scope, a *args) action {
	a.only(" index collectionUUID isTimeseriesNamespace ")
	name := a.collection(s.req.DB)
	a.need("index")
	names, ok := a.any("index").(bson.A)
	if !ok {
		names = bson.A{a.any("index")}
	}
	return func() (bson.D, error) {
		var reply bson.D
		err := s.locked(func() (err error) {
			reply, err = s.removeIndexes(s.d.collection(s.req.DB, name), name, names)
			return err
		})
		return s.onShard(reply, err)
	}
}

// removeIndexes removes indexes by name or key; "*" means all except _id. The caller holds mu.
func (s *scope) removeIndexes(c *collection, name string, which bson.A) (bson.D, error) {
	if c == nil || c.isView() {
		return nil, command.Errorf(command.CodeNamespaceNotFound, "ns not found %s.%s", s.req.DB, name)
	}
	reply := bson.D{{Key: "nIndexesWas", Value: int32(c.catalogued())}}
	var dropped []*index
	for _, n := range which {
		if n == "*" {
			dropped = append(dropped, c.indexes[1:]...)
			reply = append(reply, bson.E{Key: "msg", Value: "non-_id indexes dropped for collection"})
			continue
		}
		x, err := c.indexNamed(n)
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, x)
	}
	var list bson.A
	c.indexes = slices.DeleteFunc(slices.Clone(c.indexes), func(x *index) bool {
		drop := slices.Contains(dropped, x)
		if drop {
			list = append(list, x.spec)
		}
		return drop
	})
	if len(dropped) > 0 {
		s.changed(entry{kind: opDropIndexes, db: c.db, coll: c.name, uuid: c.uuid, detail: bson.D{{Key: "indexes", Value: list}}})
	}
	return reply, nil
}

// indexNamed returns the index with a name or a key, which must not be the _id index.
func (c *collection) indexNamed(which any) (*index, error) {
	x := c.index(which)
	name, isName := which.(string)
	_, isKey := which.(bson.D)
	switch {
	case x == c.indexes[0]:
		return nil, command.Errorf(command.CodeInvalidOptions, "cannot drop _id index")
	case x != nil:
		return x, nil
	case isName:
		return nil, command.Errorf(command.CodeIndexNotFound, "index not found with name [%s]", name)
	case isKey:
		return nil, command.Errorf(command.CodeIndexNotFound, "can't find index with key: %s", value.Text(which))
	}
	return nil, command.Errorf(command.CodeTypeMismatch, "BSON field 'dropIndexes.index' is the wrong type '%s', expected types '[string, object, array']", value.TypeName(which))
}

func listIndexes(s *scope, a *args) action {
	a.only(" cursor includeBuildUUIDs includeIndexBuildInfo ")
	name, size := a.collection(s.req.DB), a.batchSize()
	return func() (bson.D, error) {
		var c *collection
		var specs []bson.Raw
		s.d.reading(func() {
			if c = s.collection(s.req.DB, name); c == nil {
				return
			}
			for _, x := range c.indexes {
				specs = append(specs, value.Encode(x.spec))
			}
		})
		switch {
		case c == nil:
			return nil, command.Errorf(command.CodeNamespaceNotFound, "ns does not exist: %s.%s", s.req.DB, name)
		case c.isView():
			return nil, onView(c)
		}
		return s.list(c.ns(), specs, size), nil
	}
}

func collMod(s *scope, a *args) action {
	name, d := a.collection(s.req.DB), s.d
	a.only(" index validator validationLevel validationAction changeStreamPreAndPostImages expireAfterSeconds ")
	a.document("changeStreamPreAndPostImages")
	index := parseIndexChange(s.req, a)
	validator := a.filter("validator", query.Options{})
	return func() (bson.D, error) {
		reply := bson.D{}
		err := s.locked(func() error {
			c := d.collection(s.req.DB, name)
			if c == nil {
				return command.Errorf(command.CodeNamespaceNotFound, "ns does not exist")
			}
			// Readers may hold the collection, so a changed copy replaces it.
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
				if e.Key != "index" && !generic[e.Key] {
					next.options = value.Set(next.options, e.Key, e.Value)
				}
			}
			if a.has("validator") {
				next.validator = validator
			}
			collections := d.databases[c.db]
			collections[slices.Index(collections, c)] = &next
			s.changed(entry{kind: opModify, db: c.db, coll: c.name, uuid: c.uuid})
			return nil
		})
		return s.onShard(reply, err)
	}
}

// indexChange is the field index of collMod.
type indexChange struct {
	which   any // name or key
	unique  bool
	prepare *bool // prepareUnique; nil if unset
}

// parseIndexChange parses the field index of collMod. It returns nil if the field is missing.
func parseIndexChange(req *command.Request, a *args) *indexChange {
	if !a.has("index") {
		return nil
	}
	x := a.part("index")
	x.only(" name keyPattern unique prepareUnique ")
	x.Note(tooNew(req, x.of, x.doc))
	ch := &indexChange{which: x.document("keyPattern"), unique: x.flag("unique")}
	if name := x.str("name"); name != "" {
		ch.which = name
	}
	if prepare := x.flag("prepareUnique"); x.has("prepareUnique") {
		ch.prepare = &prepare
	}
	x.Refuse(x.has("name") && x.has("keyPattern"), command.CodeInvalidOptions,
		"Cannot specify both key pattern and name.")
	x.Refuse(!x.has("name") && !x.has("keyPattern"), command.CodeInvalidOptions,
		"Must specify either index name or key pattern.")
	x.Refuse(ch.prepare == nil && !x.has("unique"), command.CodeInvalidOptions, "no unique or prepareUnique field")
	x.Refuse(ch.prepare == nil && !ch.unique, command.CodeBadValue, "Cannot make index non-unique")
	return ch
}

// apply replaces the index by a changed copy and returns the fields of the reply. On an error it changes nothing.
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
		y = *y.empty()
		y.fill(c.docs)
	}
	c.indexes = slices.Clone(c.indexes)
	c.indexes[slices.Index(c.indexes, x)] = &y
	return reply, nil
}

// violations returns the groups of _ids of documents that share a key.
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

// option sets an option of a copied index in its spec, which omits false options.
func (x *index) option(key string, v any) {
	x.spec = slices.Clone(value.Delete(x.spec, key))
	x.spec = value.AddIf(x.spec, v != false, key, v)
}
