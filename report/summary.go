package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// slowest keeps the slowest tests that ran, the slowest first.
type slowest struct {
	most     int
	verdicts []*result.Verdict
}

func (s *slowest) add(v *result.Verdict) {
	if v.Status == result.Skipped || s.most == 0 {
		return
	}
	if n := len(s.verdicts); n == s.most && v.Duration <= s.verdicts[n-1].Duration {
		return
	}
	s.verdicts = append(s.verdicts, slim(v))
	slices.SortStableFunc(s.verdicts, func(a, b *result.Verdict) int { return cmp.Compare(b.Duration, a.Duration) })
	s.verdicts = s.verdicts[:min(len(s.verdicts), s.most)]
}

// slim is a verdict without its events and operations: the memory of a long run
// must not grow with them.
func slim(v *result.Verdict) *result.Verdict {
	out := *v
	out.Clients, out.Operations, out.ServerLog, out.Attempts = nil, nil, nil, nil
	return &out
}

// byCount gives the keys of counts, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// headline describes in a few words how a run went: the worst first.
func headline(s result.Summary) string {
	line, red := "", counted(s, result.Status.Red)
	add(&line, red != "", ", %s", red)
	add(&line, len(s.Problems) > 0, ", %s", plural(len(s.Problems), "problem"))
	add(&line, s.Interrupted, ", interrupted")
	add(&line, line == "" || s.Passed > 0, ", %d passed", s.Passed)
	return strings.TrimPrefix(line, ", ")
}

// counted lists how many tests ended with each status of interest.
func counted(s result.Summary, of func(result.Status) bool) string {
	var parts []string
	for _, c := range s.Counts() {
		if c.Tests > 0 && of(c.Status) {
			parts = append(parts, fmt.Sprintf("%d %s", c.Tests, c.Status))
		}
	}
	return strings.Join(parts, ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// mark is a sign for how a run went that does not need colours.
func mark(s result.Summary) string {
	if s.ExitCode() == 0 {
		return "✔"
	}
	return "✘"
}
