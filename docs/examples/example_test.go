package examples_test

import (
	"fmt"
	"io/fs"

	"github.com/unified-test-runner/utr/docs/examples"
)

// The matrix files have the names that utr new accepts.
func Example() {
	files, err := fs.Glob(examples.Matrices, "*.yml")
	for _, name := range files {
		fmt.Println(name)
	}
	fmt.Println(err)
	// Output:
	// drivers.yml
	// nightly.yml
	// orchestration.yml
	// <nil>
}
