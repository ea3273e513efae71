package driver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// The transcript shows what becomes of each error.
func TestErrorOf(t *testing.T) {
	reply := raw(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 91}})
	first, second := raw(t, bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}), raw(t, bson.D{{Key: "index", Value: 2}, {Key: "code", Value: 121}})
	concern := &mongo.WriteConcernError{Code: 64, Name: "N", Raw: raw(t, bson.D{{Key: "code", Value: 64}})}
	duplicate := map[int]mongo.WriteError{0: {Code: 11000, Message: "duplicate key"}}
	inner := callbackError{&result.Error{Kind: "server", Code: 1, Labels: []string{"L"}}}
	all := map[string]error{
		"a reply":                  mongo.CommandError{Code: 91, Name: "ShutdownInProgress", Labels: []string{"L"}, Raw: reply},
		"of the network":           mongo.CommandError{Labels: []string{"NetworkError"}},
		"wrapped":                  fmt.Errorf("outer: %w", mongo.CommandError{Code: 91, Raw: reply}),
		"not of package mongo":     xdriver.Error{Code: 91, Name: "N", Raw: []byte(reply)},
		"of maxTimeMS":             mongo.CommandError{Code: 50, Raw: reply},
		"of a write":               mongo.WriteException{WriteErrors: mongo.WriteErrors{{Index: 0, Code: 11000, Raw: first}}, Raw: reply},
		"of a write concern alone": mongo.WriteException{WriteConcernError: concern},
		"of writes and a write concern": mongo.BulkWriteException{WriteConcernError: concern, Labels: []string{"L"}, WriteErrors: []mongo.BulkWriteError{
			{WriteError: mongo.WriteError{Index: 0, Code: 11000, Raw: first}}, {WriteError: mongo.WriteError{Index: 2, Code: 121, Raw: second}}}},
		"of a write concern of a client bulk write": mongo.ClientBulkWriteException{WriteConcernErrors: []mongo.WriteConcernError{{Code: 64, Name: "N", Message: "m"}}},
		"of a write of a client bulk write":         mongo.ClientBulkWriteException{WriteErrors: duplicate},
		"of a write beside a top-level error": mongo.ClientBulkWriteException{WriteErrors: duplicate,
			WriteError: &mongo.WriteError{Code: 91, Message: "shutting down", Raw: reply}},
		"at the top level":          mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Code: 91, Raw: reply}},
		"at the top level, no code": mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Message: "EOF"}},
		"time is over":              context.DeadlineExceeded,
		"cancelled":                 fmt.Errorf("find: %w", context.Canceled),
		"a bad argument":            mongo.ErrNilDocument,
		"anything else":             errors.New("x"),
		"of a callback":             inner,
		"of a callback, too late":   fmt.Errorf("%w: %w", context.DeadlineExceeded, inner),
	}
	testkit.Transcript(t, "testdata/errors.txt", func(t *testing.T, name string) string {
		if all[name] == nil {
			t.Fatalf("the error %q does not exist, or was used before", name)
		}
		defer delete(all, name)
		return fmt.Sprintf("%+v", *errorOf(all[name]))
	})
	testkit.Equal(t, "errors that the transcript lacks", len(all), 0)
}
