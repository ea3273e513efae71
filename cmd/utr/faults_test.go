//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// A server that dies during a test breaks the test, which neither fails nor passes. Later tests run if another
// deployment is available or can be started.
func TestServerKilled(t *testing.T) {
	type run struct {
		args  []string
		hosts func() []string // of the deployment of the second test
		kill  func()
		after func(end utrtest.Result)
	}
	for _, r := range []struct {
		reason string
		on     func(t *testing.T, p *utrtest.Place) run
		third  string // the status of the third test
		prints []string
	}{
		{"an existing deployment", func(t *testing.T, p *utrtest.Place) run {
			server := p.Serve("--topology", "replicaset")
			return run{[]string{"--uri", server.URI}, func() []string { return utrtest.Hosts(server.URI) }, func() { server.Signal(syscall.SIGKILL) },
				func(end utrtest.Result) { end.Want(3, utrtest.Hosts(server.URI)[0]) }}
		}, "skipped", []string{"broken", "stopped answering", "1 passed, 0 failed"}},
		{"a server of --local, whose logs are kept", func(t *testing.T, p *utrtest.Place) run {
			return run{[]string{"--local", release(t), "--topology", "single", "--auth", "off"}, func() []string {
				logs, _ := filepath.Glob(filepath.Join(p.Temp, "utr-*", "*.log"))
				text := testkit.Read(t, strings.Join(logs, ""))
				return []string{"127.0.0.1:" + listens.FindStringSubmatch(text)[1]}
			}, func() { testkit.Check(t, syscall.Kill(servers(t, p)[0], syscall.SIGKILL)) }, func(end utrtest.Result) {
				end.Want(3, "the logs of the servers are in "+p.Temp)
				testkit.Equal(t, "the ledger", p.Entries(""), "[]")
				kept, _ := filepath.Glob(filepath.Join(p.Temp, "utr-*", "*"))
				logs, _ := filepath.Glob(filepath.Join(p.Temp, "utr-*", "*.log"))
				testkit.Equal(t, fmt.Sprint("one log of each cluster is kept: ", kept), fmt.Sprint(len(kept), len(logs)), "2 2")
			}}
		}, "passed", []string{"the deployment stopped answering: mongod ended: signal: killed"}},
		{"one of two clusters of a service", func(t *testing.T, _ *utrtest.Place) run {
			s := twin.Start(t)
			s.Add(t, "servers", "a", embedded.Options{})
			s.Add(t, "servers", "b", embedded.Options{})
			args := []string{"--jobs", "1", "--orchestration", s.URL, "--cluster", "id:a", "--cluster", "id:b"}
			return run{args, func() []string { return utrtest.Hosts(uriOf(t, s, "a")) }, func() { s.Kill("servers/a") },
				func(utrtest.Result) { testkit.Equal(t, "remaining clusters", len(s.Clusters()), 2) }}
		}, "passed", nil},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p, report := utrtest.NewPlace(t), filepath.Join(t.TempDir(), "r.json")
			on := r.on(t, p)
			args := []string{"run", "-v", "--jobs", "1", "--uri-option", "serverSelectionTimeoutMS=1000", "--json", report, suiteFile(t, blocked)}
			u := p.Start(append(args, on.args...)...)
			u.Line("passed blocked: first")
			triggered(t, on.hosts()...)
			on.kill()
			end := u.End().Want(3, r.prints...)
			var statuses []string
			for _, r := range records(t, report) {
				statuses = append(statuses, r.Test, r.Status)
			}
			testkit.Equal(t, "the tests", statuses, "[first passed second broken third "+r.third+"]")
			on.after(end)
		})
	}
}

// listens matches the log line with a server's port.
var listens = regexp.MustCompile(`"Waiting for connections".*"port":(\d+)`)

// many is a suite whose reports exceed the quota of limited.
func many() string {
	var suite strings.Builder
	suite.WriteString("description: many\nschemaVersion: \"1.10\"\ntests:\n")
	for i := range 300 {
		fmt.Fprintf(&suite, "  - {description: \"test %d\", operations: []}\n", i)
	}
	return suite.String()
}

// limited runs utr, which may not write files of more than 8 blocks of 512 bytes.
func limited(t *testing.T, args ...string) utrtest.Result {
	t.Helper()
	command := append([]string{"-c", `ulimit -f 8 || exit 99; exec "$@"`, "sh", utrtest.Command(t)}, args...)
	end := utrtest.NewPlace(t).Launch(exec.Command("sh", command...)).End()
	if end.Code == 99 {
		t.Skip("not verified: this shell cannot limit file sizes")
	}
	return end
}

