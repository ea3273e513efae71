package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

func at(line, column int) result.Position {
	return result.Position{File: "specs/find.yml", Line: line, Column: column}
}

// run is a stream with every type of note. Its verdicts in testdata/records.json have
// every status and every type of event.
func run() []result.Note {
	start, seed := time.Date(2026, 7, 8, 9, 10, 11, 0, time.UTC), int64(42)
	text, err := os.ReadFile("testdata/records.json")
	past, e := report.Read("records.json", bytes.NewReader(text))
	if err = errors.Join(err, e); err != nil {
		panic(err)
	}
	notes := []result.Note{
		result.RunStarted{Time: start, Engine: "reference 1", Total: len(past.Verdicts) + 1, Files: 1, Jobs: 2, Seed: &seed},
		result.DeploymentReady{Name: "replicaset 8.0", Info: "3 members", Took: 12 * time.Millisecond},
	}
	summary := result.Summary{Duration: 2500 * time.Millisecond, CPU: 4 * time.Millisecond,
		Problems: []string{"--run xyz matches no test"}}
	summary.Interrupt("interrupted")
	for _, v := range past.Verdicts {
		if v.Status != result.Skipped {
			notes = append(notes, result.TestStarted{Test: v.Test})
		}
		notes = append(notes, finished(v))
		summary.Add(v)
	}
	return append(notes, result.RunFinished{Summary: summary})
}

// ended is a run of numbered tests with a letter for each: p passed, f failed,
// b broken, k known-failing, s skipped, - absent.
func ended(day int, endings string) []result.Note {
	began := time.Date(2026, 7, day, 2, 0, 0, 0, time.UTC)
	statuses := map[rune]result.Status{'p': result.Passed, 'f': result.Failed, 'b': result.Broken,
		'k': result.KnownFailing, 's': result.Skipped}
	notes := []result.Note{result.RunStarted{Time: began, Engine: "reference 1"}}
	var s result.Summary
	for i, c := range endings {
		if c == '-' {
			continue
		}
		id := result.TestID{File: "specs/find.yml", Suite: "find", Description: fmt.Sprintf("t%d", i),
			Deployment: "replicaset 8.0", Iteration: 1}
		v := &result.Verdict{Test: id, Position: at(i+1, 5), Status: statuses[c],
			Started: began.Add(time.Duration(i) * time.Minute), Duration: time.Minute}
		s.Add(v)
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	s.Duration = time.Duration(len(endings)) * time.Minute
	return append(notes, result.RunFinished{Summary: s})
}

// shard converts a run to the run of a shard.
func shard(name string, notes []result.Note) []result.Note {
	started := notes[0].(result.RunStarted)
	started.Shard = name
	return append([]result.Note{started}, notes[1:]...)
}

// cells is a run of cells: one passed, one failed, one kept, one broken before any
// test.
func cells() []result.Note {
	before := time.Date(2026, 7, 2, 22, 0, 4, 0, time.UTC)
	verdict := func(cell, test string, s result.Status) result.Note {
		return result.TestFinished{Verdict: &result.Verdict{Status: s, Started: before, Duration: time.Second,
			Test: result.TestID{File: "f.yml", Suite: "s", Description: test, Deployment: "single 8.0", Cell: cell}}}
	}
	broke := []result.Break{{Cell: "e", Reason: "exit code 3: no\x1banswer"}}
	bad := result.Summary{Failed: 1, KnownFailing: 1, Duration: 90 * time.Second, Problems: []string{"p", "q"}}
	return []result.Note{
		result.RunStarted{Engine: "e", Total: 4, Files: 1},
		verdict("a", "t", result.Passed),
		result.CellFinished{Cell: "a", Summary: result.Summary{Passed: 1, Duration: time.Second}},
		verdict("b|c", "t", result.Failed), verdict("b|c", "u", result.KnownFailing),
		result.CellFinished{Cell: "b|c", Summary: bad},
		verdict("d", "t", result.Skipped),
		result.CellFinished{Cell: "d", KeptFrom: before, Summary: result.Summary{Skipped: 1}},
		result.CellFinished{Cell: "e", Broken: broke[0].Reason},
		result.RunFinished{Summary: result.Summary{Passed: 1, Failed: 1, KnownFailing: 1, Skipped: 1,
			Duration: 91 * time.Second, Breaks: broke}},
	}
}

// generate returns the report of a run.
func generate(g report.Generator, notes []result.Note) []byte {
	var out bytes.Buffer
	_ = report.Write("memory", g, &out, notes...)
	return out.Bytes()
}

// plain returns the text report of a run.
func plain(o report.TextOptions, notes ...result.Note) string {
	return string(generate(report.Text(o), notes))
}

func lines(b []byte) []string { return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") }

func finished(v *result.Verdict) result.Note { return result.TestFinished{Verdict: v} }

func read(t *testing.T, text []byte) *report.SavedRun {
	t.Helper()
	p, err := report.Read("r.json", bytes.NewReader(text))
	testkit.Check(t, err)
	return p
}

// earlier writes and reads the report of a run.
func earlier(t *testing.T, name string, notes []result.Note) *report.EarlierRun {
	t.Helper()
	text := generate(report.JSON(), notes)
	e, err := report.ReadEarlier(name, bytes.NewReader(text), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC))
	testkit.Check(t, err)
	return e
}
