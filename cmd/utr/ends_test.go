//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

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
		// begin starts a run, and gives a check of what it leaves.
		begin func(t *testing.T, p *utrtest.Place) (u *utrtest.Process, after func())
	}{
		{"SIGINT turns off the fail points of a deployment of somebody else", syscall.SIGINT,
			func(t *testing.T, p *utrtest.Place) (*utrtest.Process, func()) {
				w := newWitness(t, p.Serve("--topology", "replicaset").URI)
				u := p.Start("run", "-v", "--uri", w.uri, suiteFile(t, armed))
				w.sees()
				return u, w.free
			}},
		{"SIGTERM ends the servers of --local", syscall.SIGTERM,
			func(t *testing.T, p *utrtest.Place) (*utrtest.Process, func()) {
				u := p.Start("run", "-v", "--local", release(t), "--topology", "sharded", "--auth", "off", suiteFile(t, armed))
				u.Line(firstPassed)
				pids := servers(t, p)
				if len(pids) != 4 {
					t.Errorf("%d servers, want 4", len(pids))
				}
				return u, func() {
					if !gone(t, pids...) {
						t.Errorf("some of the processes %v are left", pids)
					}
				}
			}},
		{"SIGHUP removes the clusters of an orchestration service", syscall.SIGHUP,
			func(t *testing.T, p *utrtest.Place) (*utrtest.Process, func()) {
				s := twin.Start(t)
				u := p.Start("run", "-v", "--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth", suiteFile(t, armed))
				u.Line(firstPassed)
				return u, func() {
					if left := s.Clusters(); len(left) > 0 {
						t.Errorf("clusters are left: %v", left)
					}
				}
			}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			u, after := r.begin(t, p)
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
	p := utrtest.NewPlace(t)
	u := p.Launch(exec.Command("sh", "-c", `trap "" HUP; exec "$@"`, "sh", utrtest.Command(t), "serve", "--topology", "single"))
	w := newWitness(t, u.Line("mongodb://"))
	for range 2 {
		if err := w.ping(); err != nil {
			t.Fatal(err)
		}
		u.Signal(syscall.SIGHUP)
	}
	if err := w.ping(); err != nil {
		t.Errorf("after SIGHUP: %v", err)
	}
	u.Signal(syscall.SIGTERM)
	u.End().Want(0)
}

// A signal while clusters start that never come up.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	halfway := release(t) // whose mongos never comes up
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo mongos version v8.0.4; exit; }\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(halfway, "bin", "mongos"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	asking := strings.Replace(armed, "tests:\n", "runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n", 1)
	p := utrtest.NewPlace(t)
	u := p.Start("run", "--local", halfway, "--topology", "all", suiteFile(t, asking))
	testkit.Until(t, "the servers are started", func() bool { return len(servers(t, p)) == 6 })
	pids := servers(t, p)
	u.Signal(os.Interrupt)
	u.End().Want(3)
	if !gone(t, pids...) {
		t.Errorf("some of the processes %v are left", pids)
	}
	p.Empty()
}

// A second signal ends a run at once whose clean-up hangs, since the deployment
// does not answer; without one the clean-up ends by itself, and says what is left.
func TestInterruptWithoutAnswer(t *testing.T) {
	for _, r := range []struct {
		reason  string
		signals int
	}{{"one signal", 1}, {"two signals", 2}} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			server := p.Serve("--topology", "single")
			w := newWitness(t, server.URI)
			u := p.Start("run", "-v", "--uri", server.URI, suiteFile(t, armed))
			w.sees()
			server.Freeze()
			for range r.signals {
				u.Signal(syscall.SIGTERM)
				// Two signals of one kind can become one: not before it was noticed.
				u.Hear("cleaning up (fail points, sessions, clients), which a deployment that does not answer can hold up for")
			}
			end := u.End().Want(3)
			left := strings.Contains(end.Out, "interrupted; clean-up: ") && strings.Contains(end.Out, "fail point failCommand could not be turned off")
			if left != (r.signals == 1) {
				t.Errorf("it says what is left: %v\n%s", left, end.Out)
			}
		})
	}
}

