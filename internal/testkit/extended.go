package testkit

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Extended parses a document in Extended JSON.
func Extended[T bson.D | bson.Raw, S ~string | ~[]byte](t testing.TB, text S) (doc T) {
	t.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%v in %s", err, string(text))
	}
	return doc
}

// Raw marshals a document to BSON.
func Raw(t testing.TB, document any) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(document)
	Check(t, err)
	return raw
}

// D returns a document of alternating keys and values.
func D(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

// EveryType is a document with a value of each BSON type, in Extended JSON.
const EveryType = `{"_id": {"$oid": "010000000000000000000000"}, "double": 1.5, "string": "s", "array": [1, {}], "bool": true, "null": null,
	"binary": {"$binary": {"base64": "AQ==", "subType": "02"}}, "undefined": {"$undefined": true}, "date": {"$date": {"$numberLong": "1"}},
	"regex": {"$regularExpression": {"pattern": "a", "options": "i"}}, "pointer": {"$dbPointer": {"$ref": "d", "$id": {"$oid":
	"000000000000000000000000"}}}, "code": {"$code": "f"}, "symbol": {"$symbol": "s"}, "scoped": {"$code": "f", "$scope": {"x": 1}}, "int": 1,
	"timestamp": {"$timestamp": {"t": 1, "i": 0}}, "long": {"$numberLong": "1"}, "decimal": {"$numberDecimal": "1"}, "min": {"$minKey": 1},
	"max": {"$maxKey": 1}}`
