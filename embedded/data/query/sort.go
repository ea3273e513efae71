package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Order is a parsed sort specification.
type Order struct {
	keys      []orderKey
	collation Collation
}

type orderKey struct {
	parts   []string
	down    bool
	natural bool
}

// CompileOrder parses a sort specification; nil if it is empty.
func CompileOrder(spec bson.D, collation Collation) (*Order, error) {
	if len(spec) == 0 {
		return nil, nil
	}
	o := &Order{collation: collation}
	for _, e := range spec {
		n, ok := value.Whole(e.Value)
		if !ok || n != 1 && n != -1 {
			if !value.IsNumber(e.Value) {
				return nil, command.Errorf(15974, "Illegal key in $sort specification: %s: %s", e.Key, value.Text(e.Value))
			}
			return nil, command.Errorf(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		}
		if e.Key == "" {
			return nil, command.Errorf(15998, "FieldPath field names may not be empty strings.")
		}
		o.keys = append(o.keys, orderKey{strings.Split(e.Key, "."), n < 0, e.Key == "$natural"})
	}
	return o, nil
}

// Sort sorts in place and stably. doc returns the document of an item.
func Sort[T any](items []T, o *Order, doc func(T) bson.D) {
	if o == nil {
		return
	}
	if o.keys[0].natural {
		if o.keys[0].down {
			slices.Reverse(items)
		}
		return
	}
	type keyed struct {
		item T
		keys []any
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		d := doc(item)
		keys := make([]any, len(o.keys))
		for j, k := range o.keys {
			keys[j] = sortKey(d, k, o.collation)
		}
		all[i] = keyed{item, keys}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		for i, k := range o.keys {
			c := o.collation.Compare(a.keys[i], b.keys[i])
			if k.down {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	for i := range all {
		items[i] = all[i].item
	}
}

// sortKey returns the value that a document sorts by: in an array, the least element or, descending, the greatest.
// A missing field sorts as null, an empty array before null.
func sortKey(d bson.D, k orderKey, c Collation) any {
	var best any
	found := false
	Leaves(d, k.parts, func(v any) {
		if missing(v) {
			v = nil
		}
		if !found || k.down == (c.Compare(v, best) > 0) && c.Compare(v, best) != 0 {
			best, found = v, true
		}
	})
	return best
}

// Leaves calls f for each value at a path. It descends into arrays along the path and at its end. A missing
// field is Missing, an empty array is undefined.
func Leaves(v any, parts []string, f func(any)) {
	if len(parts) == 0 {
		a, ok := v.(bson.A)
		if !ok {
			f(v)
			return
		}
		if len(a) == 0 {
			f(bson.Undefined{})
		}
		for _, item := range a {
			f(item)
		}
		return
	}
	switch x := v.(type) {
	case bson.D:
		if field, ok := value.Field(x, parts[0]); ok {
			Leaves(field, parts[1:], f)
			return
		}
	case bson.A:
		if i, ok := value.Position(parts[0]); ok && i < len(x) {
			Leaves(x[i], parts[1:], f)
			return
		}
		if len(x) == 0 {
			break
		}
		for _, item := range x {
			if _, ok := item.(bson.D); ok {
				Leaves(item, parts, f)
			} else {
				f(value.Missing{})
			}
		}
		return
	}
	f(value.Missing{})
}
