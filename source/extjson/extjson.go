// Package extjson turns values of suite files into BSON, reading relaxed and
// canonical Extended JSON (Extended JSON specification, version 2). Legacy
// forms are not read: {$regex: …, $options: …} is the query operator, as the
// specification's "canonical" mode has it. Special operators of the Unified
// Test Format ($$type, …) are no concern here: they are ordinary keys.
package extjson

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// Error says which node of a file is malformed Extended JSON, or cannot be
// BSON, and why.
type Error struct {
	Position source.Position
	Reason   string
}

// Error gives position and reason in one line.
func (e *Error) Error() string {
	if e.Position.IsZero() {
		return "Extended JSON: " + e.Reason
	}
	return e.Position.String() + ": Extended JSON: " + e.Reason
}

// Value converts a value. Integers become int32 if they fit and int64 if not.
// The error is an *Error.
func Value(v *source.Value) (bson.RawValue, error) {
	x, err := native(v)
	if err != nil {
		return bson.RawValue{}, err
	}
	return encode(v, x)
}

// Document converts a value that must be a document, and not one of the
// wrappers by which Extended JSON writes a scalar. The error is an *Error.
func Document(v *source.Value) (bson.Raw, error) {
	rv, err := Value(v)
	if err != nil {
		return nil, err
	}
	if rv.Type != bson.TypeEmbeddedDocument {
		return nil, fault(v, "want a document, got %s", describe(v))
	}
	return bson.Raw(rv.Value), nil
}

// Scalar converts a value that stands for a scalar, in plain JSON or in a
// wrapper such as {$oid: …}; ok is false for true documents and arrays. The
// error is an *Error.
func Scalar(v *source.Value) (rv bson.RawValue, ok bool, err error) {
	if v.Kind == source.Array || v.Kind == source.Document && wrapperKey(v) == "" {
		return bson.RawValue{}, false, nil
	}
	rv, err = Value(v)
	return rv, err == nil, err
}

// encode gives the BSON of what native returns.
func encode(v *source.Value, x any) (bson.RawValue, error) {
	t, data, err := bson.MarshalValue(x)
	if err != nil {
		return bson.RawValue{}, fault(v, "%v", err)
	}
	return bson.RawValue{Type: t, Value: data}, nil
}

// native converts a value to the Go value that package bson encodes as meant.
func native(v *source.Value) (any, error) {
	switch v.Kind {
	case source.Bool:
		return v.Bool, nil
	case source.Int:
		if int64(int32(v.Int)) == v.Int {
			return int32(v.Int), nil
		}
		return v.Int, nil
	case source.Float:
		return v.Float, nil
	case source.String:
		return v.String, nil
	case source.Array:
		a := make(bson.A, 0, len(v.Items))
		for _, item := range v.Items {
			x, err := native(item)
			if err != nil {
				return nil, err
			}
			a = append(a, x)
		}
		return a, nil
	case source.Document:
		if key := wrapperKey(v); key != "" {
			return wrappers[key](v)
		}
		d := make(bson.D, 0, len(v.Fields))
		for _, f := range v.Fields {
			x, err := native(f.Value)
			if err != nil {
				return nil, err
			}
			d = append(d, bson.E{Key: f.Key, Value: x})
		}
		return d, nil
	default:
		return bson.Null{}, nil
	}
}
