package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

func verdict(name string, s result.Status, more ...string) *result.Verdict {
	v := &result.Verdict{Test: result.TestID{File: "f.yml", Suite: "s", Description: name, Deployment: "single 8.0", Iteration: 1}, Status: s, Duration: 100 * time.Millisecond}
	if s == result.Skipped {
		v.SkipKind, v.Reason = result.SkipKind(more[0]), more[1]
	}
	return v
}

func TestCompare(t *testing.T) {
	after := func(v *result.Verdict, d time.Duration) *result.Verdict {
		v.Duration = d
		return v
	}
	for _, r := range []struct {
		reason   string
		old, now *result.Verdict
		want     string // the lists that it is in
	}{
		{"it passes as before", verdict("t", result.Passed), verdict("t", result.Passed), ""},
		{"it fails as before", verdict("t", result.Failed), verdict("t", result.Failed), ""},
		{"it fails", verdict("t", result.Passed), verdict("t", result.Failed), "new"},
		{"it breaks", verdict("t", result.Passed), verdict("t", result.Broken), "new"},
		{"it is flaky", verdict("t", result.Passed), verdict("t", result.Flaky), "new"},
		{"it was skipped and fails", verdict("t", result.Skipped, "requirement", "old"), verdict("t", result.Failed), "new"},
		{"it was known to fail, and no longer is", verdict("t", result.KnownFailing), verdict("t", result.Failed), "new"},
		{"it is new and fails", nil, verdict("t", result.Failed), "new came"},
		{"it is new and passes", nil, verdict("t", result.Passed), "came"},
		{"it is gone", verdict("t", result.Failed), nil, "went"},
		{"it failed and breaks", verdict("t", result.Failed), verdict("t", result.Broken), "other"},
		{"it failed and is flaky", verdict("t", result.Failed), verdict("t", result.Flaky), "other"},
		{"it is mended", verdict("t", result.Failed), verdict("t", result.Passed), "mended"},
		{"it was flaky and is mended", verdict("t", result.Flaky), verdict("t", result.Passed), "mended"},
		{"a known failure is mended", verdict("t", result.KnownFailing), verdict("t", result.Passed), "mended"},
		{"a failure becomes known", verdict("t", result.Failed), verdict("t", result.KnownFailing), ""},
		{"it is skipped as before", verdict("t", result.Skipped, "requirement", "a"), verdict("t", result.Skipped, "requirement", "a"), ""},
		{"another reason", verdict("t", result.Skipped, "requirement", "a"), verdict("t", result.Skipped, "requirement", "b"), "skips"},
		{"another kind of reason", verdict("t", result.Skipped, "requirement", "a"), verdict("t", result.Skipped, "capability", "a"), "skips"},
		{"it is no longer run", verdict("t", result.Passed), verdict("t", result.Skipped, "capability", "a"), "skips"},
		{"it runs now", verdict("t", result.Skipped, "capability", "a"), verdict("t", result.Passed), "skips"},
		{"a failure that hides", verdict("t", result.Failed), verdict("t", result.Skipped, "capability", "a"), "skips"},
		{"twice as long, and long", verdict("t", result.Passed), after(verdict("t", result.Passed), 200*time.Millisecond), "slower"},
		{"not twice as long", after(verdict("t", result.Passed), time.Second), after(verdict("t", result.Passed), 1900*time.Millisecond), ""},
		{"twice as long, and short", after(verdict("t", result.Passed), time.Millisecond), after(verdict("t", result.Passed), 99*time.Millisecond), ""},
	} {
		isNil := func(v *result.Verdict) bool { return v == nil }
		d := report.Compare(slices.DeleteFunc([]*result.Verdict{r.old}, isNil), slices.DeleteFunc([]*result.Verdict{r.now}, isNil), 100*time.Millisecond)
		var got []string
		for _, l := range []struct {
			name    string
			changes []report.Change
		}{{"new", d.NewFailures}, {"other", d.OtherFailures}, {"mended", d.Mended}, {"skips", d.Skips}, {"slower", d.Slower}, {"came", d.Came}, {"went", d.Went}} {
			if len(l.changes) > 0 {
				got = append(got, l.name)
			}
		}
		if strings.Join(got, " ") != r.want {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}

// Deployments, iterations and tests of one name are told apart.
func TestCompareByIdentity(t *testing.T) {
	elsewhere := verdict("t", result.Failed)
	elsewhere.Test.Deployment = "sharded 8.0"
	again := verdict("t", result.Failed)
	again.Test.Iteration = 2
	old := []*result.Verdict{verdict("t", result.Passed), elsewhere, again, verdict("t", result.Failed)}
	if d := report.Compare(old, slices.Clone(old), 0); cmp.Diff(report.Difference{}, report.Difference{NewFailures: d.NewFailures, Mended: d.Mended, Came: d.Came, Went: d.Went}) != "" {
		t.Errorf("%+v", d)
	}
	d := report.Compare(old, []*result.Verdict{verdict("t", result.Passed), verdict("t", result.Passed)}, 0)
	if len(d.Mended) != 1 || len(d.Went) != 2 {
		t.Errorf("%+v", d)
	}
}

// The golden file names each list, and what steers a terminal is gone.
func TestDifferenceText(t *testing.T) {
	broken := verdict("b\x1b[31m", result.Broken)
	broken.Reason = "no\nserver"
	slow := verdict("slow", result.Passed)
	slow.Duration = 3 * time.Second
	d := report.Compare(
		[]*result.Verdict{verdict("a", result.Failed), verdict("b\x1b[31m", result.Passed), verdict("slow", result.Passed),
			verdict("gone", result.Passed), verdict("s", result.Passed)},
		[]*result.Verdict{verdict("a", result.Passed), broken, slow, verdict("fresh", result.Passed),
			verdict("s", result.Skipped, "skipReason", "DRIVERS-1")}, 0)
	golden(t, "difference.txt", d.Text())
}

func TestMerge(t *testing.T) {
	part := func(name, shard string, whole bool, verdicts ...*result.Verdict) *report.Past {
		p := &report.Past{Name: name, Shard: shard, Verdicts: verdicts}
		if whole {
			p.Run = &report.PastRun{Engine: "reference 1", Duration: time.Second}
		}
		return p
	}
	a, b, c := verdict("a", result.Passed), verdict("b", result.Failed), verdict("c", result.Passed)
	one, two := part("1.json", "1/2", true, a), part("2.json", "2/2", true, b, c)
	interrupted := part("2.json", "2/2", true, b)
	interrupted.Run.Interrupted = true
	troubled, also := part("1.json", "1/2", true, a), part("2.json", "2/2", true, b)
	troubled.Run.Problems, also.Run.Problems = []string{"stale"}, []string{"stale", "unexpected pass"}
	for _, r := range []struct {
		reason   string
		parts    []*report.Past
		problems []string
		code     int
	}{
		{"both shards, one of them red", []*report.Past{one, two}, nil, 1},
		{"runs that are not shards", []*report.Past{part("1.json", "", false, a), part("2.json", "", false, c)}, nil, 0},
		{"a shard is missing", []*report.Past{two}, []string{"shard 1/2 is missing"}, 1},
		{"a shard was cut off", []*report.Past{one, part("2.json", "2/2", false, c)}, []string{"2.json: the report of shard 2/2 was cut off"}, 1},
		{"a shard is there twice", []*report.Past{one, two, part("3.json", "2/2", true)}, []string{"3.json: shard 2/2 is there twice"}, 1},
		{"shards of two runs", []*report.Past{one, two, part("3.json", "3/3", true)},
			[]string{"3.json: shard 3/3 is one of 3, others are of 2", "shard 1/3 is missing", "shard 2/3 is missing"}, 1},
		{"not the name of a shard", []*report.Past{part("1.json", "x", true, a)}, []string{`1.json: there is no shard "x"`}, 1},
		{"a test is in two", []*report.Past{one, part("2.json", "2/2", true, a, c)}, []string{`1.json and 2.json have 1 test in common, such as "s: a [single 8.0]"`}, 1},
		{"problems of each, once", []*report.Past{troubled, also}, []string{"stale", "unexpected pass"}, 1},
		{"an interruption", []*report.Past{one, interrupted}, nil, 3},
	} {
		notes := report.Merge(r.parts)
		end := notes[len(notes)-1].(result.RunFinished).Summary
		if diff := cmp.Diff(r.problems, end.Problems); diff != "" || end.ExitCode() != r.code {
			t.Errorf("%s: exit code %d (-want +got)\n%s", r.reason, end.ExitCode(), diff)
		}
		tests := 0
		for _, p := range r.parts {
			tests += len(p.Verdicts)
		}
		if started := notes[0].(result.RunStarted); started.Total != tests || len(notes) != tests+2 || started.Shard != "" {
			t.Errorf("%s: %+v", r.reason, started)
		}
	}
	end := report.Merge([]*report.Past{one, two})[4].(result.RunFinished).Summary
	if end.Passed != 2 || end.Failed != 1 || end.Duration != time.Second {
		t.Errorf("%+v", end)
	}
}

// Where its reports do not say it, a merged run began when its first test did,
// and took until the end of its last one.
func TestMergeKnowsTheTime(t *testing.T) {
	past := read(t, generate(report.JSON(), ended(3, "pfp")))
	notes := report.Merge([]*report.Past{past})
	started, over := notes[0].(result.RunStarted), notes[len(notes)-1].(result.RunFinished)
	if want := time.Date(2026, 7, 3, 2, 0, 0, 0, time.UTC); !started.Time.Equal(want) || over.Summary.Duration != 3*time.Minute {
		t.Errorf("it began at %v and took %v, want %v and 3m", started.Time, over.Summary.Duration, want)
	}
	for _, v := range past.Verdicts {
		v.Began = time.Time{}
	}
	notes = report.Merge([]*report.Past{past})
	if started, over = notes[0].(result.RunStarted), notes[len(notes)-1].(result.RunFinished); !started.Time.IsZero() || over.Summary.Duration != 3*time.Minute {
		t.Errorf("without times: it began at %v and took %v", started.Time, over.Summary.Duration)
	}
}

func TestCellLine(t *testing.T) {
	for _, r := range []struct {
		reason string
		cell   result.CellFinished
		want   string
	}{
		{"all well", result.CellFinished{Cell: "a", Summary: result.Summary{Passed: 3, Skipped: 1, Duration: time.Second}}, "✔ a: 3 passed in 1s"},
		{"red", result.CellFinished{Cell: "a", Summary: result.Summary{Passed: 3, Failed: 1}}, "✘ a: 1 failed, 3 passed in 0s"},
		{"broken", result.CellFinished{Cell: "a", Broken: "x\ny"}, "✘ a: 0 passed in 0s (x y)"},
	} {
		if got := report.CellLine(r.cell); got != r.want {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}

// What a JSON report has of cells is read again, by itself and merged with
// others: one test in two cells is two tests.
func TestCellsAreReadAgain(t *testing.T) {
	past := func(cell string, status result.Status) *report.Past {
		text := generate(report.JSON(), []result.Note{
			result.RunStarted{Cell: cell, Engine: "e"},
			finished(&result.Verdict{Status: status, Duration: time.Second, Test: result.TestID{File: "f.yml", Suite: "s", Description: "t", Cell: cell}}),
			result.RunFinished{Summary: result.Summary{Duration: 3 * time.Second, Problems: []string{"p"}}},
		})
		p, err := report.Read(cell, strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if p.Cell != cell || p.Run == nil || len(p.Verdicts) != 1 || p.Verdicts[0].Test.Cell != cell {
			t.Errorf("read again: %+v", p)
		}
		return p
	}
	notes := report.Merge([]*report.Past{past("a", result.Passed), past("b", result.Failed)})
	var cells []result.CellFinished
	for _, n := range notes {
		switch n := n.(type) {
		case result.CellFinished:
			cells = append(cells, n)
		case result.RunFinished:
			if len(n.Summary.Problems) != 1 || n.Summary.Problems[0] != "p" {
				t.Errorf("problems of the whole: %q", n.Summary.Problems)
			}
		}
	}
	want := []result.CellFinished{
		{Cell: "a", Summary: result.Summary{Passed: 1, Duration: 3 * time.Second, Problems: []string{"p"}}},
		{Cell: "b", Summary: result.Summary{Failed: 1, Duration: 3 * time.Second, Problems: []string{"p"}}},
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	cut := past("a", result.Passed)
	cut.Run = nil
	if cell := report.Merge([]*report.Past{cut})[2].(result.CellFinished); cell.Summary.Duration != time.Second {
		t.Errorf("a cell whose run has no end took %v, want the time of its tests", cell.Summary.Duration)
	}
	twin := past("a", result.Passed)
	twin.Name = "another file"
	again := report.Merge([]*report.Past{past("a", result.Passed), twin})
	if end := again[len(again)-1].(result.RunFinished); !strings.Contains(strings.Join(end.Summary.Problems, "\n"), "1 test in common") {
		t.Errorf("a test of one cell twice is no problem: %q", end.Summary.Problems)
	}
}
