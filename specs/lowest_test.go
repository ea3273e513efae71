package specs_test

import (
	"fmt"
	"testing"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

func TestLowest(t *testing.T) {
	for _, row := range []struct{ reason, tests, want string }{
		{"the oldest version", `[{description: a, operations: []}]`, "1.0"},
		{"required by the schema", `[{description: a, operations: [], expectLogMessages: [{client: c, messages: []}]}]`,
			"1.13 schema at 3:42 tests[0].expectLogMessages"},
		{"an operation is newer than the schema requires",
			`[{description: a, operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]}]`,
			"1.10 changelog at 3:46 tests[0].operations[0].name"},
		{"an operator is newer", `[{description: a, operations: [{name: x, object: c, expectResult: {$$matchAsRoot: {}}}]}]`,
			"1.13 changelog at 3:75 tests[0].operations[0].expectResult.$$matchAsRoot"},
		{"the schema requires more than an operation",
			`[{description: a, operations: [{name: wait, object: testRunner}], expectLogMessages: [{client: c, messages: []}]}]`,
			"1.13 schema at 3:74 tests[0].expectLogMessages"},
		{"a nested operation", `[{description: a, operations: [{name: withTransaction, object: s, arguments: {callback: [{name: createFindCursor, object: c}]}}]}]`,
			"1.3 changelog at 3:104 tests[0].operations[0].arguments.callback[0].name"},
		{"invalid at every version", `[{description: a, operations: [], color: red}]`,
			`a.yml:3:42: error: tests[0].color: unknown key in a test; possible keys are "description", "runOnRequirements", "skipReason", "operations", "expectEvents", "expectLogMessages", "expectTracingMessages", "outcome" (schema)`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			root, err := source.ParseYAML("a.yml", []byte("description: d\nschemaVersion: '1.0'\ntests: "+row.tests))
			testkit.Check(t, err)
			lowest, because, err := specs.Lowest("a.yml", root)
			got := lowest.String()
			if because != nil {
				got += fmt.Sprintf(" %s at %d:%d %s", because.Rule, because.Position.Line, because.Position.Column, because.Path)
			}
			if err != nil {
				got = err.Error()
			}
			testkit.Equal(t, "the lowest version", got, row.want)
		})
	}
}
