//go:build unix

// Package faults tests faults that utr detects only after its longest timeouts.
package faults

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m) }

// endless has a test that takes 90 seconds, and uses the deployment after one.
const endless = `description: "endless"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll}
initialData: [{databaseName: db, collectionName: coll, documents: []}]
tests:
  - description: "first"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
  - description: "second"
    operations:
      - {name: wait, object: testRunner, arguments: {ms: 1000}}
      - {name: find, object: collection, arguments: {filter: {}}}
      - {name: wait, object: testRunner, arguments: {ms: 90000}}
`

// When all servers stop or are killed during a test, the run ends within the time in docs/faults.md, with any engine and
// without any option of the connection string.
func TestServerHangs(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "suite.yml")
	testkit.Check(t, os.WriteFile(suite, []byte(endless), 0o644))
	for _, engine := range []string{"reference", "driver"} {
		for _, what := range []string{"stopped", "killed"} {
			t.Run(engine+", "+what, func(t *testing.T) {
				t.Parallel()
				p := utrtest.NewPlace(t)
				server := p.Serve("--topology", "replicaset")
				u := p.Start("run", "-v", "--engine", engine, "--uri", server.URI, suite)
				u.Line("passed endless: first")
				began := time.Now()
				if what == "stopped" {
					server.Freeze()
				} else {
					server.Signal(syscall.SIGKILL)
				}
				u.End().Want(3, "broken endless: second", "the deployment stopped answering: "+utrtest.Hosts(server.URI)[0], "1 passed, 0 failed")
				if took := time.Since(began); took > 25*time.Second {
					t.Errorf("the run ended after %s", took)
				}
			})
		}
	}
}
