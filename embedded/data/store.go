package data

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// record is a stored document. It never changes: an update puts another record
// of the same rid in its place, so that whoever holds it has a snapshot.
type record struct {
	rid int64
	raw bson.Raw
	doc bson.D // the same
}

func newRecord(rid int64, raw bson.Raw) *record { return &record{rid, raw, value.Must(raw)} }

func (r *record) document() bson.D { return r.doc }

func documentsIn(records []*record) []bson.D {
	out := make([]bson.D, len(records))
	for i, r := range records {
		out[i] = r.doc
	}
	return out
}

// collection is a collection or a view.
type collection struct {
	db, name string
	uuid     bson.Binary
	options  bson.D
	// A view has the name of another collection and a pipeline.
	view     string
	pipeline *pipeline.Pipeline

	capped           bool
	maxSize, maxDocs int64
	timeseries       bool
	validator        *query.Filter

	indexes []*index
	docs    []*record // by rid
	// shared is set while someone reads docs without the lock: the slice may
	// then be appended to, and is copied before anything else changes it.
	shared bool
	size   int64
	// frozen collections are snapshots: their docs are of another time than
	// the entries of their indexes, which must not be used.
	frozen bool
}

// index is an index; only those that refuse duplicates have entries, since
// collections here are small and queries scan.
type index struct {
	name   string
	key    bson.D
	spec   bson.D // as listIndexes shows it
	unique bool
	// prepared indexes (prepareUnique) refuse new duplicates and keep those that
	// are there.
	prepared bool
	// clustered is set for the index of _id of a clustered collection.
	clustered bool
	fold      query.Collation
	// entries are the records that have a key.
	entries map[string][]*record
}

func newCollection(db, name string, options bson.D) *collection {
	c := &collection{db: db, name: name, uuid: command.NewUUID(), options: options}
	id := &index{name: "_id_", key: bson.D{{Key: "_id", Value: int32(1)}}, unique: true}
	id.spec = bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: id.key}, {Key: "name", Value: id.name}}
	c.indexes = []*index{id.fresh()}
	return c
}

// fresh is the index without the keys of any document.
func (x *index) fresh() *index {
	y := *x
	y.entries = nil
	if x.unique || x.prepared {
		y.entries = map[string][]*record{}
	}
	return &y
}

// freshIndexes are the indexes without the keys of any document.
func (c *collection) freshIndexes() []*index {
	out := make([]*index, len(c.indexes))
	for i, x := range c.indexes {
		out[i] = x.fresh()
	}
	return out
}

func (c *collection) ns() string { return c.db + "." + c.name }

func (c *collection) isView() bool { return c.view != "" }

// onView is the error of a command that works on no view.
func onView(c *collection) error {
	return command.Errorf(command.CodeCommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.ns())
}

// kind is the type of the namespace.
func (c *collection) kind() string {
	switch {
	case c.isView():
		return "view"
	case c.timeseries:
		return "timeseries"
	}
	return "collection"
}

// snapshot is the current records. They may be read without the lock.
func (c *collection) snapshot() []*record {
	if c == nil {
		return nil
	}
	c.shared = true
	return c.docs[:len(c.docs):len(c.docs)]
}

// own makes docs safe to change in place.
func (c *collection) own() {
	if c.shared {
		c.docs = slices.Clone(c.docs)
		c.shared = false
	}
}

func (c *collection) place(rid int64) (int, bool) {
	return slices.BinarySearchFunc(c.docs, rid, func(r *record, rid int64) int { return cmp.Compare(r.rid, rid) })
}

// find is the record of a rid, nil if it does not exist.
func (c *collection) find(rid int64) *record {
	if i, ok := c.place(rid); ok {
		return c.docs[i]
	}
	return nil
}

// byID is the record of an _id, nil if it does not exist.
func (c *collection) byID(id any) *record {
	if found := c.indexes[0].entries[value.Key(bson.A{id})]; len(found) > 0 {
		return found[0]
	}
	return nil
}

// findsByID reports whether records may be looked up by _id.
func (c *collection) findsByID() bool {
	return c != nil && !c.isView() && !c.timeseries && !c.frozen
}

// idIndex is the index of _id, whose name a clustered collection chooses; nil
// for a view.
func (c *collection) idIndex() *index {
	if len(c.indexes) == 0 {
		return nil
	}
	return c.indexes[0]
}

// clustered reports that the collection was made with clusteredIndex.
func (c *collection) clustered() bool {
	id := c.idIndex()
	return id != nil && id.clustered
}

// catalogued is the number of indexes that stand in the server's catalog. That of
// a clustered collection does not: the documents themselves are in its order.
func (c *collection) catalogued() int {
	if c.clustered() {
		return len(c.indexes) - 1
	}
	return len(c.indexes)
}

// keys are the keys of a document in an index.
func (x *index) keys(doc bson.D) [][]any {
	out := [][]any{{}}
	for _, k := range x.key {
		parts := strings.Split(k.Key, ".")
		var values []any
		if len(parts) == 1 && k.Key == "_id" {
			values = []any{value.Get(doc, "_id")}
		} else {
			query.Leaves(doc, parts, func(v any) { values = append(values, v) })
		}
		var next [][]any
		for _, prefix := range out {
			seen := map[string]bool{}
			for _, v := range values {
				v = x.fold.Fold(v)
				if v == any(value.Missing{}) {
					v = nil
				}
				if key := value.Key(v); !seen[key] {
					seen[key] = true
					next = append(next, append(slices.Clone(prefix), v))
				}
			}
		}
		out = next
	}
	return out
}