// After SIGKILL nobody cleans up: on Linux servers end with the run, and utr
// clean removes the rest.
func TestKilledRunIsCleaned(t *testing.T) {
	for _, r := range []struct {
		reason string
		args   func(t *testing.T) []string
	}{
		{"servers of --local", func(t *testing.T) []string { return []string{"--local", release(t), "--topology", "replicaset"} }},
		{"the certificates of an embedded deployment", func(*testing.T) []string { return []string{"--tls", "--topology", "single"} }},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			p := utrtest.NewPlace(t)
			u := p.Start(append([]string{"run", "-v", "--auth", "off", suiteFile(t, armed)}, r.args(t)...)...)
			u.Line(firstPassed)
			pids := servers(t, p)
			u.Signal(syscall.SIGKILL)
			u.Exit()
			if runtime.GOOS == "linux" {
				testkit.Until(t, "the servers are gone, too", func() bool { return gone(t, pids...) })
			}
			if len(p.Folders()) != 1 {
				t.Errorf("these folders are left: %v", p.Folders())
			}
			p.Run("clean").Want(0)
			p.Run("clean").Want(0, "nothing was left")
			if !gone(t, pids...) {
				t.Errorf("some of the processes %v are left", pids)
			}
			p.Empty()
		})
	}
}

// What a killed run leaves at an orchestration service, utr clean removes, and
// nothing else. A service that is gone is named each time, until it is
// forgotten.
func TestKilledAndCleaned(t *testing.T) {
	t.Parallel()
	s := twin.Start(t)
	s.Add(t, "servers", "somebody-elses", embedded.Options{})
	p := utrtest.NewPlace(t)
	begin := func() *utrtest.Process {
		u := p.Start("run", "-v", "--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth", suiteFile(t, armed))
		u.Line(firstPassed)
		return u
	}
	killed, living := begin(), begin()
	killed.Signal(syscall.SIGKILL)
	killed.Exit()
	count := func(clusters, entries int) {
		t.Helper()
		if len(s.Clusters()) != clusters || len(p.Entries("")) != entries {
			t.Errorf("there are %v, want %d; and in the ledger %v, want %d", s.Clusters(), clusters, p.Entries(""), entries)
		}
	}
	count(5, 4)
	p.Run("clean", "--dry-run").Want(0, "2 things are left")
	count(5, 4)
	p.Run("clean").Want(0, "2 things were taken away, 0 are left")
	count(3, 2)
	p.Run("clean").Want(0, "nothing was left")
	living.Signal(syscall.SIGINT)
	living.Exit()
	if left := s.Clusters(); !slices.Equal(left, []string{"servers/somebody-elses"}) {
		t.Errorf("left are %v", left)
	}

	last := begin()
	last.Signal(syscall.SIGKILL)
	last.Exit()
	s.Vanish()
	for range 2 {
		p.Run("clean").Want(3, " is left: orchestration: GET "+s.URL+"/: ", "connection refused", "utr clean --forget", "0 things were taken away, 2 are left")
	}
	p.Run("clean", "--forget").Want(0, "off the ledger: cluster utr-single-")
	p.Run("clean").Want(0, "nothing was left")
}

// listen takes a port, accepts connections, and says nothing.
func listen(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// A port that is taken is named, and so is somebody who accepts a connection
// and never answers.
func TestSomebodyElsesPort(t *testing.T) {
	taken := listen(t)
	_, port, _ := strings.Cut(taken, ":")
	uri := "mongodb://" + taken + "/?serverSelectionTimeoutMS=100"
	for _, r := range []struct {
		reason string
		args   []string
		says   []string
	}{
		{"it is taken", []string{"serve", "--topology", "single", "--port", port}, []string{"listen tcp " + taken, "address already in use"}},
		{"run gets no answer", []string{"run", "--uri", uri, suiteFile(t, reads)}, []string{"no answer from " + taken + " within 100ms", "does not answer"}},
		{"clean gets no answer", []string{"clean", "--uri", uri}, []string{taken}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			utrtest.NewPlace(t).Run(r.args...).Want(3, r.says...)
		})
	}
}
