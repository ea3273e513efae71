package matchers

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

func TestExpectedError(t *testing.T) {
	server := result.Error{
		Message: "Node is shutting down", Kind: "server", Code: 91, HasCode: true, CodeName: "ShutdownInProgress",
		Labels: []string{"RetryableError", "Second"}, Response: raw(t, `{"ok":0.0,"code":91,"x":{"y":1}}`),
	}
	client := result.Error{Message: "connection refused", Client: true, Kind: "network"}
	timeout := result.Error{Message: "timed out", Client: true, Timeout: true}
	bulk := result.Error{
		Message:            "bulk write failed",
		WriteErrors:        map[int]bson.Raw{0: raw(t, `{"code":11000,"errmsg":"E11000 Duplicate key","details":{}}`), 2: raw(t, `{"code":121,"codeName":"DocumentValidationFailure"}`)},
		WriteConcernErrors: raws(t, `{"code":100,"codeName":"UnsatisfiableWriteConcern","errmsg":"not enough nodes"}`, `{"code":64}`),
		Partial:            seen(t, `{"insertedCount":1,"insertedIds":{}}`),
	}
	rows := []struct {
		reason, expected string
		actual           *result.Error
		aggregates       bool
		wrong            string
	}{
		{"isError", `{isError: true}`, &client, false, ""},
		{"isError without an error", `{isError: true}`, nil, false, "expectError: want an error"},
		{"isError must not be false", `{isError: false}`, &client, false, "must not be false"},
		{"any field wants an error", `{errorLabelsOmit: [x]}`, nil, false, "expectError: want an error"},
		{"isClientError of a client's", `{isClientError: true}`, &client, false, ""},
		{"isClientError of a server's", `{isClientError: true}`, &server, false, "want a client-side error"},
		{"isClientError false of a server's", `{isClientError: false}`, &server, false, ""},
		{"isClientError false of a client's (not asserted elsewhere)", `{isClientError: false}`, &client, false, "want a server-side error"},
		{"isTimeoutError of a timeout", `{isTimeoutError: true}`, &timeout, false, ""},
		{"isTimeoutError of another", `{isTimeoutError: true}`, &client, false, "want an error that is a timeout"},
		{"isTimeoutError false of another", `{isTimeoutError: false}`, &client, false, ""},
		{"isTimeoutError false of a timeout (not asserted elsewhere)", `{isTimeoutError: false}`, &timeout, false, "want an error that is no timeout"},
		{"errorContains, in any case", `{errorContains: "IS SHUTTING"}`, &server, false, ""},
		{"errorContains, in any case of the message", `{errorContains: "not writable"}`, &result.Error{Message: "Not Writable Primary"}, false, ""},
		{"errorContains differs", `{errorContains: "is starting"}`, &server, false, "does not contain"},
		{"errorContains in a write error", `{errorContains: "duplicate KEY"}`, &bulk, true, ""},
		{"errorContains in a write concern error", `{errorContains: "enough nodes"}`, &bulk, true, ""},
		{"errorContains looks at no other field", `{errorContains: "DocumentValidationFailure"}`, &bulk, true, "does not contain"},
		{"errorContains nowhere", `{errorContains: "foo"}`, &bulk, true, "does not contain"},
		{"a client bulk write's write errors are not examined", `{errorContains: "duplicate key"}`, &bulk, false, "does not contain"},
		{"errorCode", `{errorCode: 91}`, &server, false, ""},
		{"errorCode as Extended JSON", `{errorCode: {$numberInt: "91"}}`, &server, false, ""},
		{"errorCode differs", `{errorCode: 92}`, &server, false, "codes differ: got 91"},
		{"errorCode by a half", `{errorCode: 91.5}`, &server, false, "want an integer"},
		{"errorCode of an error without", `{errorCode: 0}`, &client, false, "has no code"},
		{"errorCode is not sought in write errors", `{errorCode: 11000}`, &bulk, true, "has no code"},
		{"errorCodeName, in any case", `{errorCodeName: shutdowninprogress}`, &server, false, ""},
		{"errorCodeName differs", `{errorCodeName: Shutdown}`, &server, false, "code names differ"},
		{"errorCodeName is not the code (PyMongo compares them for client bulk writes)", `{errorCodeName: "91"}`, &server, false, "code names differ"},
		{"errorCodeName of an error without", `{errorCodeName: ""}`, &client, false, "has no code name"},
		{"errorCodeName of a write error", `{errorCodeName: documentvalidationfailure}`, &bulk, true, ""},
		{"errorCodeName of a write concern error", `{errorCodeName: UnsatisfiableWriteConcern}`, &bulk, true, ""},
		{"errorCodeName of no write error", `{errorCodeName: DuplicateKey}`, &bulk, true, "has no code name"},
		{"a client bulk write's are not examined", `{errorCodeName: UnsatisfiableWriteConcern}`, &bulk, false, "has no code name"},
		{"errorLabelsContain", `{errorLabelsContain: [Second, RetryableError]}`, &server, false, ""},
		{"errorLabelsContain, one lacking", `{errorLabelsContain: [Second, Third]}`, &server, false, "errorLabelsContain[1]: the error lacks this label"},
		{"labels have a case", `{errorLabelsContain: [second]}`, &server, false, "lacks this label"},
		{"errorLabelsOmit", `{errorLabelsOmit: [Third]}`, &server, false, ""},
		{"errorLabelsOmit, one there", `{errorLabelsOmit: [Third, Second]}`, &server, false, "errorLabelsOmit[1]: the error has this label"},
		{"labels are strings", `{errorLabelsOmit: [1]}`, &server, false, "want a string"},
		{"labels are an array", `{errorLabelsOmit: x}`, &server, false, "want an array"},
		{"writeErrors, root-level", `{writeErrors: {0: {code: 11000}, 2: {code: 121}}}`, &bulk, false, ""},
		{"writeErrors differ", `{writeErrors: {0: {code: 11000}, 2: {code: 122}}}`, &bulk, false, "writeErrors.2.code: the numbers differ"},
		{"writeErrors lack one", `{writeErrors: {0: {}, 1: {}, 2: {}}}`, &bulk, false, "writeErrors.1: the value is missing"},
		{"writeErrors have one more", `{writeErrors: {0: {}}}`, &bulk, false, "unexpected write error for index 2"},
		{"no writeErrors wanted", `{writeErrors: {}}`, &bulk, false, "unexpected write error for index 0"},
		{"no writeErrors there", `{writeErrors: {}}`, &server, false, ""},
		{"writeErrors wanted of an error without", `{writeErrors: {0: {}}}`, &server, false, "writeErrors.0: the value is missing"},
		{"writeErrors by index", `{writeErrors: {x: {}}}`, &bulk, false, "want the index of a write"},
		{"writeErrors are documents", `{writeErrors: {0: 1}}`, &bulk, false, "want a document"},
		{"writeConcernErrors, root-level and in order", `{writeConcernErrors: [{code: 100}, {code: 64}]}`, &bulk, false, ""},
		{"writeConcernErrors out of order", `{writeConcernErrors: [{code: 64}, {code: 100}]}`, &bulk, false, "writeConcernErrors[0].code: the numbers differ"},
		{"writeConcernErrors have one more", `{writeConcernErrors: [{code: 100}]}`, &bulk, false, "want 1 write concern error, got 2"},
		{"writeConcernErrors lack one", `{writeConcernErrors: [{code: 100}, {}, {}]}`, &bulk, false, "writeConcernErrors[2]: the value is missing"},
		{"no writeConcernErrors", `{writeConcernErrors: []}`, &server, false, ""},
		{"errorResponse, root-level", `{errorResponse: {code: 91}}`, &server, false, ""},
		{"errorResponse differs", `{errorResponse: {code: 92}}`, &server, false, "errorResponse.code: the numbers differ"},
		{"errorResponse nested", `{errorResponse: {x: {}}}`, &server, false, `unexpected key "y"`},
		{"errorResponse of an error without", `{errorResponse: {}}`, &client, false, "the value is missing"},
		{"expectResult", `{expectResult: {insertedCount: 1}}`, &bulk, false, ""},
		{"expectResult differs", `{expectResult: {insertedCount: 2}}`, &bulk, false, "expectResult.insertedCount: the numbers differ"},
		{"expectResult of an error without", `{expectResult: {insertedCount: 1}}`, &server, false, "the value is missing"},
		{"expectResult that may be unset", `{expectResult: {$$unsetOrMatches: {insertedCount: 1}}}`, &server, false, ""},
		{"expectResult that is set and differs", `{expectResult: {$$unsetOrMatches: {insertedCount: 2}}}`, &bulk, false, "the numbers differ"},
		{"an unknown field", `{isError: true, errorMessage: x}`, &server, false, `unknown field "errorMessage"`},
		{"no field", `{}`, &server, false, "at least one key"},
		{"no document", `true`, &server, false, "want a document"},
		{"several fields", `{isClientError: false, errorCode: 91, errorLabelsContain: [Second]}`, &server, false, ""},
		{"a lacking ability is no expected error", `{isError: true}`, &result.Error{Client: true, Unsupported: "watch"}, false, "does not support"},
	}
	covered := map[bool]map[string]bool{true: {}, false: {}}
	for _, row := range rows {
		x := Expectation{Error: yaml(t, row.expected), Shape: RootDocument, Aggregates: row.aggregates}
		check(t, row.reason, New(nil).Outcome("operations[0]", x, result.Outcome{Err: row.actual}), row.wrong)
		for _, f := range x.Error.Fields {
			covered[row.wrong == ""][f.Key] = true
		}
	}
	for name := range errorFields {
		if !covered[true][name] || !covered[false][name] {
			t.Errorf("%s lacks a row that matches or one that must not", name)
		}
	}
}

