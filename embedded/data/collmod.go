package data

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

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
	switch {
	case x.has("name") && x.has("keyPattern"):
		x.Fail(command.CodeInvalidOptions, "Cannot specify both key pattern and name.")
	case !x.has("name") && !x.has("keyPattern"):
		x.Fail(command.CodeInvalidOptions, "Must specify either index name or key pattern.")
	case ch.prepare == nil && !x.has("unique"):
		x.Fail(command.CodeInvalidOptions, "no unique or prepareUnique field")
	case ch.prepare == nil && !ch.unique:
		x.Fail(command.CodeBadValue, "Cannot make index non-unique")
	}
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