// duplicate is the server's error for a key that is there already.
func (c *collection) duplicate(x *index, key []any) error {
	kv := bson.D{}
	for i, k := range x.key {
		kv = append(kv, bson.E{Key: k.Key, Value: key[i]})
	}
	e := command.Errorf(command.CodeDuplicateKey, "E11000 duplicate key error collection: %s index: %s dup key: %s", c.ns(), x.name, value.Text(kv))
	e.Extra = bson.D{{Key: "keyPattern", Value: x.key}, {Key: "keyValue", Value: kv}}
	return e
}

// guarded are the keys of a document in the indexes that refuse duplicates.
func (c *collection) guarded(doc bson.D) iter.Seq2[*index, []any] {
	return func(yield func(*index, []any) bool) {
		for _, x := range c.indexes {
			if x.entries == nil || c.timeseries {
				continue
			}
			for _, k := range x.keys(doc) {
				if !yield(x, k) {
					return
				}
			}
		}
	}
}

// check looks for a key of a document that other records have. A record may keep the keys that it has.
func (c *collection) check(doc bson.D, self int64) error {
	for x, k := range c.guarded(doc) {
		found := x.entries[value.Key(bson.A(k))]
		if len(found) > 0 && !slices.ContainsFunc(found, func(r *record) bool { return r.rid == self }) {
			return c.duplicate(x, k)
		}
	}
	return nil
}

func (c *collection) indexIn(r *record) {
	for x, k := range c.guarded(r.doc) {
		key := value.Key(bson.A(k))
		x.entries[key] = append(x.entries[key], r)
	}
}

func (c *collection) indexOut(r *record) {
	for x, k := range c.guarded(r.doc) {
		key := value.Key(bson.A(k))
		if x.entries[key] = slices.DeleteFunc(x.entries[key], func(held *record) bool { return held == r }); len(x.entries[key]) == 0 {
			delete(x.entries, key)
		}
	}
}

// add stores a record whose keys were checked.
func (c *collection) add(r *record) {
	if n := len(c.docs); n > 0 && c.docs[n-1].rid > r.rid {
		c.own()
		i, _ := c.place(r.rid)
		c.docs = slices.Insert(c.docs, i, r)
	} else {
		c.docs = append(c.docs, r)
	}
	c.size += int64(len(r.raw))
	c.indexIn(r)
}

// swap puts a record in the place of the one with its rid.
func (c *collection) swap(r *record) {
	i, ok := c.place(r.rid)
	if !ok {
		return
	}
	c.own()
	old := c.docs[i]
	c.indexOut(old)
	c.docs[i] = r
	c.size += int64(len(r.raw) - len(old.raw))
	c.indexIn(r)
}

// drop takes a record away.
func (c *collection) drop(r *record) {
	i, ok := c.place(r.rid)
	if !ok {
		return
	}
	c.indexOut(c.docs[i])
	c.size -= int64(len(c.docs[i].raw))
	if i == 0 && c.shared {
		c.docs = c.docs[1:]
		return
	}
	c.own()
	c.docs = slices.Delete(c.docs, i, i+1)
}

// index finds an index by its name or its key.
func (c *collection) index(which any) *index {
	key, isKey := which.(bson.D)
	for _, x := range c.indexes {
		if isKey && value.Equal(x.key, key) || which == any(x.name) {
			return x
		}
	}
	return nil
}

// private is a copy for a transaction: its own indexes and records.
func (c *collection) private() *collection {
	p := *c
	p.docs = c.snapshot()
	p.shared, p.frozen = true, false
	p.indexes = c.freshIndexes()
	for _, r := range p.docs {
		p.indexIn(r)
	}
	return &p
}

// collection is a collection by its names. The caller holds mu.
func (d *Data) collection(db, name string) *collection {
	for _, c := range d.databases[db] {
		if c.name == name {
			return c
		}
	}
	return nil
}

// namespace checks a name of a collection.
func namespace(db, name string) error {
	if name == "" || strings.Contains(name, "\x00") {
		return command.Errorf(command.CodeInvalidNamespace, "Invalid namespace specified '%s.%s'", db, name)
	}
	if strings.Contains(name, "$") && !(db == "local" && strings.HasPrefix(name, "oplog.$")) {
		return command.Errorf(command.CodeInvalidNamespace, "Invalid collection name: %s", name)
	}
	if len(db)+len(name)+1 > 255 {
		return command.Errorf(command.CodeInvalidNamespace, "Fully qualified namespace is too long. Namespace: %s.%s Max: 255", db, name)
	}
	return nil
}

// addCollection puts a collection in the catalog. The caller holds mu.
func (d *Data) addCollection(c *collection) { d.databases[c.db] = append(d.databases[c.db], c) }

func (d *Data) removeCollection(c *collection) {
	d.databases[c.db] = slices.DeleteFunc(d.databases[c.db], func(x *collection) bool { return x == c })
	if len(d.databases[c.db]) == 0 {
		delete(d.databases, c.db)
	}
}

// substitute puts a collection in the place of another. The caller holds mu.
func (d *Data) substitute(old, c *collection) {
	order := d.databases[old.db]
	order[slices.Index(order, old)] = c
}

// seed makes what a fresh deployment has.
func (d *Data) seed() {
	add := func(db, name string) *collection {
		c := newCollection(db, name, bson.D{})
		d.addCollection(c)
		return c
	}
	add("admin", "system.version")
	add("config", "system.sessions")
	if !d.opts.Sharded {
		if d.opts.ReplicaSet {
			add("config", "transactions")
		}
		add("local", "startup_log")
		return
	}
	shards := add("config", "shards")
	if d.opts.NoShard {
		return
	}
	doc := bson.D{{Key: "_id", Value: d.opts.ShardName}, {Key: "host", Value: d.opts.ShardHost}, {Key: "state", Value: int32(1)}}
	d.nextRID++
	shards.add(newRecord(d.nextRID, value.Encode(doc)))
}
