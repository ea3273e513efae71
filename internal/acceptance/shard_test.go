package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/cli"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
)

// utr runs a command line in this process.
func utr(t *testing.T, args ...string) {
	t.Helper()
	var out, errors bytes.Buffer
	p := cli.New()
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), &out, &errors
	p.Getenv = func(string) string { return "" }
	if code := p.Main(t.Context(), args); code != cli.ExitOK {
		t.Fatalf("utr %s: exit code %d\n%s%s", strings.Join(args, " "), code, out.String(), errors.String())
	}
}

// verdictsOf reads a report.
func verdictsOf(t *testing.T, name string) []*result.Verdict {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	past, err := report.Read(name, f)
	if err != nil {
		t.Fatal(err)
	}
	return past.Verdicts
}

// tally gives for each test what was said of it: one thing, if all is well.
func tally(verdicts []*result.Verdict) map[string][]string {
	out := map[string][]string{}
	for _, v := range verdicts {
		key := runner.ShardKey(v.Test)
		out[key] = append(out[key], fmt.Sprintf("%s %s %s", v.Status, v.SkipKind, v.Reason))
	}
	return out
}

// The parts of a run, put together by utr merge, say of each test what the whole
// run says, once; by name, by the durations of the whole run, and by those of
// another one, which lacks tests and has others.
func TestShardsAreOneRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	run := func(to string, more ...string) {
		utr(t, slices.Concat([]string{"run", "--topology", "all", "--jobs", "4", "--backoff", "none", "--json", to}, more, []string{"smoke", "retryable-reads/collection-count.yml"})...)
	}
	run(file("whole.json"))
	whole := verdictsOf(t, file("whole.json"))
	want := tally(whole)
	if len(want) < 50 || len(want) != len(whole) {
		t.Fatalf("%d verdicts on %d tests", len(whole), len(want))
	}
	utr(t, "run", "--topology", "all", "--backoff", "none", "--json", file("other.json"), "retryable-reads/collection-count.yml", "retryable-reads/collection-distinct.yml")
	for _, r := range []struct {
		reason    string
		durations string
		parts     int
	}{
		{"by name", "", 3},
		{"by durations", "whole.json", 2},
		{"by durations that lack tests and have others", "other.json", 2},
	} {
		t.Run(r.reason, func(t *testing.T) {
			var parts []string
			for i := 1; i <= r.parts; i++ {
				parts = append(parts, file(fmt.Sprintf("part-%d.json", i)))
				more := []string{"--shard", fmt.Sprintf("%d/%d", i, r.parts)}
				if r.durations != "" {
					more = append(more, "--durations", file(r.durations))
				}
				run(parts[i-1], more...)
			}
			utr(t, append([]string{"merge", "--json", file("merged.json")}, parts...)...)
			if diff := cmp.Diff(want, tally(verdictsOf(t, file("merged.json")))); diff != "" {
				t.Errorf("(-whole +parts)\n%s", diff)
			}
			if r.durations == "whole.json" {
				balanced(t, whole, parts)
			}
		})
	}
}

// balanced expects that the parts took equally long in the run by which they
// were made, but for the longest test.
func balanced(t *testing.T, whole []*result.Verdict, parts []string) {
	t.Helper()
	took := report.Durations(whole, runner.ShardKey)
	var longest time.Duration
	for _, d := range took {
		longest = max(longest, d)
	}
	sums := make([]time.Duration, len(parts))
	for i, name := range parts {
		for _, v := range verdictsOf(t, name) {
			sums[i] += took[runner.ShardKey(v.Test)]
		}
	}
	if apart := slices.Max(sums) - slices.Min(sums); apart > longest {
		t.Errorf("the parts took %v, %s apart; the longest test took %s", sums, apart, longest)
	}
}
