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
	return parse(t, written(started, sum, verdicts...))
}

// written is the JSON report of a run.
func written(started result.RunStarted, sum result.Summary, verdicts ...*result.Verdict) *bytes.Buffer {
	var text bytes.Buffer
	notes := []result.Note{started}
	for _, v := range verdicts {
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	_ = report.Write("memory", report.JSON(), &text, append(notes, result.RunFinished{Summary: sum})...)
	return &text
}

func parse(t *testing.T, from io.Reader) *Report {
	t.Helper()
	r, err := Read("memory.json", from, time.Time{})
	testkit.Check(t, err)
	return r
}
