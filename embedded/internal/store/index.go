package store

import (
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
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
	Collation value.Collation
	entries   map[string][]*Record // by key
}

// Ordinary reports whether the index serves every query on its first field, unlike sparse, partial and hidden ones and
// ones of special types.
func (x *Index) Ordinary() bool {
	partly := []string{"sparse", "partialFilterExpression", "hidden"}
	return x.Ascends() && !slices.ContainsFunc(x.Spec, func(e bson.E) bool { return slices.Contains(partly, e.Key) })
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
	keys, err := x.Keys(doc)
	return len(keys) > 0 || err != nil
}

// Keys returns the keys of a document, each once.
func (x *Index) Keys(doc bson.D) ([][]any, error) {
	if x.Partial != nil {
		if ok, _ := x.Partial.Matches(doc); !ok { // cannot fail without scripts
			return nil, nil
		}
	}
	if first := x.Key[0].Key; len(x.Key) == 1 && !strings.Contains(first, ".") { // the usual case, fast
		v, found := value.Field(doc, first)
		if _, isArray := v.(bson.A); !isArray && (found || !x.Sparse) {
			return [][]any{{x.Collation.Fold(v)}}, nil
		}
	}
	paths := make([][]string, len(x.Key))
	for i, k := range x.Key {
		paths[i] = strings.Split(k.Key, ".")
	}
	keys, err := query.Keys(doc, paths, x.Collation)
	if !x.Ascends() { // the others have keys of their own
		err = nil
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(keys, func(key []any) bool {
		found := false
		for i, v := range key {
			found = found || v != any(value.Missing{})
			key[i] = value.OrNull(v)
		}
		k := value.Key(bson.A(key))
		again := seen[k]
		seen[k] = true
		return again || x.Sparse && !found
	}), err
}

// Fill adds the keys of records. It stops at the first duplicate in a unique index and returns it.
func (x *Index) Fill(docs []*Record) (duplicate []any, err error) {
	for _, r := range docs {
		keys, err := x.Keys(r.doc)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if x.entries == nil {
				break
			}
			key := value.Key(bson.A(k))
			if x.entries[key] = append(x.entries[key], r); x.Unique && len(x.entries[key]) > 1 {
				return k, nil
			}
		}
	}
	return nil, nil
}

// Violations returns the groups of records that share a key.
func (x *Index) Violations(docs []*Record) (groups [][]*Record) {
	y := Index{Key: x.Key, Sparse: x.Sparse, Partial: x.Partial, Collation: x.Collation, Prepared: true}
	y = *y.Empty()
	_, _ = y.Fill(docs) // without error: the index exists
	for _, r := range docs {
		keys, _ := x.Keys(r.doc)
		for _, k := range keys {
			if held := y.entries[value.Key(bson.A(k))]; len(held) > 1 && held[1] == r {
				groups = append(groups, held)
			}
		}
	}
	return groups
}

// Place returns an error if a document has a point outside the range of a 2d index, or an array in a hashed one. No
// query uses such an index.
func (x *Index) Place(doc bson.D) error {
	for _, k := range x.Key {
		if k.Value != "2d" && k.Value != "hashed" {
			continue
		}
		at := value.At(doc, strings.Split(k.Key, "."))
		if err := x.place(at); k.Value == "2d" && err != nil {
			return err
		}
		if _, isArray := at.(bson.A); isArray && k.Value == "hashed" {
			return fault.Errorf(16766, "hashed indexes do not currently support array values. Found array at path: %s", k.Key)
		}
	}
	return nil
}

// place checks one point, an array or a document of two numbers, or an array of points.
func (x *Index) place(at any) error {
	var point []any
	switch v := at.(type) {
	case bson.A:
		point = v
	case bson.D:
		for _, e := range v {
			point = append(point, e.Value)
		}
	}
	least := value.Float(cmp.Or(value.Get(x.Spec, "min"), any(-180.0)))
	most := value.Float(cmp.Or(value.Get(x.Spec, "max"), any(180.0)))
	for _, v := range point {
		switch {
		case !value.IsNumber(v):
			if err := x.place(v); err != nil {
				return err
			}
		case value.Float(v) < least || value.Float(v) > most:
			return fault.Errorf(fault.PointOutOfRange, "point not in interval of [ %v, %v ] :: caused by :: %s", least, most,
				value.Text(at))
		}
	}
	return nil
}