func TestOutcome(t *testing.T) {
	at := source.Position{File: "test.yml", Line: 7, Column: 3}
	failed := &result.Error{Message: "oops", Kind: "network", Client: true}
	for _, row := range []struct {
		reason, result string
		actual         result.Outcome
		wrong          string
	}{
		{"success, no result wanted", "", result.Outcome{}, ""},
		{"success, any result", "", result.Outcome{Value: seen(t, `1`)}, ""},
		{"an unexpected error", "", result.Outcome{Err: failed}, "operations[1]: the operation raised an error"},
		{"an unexpected error instead of a result", `{$$unsetOrMatches: 1}`, result.Outcome{Err: failed}, "raised an error"},
		{"a result", `{x: 1}`, result.Outcome{Value: seen(t, `{"x":1,"y":1}`)}, ""},
		{"another result", `{x: 1}`, result.Outcome{Value: seen(t, `{"x":2}`)}, "operations[1].expectResult.x: the numbers differ"},
		{"no result", `{x: 1}`, result.Outcome{}, "operations[1].expectResult: the value is missing"},
	} {
		x := Expectation{Position: at, Shape: RootDocument}
		if row.result != "" {
			x.Result = yaml(t, row.result)
		}
		got := New(nil).Outcome("operations[1]", x, row.actual)
		check(t, row.reason, got, row.wrong)
		if row.actual.Err != nil {
			testkit.Equal(t, row.reason, got[0].Got, "client-side error (network): oops")
		}
	}
}
