package adapters_test

import (
	"fmt"
	"io/fs"

	"github.com/unified-test-runner/utr/adapters"
)

// Each adapter has its list of known failures.
func Example() {
	lists, err := fs.Glob(adapters.FS, "*/known-failing.txt")
	for _, name := range lists {
		fmt.Println(name)
	}
	fmt.Println(err)
	// Output:
	// java/known-failing.txt
	// node/known-failing.txt
	// pymongo/known-failing.txt
	// rust/known-failing.txt
	// <nil>
}
