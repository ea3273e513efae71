package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// slowest keeps the slowest tests that were not skipped, slowest first.
type slowest struct {
	limit    int
	verdicts []*result.Verdict
}

func (s *slowest) add(v *result.Verdict) {
	n := len(s.verdicts)
	if v.Status == result.Skipped || s.limit == 0 || n == s.limit && v.Duration <= s.verdicts[n-1].Duration {
		return
	}
	s.verdicts = append(s.verdicts, slim(v))
	slices.SortStableFunc(s.verdicts, func(a, b *result.Verdict) int { return cmp.Compare(b.Duration, a.Duration) })
	s.verdicts = s.verdicts[:min(len(s.verdicts), s.limit)]
}

// slim copies a verdict without its events and operations, to bound the memory of long runs.
func slim(v *result.Verdict) *result.Verdict {
	out := *v
	out.Clients, out.Operations, out.ServerLog, out.Attempts = nil, nil, nil, nil
	return &out
}

// byCount returns the keys of counts, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// Faults lists what is wrong with a run apart from its tests.
func Faults(s result.Summary) (all []string) {
	for _, b := range s.Breaks {
		verb := " broke: "
		if b.Interrupted() {
			verb = " was "
		}
		all = append(all, b.Subject()+verb+b.Reason)
	}
	return append(all, s.Problems...)
}

// headline summarizes a run, the worst first.
func headline(s result.Summary) string {
	line, red := "", counted(s, result.Status.FailsRun)
	add(&line, red != "", ", %s", red)
	add(&line, len(s.Problems) > 0, ", %s", plural.Of(len(s.Problems), "problem"))
	add(&line, s.Interrupted, ", interrupted")
	cells := 0
	for _, b := range s.Breaks {
		if b.Cell != "" {
			cells++
		}
	}
	add(&line, cells > 0, ", %s broke", plural.Of(cells, "cell"))
	add(&line, len(s.Breaks) > cells && !s.Interrupted, ", unfinished")
	add(&line, line == "" || s.Passed > 0, ", %d passed", s.Passed)
	return strings.TrimPrefix(line, ", ")
}

// counts is the last line of a text report. It always has the passed, failed and skipped tests, and the others if there
// are any. Verbose reports have said why tests are known to fail.
func counts(s result.Summary, verbose bool) string {
	known := ""
	add(&known, s.KnownFailing > 0, ", %d known-failing", s.KnownFailing)
	add(&known, known != "" && !verbose, " (-v shows why)")
	line := fmt.Sprintf("%d passed%s, %d failed", s.Passed, known, s.Failed)
	add(&line, s.Broken > 0, ", %d broken", s.Broken)
	add(&line, s.Flaky > 0, ", %d flaky", s.Flaky)
	add(&line, s.CutOff > 0, ", %d interrupted", s.CutOff)
	line += fmt.Sprintf(", %d skipped", s.Skipped-s.NotRun-s.CutOff)
	add(&line, s.NotRun > 0, ", %d not run", s.NotRun)
	return line
}

// counted lists the number of tests with each status for which of returns true.
func counted(s result.Summary, of func(result.Status) bool) string {
	var parts []string
	for _, status := range result.Statuses() {
		if n := s.Count(status); n > 0 && of(status) {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}

// extent says how many tests a run has.
func extent(n result.RunStarted) string {
	return plural.Of(n.Total, "test") + " in " + plural.Of(n.Files, "file")
}
