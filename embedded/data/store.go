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

// record is a stored document. It is immutable: an update replaces it with another record of the same rid, so that
// readers keep a snapshot.
type record struct {
	rid int64
	raw bson.Raw
	doc bson.D // raw, decoded
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
	view     string // the source collection of a view
	pipeline *pipeline.Pipeline

	capped           bool
	maxSize, maxDocs int64
	timeseries       bool
	validator        *query.Filter

	indexes []*index
	docs    []*record // ordered by rid
	// shared means that docs may be read without the lock: it may be appended to, but must be copied before any
	// other change.
	shared bool
	size   int64
	// frozen means that the collection is a snapshot: docs does not correspond to the entries of the indexes, which
	// must not be used.
	frozen bool
}

// index is an index. Only indexes that reject duplicates have entries: collections are small, so queries scan.
type index struct {
	name   string
	key    bson.D
	spec   bson.D // as in listIndexes
	unique bool

	prepared  bool // prepareUnique: rejects new duplicates but keeps existing ones
	clustered bool // the _id index of a clustered collection
	collation query.Collation
	entries   map[string][]*record // by key
}

func newCollection(db, name string, options bson.D) *collection {
	c := &collection{db: db, name: name, uuid: command.NewUUID(), options: options}
	id := &index{name: "_id_", key: bson.D{{Key: "_id", Value: int32(1)}}, unique: true}
	id.spec = bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: id.key}, {Key: "name", Value: id.name}}
	c.indexes = []*index{id.empty()}
	return c
}

// empty returns a copy of the index without entries.
func (x *index) empty() *index {
	y := *x
	y.entries = nil
	if x.unique || x.prepared {
		y.entries = map[string][]*record{}
	}
	return &y
}

// emptyIndexes returns copies of the indexes without entries.
func (c *collection) emptyIndexes() []*index {
	out := make([]*index, len(c.indexes))
	for i, x := range c.indexes {
		out[i] = x.empty()
	}
	return out
}

func (c *collection) ns() string   { return c.db + "." + c.name }
func (c *collection) isView() bool { return c.view != "" }

// onView is the error of a command that does not support views.
func onView(c *collection) error {
	return command.Errorf(command.CodeCommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.ns())
}

// kind returns the type of the namespace.
func (c *collection) kind() string {
	switch {
	case c.isView():
		return "view"
	case c.timeseries:
		return "timeseries"
	}
	return "collection"
}

// snapshot returns the current records, which may be read without the lock.
func (c *collection) snapshot() []*record {
	if c == nil {
		return nil
	}
	c.shared = true
	return c.docs[:len(c.docs):len(c.docs)]
}

func (c *collection) position(rid int64) (int, bool) {
	return slices.BinarySearchFunc(c.docs, rid, func(r *record, rid int64) int { return cmp.Compare(r.rid, rid) })
}

// find returns the record of a rid, or nil.
func (c *collection) find(rid int64) *record {
	if i, ok := c.position(rid); ok {
		return c.docs[i]
	}
	return nil
}

// withID returns the records with an _id: at most one.
func (c *collection) withID(id any) []*record {
	return slices.Clone(c.indexes[0].entries[value.Key(bson.A{id})])
}

// findsByID reports whether records may be looked up by _id.
func (c *collection) findsByID() bool {
	return c != nil && !c.isView() && !c.timeseries && !c.frozen
}

// idIndex returns the _id index, or nil for a view.
func (c *collection) idIndex() *index {
	if len(c.indexes) == 0 {
		return nil
	}
	return c.indexes[0]
}

// clustered reports whether the collection was created with clusteredIndex.
func (c *collection) clustered() bool {
	id := c.idIndex()
	return id != nil && id.clustered
}

// catalogued returns the number of indexes in the server's catalog, which does not contain the clustered index.
func (c *collection) catalogued() int {
	if c.clustered() {
		return len(c.indexes) - 1
	}
	return len(c.indexes)
}

// keys returns the keys of a document in an index.
func (x *index) keys(doc bson.D) [][]any {
	out := [][]any{{}}
	for _, k := range x.key {
		var values []any
		seen := map[string]bool{}
		add := func(v any) {
			v = value.OrNull(x.collation.Fold(v))
			if key := value.Key(v); !seen[key] {
				seen[key] = true
				values = append(values, v)
			}
		}
		if k.Key == "_id" {
			add(value.Get(doc, "_id"))
		} else {
			query.Leaves(doc, strings.Split(k.Key, "."), add)
		}
		var next [][]any
		for _, prefix := range out {
			for _, v := range values {
				next = append(next, append(slices.Clone(prefix), v))
			}
		}
		out = next
	}
	return out
}

