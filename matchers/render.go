package matchers

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/specs/source"
)

// nothing renders a missing value.
const nothing = "(nothing)"

// both renders two values, in canonical Extended JSON if their relaxed forms are equal.
func both(want *source.Value, actual bson.RawValue) (wanted, got string) {
	scalar, isScalar, _ := want.Scalar()
	wanted, got = want.JSON(), ExtendedJSON(actual, false)
	if isScalar {
		wanted = ExtendedJSON(scalar, false)
	}
	if wanted == got && isScalar {
		wanted, got = ExtendedJSON(scalar, true), ExtendedJSON(actual, true)
	}
	return abridge(wanted), abridge(got)
}

// ExtendedJSON renders a value as ExtendedJSON JSON, a missing one as "(nothing)".
func ExtendedJSON(v bson.RawValue, canonical bool) string {
	if v.Type == 0 {
		return nothing
	}
	data, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, canonical, false)
	if err != nil {
		return fmt.Sprintf("(%v: %s)", err, v.Type)
	}
	return string(bytes.TrimSuffix(bytes.TrimPrefix(data, []byte(`{"v":`)), []byte("}")))
}

// abridge truncates a rendered value to 2000 bytes at a character boundary.
func abridge(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}

// diff renders the differences of two documents or arrays: "-" is expected, "+"
// is actual. It is empty for other values, where it would add nothing.
func (m *Matcher) diff(want *source.Value, actual bson.RawValue, shape Shape) string {
	operator, _ := m.operator(want)
	_, isScalar, err := want.Scalar()
	if operator != "" || isScalar || err != nil || actual.Type != bson.TypeEmbeddedDocument && actual.Type != bson.TypeArray {
		return ""
	}
	// go-cmp inserts no-break spaces at random, so that nobody relies on its format.
	d := cmp.Diff(m.wantTree(want, actual, shape), tree(actual))
	return strings.TrimSuffix(strings.ReplaceAll(d, "\u00a0", " "), "\n")
}

// value is a scalar in a tree, as Extended JSON.
type value string

// tree converts a value for go-cmp.
func tree(v bson.RawValue) any {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return value(ExtendedJSON(v, v.Type == bson.TypeInt64))
	}
	list, err := elements(v)
	if err != nil {
		return value(err.Error())
	}
	if v.Type == bson.TypeArray {
		a := make([]any, len(list))
		for i, e := range list {
			a[i] = tree(e.Value())
		}
		return a
	}
	d := make(map[string]any, len(list))
	for _, e := range list {
		key := e.Key()
		for _, taken := d[key]; taken; _, taken = d[key] {
			key += " (again)"
		}
		d[key] = tree(e.Value())
	}
	return d
}

// wantTree returns a tree that would match: the actual value where it matches, the expected one where it does not.
func (m *Matcher) wantTree(want *source.Value, actual bson.RawValue, shape Shape) any {
	if actual.Type != 0 && m.holds(func() { m.match(want, actual, shape) }) {
		return tree(actual)
	}
	operator, _ := m.operator(want)
	scalar, isScalar, err := want.Scalar()
	switch {
	case isScalar:
		return value(ExtendedJSON(scalar, scalar.Type == bson.TypeInt64))
	case operator != "" || err != nil:
		return value(want.JSON())
	}
	if want.Kind == source.Array {
		array, _ := actual.ArrayOK()
		values, _ := array.Values()
		values = append(values, make([]bson.RawValue, len(want.Items))...) // missing ones
		a := make([]any, len(want.Items))
		for i, item := range want.Items {
			a[i] = m.wantTree(item, values[i], ofElements(shape))
		}
		return a
	}
	d, isDocument := tree(actual).(map[string]any)
	if !isDocument || shape != RootDocument { // where extra keys are allowed
		d = make(map[string]any)
	}
	content, _ := actual.DocumentOK()
	for _, f := range want.Fields {
		got := content.Lookup(f.Key)
		if operator, argument := m.operator(f.Value); got.Type != 0 || !mayBeMissing(operator, argument) {
			d[f.Key] = m.wantTree(f.Value, got, Nested)
		}
	}
	return d
}
