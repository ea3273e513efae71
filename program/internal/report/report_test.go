package report_test

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// golden compares a report with a golden file.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	testkit.Golden(t, filepath.Join("testdata", file), string(got))
}

func TestGolden(t *testing.T) {
	for file, g := range map[string]report.Generator{
		"quiet.txt":     report.Text(report.TextOptions{}),
		"verbose.txt":   report.Text(report.TextOptions{Verbose: true, Timings: true}),
		"color.txt":     report.Text(report.TextOptions{Verbose: true, Color: true}),
		"records.json":  report.JSON(),
		"junit.xml":     report.JUnit(),
		"run.tap":       report.TAP(),
		"run.sarif":     report.SARIF(),
		"summary.md":    report.Markdown(),
		"annotated.txt": report.Annotated(report.Text(report.TextOptions{})),
		"badge.svg":     report.Badge(),
		"progress.txt":  progress(40, time.Now),
	} {
		golden(t, file, generate(g, run()))
	}
	golden(t, "cells.txt", generate(report.Cells(report.Text(report.TextOptions{}), false), cells()))
	golden(t, "cells.md", generate(report.Markdown(), cells()))
	var each strings.Builder
	for _, n := range cells() {
		if c, is := n.(result.CellFinished); is {
			each.WriteString(report.CellLine(c) + "\n")
		}
	}
	golden(t, "cell-lines.txt", []byte(each.String()))
	testkit.Same(t, "without cells", plain(report.TextOptions{}, ended(1, "")...),
		string(generate(report.Cells(report.Text(report.TextOptions{}), false), ended(1, ""))))
}

//go:embed record.schema.json
var recordSchema []byte

// Every record conforms to the published schema, and the schema rejects invalid ones.
func TestRecordsConformToSchema(t *testing.T) {
	schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(recordSchema))
	testkit.Check(t, err)
	conforms := func(reason, line string, want bool) {
		r, err := schema.Validate(gojsonschema.NewStringLoader(line))
		testkit.Check(t, err)
		testkit.Equal(t, reason+": "+line, r.Valid(), want)
	}
	for _, r := range []struct {
		reason  string
		notes   []result.Note
		records int
	}{{"a run", run(), 13}, {"a shard", shard("2/3", run()), 13}, {"cells", cells(), 5}} {
		records := lines(generate(report.JSON(), r.notes))
		testkit.Equal(t, r.reason, len(records), r.records)
		testkit.Equal(t, r.reason+": a line about the run", strings.HasPrefix(records[len(records)-1], `{"run":{`), true)
		for _, line := range records {
			conforms(r.reason, line, true)
		}
	}
	records := lines(generate(report.JSON(), shard("2/3", run())))
	for _, r := range []struct{ reason, old, mutant string }{
		{"an unknown field", `"status":"passed"`, `"status":"passed","more":1`},
		{"an unknown status", `"status":"passed"`, `"status":"fine"`},
		{"a test that is also a run", "{", strings.TrimSuffix(records[len(records)-1], "}") + ","},
	} {
		conforms(r.reason, strings.Replace(records[0], r.old, r.mutant, 1), false)
	}
}

// docs/start/records.md describes every field of the record.
func TestReportsPage(t *testing.T) {
	page := testkit.Read(t, filepath.Join("..", "..", "..", "docs", "start", "records.md"))
	type object struct{ Properties map[string]any }
	var s struct {
		object
		Definitions map[string]object
	}
	testkit.Check(t, json.Unmarshal(recordSchema, &s))
	s.Definitions["The record"] = s.object
	for name, o := range s.Definitions {
		_, section, _ := strings.Cut(page, "\n### "+name+"\n")
		section, _, _ = strings.Cut(section, "\n##")
		var rows []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
			rows = append(rows, m[1])
		}
		testkit.Same(t, name, slices.Sorted(slices.Values(rows)), slices.Sorted(maps.Keys(o.Properties)))
	}
}

