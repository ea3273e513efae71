package source_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/format/source"
)

// Every value has its position.
func ExampleParse() {
	root, err := source.Parse("suite.yml", []byte("tests:\n  - description: first\n    operations: []\n"))
	if err != nil {
		panic(err)
	}
	first := root.Get("tests").Elements()[0].Get("description")
	fmt.Println(first.Text(), "at", first.Position)
	_, err = source.Parse("broken.yml", []byte("tests: [\n"))
	fmt.Println(err)
	// Output:
	// first at suite.yml:2:18
	// broken.yml:1:8: malformed YAML: ] is missing for this [
}
