package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/result"
)

// A report takes the place of an earlier one when it is complete, and not
// before.
func TestEarlierReport(t *testing.T) {
	for _, r := range []struct {
		reason string
		change func(*bench)
		kept   bool
	}{
		{"the run ends well", func(*bench) {}, false},
		{"a test failed", func(b *bench) { b.summary.Failed = 1 }, false},
		{"the deployment cannot be opened", func(b *bench) { b.opening = errors.New("no ports") }, true},
		{"the run cannot begin", func(b *bench) { b.fails, b.notes = errors.New("no test commands"), nil }, true},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench(t)
			b.notes = []result.Note{finished("a", result.Passed)}
			write(t, "r.json", "earlier")
			if err := os.Chmod("r.json", 0o600); err != nil {
				t.Fatal(err)
			}
			r.change(b)
			during := "earlier"
			b.during = func() { during = read(t, "r.json") }
			b.utr("run --json r.json suite.yml")
			if text := read(t, "r.json"); during != "earlier" || (text == "earlier") != r.kept {
				t.Errorf("during the run the report holds %q, after it %q", during, text)
			}
			if about, err := os.Stat("r.json"); err != nil || about.Mode().Perm() != 0o600 {
				t.Errorf("its mode is %v %v", about.Mode(), err)
			}
			if names, _ := filepath.Glob("*"); !slices.Equal(names, []string{"r.json", "suite.yml"}) {
				t.Errorf("the folder holds %q", names)
			}
		})
	}
}

// A link to a report stays a link, and a read-only file is not replaced.
func TestReportsInOddPlaces(t *testing.T) {
	b := newBench(t)
	b.notes = []result.Note{finished("a", result.Passed)}
	write(t, "a.json", "earlier")
	if err := os.Symlink("a.json", "b.json"); err != nil {
		t.Fatal(err)
	}
	b.expect(t, "a link", "run --json b.json suite.yml", 0, "")
	if to, err := os.Readlink("b.json"); to != "a.json" || !strings.Contains(read(t, "a.json"), `"passed"`) {
		t.Errorf("the link leads to %q %v, the report holds %q", to, err, read(t, "a.json"))
	}
	if os.Getuid() == 0 {
		return // may write everything
	}
	if err := os.Chmod("a.json", 0o400); err != nil {
		t.Fatal(err)
	}
	b.expect(t, "a read-only file", "run --json a.json suite.yml", ExitBroken, "cannot write a report")
}

// A full disk breaks the run, which names each report that it could not write.
// The other reports are complete.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, k := range reportKinds() {
		for _, brokenTests := range []int{0, 1} {
			b := newBench(t)
			b.notes = []result.Note{finished("a", result.Failed)}
			b.summary = result.Summary{Passed: 2, Broken: brokenTests}
			line := "run --" + k.flag + " /dev/full suite.yml"
			if k.flag != "junit" {
				line += " --junit other.xml"
			}
			b.expect(t, k.flag, line, ExitBroken, "2 passed, 0 failed, 0 skipped\n … writing the report to /dev/full: ")
			if strings.Contains(b.err.String(), "earlier report") {
				t.Errorf("%s: a device has no earlier report: %s", k.flag, b.err.String())
			}
			if k.flag != "junit" && !strings.HasSuffix(strings.TrimSpace(read(t, "other.xml")), "</testsuites>") {
				t.Errorf("%s: the other report is cut off: %s", k.flag, read(t, "other.xml"))
			}
		}
	}
}

// Every kind of report is written to the file of its flag.
func TestEveryReportIsWritten(t *testing.T) {
	b := newBench(t)
	b.notes = []result.Note{result.RunStarted{}, finished("a", result.Passed)}
	for _, k := range reportKinds() {
		if b.expect(t, k.flag, "run --"+k.flag+" report suite.yml", 0, ""); read(t, "report") == "" {
			t.Errorf("--%s wrote nothing", k.flag)
		}
		write(t, "report", "")
	}
}

// --earlier takes reports and folders of reports, except what the run itself
// writes.
func TestEarlier(t *testing.T) {
	const earlier = `{"file":"f.yml","suite":"s","test":"t","iteration":1,"status":"failed","durationMS":1,"timings":{}}` + "\n"
	b := newBench(t)
	b.notes = []result.Note{result.RunStarted{}, finished("t", result.Passed), result.RunFinished{}}
	if err := os.Mkdir("past", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"past/a.json": earlier, "past/b.json": earlier, "past/empty.json": "", "past/notes.txt": "none",
		"past/today.json": "half a l", "now.json": strings.Replace(earlier, "failed", "passed", 1)} {
		write(t, name, text)
	}
	for _, r := range []struct {
		reason, flags string
		runs          int
	}{
		{"no report", "", 0},
		{"one report", "--earlier past/a.json", 1},
		{"two reports", "--earlier past/a.json --earlier past/b.json", 2},
		{"a folder, in which the run writes a report", "--earlier past --json past/today.json", 2},
	} {
		for _, command := range []string{"run suite.yml ", "merge now.json "} {
			b.expect(t, r.reason, command+"--html page.html "+r.flags, 0, "")
			page := read(t, "page.html")
			if n := strings.Count(page, "\n[\"p\","); n != r.runs || r.runs > 0 && !strings.Contains(page, `["h","`+strings.Repeat("0", r.runs)+`"]`) {
				t.Errorf("%s: %s: the page has %d earlier runs, want %d, all failed", command, r.reason, n, r.runs)
			}
		}
	}
}
