//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// fault is a row of the table in docs/faults.md, which TestFaults generates.
type fault struct {
	fault   string
	happens string
	within  time.Duration // from the fault to the end of the run
	code    int
	tests   string // the verdicts of the three tests in each report, or ""
	says    string // in each report that exists
	scene   func(*faultScene)
}

// faultScene is a run of three tests on which a fault acts. Its reports are in a folder.
type faultScene struct {
	*testing.T
	*utrtest.Place
	dir string
	run *utrtest.Process
	end func() // checks what is left
}

// start starts the run of a suite with all reports.
func (s *faultScene) start(suite string, args ...string) {
	s.Helper()
	s.run = s.Start(slices.Concat([]string{"run", "--jobs", "1", "--uri-option", "serverSelectionTimeoutMS=1000"}, everyReport(s.dir), args, []string{suiteFile(s.T, suite)})...)
}

// second starts a run whose second test waits, and returns when it does.
func (s *faultScene) second(args ...string) {
	s.Helper()
	s.start(armed, args...)
	s.run.Line("passed armed: first")
}

// onSet starts a replica set, and a run whose second test waits there.
func (s *faultScene) onSet(args ...string) *utrtest.Server {
	s.Helper()
	server := s.Serve("--topology", "replicaset")
	s.second(append(args, "--uri", server.URI)...)
	w := newWitness(s.T, server.URI)
	w.sees()
	s.end = w.free
	return server
}

// onBlocked starts a deployment, and a run whose second test waits for an answer of it.
func (s *faultScene) onBlocked(topology string) *utrtest.Server {
	s.Helper()
	server := s.Serve("--topology", topology)
	s.start(blocked, "--uri", server.URI)
	s.run.Line("passed blocked: first")
	triggered(s.T, utrtest.Hosts(server.URI)...)
	return server
}

