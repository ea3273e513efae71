package source

import (
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// BSON interprets a value as Extended JSON v2, relaxed and canonical, and
// gives it as BSON. Integers become int32 if they fit and int64 otherwise.
// Documents with keys such as $gt or $$type, which Extended JSON does not
// know, stay documents, in the order of the file. A nil Value gives the zero
// RawValue. Errors are *Error, at the malformed part. The result is the
// caller's own.
func (v *Value) BSON() (bson.RawValue, error) {
	if v == nil {
		return bson.RawValue{}, nil
	}
	t, data, err := v.appendBSON(nil)
	if err != nil {
		return bson.RawValue{}, err
	}
	return bson.RawValue{Type: t, Value: data}, nil
}

// Raw is BSON for values that must be documents. A nil Value gives nil.
func (v *Value) Raw() (bson.Raw, error) {
	value, err := v.BSON()
	switch {
	case err != nil || v == nil:
		return nil, err
	case value.Type != bson.TypeEmbeddedDocument:
		return nil, errorAt(v.Position, ExtendedJSON, "a document is wanted here, this is a BSON value of type %s", value.Type)
	}
	return bson.Raw(value.Value), nil
}

// ExtendedScalar reports whether a value is a document that Extended JSON
// reads as something else, such as {$oid: …}. It may still be malformed.
func (v *Value) ExtendedScalar() bool {
	return v != nil && v.Kind == Document && v.wrapper() != nil
}

// Scalar is BSON for values that stand for a scalar, in plain JSON or in a
// wrapper such as {$oid: …}; ok is false for true documents and arrays.
func (v *Value) Scalar() (rv bson.RawValue, ok bool, err error) {
	if v.Kind == Array || v.Kind == Document && v.wrapper() == nil {
		return bson.RawValue{}, false, nil
	}
	rv, err = v.BSON()
	return rv, err == nil, err
}

// appendBSON appends the bytes of a value and tells its type.
func (v *Value) appendBSON(to []byte) (bson.Type, []byte, error) {
	switch v.Kind {
	case Null:
		return bson.TypeNull, to, nil
	case Bool:
		return bson.TypeBoolean, bsoncore.AppendBoolean(to, v.Bool), nil
	case Int:
		if v.Int == int64(int32(v.Int)) {
			return bson.TypeInt32, bsoncore.AppendInt32(to, int32(v.Int)), nil
		}
		return bson.TypeInt64, bsoncore.AppendInt64(to, v.Int), nil
	case Float:
		return bson.TypeDouble, bsoncore.AppendDouble(to, v.Float), nil
	case String:
		return bson.TypeString, bsoncore.AppendString(to, v.String), nil
	case Array:
		to, err := v.appendArray(to)
		return bson.TypeArray, to, err
	default:
		if w := v.wrapper(); w != nil {
			return v.appendExtended(to, w)
		}
		to, err := v.appendDocument(to)
		return bson.TypeEmbeddedDocument, to, err
	}
}

func (v *Value) appendArray(to []byte) ([]byte, error) {
	start, to := bsoncore.ReserveLength(to)
	var err error
	for i, item := range v.Items {
		if to, err = item.appendElement(to, strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return finish(to, start), nil
}

func (v *Value) appendDocument(to []byte) ([]byte, error) {
	start, to := bsoncore.ReserveLength(to)
	var err error
	for _, f := range v.Fields {
		if strings.IndexByte(f.Key, 0) >= 0 {
			return nil, errorAt(f.KeyPosition, ExtendedJSON, "key %q has a zero byte, which BSON does not allow", f.Key)
		}
		if to, err = f.Value.appendElement(to, f.Key); err != nil {
			return nil, err
		}
	}
	return finish(to, start), nil
}

// appendElement puts the header, of which the type is known last.
func (v *Value) appendElement(to []byte, key string) ([]byte, error) {
	header := len(to)
	to = bsoncore.AppendHeader(to, bsoncore.TypeNull, key)
	t, to, err := v.appendBSON(to)
	if err != nil {
		return nil, err
	}
	to[header] = byte(t)
	return to, nil
}

func finish(to []byte, start int32) []byte {
	to = append(to, 0)
	return bsoncore.UpdateLength(to, start, int32(len(to))-start)
}

// wrapper is a type wrapper of Extended JSON v2 ("Conversion table").
type wrapper struct {
	key  string
	also string // a second key that may (or, for code, need not) stand beside it
	read func(v *Value, to []byte) (bson.Type, []byte, error)
}

// wrapper gives the type wrapper whose key a document has, or nil.
func (v *Value) wrapper() *wrapper {
	for _, f := range v.Fields {
		if len(f.Key) < 2 || f.Key[0] != '$' || f.Key[1] == '$' {
			continue
		}
		if read := wrapperFor(f.Key); read != nil {
			w := &wrapper{key: f.Key, read: read}
			if f.Key == "$code" {
				w.also = "$scope"
			}
			return w
		}
	}
	return nil
}

func (v *Value) appendExtended(to []byte, w *wrapper) (bson.Type, []byte, error) {
	for _, f := range v.Fields {
		if f.Key != w.key && f.Key != w.also {
			return 0, nil, errorAt(f.KeyPosition, ExtendedJSON, "key %q cannot stand beside %s in Extended JSON", f.Key, w.key)
		}
	}
	if w.key == "$code" {
		return v.appendCode(to)
	}
	return w.read(v.Get(w.key), to)
}

// wrapperFor gives the reader of what stands under the key of a type wrapper.
// Regular expressions written as {$regex, $options} are not among them: that
// is the query operator, and equal in effect.
func wrapperFor(key string) func(*Value, []byte) (bson.Type, []byte, error) {
	switch key {
	case "$oid":
		return appendObjectID
	case "$symbol":
		return appendSymbol
	case "$numberInt":
		return appendNumberInt
	case "$numberLong":
		return appendNumberLong
	case "$numberDouble":
		return appendNumberDouble
	case "$numberDecimal":
		return appendNumberDecimal
	case "$binary":
		return appendBinary
	case "$uuid":
		return appendUUID
	case "$code":
		return (*Value).appendCode
	case "$timestamp":
		return appendTimestamp
	case "$regularExpression":
		return appendRegex
	case "$dbPointer":
		return appendDBPointer
	case "$date":
		return appendDate
	case "$minKey":
		return appendMinKey
	case "$maxKey":
		return appendMaxKey
	case "$undefined":
		return appendUndefined
	}
	return nil
}

// malformed is an error about what stands under a type wrapper's key.
func (v *Value) malformed(key, want string) error {
	return errorAt(v.Position, ExtendedJSON, "malformed Extended JSON: %s needs %s, this is %s", key, want, v.describe())
}

// describe names a value shortly.
func (v *Value) describe() string {
	switch v.Kind {
	case String:
		return strconv.Quote(v.String)
	case Int:
		return strconv.FormatInt(v.Int, 10)
	case Float:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	case Bool:
		return strconv.FormatBool(v.Bool)
	case Null:
		return "null"
	}
	return "of type " + v.Kind.String()
}

// exactly gives the values of the keys of a document that has just these.
func (v *Value) exactly(keys ...string) ([]*Value, bool) {
	if v.Kind != Document || len(v.Fields) != len(keys) {
		return nil, false
	}
	out := make([]*Value, len(keys))
	for i, k := range keys {
		if out[i] = v.Get(k); out[i] == nil {
			return nil, false
		}
	}
	return out, true
}

// uint32Of gives a whole number from 0 to 2³²-1.
func (v *Value) uint32Of() (uint32, bool) {
	return uint32(v.Int), v.Kind == Int && v.Int >= 0 && v.Int <= math.MaxUint32
}

// intOf reads the string of a $number wrapper strictly: a decimal integer.
func (v *Value) intOf(bits int) (int64, bool) {
	if v.Kind != String || strings.HasPrefix(v.String, "+") {
		return 0, false
	}
	n, err := strconv.ParseInt(v.String, 10, bits)
	return n, err == nil
}
