package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Order is a parsed sort specification.
type Order struct {
	keys      []orderKey
	paths     [][]string // of the keys that are fields
	collation value.Collation
	match     *Filter // with $text, if a key is its score
}

type orderKey struct {
	down    bool
	natural bool
	score   bool
}

// CompileOrder parses a sort specification; nil if it is empty.
func CompileOrder(spec bson.D, collation value.Collation) (*Order, error) {
	if len(spec) == 0 {
		return nil, nil
	}
	o := &Order{collation: collation}
	var p fault.First
	fields := map[string]bool{}
	for _, e := range spec {
		if top, _, _ := strings.Cut(e.Key, "."); fields[top] {
			o.collation = collation.ByName(false) // see InSlots
		} else {
			fields[top] = true
		}
		if isTextScore(e.Value) {
			o.keys = append(o.keys, orderKey{score: true, down: true})
			continue
		}
		n, ok := value.Int64(e.Value)
		p.Refuse(!value.IsNumber(e.Value), 15974, "Illegal key in $sort specification: %s: %s", e.Key, value.Text(e.Value))
		p.Refuse(!ok || n != 1 && n != -1, 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		p.Refuse(e.Key == "", 15998, "FieldPath field names may not be empty strings.")
		o.keys = append(o.keys, orderKey{down: n < 0, natural: e.Key == "$natural"})
		o.paths = append(o.paths, strings.Split(e.Key, "."))
	}
	return o, p.Err
}

// On sets the filter of the command to which the order belongs. It returns an error if a key is the score of $text and
// the filter has none.
func (o *Order) On(f *Filter) error {
	if !o.ByScore() {
		return nil
	}
	o.match = f
	if !f.Text() {
		return fault.Errorf(40218, "query requires text score metadata, but it is not available")
	}
	return nil
}

// ByScore reports whether a key is the score of $text.
func (o *Order) ByScore() bool {
	return o != nil && slices.ContainsFunc(o.keys, func(k orderKey) bool { return k.score })
}

// IndexOrder returns the order of an index.
func IndexOrder(key bson.D, collation value.Collation) *Order {
	o := &Order{collation: collation}
	for _, e := range key {
		o.keys = append(o.keys, orderKey{down: value.Compare(e.Value, int32(0)) < 0, natural: e.Key == "$natural"})
		o.paths = append(o.paths, strings.Split(e.Key, "."))
	}
	return o
}

// Sort sorts in place and stably. doc returns the document of an item.
func Sort[T any](items []T, o *Order, doc func(T) bson.D) error {
	if o == nil {
		return nil
	}
	if o.keys[0].natural {
		if o.keys[0].down {
			slices.Reverse(items)
		}
		return nil
	}
	type keyed struct {
		item T
		key  []any
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		key, err := o.key(doc(item))
		if err != nil {
			return err
		}
		all[i] = keyed{item, key}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return o.compare(a.key, b.key) })
	for i := range all {
		items[i] = all[i].item
	}
	return nil
}

// Compare compares two documents that Sort has sorted.
func (o *Order) Compare(a, b bson.D) int {
	if o == nil || o.keys[0].natural {
		return 0
	}
	x, errX := o.key(a)
	y, errY := o.key(b)
	if errX != nil || errY != nil {
		return 0
	}
	return o.compare(x, y)
}

// compare compares two keys.
func (o *Order) compare(a, b []any) int {
	for i, k := range o.keys {
		if c := value.Compare(a[i], b[i]); c != 0 && k.down {
			return -c
		} else if c != 0 {
			return c
		}
	}
	return 0
}

// key returns the key that a document sorts by: the first of its keys in an index of the same fields.
func (o *Order) key(d bson.D) ([]any, error) {
	keys, err := Keys(d, o.paths, o.collation)
	if e, ok := err.(*fault.Error); ok && e.Code == fault.CannotIndexParallelArrays {
		return nil, fault.Errorf(fault.BadValue, "cannot sort with keys that are parallel arrays")
	} else if err != nil {
		return nil, err
	}
	var first []any
	for _, fields := range keys {
		key := make([]any, len(o.keys))
		for i, k := range o.keys {
			if k.score {
				key[i] = o.match.Score(d)
			} else {
				key[i], fields = value.OrNull(fields[0]), fields[1:]
			}
		}
		if first == nil || o.compare(key, first) < 0 {
			first = key
		}
	}
	return first, nil
}

// Along calls f for each value at a path, as distinct and $lookup find them: those in the documents of an array, and
// the elements of an array at its end. A number in the path is a position in an array.
func Along(v any, parts []string, f func(any)) {
	d, _ := v.(bson.D)
	list, isArray := v.(bson.A)
	switch {
	case len(parts) == 0 && isArray:
		for _, item := range list {
			f(item)
		}
	case len(parts) == 0:
		f(v)
	case isArray:
		if i, ok := value.Position(parts[0]); ok {
			if i < len(list) {
				Along(list[i], parts[1:], f)
			}
			return
		}
		for _, item := range list {
			if _, isDocument := item.(bson.D); isDocument {
				Along(item, parts, f)
			}
		}
	default:
		if inner, ok := value.Field(d, parts[0]); ok {
			Along(inner, parts[1:], f)
		}
	}
}

// InSlots returns the options of a find. That of 5.0.0 runs in the slot-based engine if no path has a number. There,
// the fields of documents are compared by name before type, except for a sort on several fields of a document.
func (o Options) InSlots(filter, order bson.D) Options {
	o.Collation = o.Collation.ByName(version.Of(o.Wire).SlotEngine && !numbered(filter) && !numbered(order))
	return o
}

// numbered reports whether a path in a filter or an order has a number.
func numbered(spec bson.D) bool {
	return slices.ContainsFunc(spec, func(e bson.E) bool {
		inner, _ := e.Value.(bson.D)
		list, _ := e.Value.(bson.A)
		switch {
		case slices.Contains([]string{"$and", "$or", "$nor", "$all"}, e.Key):
			return slices.ContainsFunc(list, func(v any) bool { d, _ := v.(bson.D); return numbered(d) })
		case e.Key == "$elemMatch" || e.Key == "$not":
			return numbered(inner)
		case strings.HasPrefix(e.Key, "$"):
			return false
		}
		return slices.ContainsFunc(strings.Split(e.Key, "."), func(part string) bool {
			_, ok := value.Position(part)
			return ok
		}) || IsOperators(inner) && numbered(inner)
	})
}
