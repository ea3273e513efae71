//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// Each signal ends a run in the middle of a test, says what ran, and leaves
// nothing of the run, whatever it runs on.
func TestSignals(t *testing.T) {
	for _, r := range []struct {
		reason string
		signal syscall.Signal
		// on gives the flags of a run, what to wait for, and a check of what it leaves.
		on func(t *testing.T, p *utrtest.Place) (args []string, wait, after func())
	}{
		{"SIGINT turns off the fail points of a deployment of somebody else", syscall.SIGINT, func(t *testing.T, p *utrtest.Place) ([]string, func(), func()) {
			w := newWitness(t, p.Serve("--topology", "replicaset").URI)
			return []string{"--uri", w.uri}, w.sees, w.free
		}},
		{"SIGTERM ends the servers of --local", syscall.SIGTERM, func(t *testing.T, p *utrtest.Place) ([]string, func(), func()) {
			var pids []int
			return []string{"--local", release(t), "--topology", "sharded", "--auth", "off"}, func() {
				pids = servers(t, p)
				testkit.Equal(t, "servers", len(pids), 4)
			}, func() { gone(t, pids...) }
		}},
		{"SIGHUP removes the clusters of an orchestration service", syscall.SIGHUP, func(t *testing.T, _ *utrtest.Place) ([]string, func(), func()) {
			s := twin.Start(t)
			return []string{"--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth"},
				func() {}, func() { testkit.Equal(t, "clusters that are left", s.Clusters(), "[]") }
		}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			args, wait, after := r.on(t, p)
			u := p.Start(append(append([]string{"run", "-v"}, args...), suiteFile(t, armed))...)
			u.Line(firstPassed)
			wait()
			u.Signal(r.signal)
			u.Line("interrupted: 1 of ")
			u.Line("1 passed, 0 failed, ")
			u.End().Want(3, "utr: interrupted: cleaning up")
			after()
			p.Empty()
		})
	}
}

// Under nohup a terminal that goes away ends nothing.
func TestHangUpIsIgnored(t *testing.T) {
	t.Parallel()
	u := utrtest.NewPlace(t).Launch(exec.Command("sh", "-c", `trap "" HUP; exec "$@"`, "sh", utrtest.Command(t), "serve", "--topology", "single"))
	w := newWitness(t, u.Line("mongodb://"))
	for range 2 {
		testkit.Check(t, w.ping())
		u.Signal(syscall.SIGHUP)
	}
	testkit.Equal(t, "after SIGHUP", w.ping(), nil)
	u.Signal(syscall.SIGTERM)
	u.End().Want(0)
}

// A signal while clusters start that never come up.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	halfway := release(t) // whose mongos never comes up
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo mongos version v8.0.4; exit; }\nexec sleep 600\n"
	testkit.Check(t, os.WriteFile(filepath.Join(halfway, "bin", "mongos"), []byte(script), 0o755))
	asking := strings.Replace(armed, "tests:\n", "runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n", 1)
	p := utrtest.NewPlace(t)
	u := p.Start("run", "--local", halfway, "--topology", "all", suiteFile(t, asking))
	testkit.Until(t, "the servers are started", func() bool { return len(servers(t, p)) == 6 })
	pids := servers(t, p)
	u.Signal(os.Interrupt)
	u.End().Want(3)
	gone(t, pids...)
	p.Empty()
}

// A second signal ends a run at once whose clean-up hangs, since the deployment
// does not answer; without one the clean-up ends by itself, and says what is left.
func TestInterruptWithoutAnswer(t *testing.T) {
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprint(signals), func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			server := p.Serve("--topology", "single")
			u := p.Start("run", "-v", "--uri", server.URI, suiteFile(t, armed))
			newWitness(t, server.URI).sees()
			server.Freeze()
			for range signals {
				u.Signal(syscall.SIGTERM)
				// Two signals of one kind can become one: not before it was noticed.
				u.Hear("cleaning up (fail points, sessions, clients), which a deployment that does not answer can hold up for")
			}
			end := u.End().Want(3)
			left := strings.Contains(end.Out, "interrupted; clean-up: ") && strings.Contains(end.Out, "fail point failCommand could not be turned off")
			testkit.Equal(t, "it says what is left in "+end.Out, left, signals == 1)
		})
	}
}

