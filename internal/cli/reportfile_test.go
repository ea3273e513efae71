package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

func contentOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// onlyIn fails the test if a folder holds anything but these files.
func onlyIn(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

// A report takes the place of an earlier one when it is whole, and not before.
func TestEarlierReport(t *testing.T) {
	file := suiteFile(t)
	passed := []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Passed}}}
	for _, r := range []struct {
		reason string
		change func(*bench)
		kept   bool
	}{
		{"the run ends well", nil, false},
		{"a test failed", func(b *bench) { b.summary.Failed = 1 }, false},
		{"the deployment cannot be used", func(b *bench) {
			b.Embedded = func(context.Context, deployment.EmbeddedOptions) (deployment.Source, error) {
				return nil, errors.New("no ports")
			}
		}, true},
		{"the run cannot begin", func(b *bench) {
			b.Run = func(context.Context, []*specs.Suite, runner.Config) (result.Summary, error) {
				return result.Summary{}, errors.New("no test commands")
			}
		}, true},
	} {
		t.Run(r.reason, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "r.json")
			write(t, path, "earlier")
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			b := newBench()
			b.notes = passed
			if r.change != nil {
				r.change(b)
			}
			during := ""
			b.during = func() { during = contentOf(t, path) }
			b.Main(context.Background(), []string{"run", "--json", path, file})
			if b.ran != nil && during != "earlier" {
				t.Errorf("in the middle of the run the report holds %q", during)
			}
			if text := contentOf(t, path); (text == "earlier") != r.kept {
				t.Errorf("the report holds %q", text)
			}
			if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
				t.Errorf("its mode is %v %v", about.Mode(), err)
			}
			onlyIn(t, dir, "r.json")
		})
	}
}

// A link to a report stays a link, and a file that may not be written is not
// replaced.
func TestReportsInOddPlaces(t *testing.T) {
	file := suiteFile(t)
	dir := t.TempDir()
	target, link := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	write(t, target, "earlier")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	b := newBench()
	b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Passed}}}
	if code := b.Main(context.Background(), []string{"run", "--json", link, file}); code != 0 {
		t.Error(b.err.String())
	}
	if about, err := os.Lstat(link); err != nil || about.Mode()&os.ModeSymlink == 0 || !strings.Contains(contentOf(t, target), `"passed"`) {
		t.Errorf("the link: %v %v, the report: %q", about.Mode(), err, contentOf(t, target))
	}
	onlyIn(t, dir, "a.json", "b.json")
	if os.Getuid() == 0 {
		return // may write everything
	}
	if err := os.Chmod(target, 0o400); err != nil {
		t.Fatal(err)
	}
	b = newBench()
	if code := b.Main(context.Background(), []string{"run", "--json", target, file}); code != ExitBroken {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

// A disk that is full breaks the run, which tells each report that was not
// written; the report for people is whole.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	file := suiteFile(t)
	for _, k := range reportKinds() {
		for _, broken := range []int{0, 1} {
			b := newBench()
			b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Failed}}}
			b.summary = result.Summary{Passed: 2, Broken: broken}
			other := filepath.Join(t.TempDir(), "other.xml")
			args := []string{"run", "--" + k.flag, "/dev/full", file}
			if k.flag != "junit" {
				args = append(args, "--junit", other)
			}
			if code := b.Main(context.Background(), args); code != ExitBroken {
				t.Errorf("%s: exit code %d", k.flag, code)
			}
			if !strings.Contains(b.err.String(), "writing the report to /dev/full: ") || strings.Contains(b.err.String(), "earlier report") {
				t.Errorf("%s: it says %q", k.flag, b.err.String())
			}
			if !strings.HasSuffix(b.out.String(), "2 passed, 0 failed, 0 skipped\n") {
				t.Errorf("%s: the text ends %q", k.flag, b.out.String())
			}
			if k.flag != "junit" && !strings.HasSuffix(strings.TrimSpace(contentOf(t, other)), "</testsuites>") {
				t.Errorf("%s: the other report is not whole: %s", k.flag, contentOf(t, other))
			}
		}
	}
}
