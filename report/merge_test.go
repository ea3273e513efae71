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
	side := func(text string) []*result.Verdict {
		words := append(strings.Fields(text), "", "")
		if words[0] == "nothing" {
			return nil
		}
		v := verdict("t", result.Status(words[0]), words[1:]...)
		if d, err := time.ParseDuration(words[1]); err == nil {
			v.Duration = d
		}
		return []*result.Verdict{v}
	}
	testkit.Transcript(t, "testdata/compare.txt", func(t *testing.T, input string) string {
		was, is, _ := strings.Cut(input, " → ")
		d := report.Compare(side(was), side(is), 100*time.Millisecond)
		var got []string
		for i, changes := range d {
			if len(changes) > 0 {
				got = append(got, []string{"new", "other", "mended", "skips", "slower", "came", "went"}[i])
			}
		}
		return cmp.Or(strings.Join(got, " "), "nothing")
	})
}

// Deployments, iterations and tests of one name are told apart.
func TestCompareByIdentity(t *testing.T) {
	elsewhere, again := verdict("t", result.Failed), verdict("t", result.Failed)
	elsewhere.Test.Deployment, again.Test.Iteration = "sharded 8.0", 2
	old := []*result.Verdict{verdict("t", result.Passed), elsewhere, again, verdict("t", result.Failed)}
	d := report.Compare(old, slices.Clone(old), 0)
	testkit.Equal(t, "the same run", len(slices.Concat(d[:]...)), 0)
	d = report.Compare(old, []*result.Verdict{verdict("t", result.Passed), verdict("t", result.Passed)}, 0)
	testkit.Equal(t, "mended and gone", fmt.Sprint(len(d[report.Mended]), len(d[report.Went])), "1 2")
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
			p.Run = &report.PastRun{Engine: "reference 1", DurationMS: 1000}
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
		{"not the name of a shard", []*report.Past{part("1.json", "x", true, a)}, []string{`1.json: "x" is not a shard`}, 1},
		{"a test is in two", []*report.Past{one, part("2.json", "2/2", true, a, c)}, []string{`1.json and 2.json have 1 test in common, such as "s: a [single 8.0]"`}, 1},
		{"problems of each, once", []*report.Past{troubled, also}, []string{"stale", "unexpected pass"}, 1},
		{"an interruption", []*report.Past{one, interrupted}, nil, 3},
	} {
		notes, tests := report.Merge(r.parts), 0
		for _, p := range r.parts {
			tests += len(p.Verdicts)
		}
		end, started := notes[len(notes)-1].(result.RunFinished).Summary, notes[0].(result.RunStarted)
		testkit.Equal(t, r.reason, fmt.Sprintf("%q %d", end.Problems, end.ExitCode()), fmt.Sprintf("%q %d", r.problems, r.code))
		testkit.Equal(t, r.reason+": tests", fmt.Sprint(started.Total, len(notes), started.Shard), fmt.Sprint(tests, tests+2, ""))
	}
	end := report.Merge([]*report.Past{one, two})[4].(result.RunFinished).Summary
	testkit.Equal(t, "passed, failed, took", fmt.Sprint(end.Passed, end.Failed, end.Duration), "2 1 1s")
}

// Where its reports do not say it, a merged run began when its first test did,
// and took until the end of its last one.
func TestMergeKnowsTheTime(t *testing.T) {
	past := read(t, generate(report.JSON(), ended(3, "pfp")))
	for _, began := range []time.Time{time.Date(2026, 7, 3, 2, 0, 0, 0, time.UTC), {}} {
		notes := report.Merge([]*report.Past{past})
		testkit.Equal(t, "it began", notes[0].(result.RunStarted).Time.UTC(), began)
		testkit.Equal(t, "it took", notes[len(notes)-1].(result.RunFinished).Summary.Duration, 3*time.Minute)
		for _, v := range past.Verdicts {
			v.Began = time.Time{}
		}
	}
}

