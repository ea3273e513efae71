package source

import (
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// BSON converts a value from relaxed or canonical Extended JSON v2 to BSON. Integers become int32 if they fit, int64
// otherwise. Documents with keys that Extended JSON does not define, such as $gt or $$type, stay documents and keep
// the order of the file. A nil Value is the zero RawValue. Errors are *Error, at the malformed part.
func (v *Value) BSON() (bson.RawValue, error) {
	if v == nil {
		return bson.RawValue{}, nil
	}
	switch v.Kind {
	case Null:
		return bson.RawValue{Type: bson.TypeNull}, nil
	case Bool:
		return bson.RawValue{Type: bson.TypeBoolean, Value: bsoncore.AppendBoolean(nil, v.Bool)}, nil
	case Int:
		if v.Int == int64(int32(v.Int)) {
			return bson.RawValue{Type: bson.TypeInt32, Value: bsoncore.AppendInt32(nil, int32(v.Int))}, nil
		}
		return bson.RawValue{Type: bson.TypeInt64, Value: bsoncore.AppendInt64(nil, v.Int)}, nil
	case Float:
		return bson.RawValue{Type: bson.TypeDouble, Value: bsoncore.AppendDouble(nil, v.Float)}, nil
	case String:
		return bson.RawValue{Type: bson.TypeString, Value: bsoncore.AppendString(nil, v.String)}, nil
	case Array:
		return v.elements(bson.TypeArray)
	default:
		if key, w := v.wrapper(); key != "" {
			return v.extended(key, w)
		}
		return v.elements(bson.TypeEmbeddedDocument)
	}
}

func (v *Value) elements(of bson.Type) (bson.RawValue, error) {
	var elements []byte
	add := func(key string, value *Value) error {
		rv, err := value.BSON()
		elements = bsoncore.AppendValueElement(elements, key, bsoncore.Value{Type: bsoncore.Type(rv.Type), Data: rv.Value})
		return err
	}
	for i, item := range v.Items {
		if err := add(strconv.Itoa(i), item); err != nil {
			return bson.RawValue{}, err
		}
	}
	for _, f := range v.Fields {
		if err := add(f.Key, f.Value); err != nil {
			return bson.RawValue{}, err
		}
	}
	return bson.RawValue{Type: of, Value: bsoncore.BuildDocument(nil, elements)}, nil
}

// Raw is BSON for values that must be documents. For a nil Value it returns nil.
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

// ExtendedScalar reports whether a value is a type wrapper of Extended JSON,
// such as {$oid: …}. It may be malformed.
func (v *Value) ExtendedScalar() bool {
	if v == nil || v.Kind != Document {
		return false
	}
	key, _ := v.wrapper()
	return key != ""
}

// Scalar is BSON for scalars, plain or as a type wrapper such as {$oid: …}; ok is
// false for other documents and for arrays.
func (v *Value) Scalar() (rv bson.RawValue, ok bool, err error) {
	if v.Kind == Array || v.Kind == Document && !v.ExtendedScalar() {
		return bson.RawValue{}, false, nil
	}
	rv, err = v.BSON()
	return rv, err == nil, err
}

// Integer returns an integer, plain or in Extended JSON, or a double without a fraction.
func (v *Value) Integer() (int64, bool) {
	rv, err := v.BSON()
	if f, ok := rv.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	n, _ := rv.AsInt64OK()
	return n, err == nil && (rv.Type == bson.TypeInt32 || rv.Type == bson.TypeInt64)
}
