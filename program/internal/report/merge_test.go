package report_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

func verdict(name string, s result.Status, more ...string) *result.Verdict {
	v := &result.Verdict{Test: result.TestID{File: "f.yml", Suite: "s", Description: name, Deployment: "single 8.0",
		Iteration: 1}, Status: s, Duration: 100 * time.Millisecond}
	if s == result.Skipped {
		v.SkipKind, v.Reason = result.SkipKind(more[0]), more[1]
	}
	return v
}

// saved is a complete report.
func saved(verdicts ...*result.Verdict) *report.SavedRun {
	return &report.SavedRun{Verdicts: verdicts, Run: &report.PastRun{}}
}

func TestCompare(t *testing.T) {
	side := func(text string) *report.SavedRun {
		words, broke := append(strings.Fields(text), "", ""), []result.Break{{Cell: "another", Reason: "no answer"}}
		switch words[0] {
		case "nothing":
			return saved()
		case "broke":
			return &report.SavedRun{Run: &report.PastRun{Breaks: append(broke, result.Break{Reason: "interrupted"})}}
		case "cut":
			return &report.SavedRun{}
		}
		v := verdict("t", result.Status(words[0]), words[1:]...)
		if d, err := time.ParseDuration(words[1]); err == nil {
			v.Duration = d
		}
		p := saved(v)
		p.Run.Breaks = broke
		return p
	}
	testkit.Transcript(t, "testdata/compare.txt", func(t *testing.T, input string) string {
		was, is, _ := strings.Cut(input, " → ")
		d := report.Compare(side(was), side(is), 100*time.Millisecond, nil)
		var got []string
		for i, changes := range d {
			if len(changes) > 0 {
				got = append(got, []string{"new", "other", "not-run", "fixed", "skips", "slower", "added", "removed"}[i])
			}
		}
		return cmp.Or(strings.Join(got, " "), "nothing")
	})
}

// Compare distinguishes deployments, iterations and tests with the same name.
func TestCompareByIdentity(t *testing.T) {
	elsewhere, repeated := verdict("t", result.Failed), verdict("t", result.Failed)
	elsewhere.Test.Deployment, repeated.Test.Iteration = "sharded 8.0", 2
	old := []*result.Verdict{verdict("t", result.Passed), elsewhere, repeated, verdict("t", result.Failed)}
	d := report.Compare(saved(old...), saved(old...), 0, nil)
	testkit.Equal(t, "the same run", len(slices.Concat(d[:]...)), 0)
	d = report.Compare(saved(old...), saved(verdict("t", result.Passed), verdict("t", result.Passed)), 0, nil)
	testkit.Equal(t, "fixed and removed", fmt.Sprint(len(d[report.Fixed]), len(d[report.Removed])), "1 2")
}

// The text has every list and no control characters.
func TestDifferenceText(t *testing.T) {
	broken := verdict("b\x1b[31m", result.Broken)
	broken.Reason = "no\nserver"
	fast, slow := verdict("slow", result.Passed), verdict("slow", result.Passed)
	fast.Duration, slow.Duration = 200*time.Millisecond, 3*time.Second
	d := report.Compare(
		saved(verdict("a", result.Failed), verdict("b\x1b[31m", result.Passed), fast,
			verdict("gone", result.Passed), verdict("s", result.Passed), verdict("late", result.Passed)),
		saved(verdict("a", result.Passed), broken, slow, verdict("fresh", result.Passed),
			verdict("s", result.Skipped, "skipReason", "DRIVERS-1"), verdict("late", result.Skipped, "not-run", "interrupted")),
		0, nil)
	golden(t, "difference.txt", d.Text(report.DifferenceOptions{Slower: true}))
}

// Failures with one cause and changes with one outcome are one entry. Slower tests are only counted.
func TestDifferenceIsGrouped(t *testing.T) {
	var was, is []*result.Verdict
	for _, n := range eight(inCell) {
		if n, ok := n.(result.TestFinished); ok {
			old := *n.Verdict
			old.Status, old.Mismatches = result.Passed, nil
			was, is = append(was, &old), append(is, n.Verdict)
		}
	}
	fast, slow := verdict("slow", result.Passed), verdict("slow", result.Passed)
	fast.Duration, slow.Duration = 200*time.Millisecond, 3*time.Second
	d := report.Compare(saved(append(was, fast)...),
		saved(append(is, slow, verdict("x", result.Passed), verdict("y", result.Passed))...), 0, nil)
	const counts = "8 new failures, 0 fixed, 0 changed skips, 1 slower, 2 added, 0 removed\n"
	testkit.Equal(t, "the text", string(d.Text(report.DifferenceOptions{})), counts+`
new failures:
  specs/find.yml: find: a [cell0, single 8.0] (8 tests in 8 cells)
    passed → failed (want commandFailedEvent, got commandSucceededEvent (find) at expectEvents[0].events[1])

added:
  f.yml: s: x [single 8.0] (2 tests)
    passed
`)
	testkit.Contains(t, string(d.Text(report.DifferenceOptions{Slower: true})), "\nslower:\n  f.yml: s: slow [single 8.0]\n    200ms → 3s\n")
	all := string(d.Text(report.DifferenceOptions{Verbose: true}))
	testkit.Equal(t, "tests with -v", strings.Count(all, "\n  "), 2*(8+1+2))
}

