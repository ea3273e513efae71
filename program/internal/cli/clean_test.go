package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/fakeorchestration"
	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/program/internal/night"
)

// addLeftovers adds entries of a dead run to the ledger.
func (b *bench) addLeftovers(t testing.TB, entries ...ledger.Entry) {
	t.Helper()
	book, err := ledger.Open(b.env[ledger.EnvDir])
	testkit.Check(t, err)
	for _, e := range entries {
		_, err := book.Add(e)
		testkit.Check(t, err)
	}
	b.changeRun(t, "started", "long ago")
}

// changeRun changes a key of the run of all entries.
func (b *bench) changeRun(t testing.TB, key, value string) {
	t.Helper()
	for name, text := range b.ledger(t) {
		var record map[string]any
		testkit.Check(t, json.Unmarshal([]byte(text), &record))
		record["run"].(map[string]any)[key] = value
		changed, err := json.Marshal(record)
		testkit.Check(t, err)
		write(t, filepath.Join(b.env[ledger.EnvDir], "ledger", name), string(changed))
	}
}

func TestClean(t *testing.T) {
	b := newBench(t)
	orphan := exec.Command("sleep", "600") // its parent does not wait for it, as after a killed run
	if err := orphan.Start(); err != nil {
		testkit.Lacking(t, "sleep", err)
	}
	t.Cleanup(func() { _ = orphan.Process.Kill(); _ = orphan.Wait() })
	dir := t.TempDir()
	folder, precious, link := filepath.Join(dir, "utr-folder"), filepath.Join(dir, "precious"), filepath.Join(dir,
		"utr-link")
	testkit.Check(t, errors.Join(os.MkdirAll(filepath.Join(folder, "below"), 0o700), os.Mkdir(precious, 0o700),
		os.Symlink(precious, link)))
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	b.addLeftovers(t,
		ledger.Entry{Kind: ledger.Folder, Path: folder},
		ledger.Entry{Kind: ledger.Folder, Path: filepath.Join(precious, "utr-never-made")},
		ledger.Entry{Kind: ledger.Folder, Path: link},
		ledger.Entry{Kind: ledger.ChildProcess, Process: ledger.Process{PID: orphan.Process.Pid}, Command: "sleep"},
		ledger.Entry{Kind: ledger.ChildProcess, Process: ledger.Process{PID: os.Getpid(), Started: "before"},
			Command: "another process with our id"},
		ledger.Entry{Kind: ledger.Lock, URI: "mongodb://***@h:1/", Name: "utr.lock"},
	)
	b.expect(t, "a dry run", "clean --dry-run", 0, "left 6\n")
	testkit.Equal(t, "after the dry run the folder exists", exists(folder), true)
	b.expect(t, "clean", "clean", ExitBroken, "removed: process … removed: folder "+folder+" … removed 4, left 2\n")
	testkit.Equal(t, "both reasons", says(b.err.String(), "folder "+link+" … it is no longer a folder") &&
		says(b.err.String(),
			"lock document in utr.lock of mongodb://***@h:1/ … it requires a password: utr clean --uri 'mongodb://***@h:1/', with the password in it"), true)
	_, err := ledger.ProcessOf(orphan.Process.Pid)
	testkit.Equal(t, "the process, the folder, the target of the link exist",
		fmt.Sprint(err == nil, exists(folder), exists(precious)), "false false true")
	testkit.Equal(t, "entries left", len(b.ledger(t)), 2)
	b.addLeftovers(t, ledger.Entry{Kind: ledger.Lock, URI: "mongodb://***@127.0.0.1:1/", Name: "utr.lock"})
	b.expect(t, "the environment has the password", "UTR_URI=mongodb://ann:geheim@127.0.0.1:1/ clean", ExitBroken,
		"left 3 … lock document … nothing listens there")
	b.expect(t, "of another deployment", "UTR_URI=mongodb://127.0.0.1:2/ clean", ExitBroken,
		"left 3 … it requires a password")
	testkit.Equal(t, "it connects to a deployment that was not named",
		says(b.out.String()+b.err.String(), "127.0.0.1:2"), false)
	b.changeRun(t, "machine", "elsewhere")
	b.changeRun(t, "place", "a container there")
	b.expect(t, "entries of another machine", "clean", 0, "on elsewhere: … on elsewhere: … nothing was left\n")
	write(t, filepath.Join(b.env[ledger.EnvDir], "ledger", "broken.json"), "{")
	b.expect(t, "an unreadable entry", "clean", ExitBroken, "broken.json is not an entry")
}

