package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/xeipuuv/gojsonschema"
)

// flaky is a run of one test that failed and then passed.
func flaky() []result.Note {
	id := result.TestID{File: "specs/find.yml", Suite: "find", Description: "by chance", Iteration: 1}
	first := &result.Verdict{Test: id, Position: at(3, 5), Status: result.Failed, Duration: time.Second,
		Mismatches: []result.Mismatch{{Path: "expectEvents[0]", Position: at(4, 5), Message: "an event is missing"}},
		Clients:    []result.ClientLog{{Client: "client0"}}}
	second := &result.Verdict{Test: id, Position: at(3, 5), Status: result.Passed, Duration: time.Second}
	v := *first
	v.Status, v.Reason, v.Attempts, v.Duration = result.Flaky, "passed at attempt 2, after failed", []*result.Verdict{first, second}, 2*time.Second
	var s result.Summary
	s.Add(&v)
	return []result.Note{result.RunStarted{Total: 1}, result.TestFinished{Verdict: &v}, result.RunFinished{Summary: s}}
}

// No report takes a flaky test for one that passed.
func TestFlakyIsNoPass(t *testing.T) {
	for reason, r := range map[string]struct {
		generate report.Generator
		want     []string
	}{
		"text":        {report.Text(report.TextOptions{}), []string{"flaky find: by chance\n", "passed at attempt 2, after failed\n", "an event is missing", "1 flaky, 0 broken, 0 known-failing\n0 passed, 0 failed, 0 skipped\n"}},
		"progress":    {report.Progress(report.Text(report.TextOptions{}), report.ProgressOptions{Width: func() int { return 80 }}), []string{"1/1, 1 failed"}},
		"JUnit":       {report.JUnit(), []string{`failures="1"`, `<failure message="expectEvents[0]: an event is missing" type="flaky">`}},
		"TAP":         {report.TAP(), []string{"not ok 1 - find: by chance\n", `severity: "flaky"`}},
		"Markdown":    {report.Markdown(), []string{"✘ utr: 1 flaky", "<b>flaky</b> find: by chance", "after failed"}},
		"annotations": {report.Annotated(report.Text(report.TextOptions{})), []string{"::error file=specs/find.yml,line=4,col=5,title=flaky find"}},
		"badge":       {report.Badge(), []string{">1 flaky</text>", "#b3261e"}},
		"JSON":        {report.JSON(), []string{`"status":"flaky"`}},
	} {
		text := string(generate(r.generate, flaky()))
		for _, want := range r.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", reason, want, text)
			}
		}
	}
}

// The record has all attempts, and keeps to the schema.
func TestRecordOfAttempts(t *testing.T) {
	text := generate(report.JSON(), flaky())
	line := lines(text)[0]
	var got struct {
		Status   string
		Attempts []struct {
			Status     string
			DurationMS float64
			Mismatches []any
		}
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != "flaky" || len(got.Attempts) != 2 || got.Attempts[0].Status != "failed" || len(got.Attempts[0].Mismatches) != 1 ||
		got.Attempts[1].Status != "passed" || got.Attempts[1].DurationMS != 1000 {
		t.Errorf("%+v", got)
	}
	r, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(report.Schema()), gojsonschema.NewStringLoader(line))
	if err != nil || !r.Valid() {
		t.Errorf("%v %v", err, r.Errors())
	}
}
