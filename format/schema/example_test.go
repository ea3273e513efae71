package schema_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/format/source"
)

// A file that uses a key of a later version is invalid. Lowest finds the version that it needs, and why.
func ExampleLowest() {
	root, err := source.ParseYAML("pool.yml", []byte(`description: a ready pool
schemaVersion: "1.0"
createEntities:
  - client: { id: client0, awaitMinPoolSizeMS: 500 }
tests:
  - { description: nothing, operations: [] }
`))
	if err != nil {
		panic(err)
	}
	problems, err := schema.Validate("1.0", root)
	fmt.Println(problems, err)
	version, because, _, err := schema.Lowest(root)
	fmt.Println(version, because, err)
	// Output:
	// [pool.yml:4:28: createEntities[0].client.awaitMinPoolSizeMS: "awaitMinPoolSizeMS" requires schemaVersion 1.26; this file declares 1.0] <nil>
	// 1.26 pool.yml:4:28: createEntities[0].client.awaitMinPoolSizeMS: "awaitMinPoolSizeMS" requires schemaVersion 1.26 <nil>
}
