//go:build unix

package command

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// Under nohup, SIGHUP is ignored.
func TestHangUpIsIgnored(t *testing.T) {
	t.Parallel()
	u := utrtest.NewPlace(t).Launch(exec.Command("sh", "-c", `trap "" HUP; exec "$@"`, "sh", utrtest.Command(t), "serve",
		"--topology", "single"))
	w := newWitness(t, u.Line("mongodb://"))
	for range 2 {
		testkit.Check(t, w.ping())
		u.Signal(syscall.SIGHUP)
	}
	testkit.Equal(t, "after SIGHUP", w.ping(), nil)
	u.Signal(syscall.SIGTERM)
	u.End().Want(0)
}

// A signal interrupts a run while it starts clusters that never become ready.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	halfway := utrtest.Release(t) // with a mongos that never becomes ready
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo mongos version v8.0.4; exit; }\nexec sleep 600\n"
	mongos := filepath.Join(halfway, "bin", "mongos")
	testkit.Check(t, os.Remove(mongos)) // a link
	testkit.Check(t, os.WriteFile(mongos, []byte(script), 0o755))
	suite := strings.Replace(armed, "tests:\n",
		"runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n", 1)
	p := utrtest.NewPlace(t)
	u := p.Start("run", "--local", halfway, "--topology", "all", suiteFile(t, suite))
	u.Until("the servers are started", func() bool { return len(servers(t, p)) == 6 })
	pids := servers(t, p)
	u.Signal(os.Interrupt)
	u.End().Want(3)
	gone(t, pids...)
	p.Empty()
}

// When the deployment does not answer, the clean-up ends after its time limit and reports what is left. A second signal
// ends it immediately.
func TestInterruptWithoutAnswer(t *testing.T) {
	for _, signals := range [][]os.Signal{{syscall.SIGTERM}, {syscall.SIGTERM, os.Interrupt}} {
		t.Run(fmt.Sprint(signals), func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			server := p.Serve("--topology", "single")
			u := p.Start("run", "-v", "--uri", server.URI, suiteFile(t, armed))
			newWitness(t, server.URI).sees(u)
			server.Freeze()
			for _, signal := range signals {
				u.Signal(signal)
				u.WaitStderr("cleaning up (fail points, sessions, clients); this takes up to")
			}
			end := u.End().Want(3)
			left := strings.Contains(end.Out, "interrupted; clean-up: ") &&
				strings.Contains(end.Out, "fail point failCommand could not be turned off")
			testkit.Equal(t, "what is left is reported in "+end.Out, left, len(signals) == 1)
		})
	}
}

// Whenever a run is interrupted, no test is broken because of it.
func TestInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	for _, tests := range []int{1, 2, 3, 5, 8, 13} {
		u := utrtest.NewPlace(t).Start("run", "-v", "--jobs", "4", "--topology", "replicaset", "retryable-reads")
		for range tests {
			u.Line("passed ")
		}
		u.Signal(os.Interrupt)
		end := u.End().Want(3, " not run")
		testkit.Equal(t, fmt.Sprintf("broken after %d tests", tests), regexp.MustCompile(`(?m)^(broken|failed) .*`).FindString(end.Out), "")
	}
}

// place is the deployment of a run.
type place struct {
	args  []string // of the run
	uri   string   // of an existing deployment, or ""
	after func()   // checks what is left
}

func existing(t *testing.T, p *utrtest.Place) place {
	uri := p.Serve("--topology", "replicaset").URI
	return place{args: []string{"--uri", uri}, uri: uri}
}

func local(t *testing.T, _ *utrtest.Place) place {
	return place{args: []string{"--local", utrtest.Release(t), "--topology", "sharded", "--auth", "off"}}
}

