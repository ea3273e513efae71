package cli

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/meant"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/specs/operations"
)

// performs maps operations of suites to those of the retry core, where these do not have the name of the command.
var performs = map[string]string{
	"createCollection":    "create",
	"createCommandCursor": "runCommand",
	"deleteMany":          "multi-document delete",
	"download":            "find",
	"downloadByName":      "find",
	"dropCollection":      "drop",
	"endSession":          "endSessions",
	"listSearchIndexes":   "aggregate",
	"modifyCollection":    "collMod",
	"rename":              "renameCollection",
	"runCursorCommand":    "runCommand",
	"updateMany":          "multi-document update",
}

// operationNamed returns an operation of the retry core by its name, or by that of an operation of suites. For
// the core, any other command is a generic one.
func operationNamed(name string) (retry.Operation, error) {
	names := mapSlice(retry.Operations(), func(o retry.Operation) string { return o.Name })
	given := name
	name = cmp.Or(performs[name], operations.Command(name))
	if slices.Contains(names, name) {
		return retry.Lookup(name), nil
	}
	return retry.Operation{},
		usage("unknown operation %q%s (known operations: %s, and their names in suites; any other command is a runCommand)",
			given, meant.Hint(given, slices.Concat(names, slices.Collect(maps.Keys(performs)),
				slices.Collect(maps.Keys(operations.Commands())))),
			strings.Join(names, ", "))
}
