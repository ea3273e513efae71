package source

import (
	"fmt"
	"math"
	"strings"
)

// Difference returns the path of the first difference between two values, such as tests[0].operations, and the
// innermost values that differ. One of them is nil if only the other has the key or item. Since it compares YAML
// files with their JSON twins, 1 equals 1.0, and the order of keys is ignored: tools that write JSON move keys such
// as "1" to the front.
func Difference(a, b *Value) (path string, values [2]*Value, differ bool) {
	path, values, differ = difference(a, b)
	return strings.TrimPrefix(path, "."), values, differ
}

func difference(a, b *Value) (path string, values [2]*Value, differ bool) {
	switch {
	case a == nil || b == nil:
		differ = a != b
	case a.Kind == Array && b.Kind == Array:
		for i := range max(len(a.Items), len(b.Items)) {
			if p, v, d := difference(a.item(i), b.item(i)); d {
				return fmt.Sprintf("[%d]%s", i, p), v, true
			}
		}
	case a.Kind == Document && b.Kind == Document:
		for _, f := range a.Fields {
			if p, v, d := difference(f.Value, b.Get(f.Key)); d {
				return "." + f.Key + p, v, true
			}
		}
		for _, f := range b.Fields {
			if a.Get(f.Key) == nil {
				return "." + f.Key, [2]*Value{nil, f.Value}, true
			}
		}
	default:
		same := a.Kind == b.Kind && a.Bool == b.Bool && a.Int == b.Int && a.Float == b.Float && a.String == b.String
		differ = !same && !sameNumber(a, b) && !sameNumber(b, a)
	}
	return "", [2]*Value{a, b}, differ
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
