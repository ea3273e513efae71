//go:build unix

package orchestration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// nightFile is a matrix of 24 cells, 6 of them on an existing cluster.
const nightFile = `clusters: [{orchestration: {url: %q, cluster: [%s]}}]
engines: [reference, driver]
suites:
- {name: arming, paths: [%q]}
- {name: reads, paths: [retryable-reads/collection-distinct.yml]}
- {name: writes, paths: [retryable-writes/collection-insertOne.yml]}
`

// arming leaves its fail point on if the run is killed during the wait.
const arming = `description: "arming"
schemaVersion: "1.10"
createEntities:
  - client: {id: client, useMultipleMongoses: false}
tests:
  - description: "three seconds with a fail point"
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint: {configureFailPoint: failCommand, mode: alwaysOn, data: {failCommands: [insert], errorCode: 8}}
      - {name: wait, object: testRunner, arguments: {ms: 3000}}
`

// A run of a matrix is repeatedly killed at a random time, alone or with its container,
// and resumed. Each time, another host, which sees neither its processes nor its ledger,
// cleans up everything that it left.
func TestNightIsKilled(t *testing.T) {
	const kills = 20
	if err := container("true").Run(); err != nil {
		t.Skip("not verified: no namespaces for another host: ", err)
	}
	o, elsewhere := utrtest.Orchestrate(t), utrtest.NewPlace(t)
	mine := fmt.Sprint(o.Call("PUT", "replica_sets/mine",
		map[string]any{"members": []any{map[string]any{}}})["mongodb_uri"])
	kept := fmt.Sprint(o.IDs(), len(o.Processes()))
	clean := func(args ...string) utrtest.Result {
		return elsewhere.Launch(container(append([]string{utrtest.Command(t), "clean"}, args...)...)).End()
	}
	dir := t.TempDir()
	file, suite := filepath.Join(dir, "night.yml"), filepath.Join(dir, "arming.yml")
	testkit.Check(t, os.WriteFile(suite, []byte(arming), 0o600))
	night := []string{utrtest.Command(t), "matrix", file, "--jobs", "2", "--results", filepath.Join(dir, "results")}

	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	clusters := []string{"single", "replicaset-one", "sharded", `"id:mine"`}
	cleaned, resume := "", []string(nil)
	missing := func() bool { // a kind of leftover that was not cleaned yet
		return slices.ContainsFunc([]string{"cluster utr-single-", "cluster utr-replicaset-one-", "cluster utr-sharded-",
			"the lock of ", "turned off: "},
			func(what string) bool { return !strings.Contains(cleaned, what) })
	}
	killed := 0
	for killed < kills || missing() && killed < 5*kills {
		// Clusters that always run late would never be killed.
		random.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		testkit.Check(t, os.WriteFile(file, fmt.Appendf(nil, nightFile, o.URL, strings.Join(clusters, ", "), suite), 0o600))
		command := exec.Command(night[0], append(night[1:], resume...)...)
		if random.IntN(4) > 0 { // cells also get SIGKILL and cannot clean up
			command = container(append(night, resume...)...)
		}
		u := utrtest.NewPlace(t).Launch(command)
		time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
		if u.Ended() { // all cells finished before the kill
			u.End().Want(0, "24 cells", " 0 failed, ")
			resume = nil
			continue
		}
		u.Signal(syscall.SIGKILL)
		u.Exit()
		killed++
		resume = []string{"--resume"}
		// Wait until the service has created pending clusters and the lease of the lock has expired.
		for late := time.Now().Add(3 * testkit.Patience); ; time.Sleep(time.Second) {
			swept, freed := clean("--orchestration", o.URL, "--older-than", "10s"), clean("--uri", mine)
			cleaned += swept.Out + freed.Out
			left := fmt.Sprint(o.IDs(), len(o.Processes()))
			if swept.Code == 0 && freed.Code == 0 && left == kept && writes(t, mine) == nil {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("kill %d: %s is left, want %s:\n%s\n%s", killed, left, kept, swept.All(), freed.All())
			}
		}
	}
	t.Logf("killed %d times; utr clean printed:\n%s", killed, cleaned)
	testkit.Equal(t, "a kind of leftover never occurred", missing(), false)
	home := utrtest.NewPlace(t)
	home.Launch(exec.Command(night[0], append(night[1:], resume...)...)).End().Want(0, "24 cells", " 0 failed, ")
	clean("--uri", mine).Want(0)
	testkit.Equal(t, "left over by the last run", fmt.Sprint(o.IDs(), len(o.Processes())), kept)
	home.Empty()
}

// container returns a command that runs in a container with its own host name and
// processes and the same network. When it is killed, all processes end at once because
// its first process is a shell. If the first process were the command, its children
// would see closed pipes first, and clean up.
func container(args ...string) *exec.Cmd {
	return exec.Command("unshare",
		append([]string{"--user", "--map-root-user", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child",
			"sh", "-c", `hostname elsewhere && "$0" "$@"; exit $?`}, args...)...)
}
