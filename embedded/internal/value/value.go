// Package value handles BSON values as Go values: the server's order and equality, canonical keys for
// indexes and groups, arithmetic, and the text of values in messages.
//
// A document is a bson.D, an array a bson.A, null is nil. The other types are int32, int64, float64, string,
// bool and the types of package bson. Shared values are never changed in place.
package value

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// MaxDepth is the nesting depth that the server allows. Package wire rejects deeper documents.
const MaxDepth = 200

// Decode reads a document. Malformed bytes are an error, never a panic.
func Decode(raw bson.Raw) (bson.D, error) {
	var d bson.D
	err := bson.Unmarshal(raw, &d)
	return d, err
}

// Array returns an array of documents.
func Array(docs []bson.D) bson.A {
	a := make(bson.A, len(docs))
	for i := range docs {
		a[i] = docs[i]
	}
	return a
}

// Must decodes a validated document. For malformed bytes it returns an empty document.
func Must(raw bson.Raw) bson.D {
	d, err := Decode(raw)
	if err != nil {
		return bson.D{}
	}
	return d
}

// FromRaw decodes a raw value. For a malformed one it returns nil.
func FromRaw(rv bson.RawValue) (v any) {
	_ = rv.Unmarshal(&v)
	return v
}

// Encode encodes a document. If a value has no BSON type, it returns an empty document.
func Encode(d bson.D) bson.Raw {
	raw, err := bson.Marshal(d)
	if err != nil {
		return bson.Raw{5, 0, 0, 0, 0}
	}
	return raw
}

// MaxBuilt limits the bytes that one expression or one stage may build for a document. A value can use less
// memory than its size, because parts of it may be shared.
const MaxBuilt = 64 << 20

// Size estimates the bytes of a value. It stops counting above MaxBuilt. A value that is nested too deeply
// has a size above MaxBuilt.
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

// Int returns i as an int32 if it fits and as an int64 otherwise, as the server does for counts.
func Int(i int64) any {
	if i >= math.MinInt32 && i <= math.MaxInt32 {
		return int32(i)
	}
	return i
}

// Clone makes a deep copy of documents and arrays.
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

// CloneDoc makes a deep copy of a document.
func CloneDoc(d bson.D) bson.D {
	c := make(bson.D, len(d))
	for i := range d {
		c[i] = bson.E{Key: d[i].Key, Value: Clone(d[i].Value)}
	}
	return c
}

// index returns the position of a field, or -1.
func index(d bson.D, key string) int {
	return slices.IndexFunc(d, func(e bson.E) bool { return e.Key == key })
}

// Field returns the value of a field and reports whether the document has it.
func Field(d bson.D, key string) (any, bool) {
	if i := index(d, key); i >= 0 {
		return d[i].Value, true
	}
	return nil, false
}

// Lookup returns the value of a field, or Missing if the document does not have it.
func Lookup(d bson.D, key string) any {
	if v, ok := Field(d, key); ok {
		return v
	}
	return Missing{}
}

// At returns the value at a path through documents, or Missing.
func At(v any, parts []string) any {
	for _, part := range parts {
		d, _ := v.(bson.D)
		v = Lookup(d, part)
	}
	return v
}

// Element returns an element of an array, or Missing if the array is shorter.
func Element(a bson.A, i int) any {
	if i < len(a) {
		return a[i]
	}
	return Missing{}
}

// Get returns the value of a field, or nil if the document does not have it.
func Get(d bson.D, key string) any {
	v, _ := Field(d, key)
	return v
}

// As returns the value of a field of type T, or the zero value if the field is missing or has another type.
func As[T any](d bson.D, key string) T {
	v, _ := Get(d, key).(T)
	return v
}

// Is reports whether a value has a type.
func Is[T any](v any) bool { _, ok := v.(T); return ok }

// Set replaces a field in place, or appends it.
func Set(d bson.D, key string, v any) bson.D {
	if i := index(d, key); i >= 0 {
		d[i].Value = v
		return d
	}
	return append(d, bson.E{Key: key, Value: v})
}

// Doc returns a document with these fields: names and values in turn.
func Doc(fields ...any) bson.D { return Append(nil, fields...) }

// Append appends fields to a document: names and values in turn.
func Append(d bson.D, fields ...any) bson.D {
	d = slices.Grow(d, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].(string)
		d = append(d, bson.E{Key: name, Value: fields[i+1]})
	}
	return d
}

// AddIf appends a field if when is true.
func AddIf(d bson.D, when bool, key string, v any) bson.D {
	if when {
		d = append(d, bson.E{Key: key, Value: v})
	}
	return d
}

// Delete returns a copy of a document without a field, or the document itself if it does not have the field.
func Delete(d bson.D, key string) bson.D {
	if i := index(d, key); i >= 0 {
		return slices.Delete(slices.Clone(d), i, i+1)
	}
	return d
}

// Position parses an array index in a path.
func Position(part string) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && len(part) <= 9 && strconv.Itoa(i) == part
}

// Put returns a copy of a value with another field at a path, in every element of the arrays along the path. The copy
// shares all other values. Missing removes the field.
func Put(v any, path []string, x any) any {
	if len(path) == 0 {
		return Clone(x)
	}
	switch t := v.(type) {
	case bson.A:
		c := make(bson.A, len(t))
		for i := range t {
			c[i] = Put(t[i], path, x)
		}
		return c
	case bson.D:
		if len(path) == 1 && IsMissing(x) {
			return Delete(t, path[0])
		}
		c := slices.Clone(t)
		if i := index(c, path[0]); i >= 0 {
			c[i].Value = Put(c[i].Value, path[1:], x)
			return c
		}
		return append(c, bson.E{Key: path[0], Value: Put(bson.D{}, path[1:], x)})
	}
	return Put(bson.D{}, path, x)
}