// When a cell of a matrix cannot write its report and its log, the matrix says why, and the other cells run.
func TestQuotaForResults(t *testing.T) {
	dir := t.TempDir()
	file := suiteFile(t, "clusters: {name: c, embedded: single}\nsuites: [{name: many, paths: ["+suiteFile(t, many())+"]}, smoke]\n")
	summary := filepath.Join(dir, "night.md")
	end := limited(t, "matrix", file, "--results", filepath.Join(dir, "results"), "--markdown", summary)
	end.Want(3, "1/2 ✘ c_reference_many: ", "file too large", "2/2 ✔ c_reference_smoke: 1 passed", "\nskipped 300: not-run: ")
	testkit.Contains(t, testkit.Read(t, summary), "cell c\\_reference\\_many broke: exit code 3: writing the report to ", "file too large")
}

// When a quota is exceeded while reports are written, the run finishes and names each report that it could not write.
// A file that had an earlier report says that this run has not finished.
func TestQuotaForReports(t *testing.T) {
	dir := t.TempDir()
	earlier, fresh, small := filepath.Join(dir, "earlier.json"), filepath.Join(dir, "fresh.tap"), filepath.Join(dir, "small.svg")
	testkit.Check(t, os.WriteFile(earlier, []byte("earlier"), 0o600))
	end := limited(t, "run", "--topology", "single", "--json", earlier, "--tap", fresh, "--badge", small, suiteFile(t, many()))
	end.Want(3,
		"writing the report to "+earlier+": write "+earlier+".partial: file too large; it says that the run has not finished",
		"writing the report to "+fresh+": write "+fresh+".partial: file too large")
	testkit.Equal(t, "the text is complete", strings.HasSuffix(end.Out, "300 passed, 0 failed, 0 skipped"), true)
	left := folder(t, dir)
	testkit.Equal(t, "files", len(left), 3)
	testkit.Contains(t, left[earlier], `"breaks":[{"reason":"it has not finished"}]`)
	testkit.Contains(t, left[fresh], "\nBail out! it has not finished\n")
	testkit.Equal(t, "the small report is complete", strings.HasSuffix(strings.TrimSpace(left[small]), "</svg>"), true)
}

// A second run on one deployment is refused with the name of the first, utr clean changes nothing, and a third run
// waits until the first has ended.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	p := utrtest.NewPlace(t)
	w := newWitness(t, p.Serve("--topology", "replicaset").URI)
	first := p.Start("run", "--uri", w.uri, "--lock-name", "the first", suiteFile(t, armed))
	w.sees()
	testkit.Equal(t, "the process that has the lock", w.holder(), first.Process.Pid)
	host, _ := os.Hostname()
	user := fmt.Sprintf("is in use by a run on host %s, process %d", host, first.Process.Pid)
	p.Run("run", "--uri", w.uri, suiteFile(t, reads)).Want(3, user, "(the first)", "--wait-for-lock", "utr clean --uri")
	p.Run("clean", "--uri", w.uri).Want(3, "it is in use by a run on host ")
	testkit.Equal(t, "the fail point of the first run is on", w.ping() != nil, true)
	third := p.Start("run", "--uri", w.uri, "--wait-for-lock", "10m", suiteFile(t, reads))
	third.WaitStderr("utr: waiting up to 10m0s for the deployment")
	first.Signal(syscall.SIGINT)
	third.End().Want(0)
	first.End().Want(3)
	w.free()
}

// A container with the host name and the ledger of a run cannot see its process: the run's lock and fail point stay on.
func TestAnotherContainer(t *testing.T) {
	t.Parallel()
	container := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if err := exec.CommandContext(testkit.Context(t), "unshare", append(container, "true")...).Run(); err != nil {
		t.Skip("not verified: no PID namespaces: ", err)
	}
	p := utrtest.NewPlace(t)
	w := newWitness(t, p.Serve("--topology", "replicaset").URI)
	first := p.Start("run", "--uri", w.uri, suiteFile(t, armed))
	w.sees()
	inside := func(args ...string) utrtest.Result {
		return p.Launch(exec.Command("unshare", append(append(container, utrtest.Command(t)), args...)...)).End()
	}
	inside("clean", "--uri", w.uri).Want(3, "run utr clean there", "it is in use by a run on host ")
	inside("run", "--uri", w.uri, suiteFile(t, reads)).Want(3, "is in use by a run on host ")
	testkit.Equal(t, "the fail point of the first run is on", w.ping() != nil, true)
	first.Signal(syscall.SIGINT)
	first.End().Want(3)
	w.free()
}
