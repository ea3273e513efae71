//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// A run on several clusters of each kind leaves none of them, none of its
// outputs has their passwords, and a failure names the line of its suite.
func TestOrchestrationEndToEnd(t *testing.T) {
	t.Parallel()
	s := twin.Start(t)
	p := utrtest.NewPlace(t, "UTR_URI=mongodb://127.0.0.1:1")
	dir := t.TempDir()
	report, page, mine := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html"), filepath.Join(dir, "mine.json")
	text := `{"id": "mine", "login": "ann", "password": "p@ss/w:rd%", "auth_key": "s3cretkey", "members": [{}, {}]}`
	if err := os.WriteFile(mine, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	failing := suiteFile(t, misread)
	end := p.Run("run", "-v", "--events", "--topology", "all", "--orchestration", s.URL,
		"--cluster", "sharded-auth", "--cluster", mine, "--cluster", "single", "--clusters", "2", "--json", report, "--html", page,
		"--uri-option", "compressors=zlib", suiteFile(t, reads), failing).Want(1, failing+":10:", "\n3 passed, 3 failed, 0 skipped")
	if left := s.Clusters(); len(left) != 0 {
		t.Errorf("clusters are left: %v", left)
	}
	p.Empty()
	secrets := []string{"p@ss/w:rd%", "p%40ss%2Fw%3Ard%25", "s3cretkey"}
	for _, body := range s.Bodies() {
		for _, key := range []string{"password", "auth_key"} {
			if secret, _ := body[key].(string); secret != "" {
				secrets = append(secrets, secret)
			}
		}
	}
	if len(secrets) < 7 {
		t.Errorf("only %d secrets: the clusters had no passwords", len(secrets))
	}
	outputs := folder(t, dir)
	delete(outputs, mine)
	outputs["what it said"] = end.All()
	for what, output := range outputs {
		for _, secret := range secrets {
			if i := strings.Index(output, secret); i >= 0 {
				t.Errorf("%s holds %q: …%s…", what, secret, output[max(0, i-100):min(len(output), i+40)])
			}
		}
	}
	for _, r := range records(t, report) {
		if r.Status == "failed" && (!strings.Contains(r.RerunCommand, "--orchestration "+s.URL) || !strings.Contains(r.RerunCommand, "--cluster sharded-auth") ||
			!strings.Contains(r.RerunCommand, "--topology ") || strings.Contains(r.RerunCommand, "--server-version")) {
			t.Errorf("it is run again by %s", r.RerunCommand)
		}
	}
}

// A run on a cluster that a service had before leaves its lock and its fail point
// there when it is killed: utr clean knows of them, and removes both.
func TestKilledOnAnExistingCluster(t *testing.T) {
	t.Parallel()
	s := twin.Start(t)
	s.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
	client, err := orchestration.New(s.URL, orchestration.Limits{})
	testkit.Check(t, err)
	defer client.Close()
	mine, err := client.Find(testkit.Context(t), "mine")
	testkit.Check(t, err)
	p, w := utrtest.NewPlace(t), newWitness(t, mine.URI)
	args := []string{"run", "--orchestration", s.URL, "--cluster", "id:mine"}
	u := p.Start(append(args, suiteFile(t, armed))...)
	w.sees()
	u.Signal(syscall.SIGKILL)
	u.Exit()
	p.Run("clean", "--dry-run").Want(0, "lock document in utr.lock", "1 things are left")
	p.Run("clean").Want(0, "taken away: the lock of a run", "failCommand")
	w.free()
	p.Run(append(args, suiteFile(t, reads))...).Want(0)
	p.Empty()
}

// With the real mongo-orchestration and our own mongod and mongos: suites pass
// on clusters that share the work, nothing is left, a folder that a file names
// keeps what is in it, and utr clean removes the cluster that a killed run was about to make. Other kinds of clusters, and
// other ends of a run, are in soak/orchestration.
func TestMongoOrchestration(t *testing.T) {
	t.Parallel()
	o := utrtest.Orchestrate(t)
	end := o.Begin("--cluster", "replicaset-one-auth-tls", "--clusters", "2", "--run", "distinct", "retryable-reads").End().Want(0, " passed, 0 failed, ")
	if strings.HasPrefix(end.Out, "0 passed") || strings.Contains(end.Out, "\n0 passed") {
		t.Errorf("nothing ran: %s", end.Out)
	}
	o.Vacant()
	precious, mine := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "mine.json")
	testkit.Check(t, os.MkdirAll(filepath.Join(precious, "of a user"), 0o700))
	testkit.Check(t, os.WriteFile(mine, fmt.Appendf(nil, `{"procParams": {"dbpath": %q}}`, precious), 0o600))
	o.Begin("--cluster", mine, suiteFile(t, reads)).End().Want(0, mine+": dbpath is left out")
	if _, err := os.Stat(filepath.Join(precious, "of a user")); err != nil {
		t.Errorf("a user's folder went with the cluster: %v", err)
	}
	o.Vacant()
	u := o.Begin("--cluster", "replicaset", suiteFile(t, armed))
	testkit.Until(t, "the cluster is being made", func() bool { return len(o.Processes()) > 0 })
	u.Signal(syscall.SIGKILL)
	u.Exit()
	o.Run("clean").Want(0, "1 things were taken away, 0 are left")
	o.Vacant()
}