// Text formats a value as the server does in messages.
func Text(v any) string {
	var b strings.Builder
	write(&b, v)
	return b.String()
}

func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bson.D:
		writeList(b, "{}", len(v), func(i int) {
			b.WriteString(v[i].Key + ": ")
			write(b, v[i].Value)
		})
	case bson.A:
		writeList(b, "[]", len(v), func(i int) { write(b, v[i]) })
	case string:
		writeString(b, v)
	case bson.Symbol:
		fmt.Fprintf(b, "%q", v)
	case float64:
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			b.WriteString(strings.ToLower(strings.TrimPrefix(fmt.Sprint(v), "+")) + ".0")
		case v == math.Trunc(v) && math.Abs(v) < 1e15:
			fmt.Fprintf(b, "%.1f", v)
		default:
			b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
		}
	case bson.Decimal128:
		b.WriteString(v.String())
	case bson.ObjectID:
		fmt.Fprintf(b, "ObjectId('%s')", v.Hex())
	case bson.Binary:
		if v.Subtype == 4 && len(v.Data) == 16 {
			fmt.Fprintf(b, "UUID(\"%s\")", UUIDText(v.Data))
		} else {
			fmt.Fprintf(b, "BinData(%d, %X)", v.Subtype, v.Data)
		}
	case bson.DateTime:
		fmt.Fprintf(b, "new Date(%d)", int64(v))
	case bson.Timestamp:
		fmt.Fprintf(b, "Timestamp(%d, %d)", v.T, v.I)
	case bson.Regex:
		fmt.Fprintf(b, "/%s/%s", v.Pattern, v.Options)
	case bson.Undefined, Missing:
		b.WriteString("undefined")
	default:
		fmt.Fprint(b, v)
	}
}

// writeString writes a string, of a long one the first 150 bytes, as a server does even within a character.
func writeString(b *strings.Builder, s string) {
	const longest, kept = 159, 150
	if len(s) <= longest {
		fmt.Fprintf(b, "%q", s)
		return
	}
	n := kept
	for !utf8.RuneStart(s[n]) {
		n--
	}
	b.WriteString(strings.TrimSuffix(strconv.Quote(s[:n]), `"`) + s[n:kept] + `..."`)
}

// writeList writes the items of a document or an array between its brackets.
func writeList(b *strings.Builder, brackets string, n int, item func(i int)) {
	if n == 0 {
		b.WriteString(brackets)
		return
	}
	before := brackets[:1]
	for i := range n {
		b.WriteString(before + " ")
		item(i)
		before = ","
	}
	b.WriteString(" " + brackets[1:])
}

// UUIDText formats a UUID with dashes, and bytes of any other length in base64.
func UUIDText(u []byte) string {
	if len(u) != 16 {
		return base64.StdEncoding.EncodeToString(u)
	}
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// types are the BSON types with their names, positions in the server's comparison order, and numbers in $type.
var types = map[reflect.Type]struct {
	name string
	rank int
	code int64
}{
	reflect.TypeFor[bson.MinKey]():        {"minKey", 0, -1},
	reflect.TypeFor[Missing]():            {"missing", 1, 0},
	reflect.TypeFor[bson.Undefined]():     {"undefined", 1, 6},
	nil:                                   {"null", 2, 10},
	reflect.TypeFor[int32]():              {"int", number, 16},
	reflect.TypeFor[int64]():              {"long", number, 18},
	reflect.TypeFor[float64]():            {"double", number, 1},
	reflect.TypeFor[bson.Decimal128]():    {"decimal", number, 19},
	reflect.TypeFor[string]():             {"string", 4, 2},
	reflect.TypeFor[bson.Symbol]():        {"symbol", 4, 14},
	reflect.TypeFor[bson.D]():             {"object", 5, 3},
	reflect.TypeFor[byName]():             {"object", 5, 3},
	reflect.TypeFor[bson.A]():             {"array", 6, 4},
	reflect.TypeFor[bson.Binary]():        {"binData", 7, 5},
	reflect.TypeFor[bson.ObjectID]():      {"objectId", 8, 7},
	reflect.TypeFor[bool]():               {"bool", 9, 8},
	reflect.TypeFor[bson.DateTime]():      {"date", 10, 9},
	reflect.TypeFor[bson.Timestamp]():     {"timestamp", 11, 17},
	reflect.TypeFor[bson.Regex]():         {"regex", 12, 11},
	reflect.TypeFor[bson.DBPointer]():     {"dbPointer", 13, 12},
	reflect.TypeFor[bson.JavaScript]():    {"javascript", 14, 13},
	reflect.TypeFor[bson.CodeWithScope](): {"javascriptWithScope", 15, 15},
	reflect.TypeFor[bson.MaxKey]():        {"maxKey", 16, 127},
}

// TypeName returns the name of a value's BSON type as $type spells it; "missing" for Missing.
func TypeName(v any) string { return types[reflect.TypeOf(v)].name }

// TypeNamed returns the name of a type that $type accepts as a name or a number. For any other value, it returns "".
func TypeNamed(v any) string {
	code, exact := Int64(v)
	for _, t := range types {
		if t.code != 0 && (v == t.name || exact && code == t.code) {
			return t.name
		}
	}
	return ""
}