// duplicate returns the server's duplicate key error.
func (c *collection) duplicate(x *index, key []any) error {
	kv := bson.D{}
	for i, k := range x.key {
		kv = append(kv, bson.E{Key: k.Key, Value: key[i]})
	}
	e := command.Errorf(command.CodeDuplicateKey, "E11000 duplicate key error collection: %s index: %s dup key: %s", c.ns(), x.name, value.Text(kv))
	e.Extra = bson.D{{Key: "keyPattern", Value: x.key}, {Key: "keyValue", Value: kv}}
	return e
}

// uniqueKeys yields the keys of a document in the indexes that reject duplicates.
func (c *collection) uniqueKeys(doc bson.D) iter.Seq2[*index, []any] {
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

// check returns an error if other records than self have a unique key of a document. A record may keep its keys.
func (c *collection) check(doc bson.D, self int64) error {
	for x, k := range c.uniqueKeys(doc) {
		found := x.entries[value.Key(bson.A(k))]
		if len(found) > 0 && !slices.ContainsFunc(found, func(r *record) bool { return r.rid == self }) {
			return c.duplicate(x, k)
		}
	}
	return nil
}

func (c *collection) addKeys(r *record) {
	for x, k := range c.uniqueKeys(r.doc) {
		key := value.Key(bson.A(k))
		x.entries[key] = append(x.entries[key], r)
	}
}

func (c *collection) removeKeys(r *record) {
	for x, k := range c.uniqueKeys(r.doc) {
		key := value.Key(bson.A(k))
		if x.entries[key] = slices.DeleteFunc(x.entries[key], func(other *record) bool { return other == r }); len(x.entries[key]) == 0 {
			delete(x.entries, key)
		}
	}
}

// swap replaces a record with another of the same rid. old is nil to add a record, updated to remove one. The unique
// keys of updated must have been checked.
func (c *collection) swap(old, updated *record) {
	i, found := c.position(cmp.Or(old, updated).rid)
	if found != (old != nil) {
		return
	}
	end, added := i, []*record(nil)
	if old != nil {
		end++
		c.removeKeys(c.docs[i])
		c.size -= int64(len(c.docs[i].raw))
	}
	if updated != nil {
		added = []*record{updated}
		c.addKeys(updated)
		c.size += int64(len(updated.raw))
	}
	switch {
	case i == len(c.docs):
		c.docs = append(c.docs, updated)
		return
	case end == 1 && updated == nil && c.shared:
		c.docs = c.docs[1:]
		return
	case c.shared:
		c.docs = slices.Clone(c.docs)
		c.shared = false
	}
	c.docs = slices.Replace(c.docs, i, end, added...)
}

// index returns the index with a name or a key, or nil.
func (c *collection) index(which any) *index {
	key, isKey := which.(bson.D)
	for _, x := range c.indexes {
		if isKey && value.Equal(x.key, key) || which == any(x.name) {
			return x
		}
	}
	return nil
}

// private returns a copy of the collection that a transaction can change.
func (c *collection) private() *collection {
	p := *c
	p.docs = c.snapshot()
	p.shared, p.frozen = true, false
	p.indexes = c.emptyIndexes()
	for _, r := range p.docs {
		p.addKeys(r)
	}
	return &p
}

// collection returns a collection, or nil. The caller holds mu.
func (d *Data) collection(db, name string) *collection {
	for _, c := range d.databases[db] {
		if c.name == name {
			return c
		}
	}
	return nil
}

// namespace checks the syntax of a namespace.
func namespace(db, name string) error {
	var p command.FirstError
	p.Refuse(name == "" || strings.Contains(name, "\x00"), command.CodeInvalidNamespace,
		"Invalid namespace specified '%s.%s'", db, name)
	p.Refuse(strings.Contains(name, "$") && !(db == "local" && strings.HasPrefix(name, "oplog.$")), command.CodeInvalidNamespace,
		"Invalid collection name: %s", name)
	p.Refuse(len(db)+len(name)+1 > 255, command.CodeInvalidNamespace,
		"Fully qualified namespace is too long. Namespace: %s.%s Max: 255", db, name)
	return p.Err
}

// addCollection adds a collection to the catalog. The caller holds mu.
func (d *Data) addCollection(c *collection) { d.databases[c.db] = append(d.databases[c.db], c) }

func (d *Data) removeCollection(c *collection) {
	d.databases[c.db] = slices.DeleteFunc(d.databases[c.db], func(x *collection) bool { return x == c })
	if len(d.databases[c.db]) == 0 {
		delete(d.databases, c.db)
	}
}

// seed creates the collections of a new deployment.
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
	shards.swap(nil, newRecord(d.nextRID, value.Encode(doc)))
}
