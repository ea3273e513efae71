//go:build unix

// Package faults tests faults that utr detects only after its longest timeouts.
package faults

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
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

// When all servers stop or are killed during a test, or none remains primary, the run ends within the time in
// docs/faults.md, with any engine and without any option of the connection string.
func TestServerHangs(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "suite.yml")
	testkit.Check(t, os.WriteFile(suite, []byte(endless), 0o644))
	for _, engine := range []string{"reference", "driver"} {
		for what, says := range map[string]string{
			"stopped":           "the deployment stopped answering: HOST",
			"killed":            "the deployment stopped answering: HOST",
			"without a primary": "the deployment has no primary: HOST",
		} {
			t.Run(engine+", "+what, func(t *testing.T) {
				t.Parallel()
				p := utrtest.NewPlace(t)
				uri, fault := fragile(t, p, what)
				u := p.Start("run", "-v", "--engine", engine, "--uri", uri, suite)
				u.Line("passed endless: first")
				began := time.Now()
				fault()
				u.End().Want(3, "broken endless: second", strings.Replace(says, "HOST", utrtest.Hosts(uri)[0], 1),
					"1 passed, 0 failed")
				if took := time.Since(began); took > 25*time.Second {
					t.Errorf("the run ended after %s", took)
				}
			})
		}
	}
}

// fragile starts a replica set, and returns a function that makes it unusable.
func fragile(t *testing.T, p *utrtest.Place, what string) (uri string, fault func()) {
	t.Helper()
	if what == "without a primary" {
		d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
		testkit.Check(t, err)
		t.Cleanup(func() { _ = d.Close() })
		return d.URI(), func() { testkit.Check(t, errors.Join(d.Kill(d.Hosts()[1]), d.Kill(d.Primary()))) }
	}
	server := p.Serve("--topology", "replicaset")
	if what == "stopped" {
		return server.URI, server.Freeze
	}
	return server.URI, func() { server.Signal(syscall.SIGKILL) }
}
