package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// Every report of the table is written where its flag says.
func TestEveryReportIsWritten(t *testing.T) {
	for _, k := range reportKinds() {
		b := newBench()
		b.notes = []result.Note{result.RunStarted{}, result.TestFinished{Verdict: &result.Verdict{Status: result.Passed}}}
		path := filepath.Join(t.TempDir(), "report")
		if code := b.Main(context.Background(), []string{"run", "--" + k.flag, path, suiteFile(t)}); code != 0 {
			t.Errorf("--%s: exit code %d\n%s", k.flag, code, b.err.String())
		}
		if text, err := os.ReadFile(path); err != nil || len(text) == 0 {
			t.Errorf("--%s wrote nothing: %v", k.flag, err)
		}
	}
}

// No two reports go to one file, whichever they are.
func TestReportsDoNotCollide(t *testing.T) {
	kinds := reportKinds()
	for i, k := range kinds {
		for _, other := range kinds[:i] {
			b := newBench()
			if code := b.Main(context.Background(), []string{"run", "--" + k.flag, "r", "--" + other.flag, "./r", suiteFile(t)}); code != ExitUsage ||
				!strings.Contains(b.err.String(), "--"+other.flag+" and --"+k.flag+" write to the same file") {
				t.Errorf("exit code %d\n%s", code, b.err.String())
			}
		}
	}
}

func TestAnnotationsFlag(t *testing.T) {
	for _, r := range []struct {
		reason string
		args   []string
		env    string
		want   bool
	}{
		{"a run of one's own", nil, "", false},
		{"a job of GitHub", nil, "true", true},
		{"a variable that says no", nil, "false", false},
		{"asked for", []string{"--annotations"}, "", true},
		{"refused in a job of GitHub", []string{"--annotations=false"}, "true", false},
	} {
		b := newBench()
		b.env[envActions] = r.env
		b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Failed, Position: source.Position{File: "f.yml", Line: 3, Column: 4}}}}
		b.Main(context.Background(), append(append([]string{"run"}, r.args...), suiteFile(t)))
		if got := strings.Contains(b.out.String(), "::error file=f.yml,line=3,col=4,title="); got != r.want {
			t.Errorf("%s: %t\n%s", r.reason, got, b.out.String())
		}
		if !strings.HasSuffix(b.out.String(), " skipped\n") {
			t.Errorf("%s: the last line is another", r.reason)
		}
	}
}

// What an earlier attempt said is as secret as what the last one said.
func TestSecretsOfAttempts(t *testing.T) {
	b := newBench()
	failed := &result.Verdict{Status: result.Failed, Mismatches: []result.Mismatch{{Message: "login with hunter2xyz failed"}}}
	b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Flaky, Attempts: []*result.Verdict{failed, {Status: result.Passed}}}}}
	path := filepath.Join(t.TempDir(), "records")
	b.Main(context.Background(), []string{"run", "--uri", "mongodb://u:hunter2xyz@h/", "--json", path, suiteFile(t)})
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "hunter2xyz") || !strings.Contains(string(text), "login with *** failed") {
		t.Errorf("%v: %s", err, text)
	}
	if failed.Mismatches[0].Message != "login with hunter2xyz failed" {
		t.Error("the runner's own verdict was changed")
	}
}

// Flaky tests are red, and there are none unless tests are tried again.
func TestRetryFailed(t *testing.T) {
	b := newBench()
	if code := b.Main(context.Background(), []string{"run", suiteFile(t)}); code != ExitOK || b.ran.Retries != 0 {
		t.Errorf("exit code %d, %d retries", code, b.ran.Retries)
	}
	b = newBench()
	b.summary.Flaky = 1
	if code := b.Main(context.Background(), []string{"run", "--retry-failed", "2", suiteFile(t)}); code != ExitFailed || b.ran.Retries != 2 {
		t.Errorf("exit code %d, %d retries", code, b.ran.Retries)
	}
	if b.Main(context.Background(), []string{"run", "--retry-failed", "-1", suiteFile(t)}) != ExitUsage {
		t.Error("fewer than no retries")
	}
}