// What a JSON report has of cells is read again, by itself and merged with
// others: one test in two cells is two tests.
func TestCellsAreReadAgain(t *testing.T) {
	past := func(cell string, status result.Status) *report.Past {
		p := read(t, generate(report.JSON(), []result.Note{
			result.RunStarted{Cell: cell, Engine: "e"},
			finished(&result.Verdict{Status: status, Duration: time.Second, Test: result.TestID{File: "f.yml", Suite: "s", Description: "t", Cell: cell}}),
			result.RunFinished{Summary: result.Summary{Duration: 3 * time.Second, Problems: []string{"p"}}},
		}))
		p.Name = cell
		return p
	}
	merged := func(parts ...*report.Past) (cells []result.CellFinished, problems []string) {
		for _, n := range report.Merge(parts) {
			switch n := n.(type) {
			case result.CellFinished:
				cells = append(cells, n)
			case result.RunFinished:
				problems = n.Summary.Problems
			}
		}
		return cells, problems
	}
	cells, problems := merged(past("a", result.Passed), past("b", result.Failed))
	testkit.Equal(t, "problems of the whole", problems, "[p]")
	testkit.Same(t, "cells", cells, []result.CellFinished{
		{Cell: "a", Summary: result.Summary{Passed: 1, Duration: 3 * time.Second, Problems: []string{"p"}}},
		{Cell: "b", Summary: result.Summary{Failed: 1, Duration: 3 * time.Second, Problems: []string{"p"}}},
	})
	cut, twin := past("a", result.Passed), past("a", result.Passed)
	cut.Run, twin.Name = nil, "another file"
	cells, _ = merged(cut)
	testkit.Equal(t, "a cell whose run has no end took the time of its tests", cells[0].Summary.Duration, time.Second)
	_, problems = merged(past("a", result.Passed), twin)
	testkit.Says(t, strings.Join(problems, "\n"), "1 test in common")
}

// Reports say which cells are from before, and from when, also once they were read
// and merged.
func TestReportsTellOfKeptCells(t *testing.T) {
	began := time.Date(2026, 7, 2, 22, 0, 4, 0, time.UTC)
	if !slices.ContainsFunc(report.Merge([]*report.Past{read(t, generate(report.JSON(), cells()))}), func(n result.Note) bool {
		c, ok := n.(result.CellFinished)
		return ok && c.Cell == "d" && c.Kept.Equal(began)
	}) {
		t.Error("a merged report does not say that cell d is from before")
	}
	for name, g := range map[string]report.Generator{"text": report.Cells(report.Text(report.TextOptions{})), "markdown": report.Markdown(),
		"JUnit": report.JUnit(), "TAP": report.TAP(), "HTML": report.HTML(), "JSON": report.JSON()} {
		if text := string(generate(g, cells())); !regexp.MustCompile(`2026-07-02[ T]22:00:04`).MatchString(text) {
			t.Errorf("%s does not say from when cell d is\n%.3000s", name, text[max(0, len(text)-3000):])
		}
	}
}

// asNotes gives the notes of which a report makes what was read.
func asNotes(p *report.Past) (notes []result.Note) {
	started := result.RunStarted{Shard: p.Shard}
	for _, v := range p.Verdicts {
		notes = append(notes, finished(v))
	}
	if r := p.Run; r != nil {
		started.Engine, started.Servers, started.Time, started.Files = r.Engine, r.Servers, r.Started, r.Files
		for cell, began := range r.Kept {
			notes = append(notes, result.CellFinished{Cell: cell, Kept: began})
		}
		notes = append(notes, result.RunFinished{Summary: result.Summary{Duration: r.Duration(), Interrupted: r.Interrupted, Problems: r.Problems}})
	}
	return append([]result.Note{started}, notes...)
}

