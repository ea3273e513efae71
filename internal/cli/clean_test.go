package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// leftBy gives a bench with a ledger that has entries of a run that is no more,
// and of one that was on another machine.
func leftBy(t *testing.T, entries ...ledger.Entry) (b *bench, dir string) {
	t.Helper()
	b, dir = newBench(), t.TempDir()
	b.env[ledger.EnvDir] = dir
	book, err := ledger.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := book.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	bury(t, dir, func(run map[string]any) { run["started"] = "long ago" })
	return b, dir
}

// bury changes the run of all entries.
func bury(t *testing.T, dir string, change func(run map[string]any)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ledger", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var record map[string]any
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		change(record["run"].(map[string]any))
		if text, err = json.Marshal(record); err != nil {
			t.Fatal(err)
		}
		write(t, f, string(text))
	}
}

func TestClean(t *testing.T) {
	// A process that nobody waits for, as that of a killed run.
	orphan := exec.Command("sleep", "600")
	if err := orphan.Start(); err != nil {
		t.Skip("there is no sleep:", err)
	}
	t.Cleanup(func() { _ = orphan.Process.Kill(); _ = orphan.Wait() })
	folder := filepath.Join(t.TempDir(), "utr-folder")
	if err := os.MkdirAll(filepath.Join(folder, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	precious := t.TempDir()
	link := filepath.Join(t.TempDir(), "utr-link")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	b, dir := leftBy(t,
		ledger.Entry{Kind: ledger.Folder, Path: folder},
		ledger.Entry{Kind: ledger.Folder, Path: filepath.Join(precious, "utr-never-made")},
		ledger.Entry{Kind: ledger.Folder, Path: link},
		ledger.Entry{Kind: ledger.ChildProcess, Process: ledger.Process{PID: orphan.Process.Pid}, Command: "sleep"},
		ledger.Entry{Kind: ledger.ChildProcess, Process: ledger.Process{PID: os.Getpid(), Started: "before"}, Command: "another process of our id"},
		ledger.Entry{Kind: ledger.FailPoint, URI: "mongodb://***@h:1/", Host: "h:1", Name: "failCommand"},
	)
	if code := b.Main(t.Context(), []string{"clean", "--dry-run"}); code != 0 || !strings.Contains(b.out.String(), "6 things are left\n") {
		t.Errorf("a dry run: %d %s%s", code, b.out.String(), b.err.String())
	}
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("a dry run takes things away: %v", err)
	}
	b.out.Reset()
	if code := b.Main(t.Context(), []string{"clean"}); code != ExitBroken {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"taken away: folder " + folder, "taken away: process ", "4 things were taken away, 2 are left\n",
	} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("%q is not said: %s", want, b.out.String())
		}
	}
	for _, want := range []string{
		"folder " + link, "it is no folder any more",
		"fail point failCommand on h:1 of mongodb://***@h:1/", "its password is needed: utr clean --uri 'mongodb://***@h:1/', with the password in it",
	} {
		if !strings.Contains(b.err.String(), want) {
			t.Errorf("%q is not said: %s", want, b.err.String())
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is there")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("what a link leads to is gone: %v", err)
	}
	if _, err := ledger.ProcessOf(orphan.Process.Pid); err == nil {
		t.Error("the process is there")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "ledger", "*")); len(left) != 2 {
		t.Errorf("%d entries are left", len(left))
	}

	bury(t, dir, func(run map[string]any) { run["machine"] = "elsewhere" })
	b.out.Reset()
	if code := b.Main(t.Context(), []string{"clean"}); code != 0 || strings.Count(b.out.String(), "on elsewhere: ") != 2 || !strings.HasSuffix(b.out.String(), "nothing was left\n") {
		t.Errorf("what another machine has to do: %d %s%s", code, b.out.String(), b.err.String())
	}
	write(t, filepath.Join(dir, "ledger", "broken.json"), "{")
	if code := b.Main(t.Context(), []string{"clean"}); code != ExitBroken || !strings.Contains(b.err.String(), "broken.json is no entry") {
		t.Errorf("an entry that cannot be read: %d %s", code, b.err.String())
	}
}

func TestCleanUsage(t *testing.T) {
	for reason, args := range map[string][]string{
		"a word too many":     {"clean", "all"},
		"no URI":              {"clean", "--uri", "localhost"},
		"an empty one":        {"clean", "--uri="},
		"an @ in a password":  {"clean", "--uri", "mongodb://ann:hunter22@@h/"},
		"no such flag":        {"clean", "--everything"},
		"a flag of other use": {"clean", "--topology", "single"},
	} {
		b, _ := leftBy(t)
		if code := b.Main(t.Context(), args); code != ExitUsage || strings.Contains(b.err.String(), "hunter22") {
			t.Errorf("%s: exit code %d: %s", reason, code, b.err.String())
		}
	}
}

// A cluster that was asked for shortly before may turn up yet.
func TestCleanWaitsForWhatIsInTheMaking(t *testing.T) {
	for _, r := range []struct {
		reason  string
		later   func(s *twin.Service)
		atLeast time.Duration
	}{
		{"it turns up", func(s *twin.Service) { s.Add(t, "servers", "utr-x", embedded.Options{}) }, 0},
		{"its making fails, and leaves parts", func(s *twin.Service) { s.AddPart("servers", "utr-x-part-member0") }, 300 * time.Millisecond},
		{"nothing turns up", func(*twin.Service) {}, 300 * time.Millisecond},
	} {
		t.Run(r.reason, func(t *testing.T) {
			s := twin.Start(t)
			b, _ := leftBy(t, ledger.Entry{Kind: ledger.Cluster, URL: s.URL, Resource: "servers", ID: "utr-x", Making: true})
			began := time.Now()
			x := &cleaner{dryRun: new(bool), forget: new(bool), c: &call{program: &b.Program, errors: &b.err, secrets: newRedactor()}, services: map[string]service{}, quiet: 300 * time.Millisecond}
			book, err := x.c.ledger()
			if err != nil {
				t.Fatal(err)
			}
			dead, _, err := book.Leftovers()
			if err != nil || len(dead) != 1 {
				t.Fatal(dead, err)
			}
			time.AfterFunc(50*time.Millisecond, func() { r.later(s) })
			if err := x.entry(t.Context(), dead[0]); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < r.atLeast || x.left != 0 || x.gone != 1 {
				t.Errorf("after %s %d things are left: %s", took, x.left, b.err.String())
			}
			if left := s.Clusters(); len(left) != 0 {
				t.Errorf("left are %v", left)
			}
			if !strings.Contains(b.err.String(), "waiting for the service, which may be making cluster utr-x of "+s.URL) {
				t.Errorf("nobody is told of the wait: %s", b.err.String())
			}
		})
	}
}
