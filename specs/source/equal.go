package source

import (
	"fmt"
	"math"
	"slices"
)

// Difference returns the path of the first difference between two values, such as tests[0].operations, and the
// innermost values that differ. One of them is nil if only the other has the key or item. Since it compares YAML
// files with their JSON twins, 1 equals 1.0, and the order of keys is ignored: tools that write JSON move keys such
// as "1" to the front.
func Difference(a, b *Value) (path string, values [2]*Value, differ bool) {
	return difference("", a, b)
}

func difference(at string, a, b *Value) (path string, values [2]*Value, differ bool) {
	switch {
	case a == nil || b == nil:
		differ = a != b
	case a.Kind == Array && b.Kind == Array:
		for i := range max(len(a.Items), len(b.Items)) {
			if p, v, d := difference(fmt.Sprintf("%s[%d]", at, i), a.item(i), b.item(i)); d {
				return p, v, true
			}
		}
	case a.Kind == Document && b.Kind == Document:
		if at != "" {
			at += "."
		}
		for _, f := range slices.Concat(a.Fields, b.Fields) {
			if p, v, d := difference(at+f.Key, a.Get(f.Key), b.Get(f.Key)); d {
				return p, v, true
			}
		}
	default:
		same := a.Kind == b.Kind && a.Bool == b.Bool && a.Int == b.Int && a.Float == b.Float && a.String == b.String
		differ = !same && !sameNumber(a, b) && !sameNumber(b, a)
	}
	return at, [2]*Value{a, b}, differ
}

// sameNumber compares an integer with a floating-point number without rounding.
func sameNumber(i, f *Value) bool {
	if i.Kind != Int || f.Kind != Float || f.Float < -1<<63 || f.Float >= 1<<63 {
		return false
	}
	return f.Float == math.Trunc(f.Float) && int64(f.Float) == i.Int
}

func (v *Value) item(i int) *Value {
	if i < len(v.Items) {
		return v.Items[i]
	}
	return nil
}