// After SIGKILL nobody cleans up: on Linux servers end with the run; utr clean,
// or the next run on the same deployment, removes the rest.
func TestKilledThenCleaned(t *testing.T) {
	somebodyElses := func(t *testing.T, p *utrtest.Place) ([]string, string) {
		uri := p.Serve("--topology", "replicaset").URI
		return []string{"--uri", uri}, uri
	}
	for _, r := range []struct {
		reason string
		// on gives the flags of a run, and the connection string of a deployment of somebody else.
		on      func(t *testing.T, p *utrtest.Place) (args []string, uri string)
		folders int
		clean   string // the command; URI stands for the connection string
		says    []string
	}{
		{"servers of --local", func(t *testing.T, _ *utrtest.Place) ([]string, string) {
			return []string{"--local", release(t), "--topology", "replicaset", "--auth", "off"}, ""
		}, 1, "clean", nil},
		{"the certificates of an embedded deployment", func(*testing.T, *utrtest.Place) ([]string, string) {
			return []string{"--tls", "--topology", "single", "--auth", "off"}, ""
		}, 1, "clean", nil},
		{"a deployment of somebody else", somebodyElses, 0, "clean", []string{"failCommand", "taken away"}},
		{"its connection string", somebodyElses, 0, "clean --uri URI", []string{"failCommand", "taken away"}},
		{"the next run", somebodyElses, 0, "run --uri URI READS", []string{"which is gone", "turned off: failCommand"}},
		{"a cluster that a service had before", func(t *testing.T, _ *utrtest.Place) ([]string, string) {
			s := twin.Start(t)
			s.Add(t, "replica_sets", "mine", embedded.Options{Topology: embedded.ReplicaSet})
			client, err := orchestration.New(s.URL, orchestration.Limits{})
			testkit.Check(t, err)
			defer client.Close()
			mine, err := client.Find(testkit.Context(t), "mine")
			testkit.Check(t, err)
			return []string{"--orchestration", s.URL, "--cluster", "id:mine"}, mine.URI
		}, 0, "clean", []string{"taken away: the lock of a run", "failCommand"}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			args, uri := r.on(t, p)
			pid, pids := kill(t, p, uri, args...)
			testkit.Equal(t, "folders that are left", len(p.Folders()), r.folders)
			if runtime.GOOS == "linux" {
				gone(t, pids...)
			}
			if uri != "" {
				w := newWitness(t, uri)
				testkit.Equal(t, "the process that has the lock", w.holder(), pid)
				testkit.Equal(t, "the fail point is on", w.ping() != nil, true)
				defer w.free()
			}
			if strings.Contains(r.clean, "URI") {
				p = utrtest.NewPlace(t) // whose ledger does not know the run
			} else {
				p.Run("clean", "--dry-run").Want(0, "are left")
			}
			clean := strings.Fields(strings.NewReplacer("URI", uri, "READS", suiteFile(t, reads)).Replace(r.clean))
			p.Run(clean...).Want(0, r.says...)
			p.Run("clean").Want(0, "nothing was left")
			gone(t, pids...)
			p.Empty()
		})
	}
}

// What a killed run leaves at an orchestration service, utr clean removes, and
// nothing else. A service that is gone is named each time, until it is
// forgotten.
func TestKilledAtAService(t *testing.T) {
	t.Parallel()
	s := twin.Start(t)
	s.Add(t, "servers", "somebody-elses", embedded.Options{})
	p := utrtest.NewPlace(t)
	args := []string{"--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth"}
	living := p.Start(append(append([]string{"run", "-v"}, args...), suiteFile(t, armed))...)
	living.Line(firstPassed)
	kill(t, p, "", args...)
	count := func(want string) {
		t.Helper()
		testkit.Equal(t, "clusters and entries", fmt.Sprint(len(s.Clusters()), " ", len(p.Entries(""))), want)
	}
	count("5 4")
	p.Run("clean", "--dry-run").Want(0, "2 things are left")
	count("5 4")
	p.Run("clean").Want(0, "2 things were taken away, 0 are left")
	count("3 2")
	p.Run("clean").Want(0, "nothing was left")
	living.Signal(syscall.SIGINT)
	living.Exit()
	testkit.Equal(t, "clusters that are left", s.Clusters(), "[servers/somebody-elses]")
	kill(t, p, "", args...)
	s.Vanish()
	for range 2 {
		p.Run("clean").Want(3, " is left: orchestration: GET "+s.URL+"/: ", "connection refused", "utr clean --forget", "0 things were taken away, 2 are left")
	}
	p.Run("clean", "--forget").Want(0, "off the ledger: cluster utr-single-")
	p.Run("clean").Want(0, "nothing was left")
}

// A port that is taken is named, and so is somebody who accepts a connection
// and never answers.
func TestSomebodyElsesPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	taken := l.Addr().String()
	_, port, _ := strings.Cut(taken, ":")
	uri := "mongodb://" + taken + "/?serverSelectionTimeoutMS=100"
	p := utrtest.NewPlace(t)
	p.Run("serve", "--topology", "single", "--port", port).Want(3, "listen tcp "+taken, "address already in use")
	p.Run("run", "--uri", uri, suiteFile(t, reads)).Want(3, "no answer from "+taken+" within 100ms", "does not answer")
	p.Run("clean", "--uri", uri).Want(3, taken)
}
