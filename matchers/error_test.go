package matchers

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

func TestExpectedError(t *testing.T) {
	server := result.Error{
		Message: "Node is shutting down", Kind: "server", Code: 91, CodeName: "ShutdownInProgress",
		Labels: []string{"RetryableError", "Second"}, Response: result.Document(raw(t, `{"ok":0.0,"code":91,"x":{"y":1}}`)),
	}
	client := result.Error{Message: "connection refused", Client: true, Kind: "network"}
	timeout := result.Error{Message: "timed out", Client: true, Timeout: true}
	bulk := result.Error{
		Message: "bulk write failed",
		WriteErrors: map[int]result.Document{0: result.Document(raw(t,
			`{"code":11000,"errmsg":"E11000 Duplicate key","details":{}}`)),
			2: result.Document(raw(t, `{"code":121,"codeName":"DocumentValidationFailure"}`))},
		WriteConcernErrors: raws(t, `{"code":100,"codeName":"UnsatisfiableWriteConcern","errmsg":"not enough nodes"}`,
			`{"code":64}`),
		Partial: result.Value{RawValue: seen(t, `{"insertedCount":1,"insertedIds":{}}`)},
	}
	errors := map[string]*result.Error{
		"client": &client, "server": &server, "timeout": &timeout, "bulk": &bulk, "bulk, aggregated": &bulk, "success": nil,
		"primary": {Message: "Not Writable Primary"}, "unsupported": {Client: true, Unsupported: "watch"},
	}
	covered := map[bool]map[string]bool{true: {}, false: {}}
	transcript(t, "errors.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		x := Expectation{Error: yaml(t, expected), Shape: operations.RootDocument, Aggregates: strings.HasSuffix(actual, "aggregated")}
		got := New(nil).Outcome("", x, result.Outcome{Err: errors[actual]})
		for _, f := range x.Error.Fields {
			covered[len(got) == 0][f.Key] = true
		}
		return got
	})
	for name := range errorFields {
		if !covered[true][name] || !covered[false][name] {
			t.Errorf("%s lacks a case that matches or one that does not", name)
		}
	}
}

func TestOutcome(t *testing.T) {
	at := source.Position{File: "test.yml", Line: 7, Column: 3}
	failed := &result.Error{Message: "oops", Kind: "network", Client: true}
	const raised = "the operation raised an error"
	for _, row := range []struct {
		reason, result string
		actual         result.Outcome
		wrong          string
	}{
		{"success, no expected result", "", result.Outcome{}, matches},
		{"success, ignored result", "", result.Outcome{Value: result.Value{RawValue: seen(t, `1`)}}, matches},
		{"an unexpected error", "", result.Outcome{Err: failed}, "operations[1]: " + raised},
		{"an unexpected error instead of a result", `{$$unsetOrMatches: 1}`, result.Outcome{Err: failed},
			"operations[1].expectResult: " + raised},
		{"a result", `{x: 1}`, result.Outcome{Value: result.Value{RawValue: seen(t, `{"x":1,"y":1}`)}}, matches},
		{"another result", `{x: 1}`, result.Outcome{Value: result.Value{RawValue: seen(t, `{"x":2}`)}},
			"operations[1].expectResult.x: the numbers differ"},
		{"no result", `{x: 1}`, result.Outcome{}, "operations[1].expectResult: the value is missing"},
	} {
		x := Expectation{Position: at, Shape: operations.RootDocument}
		if row.result != "" {
			x.Result = yaml(t, row.result)
		}
		got := New(nil).Outcome("operations[1]", x, row.actual)
		testkit.Equal(t, row.reason, summary(t, got), row.wrong)
		if row.actual.Err != nil {
			testkit.Equal(t, row.reason, got[0].Got, "client-side error (network): oops")
		}
	}
}