// A run and a matrix remove what ended runs left on this machine and on their service, and name it. They leave the rest
// to utr clean. The cells of a matrix remove nothing.
func TestLeftoversBeforeARun(t *testing.T) {
	s := fakeorchestration.Start(t)
	for command, want := range map[string]string{
		"run --orchestration " + s.URL + " suite.yml": "removed what an earlier run left: cluster utr-ours of … " +
			"removed what an earlier run left: folder … leftovers of earlier runs: 2; utr clean removes them",
		"matrix night.yml": "removed what an earlier run left: cluster utr-ours of … " +
			"removed what an earlier run left: folder … leftovers of earlier runs: 2; utr clean removes them",
		"run --cell c --orchestration " + s.URL + " suite.yml": "",
	} {
		t.Run(command, func(t *testing.T) {
			b := newBench(t)
			write(t, "night.yml", "clusters: [{name: c, orchestration: {url: '"+s.URL+
				"', cluster: single}}]\nsuites: suite.yml\n")
			s.Add(t, "servers", "utr-ours", embedded.Options{})
			folder := filepath.Join(t.TempDir(), "utr-folder")
			testkit.Check(t, os.Mkdir(folder, 0o700))
			b.addLeftovers(t,
				ledger.Entry{Kind: ledger.Cluster, URL: s.URL, Resource: "servers", ID: "utr-ours"},
				ledger.Entry{Kind: ledger.Folder, Path: folder},
				ledger.Entry{Kind: ledger.Cluster, URL: "http://127.0.0.1:1/v1", Resource: "servers", ID: "utr-of-another-service"},
				ledger.Entry{Kind: ledger.Lock, URI: "mongodb://h:1/", Name: "utr.lock"},
			)
			b.Child = func(context.Context, night.Child) (pid, code int, err error) { return 0, 0, errors.New("no processes") }
			b.utr(command)
			_, err := os.Stat(folder)
			removes := want != ""
			testkit.Equal(t, "the notes in "+b.err.String(), removes && says(b.err.String(), want) ||
				!strings.Contains(b.err.String(), "earlier run"), true)
			testkit.Equal(t, "the cluster and the folder are left", fmt.Sprint(len(s.Clusters()) > 0, err == nil),
				fmt.Sprint(!removes, !removes))
			testkit.Equal(t, "entries left", len(b.ledger(t)), testkit.Either(removes, 2, 4))
			s.Kill()
			s.Forget()
		})
	}
}

// creatingService creates a cluster, and reports it only when it is complete.
type creatingService struct{ whole, parts, removed []time.Time }

func past(times []time.Time) (n int) {
	for _, at := range times {
		if !time.Now().Before(at) {
			n++
		}
	}
	return n
}

func (s *creatingService) Get(context.Context, orchestration.Kind, string) (c orchestration.Cluster, err error) {
	if past(s.whole) == 0 {
		err = orchestration.ErrNotFound
	}
	return c, err
}

func (s *creatingService) Parts(context.Context, string) ([]orchestration.Part, error) {
	return make([]orchestration.Part, past(s.parts)), nil
}

func (s *creatingService) Remove(context.Context, orchestration.Kind, string, ...string) (bool, error) {
	s.removed = append(s.removed, time.Now())
	return true, nil
}

