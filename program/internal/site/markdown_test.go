package site

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

func verdict(cell, file string, status result.Status, kind result.SkipKind, reason string) *result.Verdict {
	return &result.Verdict{Test: result.TestID{Cell: cell, File: file, Description: "a"}, Status: status, SkipKind: kind,
		Reason: reason}
}

// saved is the report of a run with verdicts.
func saved(t *testing.T, started result.RunStarted, sum result.Summary, verdicts ...*result.Verdict) *Report {
	t.Helper()
	return parse(t, written(started, sum, nil, verdicts...))
}

// written is the JSON report of a run, which has the engines of cells.
func written(started result.RunStarted, sum result.Summary, cells []result.CellFinished,
	verdicts ...*result.Verdict) *bytes.Buffer {
	var text bytes.Buffer
	r := report.New("memory", report.JSON(), &text)
	r.Note(started)
	for _, v := range verdicts {
		r.Note(result.TestFinished{Verdict: v})
	}
	for _, c := range cells {
		r.Note(c)
	}
	r.Note(result.RunFinished{Summary: sum})
	return &text
}

func parse(t *testing.T, from io.Reader) *Report {
	t.Helper()
	r, err := Read("memory.json", from, time.Time{})
	testkit.Check(t, err)
	return r
}

func TestMarkdown(t *testing.T) {
	page, err := Markdown(saved(t, result.RunStarted{Engine: "py 4"}, result.Summary{},
		verdict("single_reference_own", "a.yml", result.Passed, "", ""),
		verdict("single_reference_deviations", "specs/deviations/x.yml", result.Passed, "", ""),
		verdict("single_reference_deviations", "specs/deviations/y.yml", result.Skipped, result.SkipRequirement, ""),
		verdict("single_py_own", "a.yml", result.KnownFailing, "", "since 4.0 until 5.0: sends | twice; CRUD"),
		verdict("sharded_py_own", "a.yml", result.KnownFailing, "", "since 4.0 until 5.0: sends | twice; CRUD"),
		verdict("sharded_py_own", "b.yml", result.KnownFailing, "", "by chance: not always"),
		verdict("single_py_own", "b.yml", result.Skipped, result.SkipCapability,
			"the engine does not support collection.count"),
		verdict("single_py_own", "c.yml", result.Skipped, result.SkipRequirement, "server 9.0"),
		verdict("single_py_official", "a.yml", result.Passed, "", ""),
		verdict("sharded_py_deviations", "specs/deviations/x.yml", result.KnownFailing, "", "D1"),
		verdict("single_py_deviations", "specs/deviations/x.yml", result.Passed, "", ""),
		verdict("single_py_deviations", "specs/deviations/y.yml", result.Passed, "", ""),
		verdict("single_py_deviations", "specs/deviations/z.yml", result.KnownFailing, "",
			"until 2027-01-31: sometimes: permitted: D2"),
	))
	testkit.Check(t, err)
	testkit.Golden(t, "testdata/page.md", page)
}

func TestMarkdownIsRefused(t *testing.T) {
	for _, r := range []struct {
		reason string
		of     []*result.Verdict
		breaks []result.Break
		says   string
	}{
		{"a failure is not explained", []*result.Verdict{verdict("single_py_own", "a.yml", result.Failed, "", "")}, nil,
			"failed: "},
		{"the night was interrupted", []*result.Verdict{verdict("single_py_own", "a.yml", result.Skipped, result.SkipNotRun,
			"interrupted")}, nil, "py, own: the run broke: 1 test did not run"},
		{"the run broke", []*result.Verdict{verdict("single_py_own", "a.yml", result.Passed, "", "")},
			[]result.Break{{Reason: "killed"}}, "py, own: the run broke: killed"},
		{"it is empty", nil, nil, "no tests"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			_, err := Markdown(saved(t, result.RunStarted{}, result.Summary{Breaks: r.breaks}, r.of...))
			testkit.ErrorContains(t, err, r.says)
		})
	}
}
