package matchers

import (
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

func document(raw bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
}

// present converts a document, which may be missing, to a value.
func present(raw bson.Raw) bson.RawValue {
	if raw == nil {
		return bson.RawValue{}
	}
	return document(raw)
}

// types maps each type to its alias in the $type query operator.
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

func typeName(v bson.RawValue) string {
	if name, ok := types[v.Type]; ok {
		return name
	}
	return v.Type.String()
}
