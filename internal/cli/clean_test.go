package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// leave adds entries to the ledger of a bench. They are of a run that is over.
func (b *bench) leave(t *testing.T, entries ...ledger.Entry) {
	t.Helper()
	book, err := ledger.Open(b.env[ledger.EnvDir])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := book.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	b.bury(t, "started", "long ago")
}

// bury changes a key of the run that made the entries.
func (b *bench) bury(t *testing.T, key, value string) {
	t.Helper()
	dir := filepath.Join(b.env[ledger.EnvDir], "ledger")
	for name, text := range contentsOf(t, dir) {
		var record map[string]any
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			t.Fatal(err)
		}
		record["run"].(map[string]any)[key] = value
		changed, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(changed))
	}
}

func TestClean(t *testing.T) {
	b := newBench(t)
	// A process that nobody waits for, like that of a killed run.
	orphan := exec.Command("sleep", "600")
	if err := orphan.Start(); err != nil {
		testkit.Lacking(t, "sleep", err)
	}
	t.Cleanup(func() { _ = orphan.Process.Kill(); _ = orphan.Wait() })
	dir := t.TempDir()
	folder, precious, link := filepath.Join(dir, "utr-folder"), filepath.Join(dir, "precious"), filepath.Join(dir, "utr-link")
	for _, path := range []string{filepath.Join(folder, "below"), precious} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	b.leave(t,
		ledger.Entry{Kind: ledger.Folder, Path: folder},
		ledger.Entry{Kind: ledger.Folder, Path: filepath.Join(precious, "utr-never-made")},
		ledger.Entry{Kind: ledger.Folder, Path: link},
		ledger.Entry{Kind: ledger.ChildProcess, Process: ledger.Process{PID: orphan.Process.Pid}, Command: "sleep"},
		ledger.Entry{Kind: ledger.ChildProcess, Process: ledger.Process{PID: os.Getpid(), Started: "before"}, Command: "another process with our id"},
		ledger.Entry{Kind: ledger.FailPoint, URI: "mongodb://***@h:1/", Host: "h:1", Name: "failCommand"},
	)
	if b.expect(t, "a dry run", "clean --dry-run", 0, "6 things are left\n"); !exists(folder) {
		t.Error("a dry run removes things")
	}
	b.expect(t, "clean", "clean", ExitBroken, "taken away: process … taken away: folder "+folder+" … 4 things were taken away, 2 are left\n")
	for _, want := range []string{"folder " + link + " … it is no folder any more", "fail point failCommand on h:1 of mongodb://***@h:1/ … " +
		"its password is needed: utr clean --uri 'mongodb://***@h:1/', with the password in it"} {
		if !says(b.err.String(), want) {
			t.Errorf("standard error lacks %q: %s", want, b.err.String())
		}
	}
	if _, err := ledger.ProcessOf(orphan.Process.Pid); err == nil || exists(folder) || !exists(precious) {
		t.Errorf("the process lives: %t, the folder exists: %t, what a link leads to exists: %t", err == nil, exists(folder), exists(precious))
	}
	if left := contentsOf(t, filepath.Join(b.env[ledger.EnvDir], "ledger")); len(left) != 2 {
		t.Errorf("%d entries are left", len(left))
	}
	b.bury(t, "machine", "elsewhere")
	b.bury(t, "place", "a container there")
	b.expect(t, "entries of another machine", "clean", 0, "on elsewhere: … on elsewhere: … nothing was left\n")
	write(t, filepath.Join(b.env[ledger.EnvDir], "ledger", "broken.json"), "{")
	b.expect(t, "an entry that cannot be read", "clean", ExitBroken, "broken.json is no entry")
}

// What cannot be removed stays in the ledger until it is forgotten.
func TestForget(t *testing.T) {
	b := newBench(t)
	b.leave(t, ledger.Entry{Kind: ledger.Cluster, URL: "http://127.0.0.1:1/v1", Resource: "servers", ID: "utr-x"})
	b.expect(t, "the next run says so", "run --local /r suite.yml", 0, "1 things that earlier runs made are left: utr clean takes them away")
	b.expect(t, "the service is gone", "clean", ExitBroken, "1 are left … utr clean --forget takes what is on a service that is gone for good off the ledger")
	b.expect(t, "for good", "clean --forget", 0, "off the ledger: cluster utr-x")
	b.expect(t, "afterwards", "clean", 0, "nothing was left")
}

// makingService makes a cluster, of which it says nothing before it is whole.
type makingService struct {
	whole   time.Time // zero for never
	parts   []time.Time
	removed time.Time
}

