package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/reference/retry"
)

// operationNamed returns an operation of the retry core by its name, or by the name of an operation of suites.
func operationNamed(name string) retry.Operation { return retry.Lookup(operations.Core(name)) }

func coreOperations() []string {
	return mapSlice(retry.Operations(), func(o retry.Operation) string { return o.Name })
}

// operationNames returns the names that operationNamed accepts.
func operationNames() []string {
	names := coreOperations()
	for _, o := range operations.All() {
		if operations.Core(o.Name) != o.Name {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// operationName checks a value of --operation. For the core, any other command is a generic one.
func operationName(name string) (string, error) {
	if !slices.Contains(coreOperations(), operations.Core(name)) {
		return name, fmt.Errorf("must be one of %s, or their names in suites; any other command is a runCommand",
			strings.Join(coreOperations(), ", "))
	}
	return name, nil
}
