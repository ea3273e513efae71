package matchers

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// nothing is how a missing value reads.
const nothing = "(nothing)"

func render(differences []difference) []result.Mismatch {
	var list []result.Mismatch
	for _, d := range differences {
		m := result.Mismatch{Path: d.path, Position: d.at, Message: d.message, Want: d.want, Got: d.got}
		if d.node != nil {
			m.Want, m.Got = both(d.node, d.actual)
			m.Diff = diff(d.node, d.actual, d.shape)
		}
		list = append(list, m)
	}
	return list
}

// both renders the two values, in canonical Extended JSON if they would look
// the same in the relaxed form.
func both(n *node, actual bson.RawValue) (want, got string) {
	want, got = wanted(n, false), Extended(actual, false)
	if want == got && n.value.Type != 0 {
		want, got = wanted(n, true), Extended(actual, true)
	}
	return abridge(want), abridge(got)
}

// wanted renders a node: as the file has it, or as the BSON value that it is.
func wanted(n *node, canonical bool) string {
	if n.value.Type != 0 {
		return Extended(n.value, canonical)
	}
	return n.source.JSON()
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
func diff(n *node, actual bson.RawValue, shape Shape) string {
	switch n.test.(type) {
	case *fields, array:
	default:
		return ""
	}
	if actual.Type != bson.TypeEmbeddedDocument && actual.Type != bson.TypeArray {
		return ""
	}
	// go-cmp mixes no-break spaces in at random, to keep its form unstable.
	d := cmp.Diff(wantTree(n, actual, shape), tree(actual))
	return strings.TrimSuffix(strings.ReplaceAll(d, "\u00a0", " "), "\n")
}

// value is a scalar in a tree, as Extended JSON.
type value string

// tree makes a value comparable for go-cmp.
func tree(v bson.RawValue) any {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return value(Extended(v, v.Type == bson.TypeInt64))
	}
	list, err := elements(v.Value)
	if err != nil {
		return value(err.Error())
	}
	if v.Type == bson.TypeArray {
		a := make([]any, len(list))
		for i, e := range list {
			a[i] = tree(e.value)
		}
		return a
	}
	d := make(map[string]any, len(list))
	for _, e := range list {
		key := e.key
		for _, taken := d[key]; taken; _, taken = d[key] {
			key += " (again)"
		}
		d[key] = tree(e.value)
	}
	return d
}

// wantTree is the tree that would have matched: what was seen, where it does
// match, and what was expected, where it does not.
func wantTree(n *node, actual bson.RawValue, shape Shape) any {
	if actual.Type != 0 && holds(n, actual, shape) {
		return tree(actual)
	}
	var list []element
	if actual.Type == bson.TypeEmbeddedDocument || actual.Type == bson.TypeArray {
		list, _ = elements(actual.Value)
	}
	switch t := n.test.(type) {
	case array:
		a := make([]any, len(t.items))
		for i, item := range t.items {
			var seen bson.RawValue
			if i < len(list) && actual.Type == bson.TypeArray {
				seen = list[i].value
			}
			a[i] = wantTree(item, seen, shape.ofElements())
		}
		return a
	case *fields:
		d := make(map[string]any, len(t.keys))
		x := indexOf(list)
		for i, key := range t.keys {
			seen := x.value(key)
			if seen.Type != 0 || !t.nodes[i].mayBeMissing() {
				d[key] = wantTree(t.nodes[i], seen, Nested)
			}
		}
		if shape == RootDocument {
			for _, e := range list {
				if _, expected := t.byKey[e.key]; !expected {
					d[e.key] = tree(e.value)
				}
			}
		}
		return d
	default:
		return value(wanted(n, n.value.Type == bson.TypeInt64))
	}
}
