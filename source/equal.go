package source

import (
	"fmt"
	"math"
)

// Difference gives the first place at which two values differ, as a path such
// as tests[0].operations and as the innermost values that are not equal; one
// of them is nil if only the other has the key or item. It is made for YAML files
// and their JSON twins. Therefore 1 and 1.0, which are one number to JSON, are
// equal, and the order of keys makes no difference: tools that write JSON move keys
// such as "1" to the front.
func Difference(a, b *Value) (path string, values [2]*Value, differ bool) {
	if a == nil || b == nil {
		return "", [2]*Value{a, b}, a != b
	}
	if a.Kind != b.Kind {
		return "", [2]*Value{a, b}, !sameNumber(a, b) && !sameNumber(b, a)
	}
	switch a.Kind {
	case Bool:
		differ = a.Bool != b.Bool
	case Int:
		differ = a.Int != b.Int
	case Float:
		differ = a.Float != b.Float
	case String:
		differ = a.String != b.String
	case Array:
		for i := range max(len(a.Items), len(b.Items)) {
			p, v, d := Difference(item(a, i), item(b, i))
			if d {
				return join(fmt.Sprintf("[%d]", i), p), v, true
			}
		}
	case Document:
		for _, f := range a.Fields {
			p, v, d := Difference(f.Value, b.Get(f.Key))
			if d {
				return join(f.Key, p), v, true
			}

		}
		for _, f := range b.Fields {
			if a.Get(f.Key) == nil {
				return f.Key, [2]*Value{nil, f.Value}, true
			}
		}
	}
	if differ {
		return "", [2]*Value{a, b}, true
	}
	return "", [2]*Value{}, false
}

// sameNumber compares an integer with a floating point number, exactly.
func sameNumber(i, f *Value) bool {
	if i.Kind != Int || f.Kind != Float || f.Float < -1<<63 || f.Float >= 1<<63 {
		return false
	}
	return f.Float == math.Trunc(f.Float) && int64(f.Float) == i.Int
}

func item(v *Value, i int) *Value {
	if i < len(v.Items) {
		return v.Items[i]
	}
	return nil
}

func join(head, tail string) string {
	switch {
	case tail == "":
		return head
	case tail[0] == '[':
		return head + tail
	default:
		return head + "." + tail
	}
}
