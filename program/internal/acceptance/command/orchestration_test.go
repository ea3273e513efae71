//go:build unix

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// A run on several clusters of each kind removes them all, no output contains their passwords, and a failure names the
// line of its suite.
func TestOrchestrationEndToEnd(t *testing.T) {
	t.Parallel()
	s := fakeorchestration.Start(t)
	p := utrtest.NewPlace(t, "UTR_URI=mongodb://127.0.0.1:1")
	dir := t.TempDir()
	report, page, mine := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html"), filepath.Join(dir, "mine.json")
	text := `{"id": "mine", "login": "ann", "password": "p@ss/w:rd%", "auth_key": "s3cretkey", "members": [{}, {}]}`
	testkit.Check(t, os.WriteFile(mine, []byte(text), 0o600))
	failing := suiteFile(t, misread)
	end := p.Run("run", "-v", "--events", "--topology", "all", "--orchestration", s.URL,
		"--cluster", "sharded-auth", "--cluster", mine, "--cluster", "single", "--clusters", "2", "--json", report,
		"--html", page,
		"--uri-option", "compressors=zlib", suiteFile(t, reads), failing).Want(1, failing+":11:",
		"\n3 passed, 3 failed, 0 skipped")
	testkit.Equal(t, "remaining clusters", fmt.Sprint(s.Clusters()), "[]")
	p.Empty()
	secrets := []string{"p@ss/w:rd%", "p%40ss%2Fw%3Ard%25", "s3cretkey"}
	for _, body := range s.Bodies() {
		for _, key := range []string{"password", "auth_key"} {
			if secret, _ := body[key].(string); secret != "" {
				secrets = append(secrets, secret)
			}
		}
	}
	testkit.Equal(t, "the clusters had passwords", len(secrets) >= 7, true)
	texts := outputs(folder(t, dir))
	delete(texts, mine)
	texts["standard output and error"] = end.All()
	for _, secret := range secrets {
		texts.spotless(t, "ann", secret)
	}
	for _, r := range records(t, report) {
		if r.Status == "failed" {
			testkit.Contains(t, r.RerunCommand, "--orchestration "+s.URL, "--cluster sharded-auth", "--topology ")
			testkit.Equal(t, "it has --server-version", strings.Contains(r.RerunCommand, "--server-version"), false)
		}
	}
}

// The clusters that a killed run created on a service can be removed from another machine. Those of a running run
// cannot.
func TestSweptFromElsewhere(t *testing.T) {
	t.Parallel()
	s := fakeorchestration.Start(t)
	elsewhere := utrtest.NewPlace(t)
	sweep := []string{"clean", "--orchestration", s.URL, "--older-than", "1ns"}
	u := utrtest.NewPlace(t).Start("run", "--orchestration", s.URL, "--cluster", "sharded", suiteFile(t, armed))
	u.Until("the cluster exists", func() bool { return len(s.Clusters()) > 0 })
	elsewhere.Run(sweep...).Want(0, "nothing was left")
	u.Signal(syscall.SIGKILL)
	u.Exit()
	elsewhere.Run(sweep...).Want(0, "removed: cluster utr-sharded-", "removed 1, left 0")
	testkit.Equal(t, "remaining clusters", len(s.Clusters()), 0)
}

// With the real mongo-orchestration and our own mongod and mongos: suites pass on clusters that share the work, and
// through the proxy for fail points in front of load balancers; everything is removed except a data folder that a
// configuration names, and utr clean removes the cluster that a killed run was creating. soak/orchestration covers
// other kinds of clusters and other ends of a run.
func TestMongoOrchestration(t *testing.T) {
	t.Parallel()
	o := utrtest.Orchestrate(t)
	end := o.Begin("--cluster", "replicaset-one-auth-tls", "--clusters", "2", "--run", "distinct",
		"retryable-reads").End().Want(0, " passed, 0 failed, ")
	testkit.Equal(t, "nothing ran", strings.Contains("\n"+end.Out, "\n0 passed"), false)
	o.Vacant()
	o.Begin("--cluster", "load-balanced", "--fail-points", "proxy", "retryable-reads/collection-distinct.yml").End().
		Want(0, "\n23 passed, 0 failed, ")
	o.Vacant()
	data, mine := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "mine.json")
	testkit.Check(t, os.MkdirAll(filepath.Join(data, "of a user"), 0o700))
	testkit.Check(t, os.WriteFile(mine, fmt.Appendf(nil, `{"procParams": {"dbpath": %q}}`, data), 0o600))
	o.Begin("--cluster", mine, suiteFile(t, reads)).End().Want(0, mine+": dbpath is ignored")
	_, err := os.Stat(filepath.Join(data, "of a user"))
	testkit.Check(t, err)
	o.Vacant()
	u := o.Begin("--cluster", "replicaset", suiteFile(t, armed))
	u.Until("the cluster is being created", func() bool { return len(o.Processes()) > 0 })
	u.Signal(syscall.SIGKILL)
	u.Exit()
	o.Run("clean").Want(0, "removed 1, left 0")
	o.Vacant()
}

// The cells of orchestration.yml with access control and TLS run twice on the real service, with a few suites. utr diff
// lists new failures first. Nothing is left in between.
func TestOrchestratedNight(t *testing.T) {
	t.Parallel()
	o := utrtest.Orchestrate(t)
	text := testkit.Read(t, filepath.Join(testkit.Root(t), "docs", "examples", "orchestration.yml"))
	failing := suiteFile(t, misread)
	night := func(name string, suites string) (report string, end utrtest.Result) {
		dir := t.TempDir()
		file, report := filepath.Join(dir, "orchestration.yml"), filepath.Join(dir, name+".json")
		made := strings.Replace(text, "[retryable-reads, retryable-writes, client-backpressure]", suites, 1)
		testkit.Check(t, os.WriteFile(file, []byte(made), 0o600))
		o.Run("clean", "--orchestration", o.URL).Want(0)
		end = o.Run("matrix", file, "--set", "MO_URL="+o.URL, "--only", "^replicaset-auth-tls_reference", "--results",
			t.TempDir(), "--json", report)
		o.Run("clean", "--orchestration", o.URL).Want(0, "nothing was left")
		o.Vacant()
		return report, end
	}
	first, end := night("first", "[smoke]")
	end.Want(0, " passed, 0 failed, 0 skipped")
	second, end := night("second", "[smoke, "+failing+"]")
	end.Want(1, failing+":11:")
	changes := o.Run("diff", first, second).Want(1).Out
	testkit.Equal(t, "new failures come first", strings.Contains(changes, "\n\nnew failures:\n"), true)
}
