package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/runner"
)

// utr runs a command line that must succeed.
func utr(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(utrtest.Command(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("utr %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// tally returns the verdicts of each test in a report: exactly one if all is well.
func tally(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	testkit.Check(t, err)
	defer func() { _ = f.Close() }()
	past, err := report.Read(name, f)
	testkit.Check(t, err)
	out := map[string]string{}
	for _, v := range past.Verdicts {
		out[runner.ShardKey(v.Test)] += fmt.Sprintf("%s %s %s;", v.Status, v.SkipKind, v.Reason)
	}
	return out
}

// The merged shards of a run have the same verdict of each test as the whole run, once.
// Tests are distributed by name, by the durations of the whole run, and by the durations of a
// run with other tests.
func TestShardsAreOneRun(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(to string, more ...string) {
		utr(t, append([]string{"run", "--topology", "all", "--jobs", "4", "--backoff", "none", "--json", to}, more...)...)
	}
	run("whole.json", "smoke", "retryable-reads/collection-count.yml")
	want := tally(t, "whole.json")
	if len(want) < 50 {
		t.Fatalf("only %d tests", len(want))
	}
	run("other.json", "retryable-reads/collection-count.yml", "retryable-reads/collection-distinct.yml")
	for _, r := range []struct {
		reason    string
		parts     int
		durations []string
	}{
		{"by name", 3, nil},
		{"by durations", 2, []string{"--durations", "whole.json"}},
		{"by durations of other tests", 2, []string{"--durations", "other.json"}},
	} {
		merge := []string{"merge", "--json", "merged.json"}
		for i := 1; i <= r.parts; i++ {
			part := fmt.Sprintf("part-%d.json", i)
			run(part, append(r.durations, "--shard", fmt.Sprintf("%d/%d", i, r.parts), "smoke",
				"retryable-reads/collection-count.yml")...)
			merge = append(merge, part)
		}
		utr(t, merge...)
		testkit.Same(t, r.reason+": the merged report", tally(t, "merged.json"), want)
	}
}
