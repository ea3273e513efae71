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
		return nil, errorAt(v.Position, "expected a document, this is a BSON value of type %s", value.Type)
	}
	return bson.Raw(value.Value), nil
}

// ExtendedScalar reports whether a value is a document that Extended JSON
// reads as something else, such as {$oid: …}. It may still be malformed.
func (v *Value) ExtendedScalar() bool {
	if v == nil || v.Kind != Document {
		return false
	}
	key, _ := v.wrapper()
	return key != ""
}

// Scalar is BSON for values that stand for a scalar, in plain JSON or in a
// wrapper such as {$oid: …}; ok is false for true documents and arrays.
func (v *Value) Scalar() (rv bson.RawValue, ok bool, err error) {
	if v.Kind == Array || v.Kind == Document && !v.ExtendedScalar() {
		return bson.RawValue{}, false, nil
	}
	rv, err = v.BSON()
	return rv, err == nil, err
}

// Whole gives an integer, written plainly or as Extended JSON; a double without a
// fraction is one.
func (v *Value) Whole() (int64, bool) {
	rv, err := v.BSON()
	if f, ok := rv.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	n, _ := rv.AsInt64OK()
	return n, err == nil && (rv.Type == bson.TypeInt32 || rv.Type == bson.TypeInt64)
}

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
		if key, w := v.wrapper(); key != "" {
			return v.appendExtended(to, key, w)
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
			return nil, errorAt(f.KeyPosition, "key %q has a zero byte, which BSON does not allow", f.Key)
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
