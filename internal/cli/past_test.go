package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
)

// reportFile writes the JSON report of a run of tests that ended so.
func reportFile(t *testing.T, shard string, verdicts map[string]result.Status) string {
	t.Helper()
	var text strings.Builder
	r := report.New("memory", report.JSON(), &text)
	r.Note(result.RunStarted{Shard: shard})
	for name, s := range verdicts {
		r.Note(result.TestFinished{Verdict: &result.Verdict{Test: result.TestID{File: "f.yml", Suite: "s", Description: name}, Status: s, Duration: time.Second}})
	}
	r.Note(result.RunFinished{})
	path := filepath.Join(t.TempDir(), "report.json")
	write(t, path, text.String())
	return path
}

func TestPastCommands(t *testing.T) {
	good := reportFile(t, "", map[string]result.Status{"a": result.Passed})
	bad := reportFile(t, "", map[string]result.Status{"a": result.Failed})
	other := reportFile(t, "", map[string]result.Status{"b": result.Passed})
	shard := reportFile(t, "1/2", map[string]result.Status{"a": result.Passed})
	none := filepath.Join(t.TempDir(), "none")
	write(t, none, "<testsuites/>\n")
	out := filepath.Join(t.TempDir(), "out")
	for _, r := range []struct {
		reason string
		args   []string
		code   int
		out    string // part of standard output
		err    string // part of standard error
	}{
		{"nothing changed", []string{"diff", good, good}, 0, "0 new failures, 0 mended", ""},
		{"a new failure", []string{"diff", good, bad}, 1, "1 new failure, 0 mended", ""},
		{"mended", []string{"diff", bad, good}, 0, "0 new failures, 1 mended", ""},
		{"one report", []string{"diff", good}, 2, "", "name two reports"},
		{"no report", []string{"diff", good, none}, 2, "", none + ":1: no record of a test"},
		{"a report that is not there", []string{"diff", "nowhere", good}, 2, "", "nowhere"},
		{"two runs", []string{"merge", good, other}, 0, "2 passed, 0 failed, 0 skipped\n", ""},
		{"a red one", []string{"merge", bad, other}, 1, "1 passed, 1 failed, 0 skipped\n", ""},
		{"one test twice", []string{"merge", good, bad}, 1, "have 1 test in common", ""},
		{"half of a run", []string{"merge", shard}, 1, "problem: shard 2/2 is missing", ""},
		{"nothing", []string{"merge"}, 2, "", "name the reports"},
		{"what is no report", []string{"merge", none}, 2, "", "no record of a test"},
		{"a report over one that is read", []string{"merge", "--json", good, good}, 2, "", "written over the report"},
		{"a report that cannot be written", []string{"merge", "--tap", filepath.Join(none, "x"), good}, 3, "", "cannot write a report"},
		{"a full disk", []string{"merge", "--tap", "/dev/full", good}, 3, "", "/dev/full"},
		{"a report of another form", []string{"merge", "--junit", out, good, other}, 0, "", ""},
		{"a shard that is none", []string{"run", "--shard", "3/2", suiteFile(t)}, 2, "", "--shard \"3/2\": of 2 parts there is no number 3"},
		{"an empty shard", []string{"run", "--shard", "", suiteFile(t)}, 2, "", "such as 2/5"},
		{"durations alone", []string{"run", "--durations", good, suiteFile(t)}, 2, "", "goes with --shard"},
		{"durations that are none", []string{"run", "--shard", "1/2", "--durations", none, suiteFile(t)}, 2, "", "no record of a test"},
	} {
		if _, err := os.Stat("/dev/full"); err != nil && r.reason == "a full disk" {
			continue
		}
		b := newBench()
		if code := b.Main(context.Background(), r.args); code != r.code || !strings.Contains(b.out.String(), r.out) || !strings.Contains(b.err.String(), r.err) {
			t.Errorf("%s: exit code %d\n%s%s", r.reason, code, b.out.String(), b.err.String())
		}
	}
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), `tests="2"`) {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := os.ReadFile(good); err != nil || len(text) == 0 {
		t.Errorf("a report was written over: %v", err)
	}
}

func TestShardConfiguration(t *testing.T) {
	b := newBench()
	durations := reportFile(t, "", map[string]result.Status{"a": result.Passed, "b": result.Skipped})
	if code := b.Main(context.Background(), []string{"run", "--shard", "2/3", "--durations", durations, suiteFile(t)}); code != 0 {
		t.Fatal(b.err.String())
	}
	s := b.ran.Shard
	if s.Index != 2 || s.Count != 3 || len(s.Durations) != 1 || s.Durations[runner.ShardKey(result.TestID{File: "f.yml", Description: "a"})] != time.Second {
		t.Errorf("%+v", s)
	}
	b = newBench()
	if b.Main(context.Background(), []string{"run", suiteFile(t)}) != 0 || b.ran.Shard.Count != 0 {
		t.Errorf("%+v", b.ran.Shard)
	}
}
