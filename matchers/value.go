package matchers

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
)

// match compares a value. A missing value has type 0.
func (m *Matcher) match(want *source.Value, actual bson.RawValue, shape operations.Shape) {
	operator, argument := m.operator(want)
	if actual.Type == 0 {
		if !mayBeMissing(operator, argument) {
			m.differ(want, actual, "the value is missing")
		}
		return
	}
	scalar, isScalar, err := want.Scalar()
	switch {
	case operator != "":
		m.operate(operator, want, argument, actual, shape)
	case err != nil:
		m.differ(want, actual, "%v", err)
	case isScalar:
		m.matchScalar(want, scalar, actual)
	case want.Kind == source.Array:
		m.matchArray(want, actual, shape)
	default:
		m.matchDocument(want, actual, shape)
	}
}

func (m *Matcher) matchScalar(want *source.Value, scalar, actual bson.RawValue) {
	n, isNumber := numberOf(scalar)
	if isNumber && !m.exact {
		switch got, ok := numberOf(actual); {
		case !ok:
			m.differ(want, actual, "expected a number, got %s", typeName(actual))
		case !sameNumber(n, got):
			m.differ(want, actual, "the numbers differ")
		}
		return
	}
	switch {
	case actual.Type != scalar.Type:
		m.differ(want, actual, "expected %s, got %s", typeName(scalar), typeName(actual))
	case !sameScalar(scalar, actual):
		m.differ(want, actual, "the values differ")
	}
}

func (m *Matcher) matchArray(want *source.Value, actual bson.RawValue, shape operations.Shape) {
	if actual.Type != bson.TypeArray {
		m.differ(want, actual, "expected an array, got %s", typeName(actual))
		return
	}
	seen, err := elements(actual)
	switch {
	case err != nil:
		m.differ(want, actual, "the actual array is %v", err)
		return
	case len(seen) != len(want.Items):
		m.differAs(want, actual, shape, "expected %s, got %d", plural.Of(len(want.Items), "element"), len(seen))
		return
	}
	for i, item := range want.Items {
		m.atIndex(i, func() { m.match(item, seen[i].Value(), ofElements(shape)) })
	}
}

func (m *Matcher) matchDocument(want *source.Value, actual bson.RawValue, shape operations.Shape) {
	if actual.Type != bson.TypeEmbeddedDocument {
		m.differ(want, actual, "expected a document, got %s", typeName(actual))
		return
	}
	seen, err := elements(actual)
	if err != nil {
		m.differ(want, actual, "the actual document is %v", err)
		return
	}
	values := make(map[string]bson.RawValue, len(seen))
	var extra []string
	for _, e := range seen {
		key := e.Key()
		if _, twice := values[key]; twice {
			m.differAs(want, actual, shape, "the actual document has the key %q twice", key)
		} else if shape != operations.RootDocument && want.Field(key) == nil {
			extra = append(extra, strconv.Quote(key))
		}
		values[key] = e.Value()
	}
	for _, f := range want.Fields {
		m.atKey(f.Key, func() { m.match(f.Value, values[f.Key], operations.Value) })
	}
	if len(extra) > 0 {
		m.differAs(want, actual, shape, "unexpected %s %s", plural.Noun(len(extra), "key"), strings.Join(extra, ", "))
	}
}

// numberOf returns an int32, int64 or double exactly; nil is NaN. Decimal128 is
// not a number here ("Flexible Numeric Comparisons").
func numberOf(v bson.RawValue) (n *big.Float, ok bool) {
	if f, ok := v.DoubleOK(); ok {
		if math.IsNaN(f) {
			return nil, true
		}
		return big.NewFloat(f), true
	}
	if i, ok := v.Int32OK(); ok {
		return new(big.Float).SetInt64(int64(i)), true
	}
	i, ok := v.Int64OK()
	return new(big.Float).SetInt64(i), ok
}

// sameNumber compares numbers without rounding. NaN equals NaN.
func sameNumber(a, b *big.Float) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(b) == 0
}

func sameScalar(a, b bson.RawValue) bool {
	switch a.Type {
	case bson.TypeDouble:
		x, okX := a.DoubleOK()
		y, okY := b.DoubleOK()
		return okX && okY && (a.Equal(b) || math.IsNaN(x) && math.IsNaN(y))
	case bson.TypeRegex:
		p, o, okX := a.RegexOK()
		q, r, okY := b.RegexOK()
		sorted := func(s string) []rune { return slices.Sorted(slices.Values([]rune(s))) }
		return okX && okY && p == q && slices.Equal(sorted(o), sorted(r))
	case bson.TypeCodeWithScope:
		c, s, okX := a.CodeWithScopeOK()
		d, t, okY := b.CodeWithScopeOK()
		return okX && okY && c == d && alike(tree(document(s)), tree(document(t)))
	default:
		return a.Equal(b)
	}
}
