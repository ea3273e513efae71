package operations_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
)

// The table has what the format says about an operation: required arguments, effect, and the specification.
func ExampleLookup() {
	op, ok := operations.Lookup(entities.Collection, "insertOne")
	fmt.Println(ok, op.Effect, op.Section)
	for _, a := range op.Arguments {
		if a.Required {
			fmt.Println(a.Name)
		}
	}
	fmt.Println(operations.KindsWith("createFindCursor"))
	// Output:
	// true documents Unified Test Format, insertOne
	// document
	// [collection]
}