// JSON cannot represent NaN. The record then omits the details.
func TestRecordOfNaN(t *testing.T) {
	v := &result.Verdict{Status: result.Failed,
		Evidence: result.Evidence{Operations: []result.OperationLog{{Outcome: result.Outcome{Decisions: []result.Decision{{DelayMS: math.NaN()}}}}}}}
	got := string(generate(report.JSON(), []result.Note{finished(v)}))
	testkit.Contains(t, got, `"status":"failed"`, "details left out")
	testkit.Equal(t, "lines", strings.Count(got, "\n"), 1)
	testkit.Equal(t, "verdicts of the page", len(data(generate(report.HTML(), []result.Note{finished(v)}), "verdict")), 1)
}

// A disk accepts some writes before it is full.
type disk struct{ free int }

func (d *disk) Write(p []byte) (int, error) {
	if d.free--; d.free < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

// A report ends at the first failed write.
func TestWriteError(t *testing.T) {
	for free, want := range map[int]string{2: "writing the report to out.json: disk full", 1000: "<nil>"} {
		d := &disk{free}
		err := report.Write("out.json", report.JSON(), d, run()...)
		testkit.Equal(t, fmt.Sprintf("the error after %d writes", free), fmt.Sprint(err), want)
		testkit.Equal(t, "no write follows", want == "<nil>" || d.free == -1, true)
	}
}

// held is the memory of a report in bytes per verdict. One test in ten is skipped,
// one in a hundred fails with about ten thousand bytes of events.
func held(g report.Generator) float64 {
	const few, many = 500, 2500
	var heap [2]runtime.MemStats
	measure := func(m *runtime.MemStats) { runtime.GC(); runtime.GC(); runtime.ReadMemStats(m) }
	for i := range many {
		if i == few {
			measure(&heap[0])
		}
		id := result.TestID{File: fmt.Sprintf("f%d.yml", i/100), Suite: "s", Description: "t", Deployment: "replicaset 8.0"}
		v := &result.Verdict{Test: id, Status: result.Passed, Duration: time.Millisecond}
		switch {
		case i%10 == 0:
			v.Status, v.SkipKind, v.Reason = result.Skipped, result.SkipRequirement, fmt.Sprintf("%0300d", i%5)
		case i%100 == 1:
			v.Status, v.Clients = result.Failed, []result.ClientLog{{Client: "c", Events: make([]result.Event, 150)}}
		}
		g(finished(v))
	}
	measure(&heap[1])
	runtime.KeepAlive(g)
	return (float64(heap[1].HeapAlloc) - float64(heap[0].HeapAlloc)) / (many - few)
}

// Reports that are written as tests end keep nothing of them. The others keep little
// and no events.
func TestReportsUseLittleMemory(t *testing.T) {
	var kept []result.Note
	for name, r := range map[string]struct {
		generate report.Generator
		limit    float64 // bytes per verdict
	}{
		"text":              {report.Text(report.TextOptions{Timings: true}), 20},
		"JSON":              {report.JSON(), 20},
		"TAP":               {report.TAP(), 20},
		"HTML":              {report.HTML(), 30},
		"HTML with earlier": {report.HTML(earlier(t, "old", ended(3, "ppp"))), 120},
		"Markdown":          {report.Markdown(), 20},
		"badge":             {report.Badge(), 20},
		"JUnit":             {report.JUnit(), 400},
		"SARIF":             {report.SARIF(), 40},
		"one that leaks":    {func(n result.Note) []byte { kept = append(kept, n); return nil }, 500},
	} {
		if got := held(r.generate); (got > r.limit) != (name == "one that leaks") {
			t.Errorf("%s: %.0f bytes per verdict; the limit is %.0f", name, got, r.limit)
		}
	}
}

func TestQuote(t *testing.T) {
	for want, in := range map[string][]string{
		"utr run":            {"utr", "run"},
		"''":                 {""},
		`'it'\''s'`:          {"it's"},
		`'a b' '$x' 'y*' -v`: {"a b", "$x", "y*", "-v"},
	} {
		testkit.Equal(t, fmt.Sprintf("%q", in), report.Quote(in), want)
	}
	odd := []string{`it's "quoted" $HOME`, "`id` $(id) \\", `(a|b)* [x]+ ^\d.$`, "a; exit 7 # & | > <", "-v", ""}
	words, err := exec.Command("sh", "-c", `printf '<%s>' `+report.Quote(odd)).Output()
	testkit.Check(t, err)
	testkit.Equal(t, "the words that a shell reads", string(words), "<"+strings.Join(odd, "><")+">")
}
