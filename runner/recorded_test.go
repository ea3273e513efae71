package runner

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// A test whose threads ask the same at once passes and cannot be judged: nobody knows
// which answer belongs to which thread.
func TestRacingThreads(t *testing.T) {
	suite, err := specs.Parse("a.yml", []byte(`{description: d, schemaVersion: "1.10", runOnRequirements: [{topologies: [single]}],
createEntities: [{client: {id: c}}, {database: {id: d, client: c, databaseName: utr-racing}}, {collection: {id: k, database: d, collectionName: x}},
  {thread: {id: one}}, {thread: {id: two}}],
tests: [{description: at once, operations: [
  {name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: failCommand, mode: alwaysOn,
    data: {failCommands: [find], blockConnection: true, blockTimeMS: 200}}}},
  {name: runOnThread, object: testRunner, arguments: {thread: one, operation: {name: find, object: k, arguments: {filter: {}}}}},
  {name: runOnThread, object: testRunner, arguments: {thread: two, operation: {name: find, object: k, arguments: {filter: {}}}}},
  {name: waitForThread, object: testRunner, arguments: {thread: one}},
  {name: waitForThread, object: testRunner, arguments: {thread: two}}]},
 {description: alone, operations: [{name: find, object: k, arguments: {filter: {}}, expectResult: []}]}]}`))
	testkit.Check(t, err)
	rec := record(t, "", []*specs.Suite{suite})
	testkit.Equal(t, "tests that can be judged, and that cannot", [2]int{len(rec.Passed), len(rec.Racing)}, [2]int{1, 1})
	for id := range rec.Racing {
		testkit.Equal(t, "the racing one", id.Description, "at once")
	}
}