// A report that was read makes the same report again, whatever is in it.
func TestReadUndoesJSON(t *testing.T) {
	for reason, notes := range map[string][]result.Note{"every note": run(), "nothing": nil, "a shard": shard("2/3", run()), "cells, one of them kept": cells()} {
		text := generate(report.JSON(), notes)
		testkit.Same(t, reason, string(generate(report.JSON(), asNotes(read(t, text)))), string(text))
	}
	events := read(t, generate(report.JSON(), run())).Verdicts[1].Clients[0].Events
	lengths := []int{len(events[3].Command.Command), len(events[3].Command.Reply), len(events[7].Command.Reply)}
	testkit.Equal(t, "the command and the reply are where they belong", lengths[0] > 0 && lengths[1] == 0 && lengths[2] > 0, true)
}

// What both readers refuse and accept: Read needs all of a report of its own
// version, ReadEarlier what a history needs.
func TestReaders(t *testing.T) {
	const record = `{"file":"f","suite":"s","test":"t","iteration":1,"status":"passed","durationMS":1500,"timings":{}}` + "\n"
	const noRecord = "not a record of a test: "
	with := func(field string) string { return strings.Replace(record, `"file"`, field+`,"file"`, 1) }
	for _, r := range []struct {
		reason, text string
		earlier      string // part of what the page has of it; or the beginning of the error
		err          string // of Read; "" if it accepts it
	}{
		{"not JSON", "<testsuites>", "r.json:1: " + noRecord, "r.json:1: " + noRecord},
		{"half a line", record + record[:40], "r.json:2: " + noRecord, "r.json:2: " + noRecord},
		{"a record that is not of a test", record + `{"a":1}`, "r.json:2: " + noRecord + "the status is", "r.json:2: " + noRecord},
		{"an unknown status", strings.Replace(record, "passed", "fine", 1), "r.json:1: " + noRecord, "r.json:1: " + noRecord + `the status is "fine"`},
		{"a field of a later version", with(`"colour":1`), `"durationMS":1500`, "r.json:1: " + noRecord},
		{"empty lines, and a last one without an end", "\n" + record + "\n" + strings.TrimSpace(record), `"durationMS":3000`, ""},
		{"a report without a time", record + strings.Replace(record, `"t"`, `"u"`, 1), `"durationMS":3000,"name":"r.json","time":"2026-07-01T00:00:00Z"`, ""},
		{"times of tests", with(`"time":"2026-06-30T10:00:00+02:00"`), `"durationMS":1500,"name":"r.json","time":"2026-06-30T08:00:00Z"`, ""},
		{"the line about its run", record + `{"run":{"time":"2026-06-29T00:00:00Z","durationMS":9000,"shard":"1/1","engine":"","files":1}}`,
			`"durationMS":9000,"name":"r.json","time":"2026-06-29T00:00:00Z"`, ""},
	} {
		_, err := report.Read("r.json", strings.NewReader(r.text))
		if (err == nil) != (r.err == "") || err != nil && !strings.HasPrefix(err.Error(), r.err) {
			t.Errorf("%s: Read gives %v", r.reason, err)
		}
		got := ""
		if e, err := report.ReadEarlier("r.json", strings.NewReader(r.text), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(data(generate(report.HTML(e), ended(2, "p")), "earlier"))
		}
		testkit.Says(t, r.reason+": "+got, r.earlier)
	}
}

func FuzzRead(f *testing.F) {
	for _, notes := range [][]result.Note{run(), ended(3, "pfbks"), shard("1/2", run()), cells()} {
		for _, line := range lines(generate(report.JSON(), notes)) {
			f.Add(line)
		}
	}
	f.Add(`{"status":"passed","iteration":-3,"durationMS":-1e300}`)
	f.Add(`{"run":{"time":"0001-01-01T00:00:00Z"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := report.ReadEarlier("r", strings.NewReader(text), time.Time{}); err == nil {
			page := generate(report.HTML(e), ended(5, "pf"))
			testkit.Equal(t, "lines of the page", fmt.Sprint(len(data(page, "earlier")), len(data(page, "verdict")), len(data(page, "end"))), "1 2 1")
		}
		if p, err := report.Read("r", strings.NewReader(text)); err == nil {
			once := generate(report.JSON(), asNotes(p))
			testkit.Same(t, "what was written, read and written again", string(generate(report.JSON(), asNotes(read(t, once)))), string(once))
		}
	})
}
