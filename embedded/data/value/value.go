// Package value handles BSON values as Go values: the order and equality of the server,
// canonical keys for indexes and groups, arithmetic, and the text of values in messages.
//
// A document is a bson.D, an array a bson.A, null is nil; the other types are
// int32, int64, float64, string, bool and the types of package bson. Values
// are never changed in place once they are shared.
package value

import (
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// MaxDepth is the depth of nesting that the server allows. Package wire refuses what is deeper.
const MaxDepth = 200

// Decode reads a document. It fails if the bytes are malformed, and never panics.
func Decode(raw bson.Raw) (bson.D, error) {
	var d bson.D
	err := bson.Unmarshal(raw, &d)
	return d, err
}

// Must decodes a document that was checked before; malformed bytes give an
// empty document.
func Must(raw bson.Raw) bson.D {
	d, err := Decode(raw)
	if err != nil {
		return bson.D{}
	}
	return d
}

// FromRaw is the value of a raw value, and false if it is malformed.
func FromRaw(rv bson.RawValue) (any, bool) {
	var v any
	err := rv.Unmarshal(&v)
	return v, err == nil
}

// Encode writes a document, whose values have types of BSON. Of others it writes nothing.
func Encode(d bson.D) bson.Raw {
	raw, err := bson.Marshal(d)
	if err != nil {
		return bson.Raw{5, 0, 0, 0, 0}
	}
	return raw
}

// MaxBuilt is how much one expression or one stage may make of a document, in bytes. Parts of a value
// may be shared, so that it takes less memory than its size.
const MaxBuilt = 64 << 20

// Size is about how many bytes a value takes. It stops counting above MaxBuilt;
// a value that is nested too deeply is above it.
func Size(v any) int { return size(v, MaxBuilt, 0) }

func size(v any, most, depth int) int {
	if depth > 2*MaxDepth {
		return most + 1
	}
	n := 16
	switch x := v.(type) {
	case string:
		n += len(x)
	case bson.Binary:
		n += len(x.Data)
	case bson.D:
		for i := range x {
			if n += len(x[i].Key) + size(x[i].Value, most-n, depth+1); n > most {
				break
			}
		}
	case bson.A:
		for i := range x {
			if n += size(x[i], most-n, depth+1); n > most {
				break
			}
		}
	}
	return n
}

// Int is an int32 where it fits, else an int64, as the server counts.
func Int(i int64) any {
	if i >= math.MinInt32 && i <= math.MaxInt32 {
		return int32(i)
	}
	return i
}

// Clone copies documents and arrays, so that the copy may be changed.
func Clone(v any) any {
	switch v := v.(type) {
	case bson.D:
		return CloneDoc(v)
	case bson.A:
		c := make(bson.A, len(v))
		for i := range v {
			c[i] = Clone(v[i])
		}
		return c
	}
	return v
}

// CloneDoc copies a document and all within it.
func CloneDoc(d bson.D) bson.D {
	c := make(bson.D, len(d))
	for i := range d {
		c[i] = bson.E{Key: d[i].Key, Value: Clone(d[i].Value)}
	}
	return c
}

// Field is the value of a field of a document.
func Field(d bson.D, key string) (any, bool) {
	for i := range d {
		if d[i].Key == key {
			return d[i].Value, true
		}
	}
	return nil, false
}

// Get is the value of a field of a document, nil if it is not there.
func Get(d bson.D, key string) any {
	v, _ := Field(d, key)
	return v
}

// As is the value of a field that has a type, the zero value if it is not there or of another one.
func As[T any](d bson.D, key string) T {
	v, _ := Get(d, key).(T)
	return v
}

// Set replaces a field, or appends it.
func Set(d bson.D, key string, v any) bson.D {
	for i := range d {
		if d[i].Key == key {
			d[i].Value = v
			return d
		}
	}
	return append(d, bson.E{Key: key, Value: v})
}

// AddIf appends a field on a condition.
func AddIf(d bson.D, when bool, key string, v any) bson.D {
	if when {
		d = append(d, bson.E{Key: key, Value: v})
	}
	return d
}

// Delete is a document without a field. The document itself stays.
func Delete(d bson.D, key string) bson.D {
	for i := range d {
		if d[i].Key == key {
			c := make(bson.D, 0, len(d)-1)
			c = append(c, d[:i]...)
			return append(c, d[i+1:]...)
		}
	}
	return d
}

// Position is an array index in a path.
func Position(part string) (int, bool) {
	if part == "" || part[0] < '0' || part[0] > '9' || len(part) > 9 || len(part) > 1 && part[0] == '0' {
		return 0, false
	}
	i, err := strconv.Atoi(part)
	return i, err == nil
}

// Put sets a field at a path in place: through arrays in each of their
// elements. Missing removes the field.
func Put(v any, path []string, x any) any {
	if len(path) == 0 {
		return Clone(x)
	}
	switch t := v.(type) {
	case bson.A:
		for i := range t {
			t[i] = Put(t[i], path, x)
		}
		return t
	case bson.D:
		if len(path) == 1 && (x == any(Missing{})) {
			return Delete(t, path[0])
		}
		for i := range t {
			if t[i].Key == path[0] {
				t[i].Value = Put(t[i].Value, path[1:], x)
				return t
			}
		}
		return append(t, bson.E{Key: path[0], Value: Put(bson.D{}, path[1:], x)})
	}
	return Put(bson.D{}, path, x)
}

// writeList writes the items of a document or an array between its brackets.
func writeList(b *strings.Builder, brackets string, n int, item func(i int)) {
	if n == 0 {
		b.WriteString(brackets)
		return
	}
	b.WriteString(brackets[:1] + " ")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		item(i)
	}
	b.WriteString(" " + brackets[1:])
}
