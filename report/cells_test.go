package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/xeipuuv/gojsonschema"
)

// nightNotes are those of a run with cells: a good one, a bad one, one that is
// kept, one that broke before any test.
func nightNotes() []result.Note {
	verdict := func(cell, test string, s result.Status) result.Note {
		return result.TestFinished{Verdict: &result.Verdict{Status: s, Duration: time.Second,
			Test: result.TestID{File: "f.yml", Suite: "s", Description: test, Deployment: "single 8.0", Cell: cell}}}
	}
	cell := func(name, broken string, kept bool, s result.Summary) result.Note {
		return result.CellFinished{Cell: name, Broken: broken, Kept: kept, Summary: s}
	}
	return []result.Note{
		result.RunStarted{Engine: "e", Total: 4, Files: 1},
		verdict("a", "t", result.Passed), cell("a", "", false, result.Summary{Passed: 1, Duration: time.Second}),
		verdict("b|c", "t", result.Failed), verdict("b|c", "u", result.KnownFailing),
		cell("b|c", "", false, result.Summary{Failed: 1, KnownFailing: 1, Duration: 90 * time.Second, Problems: []string{"p", "q"}}),
		verdict("d", "t", result.Skipped), cell("d", "", true, result.Summary{Skipped: 1}),
		cell("e", "exit code 3: no\x1banswer", false, result.Summary{}),
		result.RunFinished{Summary: result.Summary{Passed: 1, Failed: 1, KnownFailing: 1, Skipped: 1, Duration: 91 * time.Second}},
	}
}

func TestCellsTable(t *testing.T) {
	text := string(generate(report.Cells(report.Text(report.TextOptions{})), nightNotes()))
	_, table, _ := strings.Cut(text, "\n\ncell")
	table, rest, _ := strings.Cut(table, "\n\n")
	want := `   passed  failed  broken  skipped  known  flaky   time
✔ a         1       0       0        0      0      0     1s
✘ b|c       0       1       0        0      1      0  1m30s  2 problems
✔ d         0       0       0        1      0      0     0s  kept from an earlier run
✘ e         0       0       0        0      0      0     0s  exit code 3: no` + "\uFFFD" + `answer
total       1       1       0        1      1      0  1m31s`
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !strings.HasSuffix(rest, "1 passed, 1 failed, 1 skipped\n") {
		t.Errorf("the last line is another one:\n%s", rest)
	}
	if !strings.Contains(text, "failed s: t [b|c, single 8.0]\n") {
		t.Errorf("no failure names its cell\n%s", text)
	}
	plain := []result.Note{result.RunStarted{}, result.RunFinished{}}
	if got, want := string(generate(report.Cells(report.Text(report.TextOptions{})), plain)), string(generate(report.Text(report.TextOptions{}), plain)); got != want {
		t.Errorf("without cells it adds something: %q", got)
	}
}

func TestCellsInMarkdown(t *testing.T) {
	text := string(generate(report.Markdown(), nightNotes()))
	for _, row := range []string{"| ✔ a | 1 | 0 | 0 | 0 | 0 | 0 | 1s |  |\n", `| ✘ b\|c | 0 | 1 | 0 | 0 | 1 | 0 | 1m30s | 2 problems |`, "| kept from an earlier run |"} {
		if !strings.Contains(text, row) {
			t.Errorf("there is no row %q\n%s", row, text)
		}
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

// The records of cells keep to the schema, that of the run included.
func TestCellsKeepToSchema(t *testing.T) {
	schema := gojsonschema.NewBytesLoader(report.Schema())
	all := lines(generate(report.JSON(), nightNotes()))
	if last := all[len(all)-1]; !strings.HasPrefix(last, `{"run":{`) || !strings.Contains(all[0], `"cell":"a"`) {
		t.Errorf("%s … %s", all[0], last)
	}
	for _, line := range all {
		if r, err := gojsonschema.Validate(schema, gojsonschema.NewStringLoader(line)); err != nil || !r.Valid() {
			t.Errorf("%v %v: %s", err, r.Errors(), line)
		}
	}
}

// What a JSON report tells of cells is read again, by itself and merged with
// others: one test in two cells is two tests.
func TestCellsAreReadAgain(t *testing.T) {
	past := func(cell string, status result.Status) *report.Past {
		text := generate(report.JSON(), []result.Note{
			result.RunStarted{Cell: cell, Engine: "e"},
			result.TestFinished{Verdict: &result.Verdict{Status: status, Duration: time.Second, Test: result.TestID{File: "f.yml", Suite: "s", Description: "t", Cell: cell}}},
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
	twin := past("a", result.Passed)
	twin.Name = "another file"
	again := report.Merge([]*report.Past{past("a", result.Passed), twin})
	if end := again[len(again)-1].(result.RunFinished); !strings.Contains(strings.Join(end.Summary.Problems, "\n"), "1 test in common") {
		t.Errorf("a test of one cell twice is no problem: %q", end.Summary.Problems)
	}
}
