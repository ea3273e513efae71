//go:build unix

package command

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// night is a matrix of a quick cell, one that takes minutes, and another quick one.
type night struct {
	*utrtest.Place
	t             *testing.T
	file, results string
}

func newNight(t *testing.T) *night {
	t.Helper()
	t.Parallel()
	return nightAt(t, utrtest.NewPlace(t))
}

func nightAt(t *testing.T, p *utrtest.Place) *night {
	t.Helper()
	n := &night{p, t, "", filepath.Join(t.TempDir(), "results")}
	n.file = suiteFile(t, "defaults: {jobs: 1}\nclusters: [{name: c, embedded: single}]\nsuites:\n- smoke\n- {name: slow, paths: ["+suiteFile(t, armed)+"]}\n"+
		"- {name: again, paths: [smoke], retry-failed: 1}\n")
	return n
}

// replace changes the matrix file.
func (n *night) replace(old, text string) {
	n.t.Helper()
	all := testkit.Read(n.t, n.file)
	testkit.Check(n.t, os.WriteFile(n.file, []byte(strings.Replace(all, old, text, 1)), 0o600))
}

// begin starts the matrix, and waits until the slow cell runs: its report has the first test.
func (n *night) begin(args ...string) *utrtest.Process {
	n.t.Helper()
	u := n.Start(append([]string{"matrix", n.file, "--results", n.results}, args...)...)
	u.Until("the slow cell runs", func() bool {
		text, _ := os.ReadFile(filepath.Join(n.results, "c_reference_slow.json.partial"))
		return strings.Contains(string(text), `"status":"passed"`)
	})
	return u
}

// resume resumes some cells.
func (n *night) resume(only string) utrtest.Result {
	n.t.Helper()
	return n.Run("matrix", n.file, "--results", n.results, "--resume", "--only", only)
}

// child returns the process id of the running cell.
func child(t *testing.T, u *utrtest.Process) (pid int) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("not verified: requires /proc")
	}
	stat := regexp.MustCompile(`^(\d+) \(.*\) \S ` + strconv.Itoa(u.Process.Pid) + " ")
	u.Until("the process of the cell has started", func() bool {
		files, _ := filepath.Glob("/proc/[0-9]*/stat")
		return slices.ContainsFunc(files, func(file string) bool {
			text, _ := os.ReadFile(file) // the process may have ended
			m := append(stat.FindStringSubmatch(string(text)), "", "")
			pid, _ = strconv.Atoi(m[1])
			return pid != 0
		})
	})
	return pid
}

// A signal ends the running cell, which cleans up, and the matrix. Finished cells are kept.
func TestNightIsInterrupted(t *testing.T) {
	n := newNight(t)
	junit := filepath.Join(t.TempDir(), "night.xml")
	u := n.begin("--junit", junit)
	testkit.Contains(t, testkit.Read(t, junit), `<error message="it has not finished"`)
	u.Signal(syscall.SIGTERM)
	u.Line("2/3 ✘ c_reference_slow: interrupted, 1 passed in ")
	u.Line("2 passed, 0 failed, ")
	u.End().Want(3, "interrupted after 1 of 3 cells")
	log := testkit.Read(t, filepath.Join(n.results, "c_reference_slow.log"))
	testkit.Contains(t, log, "interrupted: 1 of 3 tests ran") // it was not killed
	testkit.Contains(t, testkit.Read(t, junit), `[c_reference_again]" time="0.000">`,
		`<skipped message="not run: interrupted before it began">`,
		`<testcase name="the run" classname="utr" time="0.000">`,
		`<testcase name="cell c_reference_again" classname="utr" time="0.000">`,
		`<error message="interrupted before it began" type="interrupted">`)
	n.resume("smoke|again").Want(0, "2 cells, 1 of them already finished", "\n2 passed, 0 failed, 0 skipped")
}

// Cells end with a matrix that is killed. While they clean up, the next matrix waits.
func TestNightIsKilled(t *testing.T) {
	n := newNight(t)
	server := n.Serve("--topology", "single")
	n.replace("embedded: single", "uri: '"+server.URI+"'")
	u := n.begin()
	pid := child(t, u)
	server.Freeze() // the fail point cannot be turned off
	u.Signal(syscall.SIGKILL)
	u.Exit()
	next := n.Start("matrix", n.file, "--results", n.results, "--resume", "--only", "smoke")
	next.WaitStderr("waiting for the cells of a killed run to clean up")
	server.Signal(syscall.SIGCONT)
	next.End().Want(0, "1 cell, 1 of them already finished")
	gone(t, pid)
}

// The line of a cell names what its process left behind, however the process ended.
func TestNightNamesWhatIsLeft(t *testing.T) {
	n := newNight(t)
	s := fakeorchestration.Start(t)
	s.Misbehave(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
		if method == http.MethodDelete {
			fakeorchestration.Raise(w, "Error: it is stuck")
		}
		return method == http.MethodDelete
	})
	n.replace("embedded: single", "orchestration: {url: '"+s.URL+"', cluster: single}")
	for end, signal := range map[string]func(*utrtest.Process){
		"interrupted; ": func(u *utrtest.Process) { u.Signal(syscall.SIGTERM) },
		"its process died: signal: killed; ": func(u *utrtest.Process) {
			testkit.Check(t,
				syscall.Kill(child(t, u), syscall.SIGKILL))
		},
	} {
		_ = os.RemoveAll(n.results) // otherwise begin would find the earlier report
		u := n.begin("--only", "slow")
		signal(u)
		u.Line("1/1 ✘ c_reference_slow: ", end+"left for utr clean: cluster utr-", " of "+s.URL)
		u.Rest()
		u.End().Want(3)
	}
	s.Misbehave(nil)
	n.Run("clean").Want(0, "removed 2, left 0")
}
