package testkit

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Extended reads a document in Extended JSON.
func Extended[T bson.D | bson.Raw, S ~string | ~[]byte](t testing.TB, text S) (doc T) {
	t.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%v in %s", err, string(text))
	}
	return doc
}