var faults = []fault{
	{"`utr` gets SIGINT", "fail points are turned off and the lock is removed", 10 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet(); s.run.Signal(syscall.SIGINT) }},
	{"`utr` gets SIGTERM", "the same", 10 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet(); s.run.Signal(syscall.SIGTERM) }},
	{"`utr` gets SIGHUP", "the same", 10 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet(); s.run.Signal(syscall.SIGHUP) }},
	{"`utr` is paused for a few seconds and continues", "nothing: the test continues", 10 * time.Second, 0, "passed passed passed", "",
		func(s *faultScene) {
			server := s.Serve("--topology", "single")
			s.start(strings.Replace(armed, "ms: 90000", "ms: 2000", 1), "--uri", server.URI)
			s.run.Line("passed armed: first")
			w := newWitness(s.T, server.URI)
			w.sees()
			s.run.Freeze()
			time.Sleep(3 * time.Second) // longer than the test waits
			s.run.Signal(syscall.SIGCONT)
			s.end = w.free
		}},
	{"`utr` gets SIGKILL", "the next run on the deployment takes over the lock and turns fail points off", 10 * time.Second, -1, "", "",
		func(s *faultScene) {
			server := s.onSet()
			s.run.Signal(syscall.SIGKILL)
			free := s.end
			s.end = func() {
				s.Place.Run("run", "--uri", server.URI, suiteFile(s.T, reads)).Want(0, "took over the lock", "turned off: failCommand")
				free()
				s.Empty()
			}
		}},
	{"`--deadline` is over", "as after a signal", 10 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) { s.onSet("--deadline", "5s") }},
	{"the only server is killed", "the test is broken; the rest does not run", 25 * time.Second, 3, "passed broken skipped", "stopped answering",
		func(s *faultScene) { s.onBlocked("single").Signal(syscall.SIGKILL) }},
	{"all members of a replica set are killed", "the same", 25 * time.Second, 3, "passed broken skipped", "stopped answering",
		func(s *faultScene) { s.onBlocked("replicaset").Signal(syscall.SIGKILL) }},
	{"all routers of a cluster are killed", "the same", 25 * time.Second, 3, "passed broken skipped", "stopped answering",
		func(s *faultScene) { s.onBlocked("sharded").Signal(syscall.SIGKILL) }},
	{"a server of `--local` is killed", "the test is broken; the rest runs on another deployment", 25 * time.Second, 3, "passed broken passed", "stopped answering",
		func(s *faultScene) {
			s.start(blocked, "--local", release(s.T), "--topology", "single", "--auth", "off")
			s.run.Line("passed blocked: first")
			pids := servers(s.T, s.Place)
			logs, _ := filepath.Glob(filepath.Join(s.Temp, "utr-*", "*.log"))
			triggered(s.T, "127.0.0.1:"+listens.FindStringSubmatch(testkit.Read(s.T, strings.Join(logs, "")))[1])
			testkit.Check(s.T, syscall.Kill(pids[0], syscall.SIGKILL))
		}},
	{"nothing listens", "nothing runs", 10 * time.Second, 3, "", "",
		func(s *faultScene) { s.start(reads, "--uri", "mongodb://127.0.0.1:1/") }},
	{"another run uses the deployment", "nothing runs, and the other run continues", 10 * time.Second, 3, "", "",
		func(s *faultScene) {
			server := s.onSet()
			other := s.run
			s.start(reads, "--uri", server.URI)
			free := s.end
			s.end = func() {
				other.Signal(syscall.SIGINT)
				other.End().Want(3)
				free()
			}
		}},
	{"a collection that a suite names contains documents that `utr` did not write", "nothing runs, and nothing is changed", 10 * time.Second, 3, "", "",
		func(s *faultScene) {
			server := s.Serve("--topology", "replicaset")
			w := newWitness(s.T, server.URI)
			mine := w.Database("db").Collection("coll")
			_, err := mine.InsertOne(testkit.Context(s.T), bson.D{{Key: "_id", Value: "mine"}})
			testkit.Check(s.T, err)
			s.start(blocked, "--uri", server.URI)
			s.end = func() {
				n, err := mine.CountDocuments(testkit.Context(s.T), bson.D{})
				testkit.Check(s.T, err)
				testkit.Equal(s.T, "documents of the user", n, 1)
				w.free()
			}
		}},
	{"the user may not run what suites need", "nothing runs, and the error names the right", 10 * time.Second, 3, "", "",
		func(s *faultScene) {
			server := utrtest.NewPlace(s.T, "UTR_PASSWORD="+testkit.Secret).Serve("--topology", "single", "--user", "ann")
			_, hosts, _ := strings.Cut(server.URI, "@")
			s.start(reads, "--uri", "mongodb://"+hosts)
		}},
	{"the orchestration service does not answer", "nothing runs", 10 * time.Second, 3, "", "",
		func(s *faultScene) { s.start(reads, "--orchestration", "http://127.0.0.1:1", "--cluster", "single") }},
	{"the orchestration service fails to create the first cluster, once", "it is asked again", 60 * time.Second, 0, "", "",
		func(s *faultScene) {
			service, failed := twin.Start(s.T), false
			service.Misbehave(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method != http.MethodPut && method != http.MethodPost || failed {
					return false
				}
				failed = true
				twin.Raise(w, "Error: once")
				return true
			})
			s.start(reads, "--orchestration", service.URL, "--cluster", "single")
			s.end = func() { testkit.Equal(s.T, "remaining clusters", service.Clusters(), "[]") }
		}},
	{"the orchestration service does not delete a cluster", "the run names it, `utr clean` removes it later", 60 * time.Second, 3, "passed skipped skipped", "interrupted",
		func(s *faultScene) {
			service := twin.Start(s.T)
			s.second("--orchestration", service.URL, "--cluster", "single")
			service.Misbehave(func(method, _ string, w http.ResponseWriter, _ *http.Request) bool {
				if method == http.MethodDelete {
					twin.Raise(w, "Error: it is stuck")
				}
				return method == http.MethodDelete
			})
			s.run.Signal(syscall.SIGTERM)
			s.end = func() {
				service.Misbehave(nil)
				s.Place.Run("clean").Want(0, "removed 1, left 0")
				testkit.Equal(s.T, "remaining clusters", service.Clusters(), "[]")
				s.Empty()
			}
		}},
	{"one of two existing clusters of an orchestration service dies", "the test is broken; the rest runs on the other", 25 * time.Second, 3, "passed broken passed", "stopped answering",
		func(s *faultScene) {
			service := twin.Start(s.T)
			service.Add(s.T, "servers", "a", embedded.Options{})
			service.Add(s.T, "servers", "b", embedded.Options{})
			s.start(blocked, "--orchestration", service.URL, "--cluster", "id:a", "--cluster", "id:b")
			s.run.Line("passed blocked: first")
			triggered(s.T, utrtest.Hosts(uriOf(s.T, service, "a"))...)
			service.Kill("servers/a")
		}},
	{"the disk of a report is full", "the run finishes; the error names the report", 10 * time.Second, 3, "", "",
		func(s *faultScene) {
			if _, err := os.Stat("/dev/full"); err != nil {
				s.Skip("not verified: no /dev/full")
			}
			s.run = s.Start("run", "--topology", "single", "--json", "/dev/full", suiteFile(s.T, reads))
			s.end = func() { testkit.Contains(s.T, s.run.Errors(), "no space left on device") }
		}},
	{"the network to the deployment blocks", "the test is broken; the rest does not run", 60 * time.Second, 3, "passed broken skipped", "stopped answering",
		func(s *faultScene) {
			server := s.Serve("--topology", "single")
			s.start(blocked, "--timeout", "3s", "--uri", server.URI)
			s.run.Line("passed blocked: first")
			triggered(s.T, utrtest.Hosts(server.URI)...)
			server.Freeze()
		}},
}

