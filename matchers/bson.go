package matchers

import (
	"cmp"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var errMalformed = errors.New("malformed BSON")

// elements returns the validated elements of a document or an array.
func elements(v bson.RawValue) ([]bson.RawElement, error) {
	raw := bson.Raw(v.Value)
	if raw.Validate() != nil {
		return nil, errMalformed
	}
	return raw.Elements()
}

func document(raw []byte) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
}

// present converts a document to a value. The document may be missing.
func present(raw []byte) bson.RawValue {
	if raw == nil {
		return bson.RawValue{}
	}
	return document(raw)
}

// aliases contains the types whose alias in the $type query operator differs from their name in package bson.
var aliases = map[bson.Type]string{
	bson.TypeEmbeddedDocument: "object",
	bson.TypeBinary:           "binData",
	bson.TypeObjectID:         "objectId",
	bson.TypeBoolean:          "bool",
	bson.TypeDateTime:         "date",
	bson.TypeCodeWithScope:    "javascriptWithScope",
	bson.TypeInt32:            "int",
	bson.TypeInt64:            "long",
	bson.TypeDecimal128:       "decimal",
	bson.TypeMinKey:           "minKey",
	bson.TypeMaxKey:           "maxKey",
}

func typeName(v bson.RawValue) string { return cmp.Or(aliases[v.Type], v.Type.String()) }