// A recently requested cluster is removed once it appears, or once its service has been quiet for a while.
func TestCleanAwaitsCreation(t *testing.T) {
	type times = []time.Duration
	for _, r := range []struct {
		reason       string
		age          time.Duration // of the request
		whole, parts times         // when the cluster, or a part of it, appears
		removed      time.Duration
	}{
		{"it appears", 0, times{20 * time.Second}, nil, 20 * time.Second},
		{"nothing appears", 0, nil, nil, creationQuiet + creationPoll},
		{"its creation fails and leaves parts", 0, nil, times{10 * time.Second, 35 * time.Second},
			35*time.Second + creationQuiet + creationPoll},
		{"it was requested long ago", creationLimit + 1, nil, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, start, s := newBench(t), time.Now(), &creatingService{}
			for _, after := range r.whole {
				s.whole = append(s.whole, start.Add(after))
			}
			for _, after := range r.parts {
				s.parts = append(s.parts, start.Add(after))
			}
			x := &cleaner{c: &invocation{program: &b.Program, errors: &b.err, secrets: redactor{secret.NewKeeper()}}}
			entry := ledger.Leftover{At: start.Add(-r.age), Entry: ledger.Entry{Kind: ledger.Cluster, ID: "utr-x"}}
			testkit.Check(t, x.awaitAndRemove(t.Context(), s, orchestration.Server, entry))
			testkit.Equal(t, r.reason+": removed at", s.removed, []time.Time{start.Add(r.removed)})
			testkit.Contains(t, b.err.String(), "waiting for the service, which may still be creating cluster utr-x")
		})
	}
}

// --older-than removes old clusters of any machine, except clusters of live runs and clusters with other ids.
func TestSweep(t *testing.T) {
	s := fakeorchestration.Start(t)
	self, err := ledger.Self()
	testkit.Check(t, err)
	id := func(name, owner string, age time.Duration) string {
		return "utr-" + name + "-" + time.Now().Add(-age).UTC().Format("20060102t150405") + "-" + owner + "-abcdefghij"
	}
	const gone = "1-0123456789ab"
	s.AddPart("servers", id("old", gone, 7*time.Hour))
	s.AddPart("replica_sets", id("half", gone, 7*time.Hour)+"-part-shard0")
	s.AddPart("servers", id("half", gone, 7*time.Hour)+"-part-router0")
	stays := []string{id("young", gone, 5*time.Hour), id("ours", self.Owner(), 7*time.Hour),
		id("ours", self.Owner(), 7*time.Hour) + "-part-member0", "utr-mine-abcdefghij", "mine"}
	for _, name := range stays {
		s.AddPart("servers", name)
	}
	b := newBench(t)
	line := "clean --orchestration " + s.URL + " --older-than 6h"
	b.expect(t, "without a service", "clean --older-than 6h", ExitUsage, "--older-than requires --orchestration")
	b.expect(t, "a dry run", line+" --dry-run", 0, "cluster utr-half- … created 7h0m … cluster utr-old- … left 2")
	b.expect(t, "clean", line, 0, "removed: cluster utr-half- … removed: cluster utr-old- … removed 2, left 0")
	for i := range stays {
		stays[i] = "servers/" + stays[i]
	}
	slices.Sort(stays)
	left := s.Clusters()
	slices.Sort(left)
	testkit.Equal(t, "left", left, stays)
	b.expect(t, "again", line, 0, "nothing was left")
	s.Add(t, "servers", id("lying", gone, 7*time.Hour), embedded.Options{})
	s.Misbehave(func(method, _ string, _ http.ResponseWriter, _ *http.Request) bool {
		return method == http.MethodDelete
	})
	b.expect(t, "the answer to DELETE is a lie", line, ExitBroken, "left 1 … the service still has it")
	s.Misbehave(nil)
	kept := s.Clusters()
	host := s.Hosts(kept[slices.IndexFunc(kept, func(name string) bool { return strings.Contains(name, "lying") })])
	s.Forget()
	b.addLeftovers(t, ledger.Entry{Kind: ledger.Cluster, URL: s.URL, Resource: "servers", ID: "utr-x", Hosts: host})
	b.expect(t, "its servers run, and the service has forgotten them", "clean", ExitBroken,
		"left 1 … "+host[0]+" still accepts connections")
	s.Kill()
	b.expect(t, "its servers have ended", "clean", 0, "removed 1, left 0")
	s.Vanish()
	b.expect(t, "the service is gone", line, ExitBroken, "cannot list the clusters on the service: ")
}
