package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Order is a parsed sort specification.
type Order struct {
	keys      []orderKey
	collation Collation
	match     *Filter // with $text, if a key is its score
}

type orderKey struct {
	parts   []string
	down    bool
	natural bool
	score   bool
}

// CompileOrder parses a sort specification; nil if it is empty.
func CompileOrder(spec bson.D, collation Collation) (*Order, error) {
	if len(spec) == 0 {
		return nil, nil
	}
	o := &Order{collation: collation}
	var p fault.First
	for _, e := range spec {
		if isTextScore(e.Value) {
			o.keys = append(o.keys, orderKey{score: true, down: true})
			continue
		}
		n, ok := value.Int64(e.Value)
		p.Refuse(!value.IsNumber(e.Value), 15974,
			"Illegal key in $sort specification: %s: %s", e.Key, value.Text(e.Value))
		p.Refuse(!ok || n != 1 && n != -1, 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		p.Refuse(e.Key == "", 15998, "FieldPath field names may not be empty strings.")
		o.keys = append(o.keys, orderKey{parts: strings.Split(e.Key, "."), down: n < 0, natural: e.Key == "$natural"})
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
func IndexOrder(key bson.D) *Order {
	o := &Order{}
	for _, e := range key {
		o.keys = append(o.keys, orderKey{parts: strings.Split(e.Key, "."), down: value.Compare(e.Value, int32(0)) < 0,
			natural: e.Key == "$natural"})
	}
	return o
}

// Compare compares two documents by a sort specification other than $natural.
func (o *Order) Compare(a, b bson.D) int {
	if o == nil {
		return 0
	}
	for _, k := range o.keys {
		if k.natural {
			return 0
		}
		c := o.collation.Compare(o.key(a, k), o.key(b, k))
		if k.down {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
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
			keys[j] = o.key(d, k)
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

// key returns the value that a document sorts by: in an array, the least element or, descending, the greatest.
// A missing field sorts as null, an empty array before null.
func (o *Order) key(d bson.D, k orderKey) any {
	if k.score {
		return o.match.Score(d)
	}
	c := o.collation
	var best any
	found := false
	Leaves(d, k.parts, func(v any) {
		v = value.OrNull(v)
		if !found || k.down == (c.Compare(v, best) > 0) && c.Compare(v, best) != 0 {
			best, found = v, true
		}
	})
	return best
}

// Leaves calls f for each value at a path, also in arrays. A missing field is Missing, an empty array undefined.
func Leaves(v any, parts []string, f func(any)) {
	d, isDocument := v.(bson.D)
	list, isArray := v.(bson.A)
	switch {
	case len(parts) == 0 && isArray && len(list) == 0:
		f(bson.Undefined{})
	case len(parts) == 0 && isArray:
		for _, item := range list {
			f(item)
		}
	case len(parts) == 0:
		f(v)
	case isDocument:
		Leaves(value.Lookup(d, parts[0]), parts[1:], f)
	case len(list) == 0:
		f(value.Missing{})
	default:
		if i, ok := value.Position(parts[0]); ok && i < len(list) {
			Leaves(list[i], parts[1:], f)
			return
		}
		for _, item := range list {
			d, _ := item.(bson.D) // another item has no fields
			Leaves(d, parts, f)
		}
	}
}

// Collation determines how strings are compared. The embedded deployment supports case sensitivity (strength and
// caseLevel) but no locale's alphabet.
type Collation struct{ caseless bool }

// ParseCollation parses a collation document, whose fields have been checked and which may be empty.
func ParseCollation(d bson.D) (Collation, error) {
	locale, ok := value.Get(d, "locale").(string)
	if !ok {
		return Collation{}, nil
	}
	language, _, _ := strings.Cut(locale, "@")
	language, _, _ = strings.Cut(language, "_")
	if !slices.Contains(locales, language) {
		return Collation{}, fault.Errorf(fault.BadValue, "Field 'locale' is invalid in: %s", value.Text(d))
	}
	strength := int64(3)
	if v, ok := value.Int64(value.Get(d, "strength")); ok {
		strength = v
	}
	level := value.Get(d, "caseLevel")
	return Collation{caseless: locale != "simple" && strength < 3 && !value.Truthy(level)}, nil
}

// locales are the languages that a server knows.
var locales = strings.Fields("simple af sq am ar hy as az be bn bs bg my ca chr zh hr cs da nl dz en eo et ee fo fil " +
	"fi fr fur gl ka de el gu ha haw he hi hu " +
	"is ig smn id ga it ja kl kn kk km kok ko ky lkt lo lv ln lt dsb lb mk ms ml mt mr mn ne se nb nn or om ps fa pl pt pa ro ru sr si sk sl es sw sv ta te th " +
	"bo to tr uk hsb ur ug uz vi wae cy yi yo zu yue wo")

// Compare orders two values under the collation.
func (c Collation) Compare(a, b any) int { return value.Compare(c.Fold(a), c.Fold(b)) }

// Fold returns a value in a form in which values that the collation considers equal are equal: if case does
// not matter, strings are in lower case.
func (c Collation) Fold(v any) any {
	if !c.caseless {
		return v
	}
	switch x := v.(type) {
	case string:
		return strings.ToLower(x)
	case bson.Symbol:
		return strings.ToLower(string(x))
	case bson.D:
		out := make(bson.D, len(x))
		for i, e := range x {
			out[i] = bson.E{Key: e.Key, Value: c.Fold(e.Value)}
		}
		return out
	case bson.A:
		out := make(bson.A, len(x))
		for i := range x {
			out[i] = c.Fold(x[i])
		}
		return out
	}
	return v
}