// A signal during a test ends a run on any deployment. The run reports what ran and leaves nothing. After SIGKILL
// nothing is cleaned up, but on Linux servers end with the run; utr clean, or the next run on the same deployment,
// removes the rest.
func TestEnds(t *testing.T) {
	for _, r := range []struct {
		reason  string
		signal  syscall.Signal
		on      func(t *testing.T, p *utrtest.Place) place
		folders int      // after SIGKILL
		clean   string   // the command that removes the rest
		prints  []string // by that command
	}{
		{"SIGINT turns off the fail points of an existing deployment", syscall.SIGINT, existing, 0, "", nil},
		{"SIGTERM ends the servers of --local", syscall.SIGTERM, local, 0, "", nil},
		{"SIGHUP removes the clusters of a service", syscall.SIGHUP, func(t *testing.T, _ *utrtest.Place) place {
			s := fakeorchestration.Start(t)
			return place{[]string{"--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster",
				"replicaset-auth"}, "",
				func() { testkit.Equal(t, "remaining clusters", fmt.Sprint(s.Clusters()), "[]") }}
		}, 0, "", nil},
		{"killed, with servers of --local", syscall.SIGKILL, local, 1, "clean", nil},
		{"killed, with certificates of an embedded deployment", syscall.SIGKILL, func(*testing.T, *utrtest.Place) place {
			return place{args: []string{"--tls", "--topology", "single", "--auth", "off"}}
		}, 1, "clean", nil},
		{"killed, on an existing deployment", syscall.SIGKILL, existing, 0, "clean", []string{"failCommand", "removed"}},
		{"cleaned elsewhere", syscall.SIGKILL, existing, 0, "clean --uri URI", []string{"failCommand", "removed"}},
		{"cleaned by the next run", syscall.SIGKILL, existing, 0, "run --uri URI READS",
			[]string{"took over the lock", "turned off: failCommand"}},
		{"killed, on an existing cluster of a service", syscall.SIGKILL, func(t *testing.T, _ *utrtest.Place) place {
			s := fakeorchestration.Start(t)
			s.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
			return place{args: []string{"--orchestration", s.URL, "--cluster", "id:mine"}, uri: uriOf(t, s, "mine")}
		}, 0, "clean", []string{"removed: the lock of a run", "failCommand"}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			on := r.on(t, p)
			u, pids := begin(t, p, on.args...)
			if slices.Contains(on.args, "sharded") {
				testkit.Equal(t, "servers", len(pids), 4)
			}
			if on.uri != "" {
				w := newWitness(t, on.uri)
				w.sees(u)
				testkit.Equal(t, "the process that has the lock", w.holder(), int64(u.Process.Pid))
				defer w.free()
			}
			u.Signal(r.signal)
			if r.signal != syscall.SIGKILL {
				u.Line("interrupted: 1 of ")
				u.Line("1 passed, 0 failed, ")
				u.End().Want(3, "utr: interrupted: cleaning up")
			} else {
				u.Exit()
				testkit.Equal(t, "remaining folders", len(p.Folders()), r.folders)
				if runtime.GOOS == "linux" {
					gone(t, pids...)
				}
				if strings.Contains(r.clean, "URI") {
					p = utrtest.NewPlace(t) // with another ledger
				}
				clean := strings.Fields(strings.NewReplacer("URI", on.uri, "READS", suiteFile(t, reads)).Replace(r.clean))
				p.Run(clean...).Want(0, r.prints...)
				p.Run("clean").Want(0, "nothing was left")
			}
			gone(t, pids...)
			p.Empty()
			if on.after != nil {
				on.after()
			}
		})
	}
}

// utr clean removes only what a killed run left at an orchestration service.
func TestKilledAtAService(t *testing.T) {
	t.Parallel()
	s := fakeorchestration.Start(t)
	s.Add(t, "servers", "existing", embedded.Options{})
	p := utrtest.NewPlace(t)
	args := []string{"--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth"}
	running, _ := begin(t, p, args...)
	killed, _ := begin(t, p, args...)
	killed.Signal(syscall.SIGKILL)
	killed.Exit()
	testkit.Equal(t, "clusters and entries", fmt.Sprint(len(s.Clusters()), " ", len(p.Entries(""))), "5 4")
	p.Run("clean").Want(0, "removed 2, left 0")
	testkit.Equal(t, "clusters and entries of the other run",
		fmt.Sprint(len(s.Clusters()), " ", len(p.Entries(""))), "3 2")
	running.Signal(syscall.SIGINT)
	running.Exit()
	testkit.Equal(t, "remaining clusters", fmt.Sprint(s.Clusters()), "[servers/existing]")
}

// Errors name a port that is taken, and a host that accepts a connection but never answers.
func TestForeignPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	taken := l.Addr().String()
	_, port, _ := strings.Cut(taken, ":")
	uri := "mongodb://" + taken + "/?serverSelectionTimeoutMS=100"
	p := utrtest.NewPlace(t)
	p.Run("serve", "--topology", "single", "--port", port).Want(3, "listen tcp "+taken, "address already in use")
	p.Run("run", "--uri", uri, suiteFile(t, reads)).Want(3, taken+" did not answer within 100ms", "does not answer")
	p.Run("clean", "--uri", uri).Want(3, taken)
}
