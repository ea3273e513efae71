package driver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

func TestErrorOf(t *testing.T) {
	reply := raw(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 91}})
	first, second := raw(t, bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}), raw(t, bson.D{{Key: "index", Value: 2}, {Key: "code", Value: 121}})
	concern := raw(t, bson.D{{Key: "code", Value: 64}})
	bare := raw(t, bson.D{{Key: "code", Value: int32(64)}, {Key: "message", Value: "m"}})
	for _, row := range []struct {
		reason string
		err    error
		want   result.Error // a message only where it matters
	}{
		{"an error reply", mongo.CommandError{Code: 91, Name: "ShutdownInProgress", Labels: []string{"L"}, Raw: reply},
			result.Error{Kind: "server", Code: 91, HasCode: true, CodeName: "ShutdownInProgress", Labels: []string{"L"}, Response: reply}},
		{"an error of the network has the type of one", mongo.CommandError{Labels: []string{"NetworkError"}},
			result.Error{Kind: "network", Client: true, Labels: []string{"NetworkError"}}},
		{"wrapped all the same", fmt.Errorf("outer: %w", mongo.CommandError{Code: 91, Raw: reply}),
			result.Error{Kind: "server", Code: 91, HasCode: true, Response: reply}},
		{"not made one of package mongo", xdriver.Error{Code: 91, Name: "N", Raw: []byte(reply)},
			result.Error{Kind: "server", Code: 91, HasCode: true, CodeName: "N", Response: reply}},
		{"maxTimeMS has expired", mongo.CommandError{Code: 50, Raw: reply},
			result.Error{Kind: "server", Code: 50, HasCode: true, Response: reply, Timeout: true}},
		{"a write error", mongo.WriteException{WriteErrors: mongo.WriteErrors{{Index: 0, Code: 11000, Raw: first}}, Raw: reply},
			result.Error{Kind: "write", Code: 11000, HasCode: true, Response: reply, WriteErrors: map[int]bson.Raw{0: first}}},
		{"a write concern error alone", mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64, Name: "N", Raw: concern}},
			result.Error{Kind: "write", Code: 64, HasCode: true, CodeName: "N", WriteConcernErrors: []bson.Raw{concern}}},
		{"the first write error gives the code, beside a write concern error",
			mongo.BulkWriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64, Raw: concern}, Labels: []string{"L"},
				WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Index: 0, Code: 11000, Raw: first}},
					{WriteError: mongo.WriteError{Index: 2, Code: 121, Raw: second}}}},
			result.Error{Kind: "bulk write", Code: 11000, HasCode: true, Labels: []string{"L"},
				WriteErrors: map[int]bson.Raw{0: first, 2: second}, WriteConcernErrors: []bson.Raw{concern}}},
		{"errors of a client bulk write are described as the format has them",
			mongo.ClientBulkWriteException{WriteConcernErrors: []mongo.WriteConcernError{{Code: 64, Name: "WriteConcernTimeout", Message: "m"}}},
			result.Error{Kind: "client bulk write", WriteConcernErrors: []bson.Raw{bare}}},
		{"the message of a client bulk write does not tell what its writes say",
			mongo.ClientBulkWriteException{WriteErrors: map[int]mongo.WriteError{0: {Code: 11000, Message: "duplicate key"}}},
			result.Error{Kind: "client bulk write", Message: "errors of a client bulk write: 1 of writes, 0 of write concerns",
				WriteErrors: map[int]bson.Raw{0: raw(t, bson.D{{Key: "code", Value: int32(11000)}, {Key: "message", Value: "duplicate key"}})}}},
		{"nor beside a top-level error, whose own message it is",
			mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Code: 91, Message: "shutting down", Raw: reply},
				WriteErrors: map[int]mongo.WriteError{0: {Code: 11000, Message: "duplicate key"}}},
			result.Error{Kind: "client bulk write", Message: "shutting down", Code: 91, HasCode: true, Response: reply,
				WriteErrors: map[int]bson.Raw{0: raw(t, bson.D{{Key: "code", Value: int32(11000)}, {Key: "message", Value: "duplicate key"}})}}},
		{"a client bulk write's top-level error", mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Code: 91, Raw: reply}},
			result.Error{Kind: "client bulk write", Code: 91, HasCode: true, Response: reply}},
		{"no answer to a client bulk write", mongo.ClientBulkWriteException{WriteError: &mongo.WriteError{Message: "EOF"}},
			result.Error{Kind: "client bulk write", Client: true}},
		{"time is over", context.DeadlineExceeded, result.Error{Kind: "timeout", Client: true, Timeout: true}},
		{"cancelled", fmt.Errorf("find: %w", context.Canceled), result.Error{Kind: "cancelled", Client: true}},
		{"a bad argument", mongo.ErrNilDocument, result.Error{Kind: "argument", Client: true}},
		{"anything else", errors.New("x"), result.Error{Kind: "client", Client: true}},
		{"an error of a callback comes back as it was", callbackError{&result.Error{Kind: "server", Code: 1}}, result.Error{Kind: "server", Code: 1}},
		{"unless there was no time left to run it again, which the error of the driver says around it",
			fmt.Errorf("%w: %w", context.DeadlineExceeded, callbackError{&result.Error{Kind: "server", Code: 1, Labels: []string{"L"}}}),
			result.Error{Kind: "timeout", Code: 1, Labels: []string{"L"}, Timeout: true}},
	} {
		got := errorOf(row.err)
		if row.want.Message == "" {
			row.want.Message = got.Message
		}
		if diff := cmp.Diff(&row.want, got); diff != "" {
			t.Errorf("%s: %s", row.reason, diff)
		}
	}
}
