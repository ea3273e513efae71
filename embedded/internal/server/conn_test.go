package server

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// The _id in an error of an invalid message is written as the server writes values.
func TestInvalidMessage(t *testing.T) {
	kind, id, err := bson.MarshalValue(bson.D{{Key: "a", Value: "b"}})
	testkit.Check(t, err)
	invalid := &wire.Error{What: "Incorrect BSON length", Path: "x.y", ID: bson.RawValue{Type: kind, Value: id}}
	testkit.Equal(t, "the message", invalid.Text(shown),
		`Incorrect BSON length in element with field name 'x.y' in object with _id: { a: "b" }`)
}
