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

// nightFile is a matrix of 24 cells, 6 of them on a cluster that is there already.
const nightFile = `clusters: [{orchestration: {url: %q, cluster: [%s]}}]
engines: [reference, driver]
suites:
- {name: arming, paths: [%q]}
- {name: reads, paths: [retryable-reads/collection-distinct.yml]}
- {name: writes, paths: [retryable-writes/collection-insertOne.yml]}
`

// arming leaves its fail point on in each run that is killed while it waits.
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

// A night is killed at random, again and again, by itself or with its container,
// and resumed each time. Another host, which sees neither its processes nor its
// ledger, finds all that it left.
func TestNightIsKilled(t *testing.T) {
	const kills = 20
	if err := container("true").Run(); err != nil {
		t.Skip("not proved: no namespaces for another host: ", err)
	}
	o, elsewhere := utrtest.Orchestrate(t), utrtest.NewPlace(t)
	mine := fmt.Sprint(o.Call("PUT", "replica_sets/mine", map[string]any{"members": []any{map[string]any{}}})["mongodb_uri"])
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
	said, resume := "", []string(nil)
	missing := func() bool { // in what was found by chance
		return slices.ContainsFunc([]string{"cluster utr-single-", "cluster utr-replicaset-one-", "cluster utr-sharded-", "the lock of ", "turned off: "},
			func(what string) bool { return !strings.Contains(said, what) })
	}
	killed := 0
	for killed < kills || missing() && killed < 5*kills {
		// Each cluster comes first now and then: what runs late would never be killed.
		random.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		testkit.Check(t, os.WriteFile(file, fmt.Appendf(nil, nightFile, o.URL, strings.Join(clusters, ", "), suite), 0o600))
		command := exec.Command(night[0], append(night[1:], resume...)...)
		if random.IntN(4) > 0 { // its cells get SIGKILL, too, and cannot clean up
			command = container(append(night, resume...)...)
		}
		u := utrtest.NewPlace(t).Launch(command)
		time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
		if u.Ended() { // before it could be killed: all cells are finished
			u.End().Want(0, "24 cells", " 0 failed, ")
			resume = nil
			continue
		}
		u.Signal(syscall.SIGKILL)
		u.Exit()
		killed++
		resume = []string{"--resume"}
		// What the service was making turns up, and the lease of the lock passes.
		for late := time.Now().Add(3 * testkit.Patience); ; time.Sleep(time.Second) {
			swept, freed := clean("--orchestration", o.URL, "--older-than", "10s"), clean("--uri", mine)
			said += swept.Out + freed.Out
			left := fmt.Sprint(o.IDs(), len(o.Processes()))
			if swept.Code == 0 && freed.Code == 0 && left == kept && writes(t, mine) == nil {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("kill %d: %s is left, want %s:\n%s\n%s", killed, left, kept, swept.All(), freed.All())
			}
		}
	}
	t.Logf("killed %d times; utr clean said:\n%s", killed, said)
	testkit.Equal(t, "a kind of thing was never left", missing(), false)
	home := utrtest.NewPlace(t)
	home.Launch(exec.Command(night[0], append(night[1:], resume...)...)).End().Want(0, "24 cells", " 0 failed, ")
	clean("--uri", mine).Want(0)
	testkit.Equal(t, "left by the last night", fmt.Sprint(o.IDs(), len(o.Processes())), kept)
	home.Empty()
}

// container is a command in what looks like another host with the same network:
// its name and processes are its own, and end with it. They end at once because its
// first process is a shell: if it were the command, what the command started would
// notice first that its pipes are closed, and clean up.
func container(args ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{"--user", "--map-root-user", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child",
		"sh", "-c", `hostname elsewhere && "$0" "$@"; exit $?`}, args...)...)
}