func (s *makingService) Get(context.Context, orchestration.Kind, string) (c orchestration.Cluster, err error) {
	if s.whole.IsZero() || time.Now().Before(s.whole) {
		err = orchestration.ErrNotFound
	}
	return c, err
}

func (s *makingService) Parts(context.Context, string) (found []orchestration.Part, err error) {
	for _, at := range s.parts {
		if !time.Now().Before(at) {
			found = append(found, orchestration.Part{})
		}
	}
	return found, nil
}

func (s *makingService) Remove(context.Context, orchestration.Kind, string) (bool, error) {
	s.removed = time.Now()
	return true, nil
}

// A cluster that was requested shortly before may still appear. It is removed
// once it does, or once its service has been quiet for a while.
func TestCleanWaitsForWhatIsInTheMaking(t *testing.T) {
	const never = -1
	for _, r := range []struct {
		reason  string
		age     time.Duration // of the request
		whole   time.Duration // when the cluster is there
		parts   []time.Duration
		removed time.Duration
	}{
		{"it appears", 0, 20 * time.Second, nil, 20 * time.Second},
		{"nothing appears", 0, never, nil, makingQuiet + makingPoll},
		{"its making fails and leaves parts", 0, never, []time.Duration{10 * time.Second, 35 * time.Second}, 35*time.Second + makingQuiet + makingPoll},
		{"it was requested long ago", makingLimit + 1, never, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			x := &cleaner{c: &call{program: &b.Program, errors: &b.err, secrets: redactor{secret.NewKeeper()}}}
			start := time.Now()
			s := &makingService{}
			if r.whole != never {
				s.whole = start.Add(r.whole)
			}
			for _, p := range r.parts {
				s.parts = append(s.parts, start.Add(p))
			}
			err := x.turnsUp(t.Context(), s, orchestration.Server, ledger.Leftover{At: start.Add(-r.age), Entry: ledger.Entry{Kind: ledger.Cluster, ID: "utr-x"}})
			if took := s.removed.Sub(start); err != nil || took != r.removed {
				t.Errorf("%s: removed after %s, want %s (%v)", r.reason, took, r.removed, err)
			}
			if !strings.Contains(b.err.String(), "waiting for the service, which may be making cluster utr-x") {
				t.Errorf("%s: the wait is not announced: %s", r.reason, b.err.String())
			}
		})
	}
}

// A deployment that another run holds is left alone; a lock that is lost ends
// the run.
func TestLock(t *testing.T) {
	b := newBench(t)
	b.opening = &deployment.HeldError{Hosts: []string{"h1:1"}, Holder: deployment.Holder{Host: "far", PID: 7}}
	b.expect(t, "another run holds it", "run --uri mongodb://h1:1/ suite.yml", ExitBroken,
		"the deployment at h1:1 is in use by a run on host far, process 7 … --wait-for-lock")
	if b.ran != nil {
		t.Error("it ran all the same")
	}
	b.opening = nil
	b.during = func() {
		b.opened.(deployment.ClusterOptions).Lock.Lost(&deployment.LostError{Hosts: []string{"h1:1"}, Holder: &deployment.Holder{Host: "far", PID: 7}})
	}
	b.expect(t, "it is lost", "run --uri mongodb://h1:1/ suite.yml", ExitBroken, "utr: the lock of the deployment at h1:1 was lost: a run on host far, process 7")
}

// The ledger knows of the lock from before it is taken until it is removed.
func TestLedgerKnowsOfTheLock(t *testing.T) {
	for _, r := range []struct {
		reason string
		change func(*bench)
		kept   int
	}{
		{"the run ends well", func(*bench) {}, 0},
		{"the deployment is in use", func(b *bench) { b.opening = &deployment.HeldError{} }, 0},
		{"the lock cannot be removed", func(b *bench) { b.closing = errors.New("no primary") }, 1},
		{"the runner panics", func(b *bench) { b.during = func() { panic("a fault of the runner") } }, 0},
	} {
		b := newBench(t)
		r.change(b)
		count := func() int {
			entries := contentsOf(t, filepath.Join(b.env[ledger.EnvDir], "ledger"))
			for _, text := range entries {
				if strings.Contains(text, "s3cret") || !strings.Contains(text, "mongodb://***@h1:1/") {
					t.Errorf("%s: %s", r.reason, text)
				}
			}
			return len(entries)
		}
		before := 0
		b.arrive = func() { before = count() }
		func() {
			defer func() { _ = recover() }()
			b.utr("run --uri mongodb://u:s3cret@h1:1/ suite.yml")
		}()
		if after := count(); before != 1 || after != r.kept {
			t.Errorf("%s: %d entries before the lock is taken, want 1; %d after the run, want %d", r.reason, before, after, r.kept)
		}
	}
}
