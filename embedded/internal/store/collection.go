package store

import (
	"cmp"
	"iter"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Record is a stored document. It is immutable: an update replaces it with another record of the same ID, so that
// readers keep a snapshot.
type Record struct {
	ID  int64
	Raw bson.Raw
	doc bson.D // Raw, decoded
}

// NewRecord returns a record. It is not stored.
func NewRecord(id int64, raw bson.Raw) *Record { return &Record{id, raw, value.Must(raw)} }

// Document returns the decoded document. It must not be changed.
func (r *Record) Document() bson.D { return r.doc }

// Documents returns the documents of records.
func Documents(records []*Record) []bson.D {
	out := make([]bson.D, len(records))
	for i, r := range records {
		out[i] = r.doc
	}
	return out
}

// Collection is a collection or a view.
type Collection struct {
	DB, Name string
	UUID     bson.Binary
	Options  bson.D
	ViewOn   string // the source collection of a view

	Capped           bool
	MaxSize, MaxDocs int64
	TimeSeries       bool
	Validator        *query.Filter
	Collation        value.Collation // of queries and indexes that have none
	Indexes          []*Index        // replaced, not changed, because readers may hold it

	docs []*Record // ordered by ID
	// shared means that docs may be read without the lock: it may be appended to, but must be copied before any
	// other change.
	shared  bool
	size    int64
	lastID  *int64 // the highest ID of a record so far, which snapshots and copies of the collection share
	created bson.Timestamp
	// frozen means that the collection is a snapshot: docs does not correspond to the entries of the indexes. They must
	// not be used.
	frozen bool
}

// NewCollection returns a collection with an _id index. It is not stored.
func NewCollection(db, name string, options bson.D) *Collection {
	c := &Collection{DB: db, Name: name, UUID: value.NewUUID(), Options: options, lastID: new(int64)}
	id := &Index{Name: "_id_", Key: value.Doc("_id", int32(1)), Unique: true}
	id.Spec = value.Doc("v", int32(2), "key", id.Key, "name", id.Name)
	c.Indexes = []*Index{id.Empty()}
	return c
}

// SetCollation sets the default collation of a new collection.
func (c *Collection) SetCollation(d bson.D) (err error) {
	c.Collation, err = value.ParseCollation(d)
	spec := c.Collation.Spec()
	c.Options = value.Delete(c.Options, "collation")
	c.Options = value.AddIf(c.Options, spec != nil, "collation", spec)
	id := c.Indexes[0]
	id.Collation, id.Spec = c.Collation, value.AddIf(id.Spec, spec != nil, "collation", spec)
	return err
}

// The methods below up to Clustered may be called without the lock.

// NS returns the namespace.
func (c *Collection) NS() string { return c.DB + "." + c.Name }

// IsView reports whether the collection is a view.
func (c *Collection) IsView() bool { return c.ViewOn != "" }

// Kind returns the type of the namespace.
func (c *Collection) Kind() string {
	switch {
	case c.IsView():
		return "view"
	case c.TimeSeries:
		return "timeseries"
	}
	return "collection"
}

// OnView is the error of a command that does not support views.
func OnView(c *Collection) error {
	return fault.Errorf(fault.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.NS())
}

// IDIndex returns the _id index, or nil for a view.
func (c *Collection) IDIndex() *Index {
	if len(c.Indexes) == 0 {
		return nil
	}
	return c.Indexes[0]
}

// Clustered reports whether the collection was created with clusteredIndex.
func (c *Collection) Clustered() bool {
	id := c.IDIndex()
	return id != nil && id.Clustered
}

// Catalogued returns the number of indexes in the server's catalog. It does not contain a clustered index, such as the
// index of the buckets of a time series collection.
func (c *Collection) Catalogued() int {
	if c.Clustered() || c.TimeSeries {
		return len(c.Indexes) - 1
	}
	return len(c.Indexes)
}

// Index returns the index with a name or a key, or nil.
func (c *Collection) Index(which any) *Index {
	key, isKey := which.(bson.D)
	for _, x := range c.Indexes {
		if isKey && value.Equal(x.Key, key) || which == any(x.Name) {
			return x
		}
	}
	return nil
}

// EmptyIndexes returns copies of the indexes without entries.
func (c *Collection) EmptyIndexes() []*Index {
	out := make([]*Index, len(c.Indexes))
	for i, x := range c.Indexes {
		out[i] = x.Empty()
	}
	return out
}

// Len returns the number of records, Size their bytes.
func (c *Collection) Len() int { return len(c.docs) }

// Size returns the bytes of the records.
func (c *Collection) Size() int64 { return c.size }

// Current returns the records. They are valid only as long as the lock is held.
func (c *Collection) Current() []*Record { return c.docs }

// Snapshot returns the records. They may be read without the lock.
func (c *Collection) Snapshot() []*Record {
	if c == nil {
		return nil
	}
	c.shared = true
	return c.docs[:len(c.docs):len(c.docs)]
}

// newRecord returns a record for a new document. It is not stored.
func (c *Collection) newRecord(raw bson.Raw) *Record {
	*c.lastID++
	return NewRecord(*c.lastID, raw)
}

func (c *Collection) position(id int64) (int, bool) {
	return slices.BinarySearchFunc(c.docs, id, func(r *Record, id int64) int { return cmp.Compare(r.ID, id) })
}

// Find returns the record with an ID, or nil.
func (c *Collection) Find(id int64) *Record {
	if i, ok := c.position(id); ok {
		return c.docs[i]
	}
	return nil
}

// FindsByID reports whether records may be looked up by _id.
func (c *Collection) FindsByID() bool {
	return c != nil && !c.IsView() && !c.TimeSeries && !c.frozen
}

// WithID returns the records with an _id: at most one.
func (c *Collection) WithID(id any) []*Record {
	x := c.Indexes[0]
	return slices.Clone(x.entries[value.Key(bson.A{x.Collation.Fold(id)})])
}

// Duplicate returns the server's error for a duplicate key.
func (c *Collection) Duplicate(x *Index, key []any) error {
	kv := bson.D{}
	for i, k := range x.Key {
		kv = value.Append(kv, k.Key, x.Collation.Shown(key[i]))
	}
	e := fault.Errorf(fault.DuplicateKey, "E11000 duplicate key error collection: %s index: %s dup key: %s", c.NS(),
		x.Name, value.Text(kv))
	e.Extra = value.Doc("keyPattern", x.Key, "keyValue", kv)
	return e
}

// uniqueKeys yields the keys of a document in the indexes that reject duplicates.
func (c *Collection) uniqueKeys(doc bson.D) iter.Seq2[*Index, []any] {
	return func(yield func(*Index, []any) bool) {
		for _, x := range c.Indexes {
			if x.entries == nil || c.TimeSeries {
				continue
			}
			keys, _ := x.Keys(doc) // check returns the error
			for _, k := range keys {
				if !yield(x, k) {
					return
				}
			}
		}
	}
}

// check returns an error if other records than self have a unique key of a document. A record may keep its keys.
func (c *Collection) check(doc bson.D, self int64) error {
	for _, x := range c.Indexes {
		if c.TimeSeries {
			break
		}
		keys, err := x.Keys(doc)
		if err := cmp.Or(x.Place(doc), err); err != nil {
			return err
		}
		for _, k := range keys {
			found := x.entries[value.Key(bson.A(k))]
			if len(found) > 0 && !slices.ContainsFunc(found, func(r *Record) bool { return r.ID == self }) {
				return c.Duplicate(x, k)
			}
		}
	}
	return nil
}

func (c *Collection) addKeys(r *Record) {
	for x, k := range c.uniqueKeys(r.doc) {
		key := value.Key(bson.A(k))
		x.entries[key] = append(x.entries[key], r)
	}
}

func (c *Collection) removeKeys(r *Record) {
	for x, k := range c.uniqueKeys(r.doc) {
		key := value.Key(bson.A(k))
		if x.entries[key] = slices.DeleteFunc(x.entries[key],
			func(other *Record) bool { return other == r }); len(x.entries[key]) == 0 {
			delete(x.entries, key)
		}
	}
}

// swap replaces a record with another of the same ID. old is nil to add a record, updated to remove one. The unique
// keys of updated must have been checked.
func (c *Collection) swap(old, updated *Record) {
	i, found := c.position(cmp.Or(old, updated).ID)
	if found != (old != nil) {
		return
	}
	end, added := i, []*Record(nil)
	if old != nil {
		end++
		c.removeKeys(c.docs[i])
		c.size -= int64(len(c.docs[i].Raw))
	}
	if updated != nil {
		added = []*Record{updated}
		c.addKeys(updated)
		c.size += int64(len(updated.Raw))
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

// private returns a copy of the collection that a transaction can change.
func (c *Collection) private() *Collection {
	p := *c
	p.docs = c.Snapshot()
	p.shared, p.frozen = true, false
	p.Indexes = c.EmptyIndexes()
	for _, r := range p.docs {
		p.addKeys(r)
	}
	return &p
}

func (c *Collection) preimages() bool {
	return value.Truthy(value.Get(value.As[bson.D](c.Options, "changeStreamPreAndPostImages"), "enabled"))
}

// valid applies the validator of a collection to a new document or the new content of an old one, unless that is nil.
func (tx *Tx) valid(c *Collection, old *Record, doc bson.D) error {
	if c.Validator == nil || tx.Unvalidated {
		return nil
	}
	level := value.Get(c.Options, "validationLevel")
	if level == "off" || value.Get(c.Options, "validationAction") == "warn" {
		return nil
	}
	if level == "moderate" && old != nil {
		if ok, err := c.Validator.Matches(old.Document()); !ok {
			return err
		}
	}
	if ok, err := c.Validator.Matches(doc); ok || err != nil {
		return err
	}
	e := fault.Errorf(fault.DocumentValidationFailure, "Document failed validation")
	info := value.Doc("failingDocumentId", value.Get(doc, "_id"), "details", c.Validator.Mismatch(doc))
	e.Extra = value.Doc("errInfo", info)
	return e
}
