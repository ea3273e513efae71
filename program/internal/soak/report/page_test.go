// Package report_test opens the HTML report of a very large run.
package report_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// A page of 50,000 verdicts, one percent of them failures, and ten earlier runs opens in
// a browser. The time is logged and not checked, because it depends on the machine.
func TestPageOfManyVerdicts(t *testing.T) {
	const verdicts, earlierRuns = 50_000, 10
	var page bytes.Buffer
	older := make([]bytes.Buffer, earlierRuns)
	events := make([]result.Event, 50)
	for i := range events {
		events[i] = result.Event{Sequence: int64(i), Type: result.CommandStarted, Address: "a:27017", CommandName: "find",
			DatabaseName: "db"}
	}
	notes := []result.Note{result.RunStarted{Engine: "reference 1", Total: verdicts}}
	for i := range verdicts {
		id := result.TestID{File: fmt.Sprintf("specs/file-%d.yml", i/200), Suite: fmt.Sprintf("suite %d", i/200),
			Iteration:   1,
			Description: fmt.Sprintf("operation %d is retried after an error with the label RetryableWriteError", i/5),
			Deployment:  fmt.Sprintf("replicaset %d.0", 4+i%5)}
		v := &result.Verdict{Test: id, Position: result.Position{File: id.File, Line: i%200 + 1, Column: 5},
			Status: result.Passed, Duration: 12 * time.Millisecond}
		if i%100 == 0 {
			v.Status = result.Failed
			v.Mismatches = []result.Mismatch{{Path: "expectEvents[0]", Message: "an event is missing", Want: "{}",
				Diff: "- a\n+ b"}}
			v.Clients = []result.ClientLog{{Client: "client0", Events: events}}
		}
		notes = append(notes, result.TestFinished{Verdict: v})
		for n := range older {
			if i%10 > 0 && (i+n)%5 > 0 { // most tests are missing from some runs
				continue
			}
			status := result.Passed
			if (i*7919+n*104729)%53 == 0 { // many different histories
				status = result.Failed
			}
			fmt.Fprintf(&older[n], `{"file":%q,"test":%q,"deployment":%q,"iteration":1,"status":%q,"time":"2026-07-%02dT00:00:00Z"}`+"\n",
				id.File, id.Description, id.Deployment, status, n+1)
		}
	}
	var runs []*report.EarlierRun
	for n := range older {
		e, err := report.ReadEarlier(fmt.Sprint(n), &older[n], time.Time{})
		testkit.Check(t, err)
		runs = append(runs, e)
	}
	testkit.Check(t, report.Write("page", report.HTML(runs...), &page, append(notes, result.RunFinished{})...))
	path := filepath.Join(t.TempDir(), "page.html")
	testkit.Check(t, os.WriteFile(path, page.Bytes(), 0o644))
	c := exec.CommandContext(testkit.Context(t), testkit.Browser(t), "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=2000", "--dump-dom", "file://"+path+"#s=failed")
	out, err := c.Output()
	testkit.Check(t, err)
	dom := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(string(out), "")
	ready := regexp.MustCompile(`data-ready="(\d+)"`).FindStringSubmatch(dom)
	if ready == nil || !strings.Contains(dom, `data-verdicts="50000"`) {
		t.Fatalf("the page did not open:\n%.2000s", dom)
	}
	if rows := strings.Count(dom, `class="row`); rows < 10 || rows > 200 {
		t.Errorf("the document has %d rows, want only the visible ones", rows)
	}
	t.Logf("%d bytes, ready after %s ms", page.Len(), ready[1])
}