// Each row of the table in docs/faults.md is what happens: the run ends within the time, with the exit code, its reports
// have the verdicts and the reason, and nothing else is left. UTR_UPDATE=1 writes the table.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.fault, func(t *testing.T) {
			t.Parallel()
			s := &faultScene{T: t, Place: utrtest.NewPlace(t), dir: t.TempDir(), end: func() {}}
			f.scene(s)
			ended := make(chan utrtest.Result, 1)
			go func() { ended <- s.run.End() }()
			var end utrtest.Result
			select {
			case end = <-ended:
			case <-time.After(f.within):
				t.Fatalf("the run has not ended after %s", f.within)
			}
			testkit.Equal(t, "exit code of a run that says "+end.All(), end.Code, f.code)
			if f.tests != "" {
				f.check(t, s.dir, end.All())
			}
			s.end()
		})
	}
	testkit.Check(t, keepTable(filepath.Join("..", "..", "docs", "faults.md")))
}

// check checks the verdicts and the reason in each report.
func (f fault) check(t *testing.T, dir, output string) {
	t.Helper()
	var statuses []string
	for line := range strings.Lines(testkit.Read(t, filepath.Join(dir, "report.json"))) {
		var r record
		testkit.Check(t, json.Unmarshal([]byte(line), &r))
		if r.Test != "" {
			statuses = append(statuses, r.Status)
		}
	}
	testkit.Equal(t, "verdicts in report.json, of a run that says "+output, strings.Join(statuses, " "), f.tests)
	junit := testkit.Read(t, filepath.Join(dir, "report.junit"))
	for _, name := range []string{"first", "second", "third"} {
		testkit.Contains(t, junit, name)
	}
	for _, kind := range []string{"json", "junit", "tap", "markdown", "html"} {
		testkit.Contains(t, testkit.Read(t, filepath.Join(dir, "report."+kind)), f.says)
	}
	testkit.Contains(t, output, f.says)
}

// row returns the row of the table.
func (f fault) row() string {
	code, reports := fmt.Sprint(f.code), "none of them has tests"
	if f.code < 0 {
		code, reports = "none", "they are `FILE.partial`"
	} else if f.code == 0 && f.tests == "" {
		reports = "as without the fault"
	}
	if f.tests != "" {
		reports = strings.ReplaceAll(f.tests, " ", ", ")
	}
	if f.says != "" {
		reports += fmt.Sprintf("; `%s`", f.says)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", f.fault, f.happens, f.within, code, reports)
}

// keepTable compares the table in a page with the rows, or writes it.
func keepTable(page string) error {
	table := "| fault | what happens | within | exit code | three tests, in each report |\n|---|---|---|---|---|\n"
	for _, f := range faults {
		table += f.row()
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	old := regexp.MustCompile(`(?s)\| fault \| what happens \|.*?\n\n`)
	fresh := old.ReplaceAllLiteralString(string(text), table+"\n")
	switch {
	case !old.Match(text):
		return errors.New(page + " has no table of faults")
	case fresh == string(text):
		return nil
	case os.Getenv("UTR_UPDATE") == "1":
		return os.WriteFile(page, []byte(fresh), 0o644)
	}
	return errors.New(page + " is stale: UTR_UPDATE=1 go test ./cmd/utr -run ^TestFaults$ writes it")
}
