package store

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Index is an index. Only indexes that reject duplicates have entries: collections are small, so queries scan.
type Index struct {
	Name    string
	Key     bson.D
	Spec    bson.D // as in listIndexes
	Unique  bool
	Sparse  bool          // has no keys of documents without its fields
	Partial *query.Filter // has only keys of documents that match; nil: of all

	Prepared  bool // prepareUnique: rejects new duplicates but keeps existing ones
	Clustered bool // the _id index of a clustered collection
	Collation query.Collation
	entries   map[string][]*Record // by key
}

// Ordinary reports whether the index serves every query on its first field, unlike sparse, partial and hidden ones and
// those of special types.
func (x *Index) Ordinary() bool {
	for _, e := range x.Spec {
		if e.Key == "sparse" || e.Key == "partialFilterExpression" || e.Key == "hidden" {
			return false
		}
	}
	return x.Ascends()
}

// Ascends reports whether the index is of the usual type: an ascending or descending one.
func (x *Index) Ascends() bool {
	return !slices.ContainsFunc(x.Key, func(k bson.E) bool { return !value.IsNumber(k.Value) })
}

// Empty returns a copy of the index without entries.
func (x *Index) Empty() *Index {
	y := *x
	y.entries = nil
	if x.Unique || x.Prepared {
		y.entries = map[string][]*Record{}
	}
	return &y
}

// Covers reports whether a document has keys in the index.
func (x *Index) Covers(doc bson.D) bool {
	if x.Partial != nil {
		ok, _ := x.Partial.Matches(doc) // cannot fail without scripts
		return ok
	}
	return !x.Sparse || slices.ContainsFunc(x.Key, func(k bson.E) (found bool) {
		query.Leaves(doc, strings.Split(k.Key, "."), func(v any) { found = found || v != any(value.Missing{}) })
		return found
	})
}

// keys returns the keys of a document.
func (x *Index) keys(doc bson.D) [][]any {
	if !x.Covers(doc) {
		return nil
	}
	out := [][]any{{}}
	for _, k := range x.Key {
		var values []any
		seen := map[string]bool{}
		add := func(v any) {
			v = value.OrNull(x.Collation.Fold(v))
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

// Fill adds the keys of records. It stops at the first duplicate in a unique index and returns it.
func (x *Index) Fill(docs []*Record) (duplicate []any) {
	if x.entries == nil {
		return nil
	}
	for _, r := range docs {
		for _, k := range x.keys(r.doc) {
			key := value.Key(bson.A(k))
			if x.entries[key] = append(x.entries[key], r); x.Unique && len(x.entries[key]) > 1 {
				return k
			}
		}
	}
	return nil
}

// Violations returns the groups of records that share a key.
func (x *Index) Violations(docs []*Record) (groups [][]*Record) {
	holders := map[string][]*Record{}
	var shared []string
	for _, r := range docs {
		for _, k := range x.keys(r.doc) {
			key := value.Key(bson.A(k))
			if holders[key] = append(holders[key], r); len(holders[key]) == 2 {
				shared = append(shared, key)
			}
		}
	}
	for _, key := range shared {
		groups = append(groups, holders[key])
	}
	return groups
}
