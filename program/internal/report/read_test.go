package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// asNotes returns notes from which JSON writes the report that was read.
func asNotes(p *report.SavedRun) (notes []result.Note) {
	started := result.RunStarted{Shard: p.Shard, Cell: p.Cell}
	var spent result.Timings
	for _, v := range p.Verdicts {
		notes = append(notes, finished(v))
		spent.Add(v.Timings)
	}
	if r := p.Run; r != nil {
		started.Engine, started.Servers, started.Time, started.Files = r.Engine, r.Servers, r.Started, r.Files
		for cell, began := range r.Kept {
			notes = append(notes, result.CellFinished{Cell: cell, KeptFrom: began})
		}
		for cell, took := range r.Cells {
			notes = append(notes, result.CellFinished{Cell: cell, Summary: result.Summary{Duration: time.Duration(took)}})
		}
		notes = append(notes, result.RunFinished{Summary: result.Summary{Duration: time.Duration(r.Duration),
			CPU: time.Duration(r.CPU), Timings: spent, Interrupted: r.Interrupted, Breaks: r.Breaks, Problems: r.Problems}})
	}
	return append([]result.Note{started}, notes...)
}

// Reading and writing a report reproduces it.
func TestReadUndoesJSON(t *testing.T) {
	for reason, notes := range map[string][]result.Note{"every note": run(), "nothing": nil,
		"a shard": shard("2/3", run()), "cells, one of them kept": cells()} {
		text := generate(report.JSON(), notes)
		testkit.Same(t, reason, string(generate(report.JSON(), asNotes(read(t, text)))), string(text))
	}
	events := read(t, generate(report.JSON(), run())).Verdicts[1].Clients[0].Events
	testkit.Equal(t, "commands and replies", len(events[3].Body) > 0 && len(events[7].Body) > 0, true)
}

// Read accepts only reports of its own version; ReadEarlier needs only the fields of
// a history.
func TestReaders(t *testing.T) {
	const record = `{"file":"f","suite":"s","test":"t","iteration":1,"status":"passed","durationMS":1500,"timings":{}}` +
		"\n"
	const noRecord = "not a record of a test: "
	with := func(field string) string { return strings.Replace(record, `"file"`, field+`,"file"`, 1) }
	for _, r := range []struct {
		reason, text string
		earlier      string // part of the page, or the beginning of the error
		err          string // of Read; "" if it accepts it
	}{
		{"not JSON", "<testsuites>", "r.json:1: " + noRecord, "r.json:1: " + noRecord},
		{"half a line", record + record[:40], "r.json:2: " + noRecord, "r.json:2: " + noRecord},
		{"a record without a test", record + `{"a":1}`, "r.json:2: " + noRecord + "the status is", "r.json:2: " + noRecord},
		{"an unknown status", strings.Replace(record, "passed", "fine", 1), "r.json:1: " + noRecord, "r.json:1: " + noRecord +
			`the status is "fine"`},
		{"a field of a later version", with(`"color":1`), `"durationMS":1500`, "r.json:1: " + noRecord},
		{"empty lines and no final newline", "\n" + record + "\n" + strings.TrimSpace(record), `"durationMS":3000`, ""},
		{"a report without a time", record + strings.Replace(record, `"t"`, `"u"`, 1),
			`"durationMS":3000,"name":"r.json","time":"2026-07-01T00:00:00Z"`, ""},
		{"times of tests", with(`"time":"2026-06-30T10:00:00+02:00"`),
			`"durationMS":1500,"name":"r.json","time":"2026-06-30T08:00:00Z"`, ""},
		{"the line about the run", record +
			`{"run":{"time":"2026-06-29T00:00:00Z","durationMS":9000,"shard":"1/1","engine":"","files":1}}`,
			`"durationMS":9000,"name":"r.json","time":"2026-06-29T00:00:00Z"`, ""},
	} {
		_, err := report.Read("r.json", strings.NewReader(r.text))
		if (err == nil) != (r.err == "") || err != nil && !strings.HasPrefix(err.Error(), r.err) {
			t.Errorf("%s: Read returns %v", r.reason, err)
		}
		got := ""
		if e, err := report.ReadEarlier("r.json", strings.NewReader(r.text),
			time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(data(generate(report.HTML(e), ended(2, "p")), "earlier"))
		}
		testkit.Contains(t, r.reason+": "+got, r.earlier)
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
			testkit.Equal(t, "lines of the page",
				fmt.Sprint(len(data(page, "earlier")), len(data(page, "verdict")), len(data(page, "end"))), "1 2 1")
		}
		if p, err := report.Read("r", strings.NewReader(text)); err == nil {
			once := generate(report.JSON(), asNotes(p))
			testkit.Same(t, "a report that was read and written", string(generate(report.JSON(), asNotes(read(t, once)))),
				string(once))
		}
	})
}
