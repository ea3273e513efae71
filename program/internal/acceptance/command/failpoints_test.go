//go:build unix

package command

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// On a replica set without test commands, each command that uses a deployment gets its fail points from the proxy.
// Messages name the servers.
func TestWithoutTestCommands(t *testing.T) {
	t.Parallel()
	d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1,
		Parameters: bson.D{{Key: "enableTestCommands", Value: false}}})
	uri, host := d.URI(), d.Hosts()[0]
	const suite = "retryable-reads/collection-distinct.yml"
	night := func(mode string) []string {
		text := fmt.Sprintf("clusters: [{name: c, uri: %q, fail-points: %s}]\nengines: [reference]\nsuites: %s\n", uri,
			mode, suite)
		return []string{"matrix", suiteFile(t, text), "--results", filepath.Join(t.TempDir(), "results")}
	}
	p := utrtest.NewPlace(t)
	for _, c := range []struct {
		command []string
		code    int
		says    string
	}{
		{[]string{"run", "--uri", uri, suite}, 0, "23 passed, 0 failed, 0 skipped"},
		{[]string{"run", "--uri", uri, "--fail-points", "server", suite}, 3, "runs without test commands"},
		{[]string{"doctor", "--uri", uri, suite}, 0,
			"the proxy executes fail points; " + host + "\n23 tests would run, 0 would be skipped"},
		{[]string{"doctor", "--uri", uri, "--fail-points", "server", suite}, 3, "runs without test commands"},
		{[]string{"prose", "--uri", uri, "reads-1"}, 0, "collections on " + host + ": utr-prose.documents\n"},
		{[]string{"prose", "--uri", uri, "--fail-points", "proxy", "writes-6.1"}, 0, "1 passed, 0 failed, 0 could not run"},
		{night("auto"), 0, "23 passed, 0 failed, 0 skipped"},
		{night("proxy"), 0, "23 passed, 0 failed, 0 skipped"},
		{night("server"), 3, "runs without test commands"},
		{[]string{"compare", "--uri", uri, "--engine", "reference", "--engine", "reference", suite}, 0,
			"23 same, 0 different, 0 explained, 0 not compared"},
	} {
		p.Run(c.command...).Want(c.code, c.says)
	}
	p.Empty()
}
