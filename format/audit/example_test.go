package audit_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/format/audit"
	"github.com/unified-test-runner/utr/format/source"
)

// Each mutant of a suite has one wrong expectation.
func ExampleMutants() {
	root, err := source.Parse("find.yml", []byte(`
tests:
  - description: one document
    operations:
      - {name: countDocuments, object: collection, expectResult: 1}
`))
	if err != nil {
		panic(err)
	}
	mutants, _ := audit.Mutants(root)
	fmt.Println(mutants[0].Path, mutants[0].Change)
	// Output:
	// operations[0].expectResult 1 became 2
}
