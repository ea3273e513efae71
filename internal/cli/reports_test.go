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
