package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// Merge returns the notes of a run that consists of several, such as its shards. Tests in more than one part, missing
// shards, and the problems of each part become problems of the run. The run is broken if a part is broken or truncated.
func Merge(parts []*SavedRun) []result.Note {
	var notes []result.Note
	var s result.Summary
	started := result.RunStarted{Jobs: len(parts)}
	cells := cellSums{of: map[string]*cellSum{}}
	files, engines := map[string]bool{}, []string{}
	reports := map[testKey]string{} // the last report with a test
	problem := func(format string, args ...any) {
		if p := fmt.Sprintf(format, args...); !slices.Contains(s.Problems, p) {
			s.Problems = append(s.Problems, p)
		}
	}
	var whole span
	for _, p := range parts {
		var tests span
		shared, with, example := 0, "", ""
		for i, k := range keys(p.Verdicts) {
			v := p.Verdicts[i]
			if other, found := reports[k]; found && other != p.Name {
				shared++
				with, example = other, oneLine(title(v.Test))
			}
			reports[k] = p.Name
			files[v.Test.File] = true
			s.Add(v)
			cells.add(v)
			tests.add(v.Started, v.Duration)
			notes = append(notes, result.TestFinished{Verdict: v})
		}
		if shared > 0 {
			problem("%s and %s have %s in common, such as %q", with, p.Name, plural.Of(shared, "test"), example)
		}
		for _, b := range p.broke() {
			b.Cell = cmp.Or(b.Cell, p.Cell)
			if b.Cell != "" {
				cells.cell(b.Cell).Broken = b.Reason
			}
			b.Reason = p.Name + ": " + b.Reason
			s.Breaks = append(s.Breaks, b)
		}
		if p.Run == nil {
			s.Duration = max(s.Duration, tests.duration())
			whole.begin(tests.first)
			continue
		}
		if !slices.Contains(engines, p.Run.Engine) {
			engines = append(engines, p.Run.Engine)
		}
		started.Commit = cmp.Or(started.Commit, p.Run.Commit)
		whole.begin(p.Run.Started)
		s.Duration, s.CPU = max(s.Duration, time.Duration(p.Run.Duration)), s.CPU+time.Duration(p.Run.CPU)
		cells.addRun(p)
		s.Interrupted = s.Interrupted || p.Run.Interrupted
		for _, each := range p.Run.Problems {
			problem("%s", each)
		}
	}
	for _, fault := range shardFaults(parts) {
		problem("%s", fault)
	}
	s.RequireTests(1)
	started.Time, started.Engine = whole.first, strings.Join(engines, " and ")
	started.Total, started.Files = len(notes), len(files)
	return slices.Concat([]result.Note{started}, notes, cells.notes(), []result.Note{result.RunFinished{Summary: s}})
}

// shardFaults reports missing and duplicate shards of each cell.
func shardFaults(parts []*SavedRun) (faults []string) {
	of := map[string][]*SavedRun{}
	for _, p := range parts {
		of[p.Cell] = append(of[p.Cell], p)
	}
	for _, p := range parts {
		for _, fault := range shardFaultsOf(of[p.Cell]) {
			if p.Cell != "" {
				fault = "cell " + p.Cell + ": " + fault
			}
			faults = append(faults, fault)
		}
		delete(of, p.Cell)
	}
	return faults
}

func shardFaultsOf(parts []*SavedRun) (faults []string) {
	var names []string
	count := 0
	for _, p := range parts {
		if p.Shard == "" {
			continue
		}
		var i, n int
		if _, err := fmt.Sscanf(p.Shard, "%d/%d", &i, &n); err != nil || n < 1 || n > maxShards {
			faults = append(faults, fmt.Sprintf("%s: %q is not a shard", p.Name, p.Shard))
			continue
		}
		if slices.Contains(names, p.Shard) {
			faults = append(faults, fmt.Sprintf("%s: duplicate shard %s", p.Name, p.Shard))
		}
		if count != 0 && count != n {
			faults = append(faults, fmt.Sprintf("%s: shard %s is one of %d, others are of %d", p.Name, p.Shard, n, count))
		}
		names = append(names, p.Shard)
		count = n
	}
	for i := 1; i <= count; i++ {
		if name := fmt.Sprintf("%d/%d", i, count); !slices.Contains(names, name) {
			faults = append(faults, fmt.Sprintf("shard %s is missing", name))
		}
	}
	return faults
}

// maxShards bounds the number of missing shards that an invalid report can cause.
const maxShards = 10_000
