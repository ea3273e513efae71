//go:build unix

// Package faults tests faults that utr detects only after its longest timeouts.
package faults

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m) }

// endless has a test that takes 90 seconds.
const endless = `description: "endless"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
  - database: {id: database, client: client, databaseName: db}
tests:
  - description: "first"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
  - description: "second"
    operations: [{name: wait, object: testRunner, arguments: {ms: 90000}}]
`

// A server that stops responding during a test is treated as down.
func TestServerHangs(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "suite.yml")
	testkit.Check(t, os.WriteFile(suite, []byte(endless), 0o644))
	p := utrtest.NewPlace(t)
	server := p.Serve("--topology", "single")
	u := p.Start("run", "-v", "--uri", server.URI+"?timeoutMS=1000&serverSelectionTimeoutMS=1000", "--timeout", "3s", suite)
	u.Line("passed endless: first")
	server.Freeze()
	u.End().Want(3, "broken endless: second", "the deployment stopped answering", utrtest.Hosts(server.URI)[0], "1 passed, 0 failed")
}
