package matchers

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// nothing is how a missing value reads.
const nothing = "(nothing)"

// both renders the two values, in canonical Extended JSON if they would look
// the same in the relaxed form.
func both(want *source.Value, actual bson.RawValue) (wanted, got string) {
	scalar, isScalar, _ := want.Scalar()
	wanted, got = want.JSON(), Extended(actual, false)
	if isScalar {
		wanted = Extended(scalar, false)
	}
	if wanted == got && isScalar {
		wanted, got = Extended(scalar, true), Extended(actual, true)
	}
	return abridge(wanted), abridge(got)
}

// Extended gives a BSON value as Extended JSON, "(nothing)" for a missing one.
func Extended(v bson.RawValue, canonical bool) string {
	if v.Type == 0 {
		return nothing
	}
	data, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, canonical, false)
	if err != nil {
		return fmt.Sprintf("(%v: %s)", err, v.Type)
	}
	return string(bytes.TrimSuffix(bytes.TrimPrefix(data, []byte(`{"v":`)), []byte("}")))
}

// longest is how many bytes of a rendered value are shown.
const longest = 2000

func abridge(s string) string {
	if len(s) <= longest {
		return s
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:cut], len(s))
}

// diff shows where two documents or two arrays are apart: "-" was expected,
// "+" was seen. For anything else it would say no more than the values, and is
// empty.
func (m *Matcher) diff(want *source.Value, actual bson.RawValue, shape Shape) string {
	operator, _ := m.operator(want)
	_, isScalar, err := want.Scalar()
	if operator != "" || isScalar || err != nil || actual.Type != bson.TypeEmbeddedDocument && actual.Type != bson.TypeArray {
		return ""
	}
	// go-cmp mixes no-break spaces in at random, to keep its form unstable.
	d := cmp.Diff(m.wantTree(want, actual, shape), tree(actual))
	return strings.TrimSuffix(strings.ReplaceAll(d, "\u00a0", " "), "\n")
}

// value is a scalar in a tree, as Extended JSON.
type value string

// tree makes a value comparable for go-cmp.
func tree(v bson.RawValue) any {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return value(Extended(v, v.Type == bson.TypeInt64))
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

// wantTree is the tree that would have matched: what was seen, where it does
// match, and what was expected, where it does not.
func (m *Matcher) wantTree(want *source.Value, actual bson.RawValue, shape Shape) any {
	if actual.Type != 0 && m.holds(func() { m.match(want, actual, shape) }) {
		return tree(actual)
	}
	operator, _ := m.operator(want)
	scalar, isScalar, err := want.Scalar()
	switch {
	case isScalar:
		return value(Extended(scalar, scalar.Type == bson.TypeInt64))
	case operator != "" || err != nil:
		return value(want.JSON())
	}
	var seen []bson.RawElement
	if actual.Type == bson.TypeEmbeddedDocument || actual.Type == bson.TypeArray {
		seen, _ = elements(actual)
	}
	if want.Kind == source.Array {
		a := make([]any, len(want.Items))
		for i, item := range want.Items {
			var got bson.RawValue
			if i < len(seen) && actual.Type == bson.TypeArray {
				got = seen[i].Value()
			}
			a[i] = m.wantTree(item, got, ofElements(shape))
		}
		return a
	}
	d := make(map[string]any, len(want.Fields))
	values := make(map[string]bson.RawValue, len(seen))
	for _, e := range seen {
		values[e.Key()] = e.Value()
		if shape == RootDocument {
			d[e.Key()] = tree(e.Value())
		}
	}
	for _, f := range want.Fields {
		got, there := values[f.Key]
		if operator, argument := m.operator(f.Value); there || !mayBeMissing(operator, argument) {
			d[f.Key] = m.wantTree(f.Value, got, Nested)
		}
	}
	return d
}
