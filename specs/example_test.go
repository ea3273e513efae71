package specs_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs"
)

// A suite is parsed with the positions of its tests. A misspelled key is an error with its place.
func ExampleParse() {
	const text = `description: counting
schemaVersion: "1.0"
createEntities:
  - client: { id: client0 }
  - database: { id: db, client: client0, databaseName: db }
  - collection: { id: people, database: db, collectionName: people }
tests:
  - description: an empty collection
    operations:
      - { name: countDocuments, object: people, arguments: { filter: {} }, KEY: 0 }
`
	for _, key := range []string{"expectResult", "expectResults"} {
		suite, err := specs.Parse("counting.yml", []byte(strings.Replace(text, "KEY", key, 1)))
		var invalid *specs.InvalidError
		if errors.As(err, &invalid) {
			fmt.Println(invalid.Problems[0])
			continue
		}
		fmt.Println(suite.Description, suite.Tests[0].Description, suite.Tests[0].Position)
	}
	// Output:
	// counting an empty collection counting.yml:8:5
	// counting.yml:10:76: error: tests[0].operations[0].expectResults: unknown key in an operation; did you mean "expectResult"? (schema)
}
