package matchers

import (
	"bytes"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// element is one key of an actual document, or one item of an array.
type element struct {
	key   string
	value bson.RawValue
}

var errMalformed = errors.New("malformed BSON")

// elements reads a document or an array, not deeper. It trusts no length.
func elements(data []byte) ([]element, error) {
	length, rest, ok := bsoncore.ReadLength(data)
	if !ok || int(length) != len(data) || length < 5 || data[length-1] != 0 {
		return nil, errMalformed
	}
	rest = rest[:len(rest)-1]
	list := make([]element, 0, 8)
	for len(rest) > 0 {
		t := bsoncore.Type(rest[0])
		end := bytes.IndexByte(rest[1:], 0)
		if end < 0 {
			return nil, errMalformed
		}
		key := string(rest[1 : 1+end])
		var v bsoncore.Value
		if v, rest, ok = bsoncore.ReadValue(rest[end+2:], t); !ok {
			return nil, errMalformed
		}
		list = append(list, element{key, bson.RawValue{Type: bson.Type(t), Value: v.Data}})
	}
	return list, nil
}

// index finds keys. Most documents are small: a scan beats a map there.
type index struct {
	list  []element
	byKey map[string]int // nil for small documents
}

const scanUpTo = 16

func indexOf(list []element) index {
	if len(list) <= scanUpTo {
		return index{list: list}
	}
	x := index{list: list, byKey: make(map[string]int, len(list))}
	for i, e := range list {
		if _, dup := x.byKey[e.key]; !dup {
			x.byKey[e.key] = i
		}
	}
	return x
}

// find gives the place of a key's first occurrence, or -1.
func (x index) find(key string) int {
	if x.byKey != nil {
		if i, ok := x.byKey[key]; ok {
			return i
		}
		return -1
	}
	for i := range x.list {
		if x.list[i].key == key {
			return i
		}
	}
	return -1
}

// value gives the value of a key, of type 0 if there is none.
func (x index) value(key string) bson.RawValue {
	if i := x.find(key); i >= 0 {
		return x.list[i].value
	}
	return bson.RawValue{}
}

func (x index) duplicate() (string, bool) {
	for i, e := range x.list {
		if x.find(e.key) != i {
			return e.key, true
		}
	}
	return "", false
}

// exactly reports whether two values are the same, types included; only the
// order of keys is free. Values that cannot be read are equal to nothing.
func exactly(a, b bson.RawValue) bool {
	if a.Type != b.Type {
		return false
	}
	switch a.Type {
	case bson.TypeArray, bson.TypeEmbeddedDocument:
		as, errA := elements(a.Value)
		bs, errB := elements(b.Value)
		if errA != nil || errB != nil || len(as) != len(bs) {
			return false
		}
		if a.Type == bson.TypeArray {
			return slices.EqualFunc(as, bs, func(x, y element) bool { return exactly(x.value, y.value) })
		}
		x, y := indexOf(as), indexOf(bs)
		_, dupA := x.duplicate()
		_, dupB := y.duplicate()
		return !dupA && !dupB && !slices.ContainsFunc(as, func(e element) bool { return !exactly(e.value, y.value(e.key)) })
	default:
		return sameScalar(a, b)
	}
}

func sameScalar(a, b bson.RawValue) bool {
	switch a.Type {
	case bson.TypeDouble:
		x, okX := a.DoubleOK()
		y, okY := b.DoubleOK()
		return okX && okY && (bytes.Equal(a.Value, b.Value) || x != x && y != y)
	case bson.TypeDecimal128:
		x, okX := a.Decimal128OK()
		y, okY := b.Decimal128OK()
		return okX && okY && x.String() == y.String()
	case bson.TypeRegex:
		p, o, okX := a.RegexOK()
		q, r, okY := b.RegexOK()
		return okX && okY && p == q && slices.Equal(sorted(o), sorted(r))
	case bson.TypeBinary:
		s, x, okX := a.BinaryOK()
		t, y, okY := b.BinaryOK()
		return okX && okY && s == t && bytes.Equal(x, y)
	case bson.TypeCodeWithScope:
		c, s, okX := a.CodeWithScopeOK()
		d, t, okY := b.CodeWithScopeOK()
		return okX && okY && c == d && exactly(document(s), document(t))
	default:
		return bytes.Equal(a.Value, b.Value)
	}
}

func sorted(s string) []rune {
	r := []rune(s)
	slices.Sort(r)
	return r
}

func document(raw bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
}

// types gives the alias of each type, as the $type query operator has them.
var types = map[bson.Type]string{
	bson.TypeDouble:           "double",
	bson.TypeString:           "string",
	bson.TypeEmbeddedDocument: "object",
	bson.TypeArray:            "array",
	bson.TypeBinary:           "binData",
	bson.TypeUndefined:        "undefined",
	bson.TypeObjectID:         "objectId",
	bson.TypeBoolean:          "bool",
	bson.TypeDateTime:         "date",
	bson.TypeNull:             "null",
	bson.TypeRegex:            "regex",
	bson.TypeDBPointer:        "dbPointer",
	bson.TypeJavaScript:       "javascript",
	bson.TypeSymbol:           "symbol",
	bson.TypeCodeWithScope:    "javascriptWithScope",
	bson.TypeInt32:            "int",
	bson.TypeTimestamp:        "timestamp",
	bson.TypeInt64:            "long",
	bson.TypeDecimal128:       "decimal",
	bson.TypeMinKey:           "minKey",
	bson.TypeMaxKey:           "maxKey",
}

// aliases is types the other way round, with the alias of all numbers.
var aliases = func() map[string][]bson.Type {
	m := map[string][]bson.Type{
		"number": {bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128},
	}
	for t, name := range types {
		m[name] = []bson.Type{t}
	}
	return m
}()

func typeName(v bson.RawValue) string {
	if name, ok := types[v.Type]; ok {
		return name
	}
	return v.Type.String()
}

// lookup gives the value of a key, of type 0 if there is none or the document
// cannot be read.
func lookup(raw bson.Raw, key string) bson.RawValue {
	list, _ := elements(raw) // none of a broken one
	return index{list: list}.value(key)
}