// A test is slower only beyond the noise of earlier runs.
func TestSlowerBeyondNoise(t *testing.T) {
	lasting := func(d time.Duration) *report.SavedRun {
		v := verdict("t", result.Passed)
		v.Duration = d
		return saved(v)
	}
	const ms = time.Millisecond
	for _, r := range []struct {
		reason  string
		was, is time.Duration
		earlier []time.Duration
		want    int
	}{
		{"three times as long", 200 * ms, 600 * ms, nil, 1},
		{"the older one was short", 100 * ms, 600 * ms, nil, 0},
		{"not twice as long", 500 * ms, 900 * ms, nil, 0},
		{"steady before", 200 * ms, 600 * ms, []time.Duration{210 * ms, 190 * ms, 205 * ms}, 1},
		{"noisy before", 200 * ms, 600 * ms, []time.Duration{700 * ms, 150 * ms, 500 * ms}, 0},
	} {
		noise := report.Noise{}
		for _, d := range r.earlier {
			n := lasting(d).Verdicts[0]
			testkit.Check(t, noise.Read("r", strings.NewReader(string(generate(report.JSON(), []result.Note{finished(n)})))))
		}
		d := report.Compare(lasting(r.was), lasting(r.is), 100*ms, noise)
		testkit.Equal(t, r.reason, len(d[report.Slower]), r.want)
	}
}

func TestMerge(t *testing.T) {
	part := func(name, shard string, whole bool, verdicts ...*result.Verdict) *report.SavedRun {
		p := &report.SavedRun{Name: name, Shard: shard, Verdicts: verdicts}
		if whole {
			p.Run = &report.PastRun{Engine: "reference 1", Duration: result.Duration(time.Second)}
		}
		return p
	}
	a, b, c := verdict("a", result.Passed), verdict("b", result.Failed), verdict("c", result.Passed)
	one, two := part("1.json", "1/2", true, a), part("2.json", "2/2", true, b, c)
	interrupted := part("2.json", "2/2", true, b)
	interrupted.Run.Interrupted, interrupted.Run.Breaks = true, []result.Break{{Reason: "interrupted"}}
	dead := part("c.json", "", true)
	dead.Cell, dead.Run.Breaks = "c", interrupted.Run.Breaks
	troubled, also := part("1.json", "1/2", true, a), part("2.json", "2/2", true, b)
	troubled.Run.Problems, also.Run.Problems = []string{"stale"}, []string{"stale", "unexpected pass"}
	for _, r := range []struct {
		reason   string
		parts    []*report.SavedRun
		problems []string // and breaks
		code     int
	}{
		{"both shards, one of them red", []*report.SavedRun{one, two}, nil, 1},
		{"runs that are not shards", []*report.SavedRun{part("1.json", "", true, a), part("2.json", "", true, c)}, nil, 0},
		{"a run was cut off", []*report.SavedRun{part("1.json", "", false, a), part("2.json", "", true, c)},
			[]string{"the run: 1.json: the report was cut off: the run did not end"}, 3},
		{"no test ran", []*report.SavedRun{part("1.json", "", true, verdict("t", result.Skipped, "requirement", "r"))},
			[]string{"no test ran: skipped 1 test"}, 1},
		{"a shard is missing", []*report.SavedRun{two}, []string{"shard 1/2 is missing"}, 1},
		{"a shard was cut off", []*report.SavedRun{one, part("2.json", "2/2", false, c)},
			[]string{"the run: 2.json: the report was cut off: the run did not end"}, 3},
		{"a duplicate shard", []*report.SavedRun{one, two, part("3.json", "2/2", true)},
			[]string{"3.json: duplicate shard 2/2"}, 1},
		{"shards of two runs", []*report.SavedRun{one, two, part("3.json", "3/3", true)},
			[]string{"3.json: shard 3/3 is one of 3, others are of 2", "shard 1/3 is missing", "shard 2/3 is missing"}, 1},
		{"an invalid shard", []*report.SavedRun{part("1.json", "x", true, a)}, []string{`1.json: "x" is not a shard`}, 1},
		{"a test is in two", []*report.SavedRun{one, part("2.json", "2/2", true, a, c)},
			[]string{`1.json and 2.json have 1 test in common, such as "s: a [single 8.0]"`}, 1},
		{"problems without duplicates", []*report.SavedRun{troubled, also}, []string{"stale", "unexpected pass"}, 1},
		{"an interruption", []*report.SavedRun{one, interrupted}, []string{"the run: 2.json: interrupted"}, 3},
		{"a cell broke", []*report.SavedRun{part("1.json", "", true, a), dead}, []string{"cell c: c.json: interrupted"}, 3},
	} {
		notes, tests := report.Merge(r.parts), 0
		for _, p := range r.parts {
			tests += len(p.Verdicts)
		}
		end, started := notes[len(notes)-1].(result.RunFinished).Summary, notes[0].(result.RunStarted)
		reported := 0
		for _, n := range notes {
			if _, is := n.(result.TestFinished); is {
				reported++
			}
		}
		var breaks []string
		for _, b := range end.Breaks {
			breaks = append(breaks, b.Subject()+": "+b.Reason)
		}
		testkit.Equal(t, r.reason, fmt.Sprintf("%q %d", append(breaks, end.Problems...), end.ExitCode()),
			fmt.Sprintf("%q %d", r.problems, r.code))
		testkit.Equal(t, r.reason+": tests", fmt.Sprint(started.Total, reported, started.Shard), fmt.Sprint(tests, tests, ""))
	}
	end := report.Merge([]*report.SavedRun{one, two})[4].(result.RunFinished).Summary
	testkit.Equal(t, "passed, failed, took", fmt.Sprint(end.Passed, end.Failed, end.Duration), "2 1 1s")
}

