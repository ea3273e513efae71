package testkit

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Extended reads a document in Extended JSON.
func Extended[T bson.D | bson.Raw](t testing.TB, text string) (doc T) {
	t.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}
