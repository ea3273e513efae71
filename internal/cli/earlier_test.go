package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/result"
)

const earlierRecord = `{"file":"f.yml","suite":"s","test":"t","iteration":1,"status":"failed","durationMS":1,"timings":{}}` + "\n"

// folderOf makes a folder of files and gives its path.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// --earlier takes reports and folders of them; what the run writes itself is
// none of them.
func TestEarlier(t *testing.T) {
	dir := folderOf(t, map[string]string{"a.json": earlierRecord, "b.json": earlierRecord, "empty.json": "", "notes.txt": "none", "today.json": "half a l"})
	for _, r := range []struct {
		reason string
		args   []string
		runs   int
	}{
		{"none", nil, 0},
		{"one", []string{"--earlier", filepath.Join(dir, "a.json")}, 1},
		{"two", []string{"--earlier", filepath.Join(dir, "a.json"), "--earlier", filepath.Join(dir, "b.json")}, 2},
		{"a folder, in which a report is written anew", []string{"--earlier", dir, "--json", filepath.Join(dir, "today.json")}, 2},
	} {
		for _, command := range []string{"run", "merge"} {
			b := newBench()
			b.notes = []result.Note{result.RunStarted{}, result.TestFinished{Verdict: &result.Verdict{Status: result.Passed, Test: result.TestID{File: "f.yml", Description: "t"}}}, result.RunFinished{}}
			path := filepath.Join(t.TempDir(), "page.html")
			input := suiteFile(t)
			if command == "merge" {
				input = filepath.Join(folderOf(t, map[string]string{"now.json": strings.Replace(earlierRecord, "failed", "passed", 1)}), "now.json")
			}
			code := b.Main(context.Background(), append(append([]string{command, "--html", path}, r.args...), input))
			text, err := os.ReadFile(path)
			if code != ExitOK || err != nil || strings.Count(string(text), "\n[\"p\",") != r.runs {
				t.Errorf("%s: %s: exit code %d, %v, %d earlier runs, want %d\n%s", command, r.reason, code, err, strings.Count(string(text), "\n[\"p\","), r.runs, b.err.String())
			}
			if r.runs > 0 && !strings.Contains(string(text), "[\"h\",\""+strings.Repeat("0", r.runs)+"\"]") {
				t.Errorf("%s: %s: the history is another", command, r.reason)
			}
		}
	}
}

func TestEarlierIsRefused(t *testing.T) {
	dir := folderOf(t, map[string]string{"a.json": earlierRecord, "bad.json": "<xml>"})
	a, bad := filepath.Join(dir, "a.json"), filepath.Join(dir, "bad.json")
	for _, r := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"nothing that shows it", []string{"--earlier", a}, "--earlier goes with --html"},
		{"it would be lost", []string{"--html", "x.html", "--earlier", a, "--json", a}, "--json would be written over the earlier report"},
		{"it is no report", []string{"--html", "x.html", "--earlier", bad}, "bad.json:1: no record of a test"},
		{"it is not there", []string{"--html", "x.html", "--earlier", filepath.Join(dir, "none.json")}, "none.json: no such file"},
		{"a folder that has one", []string{"--html", "x.html", "--earlier", dir}, "bad.json:1: no record of a test"},
	} {
		b := newBench()
		code := b.Main(context.Background(), append(append([]string{"run"}, r.args...), suiteFile(t)))
		if code != ExitUsage || !strings.Contains(b.err.String(), r.want) {
			t.Errorf("%s: exit code %d\n%s", r.reason, code, b.err.String())
		}
	}
	if text, err := os.ReadFile(a); err != nil || string(text) != earlierRecord {
		t.Errorf("the earlier report was changed: %v %q", err, text)
	}
	if _, err := os.Stat("x.html"); err == nil {
		t.Error("a page was begun")
	}
}