// Without lines about runs, a merged run lasts from the beginning of its first test to
// the end of its last.
func TestMergeKnowsTheTime(t *testing.T) {
	past := read(t, generate(report.JSON(), ended(3, "pfp")))
	past.Run = nil
	for _, began := range []time.Time{time.Date(2026, 7, 3, 2, 0, 0, 0, time.UTC), {}} {
		notes := report.Merge([]*report.SavedRun{past})
		testkit.Equal(t, "it began", notes[0].(result.RunStarted).Time.UTC(), began)
		testkit.Equal(t, "it took", notes[len(notes)-1].(result.RunFinished).Summary.Duration, 3*time.Minute)
		for _, v := range past.Verdicts {
			v.Started = time.Time{}
		}
	}
}

// A merged report has the cells of its parts: verdicts, engines, problems, the time that they took, and the run from
// which they were kept. A test in two cells is two tests.
func TestMergedCells(t *testing.T) {
	part := func(name string, notes ...result.Note) *report.SavedRun {
		p := read(t, generate(report.JSON(), notes))
		p.Name = name
		return p
	}
	past := func(cell string, status result.Status) *report.SavedRun {
		return part(cell, result.RunStarted{Cell: cell, Engine: "e"},
			finished(&result.Verdict{Status: status, Duration: time.Second,
				Test: result.TestID{File: "f.yml", Suite: "s", Description: "t", Cell: cell}}),
			result.RunFinished{Summary: result.Summary{Duration: 3 * time.Second, Problems: []string{"p"}}})
	}
	cut, twin := past("a", result.Passed), past("a", result.Passed)
	cut.Run, twin.Name = nil, "b.json"
	for _, r := range []struct {
		reason string
		parts  []*report.SavedRun
		want   []string // a line for each cell, and the problems
	}{
		{"two cells", []*report.SavedRun{past("a", result.Passed), past("b", result.Failed)},
			[]string{"✘ a: 1 problem, 1 passed in 3s (e; 1 problem)", "✘ b: 1 failed, 1 problem in 3s (e; 1 problem)", "p"}},
		{"a truncated cell takes as long as its tests", []*report.SavedRun{cut},
			[]string{"✘ a: 1 passed in 1s (the report was cut off: the run did not end)"}},
		{"a test in two reports of a cell", []*report.SavedRun{past("a", result.Passed), twin},
			[]string{"✘ a: 2 problems, 2 passed in 6s (e; 2 problems)", "p",
				`a and b.json have 1 test in common, such as "s: t [a]"`}},
		{"the engine that a cell found", []*report.SavedRun{part("", result.RunStarted{},
			result.CellFinished{Cell: "a", Engine: "py 4.20.1"}, result.RunFinished{})},
			[]string{"– a: 0 passed in 0s (py 4.20.1; no test ran)", "no test ran: skipped 0 tests"}},
		{"cells, one of them kept", []*report.SavedRun{part("m", cells()...)}, []string{"✔ a: 1 passed in 1s",
			"✘ b|c: 1 failed in 1m30s", "– d: 0 passed in 1s (no test ran; kept from an earlier run at 2026-07-02 22:00:04 UTC)",
			"✘ e: 0 passed in 0s (exit code 3: no\uFFFDanswer)"}},
	} {
		var got []string
		for _, n := range report.Merge(r.parts) {
			switch n := n.(type) {
			case result.CellFinished:
				got = append(got, report.CellLine(n))
			case result.RunFinished:
				got = append(got, n.Summary.Problems...)
			}
		}
		testkit.Equal(t, r.reason, strings.Join(got, "\n"), strings.Join(r.want, "\n"))
	}
}

// Reports name kept cells and their time. Golden files have the text and Markdown.
func TestReportsNameKeptCells(t *testing.T) {
	for name, g := range map[string]report.Generator{"JUnit": report.JUnit(), "TAP": report.TAP(), "HTML": report.HTML(),
		"JSON": report.JSON()} {
		if text := string(generate(g, cells())); !regexp.MustCompile(`2026-07-02[ T]22:00:04`).MatchString(text) {
			t.Errorf("%s does not contain the time of cell d\n%.3000s", name, text[max(0, len(text)-3000):])
		}
	}
}
