// Package value handles BSON values as Go values: decoding and encoding them
// without reflection, the order and equality of the server, canonical keys for
// indexes and groups, arithmetic, and the text of values in messages.
//
// A document is a bson.D, an array a bson.A, null is nil; the other types are
// int32, int64, float64, string, bool and the types of package bson. Values
// are never changed in place once they are shared.
package value

import (
	"errors"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// ErrMalformed reports bytes that are no BSON.
var ErrMalformed = errors.New("malformed BSON")

// MaxDepth is the depth of nesting that the server allows.
const MaxDepth = 200

// Decode reads a document. It fails with ErrMalformed, and never panics.
func Decode(raw bson.Raw) (bson.D, error) {
	return elements(raw, 0)
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

func elements(b []byte, depth int) (bson.D, error) {
	if depth > MaxDepth {
		return nil, ErrMalformed
	}
	length, rest, ok := bsoncore.ReadLength(b)
	if !ok || length < 5 || int(length) > len(b) || b[length-1] != 0 {
		return nil, ErrMalformed
	}
	rest = rest[:length-5]
	d := make(bson.D, 0, 4)
	for len(rest) > 0 {
		t := bson.Type(rest[0])
		key, after, ok := bsoncore.ReadKey(rest[1:])
		if !ok {
			return nil, ErrMalformed
		}
		v, r, err := read(t, after, depth)
		if err != nil {
			return nil, err
		}
		d = append(d, bson.E{Key: key, Value: v})
		rest = r
	}
	return d, nil
}

// FromRaw is the value of a raw value, and false if it is malformed.
func FromRaw(rv bson.RawValue) (any, bool) {
	v, _, err := read(rv.Type, rv.Value, 0)
	return v, err == nil
}

func read(t bson.Type, b []byte, depth int) (any, []byte, error) {
	var v any
	var rest []byte
	ok := false
	switch t {
	case bson.TypeDouble:
		v, rest, ok = wrap(bsoncore.ReadDouble(b))
	case bson.TypeString:
		v, rest, ok = wrap(bsoncore.ReadString(b))
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		n, _, good := bsoncore.ReadLength(b)
		if !good || int(n) > len(b) || n < 5 {
			return nil, nil, ErrMalformed
		}
		d, err := elements(b[:n], depth+1)
		if err != nil {
			return nil, nil, err
		}
		if t == bson.TypeEmbeddedDocument {
			return d, b[n:], nil
		}
		a := make(bson.A, len(d))
		for i := range d {
			a[i] = d[i].Value
		}
		return a, b[n:], nil
	case bson.TypeBinary:
		var sub byte
		var data []byte
		sub, data, rest, ok = bsoncore.ReadBinary(b)
		v = bson.Binary{Subtype: sub, Data: data}
	case bson.TypeUndefined:
		return bson.Undefined{}, b, nil
	case bson.TypeObjectID:
		var id [12]byte
		id, rest, ok = bsoncore.ReadObjectID(b)
		v = bson.ObjectID(id)
	case bson.TypeBoolean:
		v, rest, ok = wrap(bsoncore.ReadBoolean(b))
	case bson.TypeDateTime:
		var i int64
		i, rest, ok = bsoncore.ReadDateTime(b)
		v = bson.DateTime(i)
	case bson.TypeNull:
		return nil, b, nil
	case bson.TypeRegex:
		var p, o string
		p, o, rest, ok = bsoncore.ReadRegex(b)
		v = bson.Regex{Pattern: p, Options: o}
	case bson.TypeDBPointer:
		var ns string
		var id [12]byte
		ns, id, rest, ok = bsoncore.ReadDBPointer(b)
		v = bson.DBPointer{DB: ns, Pointer: bson.ObjectID(id)}
	case bson.TypeJavaScript:
		var s string
		s, rest, ok = bsoncore.ReadJavaScript(b)
		v = bson.JavaScript(s)
	case bson.TypeSymbol:
		var s string
		s, rest, ok = bsoncore.ReadSymbol(b)
		v = bson.Symbol(s)
	case bson.TypeCodeWithScope:
		var s string
		var scope []byte
		s, scope, rest, ok = bsoncore.ReadCodeWithScope(b)
		if ok {
			d, err := elements(scope, depth+1)
			if err != nil {
				return nil, nil, err
			}
			v = bson.CodeWithScope{Code: bson.JavaScript(s), Scope: d}
		}
	case bson.TypeInt32:
		v, rest, ok = wrap(bsoncore.ReadInt32(b))
	case bson.TypeTimestamp:
		var tt, i uint32
		tt, i, rest, ok = bsoncore.ReadTimestamp(b)
		v = bson.Timestamp{T: tt, I: i}
	case bson.TypeInt64:
		v, rest, ok = wrap(bsoncore.ReadInt64(b))
	case bson.TypeDecimal128:
		var h, l uint64
		h, l, rest, ok = bsoncore.ReadDecimal128(b)
		v = bson.NewDecimal128(h, l)
	case bson.TypeMinKey:
		return bson.MinKey{}, b, nil
	case bson.TypeMaxKey:
		return bson.MaxKey{}, b, nil
	}
	if !ok {
		return nil, nil, ErrMalformed
	}
	return v, rest, nil
}

func wrap[T any](v T, rest []byte, ok bool) (any, []byte, bool) { return v, rest, ok }

// Encode writes a document. Values of types that BSON does not have are
// written as null.
func Encode(d bson.D) bson.Raw {
	return appendDoc(make([]byte, 0, 32+16*len(d)), d)
}

func appendDoc(dst []byte, d bson.D) []byte {
	start, dst := bsoncore.AppendDocumentStart(dst)
	for i := range d {
		dst = appendElement(dst, d[i].Key, d[i].Value)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start)
	return dst
}

func appendElement(dst []byte, key string, v any) []byte {
	switch v := v.(type) {
	case float64:
		return bsoncore.AppendDoubleElement(dst, key, v)
	case string:
		return bsoncore.AppendStringElement(dst, key, v)
	case bson.D:
		return appendDoc(bsoncore.AppendHeader(dst, bsoncore.TypeEmbeddedDocument, key), v)
	case bson.Raw:
		return bsoncore.AppendDocumentElement(dst, key, v)
	case bson.RawValue:
		if v.Type == 0 {
			return bsoncore.AppendNullElement(dst, key)
		}
		return append(bsoncore.AppendHeader(dst, bsoncore.Type(v.Type), key), v.Value...)
	case bson.A:
		start, dst := bsoncore.AppendArrayElementStart(dst, key)
		for i := range v {
			dst = appendElement(dst, strconv.Itoa(i), v[i])
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, start)
		return dst
	case []bson.Raw:
		start, dst := bsoncore.AppendArrayElementStart(dst, key)
		for i := range v {
			dst = bsoncore.AppendDocumentElement(dst, strconv.Itoa(i), v[i])
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, start)
		return dst
	case bson.Binary:
		return bsoncore.AppendBinaryElement(dst, key, v.Subtype, v.Data)
	case bson.Undefined:
		return bsoncore.AppendUndefinedElement(dst, key)
	case bson.ObjectID:
		return bsoncore.AppendObjectIDElement(dst, key, v)
	case bool:
		return bsoncore.AppendBooleanElement(dst, key, v)
	case bson.DateTime:
		return bsoncore.AppendDateTimeElement(dst, key, int64(v))
	case bson.Regex:
		return bsoncore.AppendRegexElement(dst, key, v.Pattern, v.Options)
	case bson.DBPointer:
		return bsoncore.AppendDBPointerElement(dst, key, v.DB, v.Pointer)
	case bson.JavaScript:
		return bsoncore.AppendJavaScriptElement(dst, key, string(v))
	case bson.Symbol:
		return bsoncore.AppendSymbolElement(dst, key, string(v))
	case bson.CodeWithScope:
		scope, _ := v.Scope.(bson.D)
		return bsoncore.AppendCodeWithScopeElement(dst, key, string(v.Code), Encode(scope))
	case int32:
		return bsoncore.AppendInt32Element(dst, key, v)
	case int:
		return appendElement(dst, key, Int(int64(v)))
	case bson.Timestamp:
		return bsoncore.AppendTimestampElement(dst, key, v.T, v.I)
	case int64:
		return bsoncore.AppendInt64Element(dst, key, v)
	case bson.Decimal128:
		h, l := v.GetBytes()
		return bsoncore.AppendDecimal128Element(dst, key, h, l)
	case bson.MinKey:
		return bsoncore.AppendMinKeyElement(dst, key)
	case bson.MaxKey:
		return bsoncore.AppendMaxKeyElement(dst, key)
	}
	return bsoncore.AppendNullElement(dst, key)
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
	case bson.Raw:
		n += len(x)
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
