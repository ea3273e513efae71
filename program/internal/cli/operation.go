package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/reference/retry"
)

// performs maps operations of suites to those of the retry core, where these do not have the name of the command.
var performs = map[string]string{
	"bulkWrite":           "insert", // of a collection; clientBulkWrite sends the command bulkWrite
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

// coreOperation returns the name in the retry core of an operation of suites.
func coreOperation(name string) string { return cmp.Or(performs[name], operations.Command(name)) }

// operationNamed returns an operation of the retry core by its name, or by that of an operation of suites.
func operationNamed(name string) retry.Operation { return retry.Lookup(coreOperation(name)) }

func coreOperations() []string {
	return mapSlice(retry.Operations(), func(o retry.Operation) string { return o.Name })
}

// operationNames returns the names that operationNamed knows.
func operationNames() []string {
	names := slices.AppendSeq(coreOperations(), maps.Keys(performs))
	names = slices.AppendSeq(names, maps.Keys(operations.Commands()))
	slices.Sort(names)
	return slices.Compact(names)
}

// operationName checks a value of --operation. For the core, any other command is a generic one.
func operationName(name string) (string, error) {
	if !slices.Contains(coreOperations(), coreOperation(name)) {
		return name, fmt.Errorf("must be one of %s, or their names in suites; any other command is a runCommand",
			strings.Join(coreOperations(), ", "))
	}
	return name, nil
}
