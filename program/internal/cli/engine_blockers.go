package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// blocked is a group of tests with the same needs, and the needs that the engine does not meet.
type blocked struct {
	suite *specs.Suite
	tests []*specs.Test
	needs []string
	lacks []string
	ran   bool
}

// blockers runs one test of each group, counts how many tests would run, and lists what the engine lacks.
func (c *invocation) blockers(ctx context.Context, e engine.Engine, suites []*specs.Suite,
	about engine.Description) (string, error) {
	groups := groupsOf(suites, about)
	sample := map[string]*blocked{} // by file and description
	var run []*specs.Suite
	for _, g := range groups {
		if len(g.lacks) > 0 {
			continue
		}
		one := *g.suite
		one.Tests = g.tests[:1]
		run = append(run, &one)
		sample[one.File+"\n"+g.tests[0].Description] = g
	}
	cfg := runner.Config{Engine: e, Jobs: c.program.Machine().Cores, Notify: func(n result.Note) {
		f, is := n.(result.TestFinished)
		if !is || f.Verdict.SkipKind != result.SkipCapability {
			return
		}
		if g := sample[f.Verdict.Test.File+"\n"+f.Verdict.Test.Description]; g != nil {
			g.ran, g.lacks = true, []string{strings.TrimPrefix(f.Verdict.Reason, "the engine lacks ")}
		}
	}}
	if len(run) > 0 {
		if _, err := c.runEmbedded(ctx, run, &deploymentFlags{topology: topologyAuto}, cfg); err != nil {
			return "", err
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	infer(groups)
	return unlocking(groups), nil
}

// infer adds what tests that ran showed to be missing, such as "option uriOptions", to the groups that need it and did
// not run, because they lack something else, too.
func infer(groups []*blocked) {
	shown := map[string]string{} // by its last word
	for _, g := range groups {
		if g.ran {
			for _, name := range g.lacks {
				shown[name[strings.LastIndexAny(name, " .")+1:]] = name
			}
		}
	}
	for _, g := range groups {
		for _, need := range g.needs {
			name := shown[need[strings.LastIndexByte(need, '.')+1:]]
			if name != "" && !g.ran && !slices.Contains(g.lacks, name) {
				g.lacks = append(g.lacks, name)
			}
		}
	}
}

// groupsOf groups tests by file and by what they need of an engine: operations with their arguments, and entities with
// their options. It fills in what the description of the engine says.
func groupsOf(suites []*specs.Suite, about engine.Description) []*blocked {
	by := map[string]*blocked{}
	var groups []*blocked
	for _, s := range suites {
		for _, t := range s.Tests {
			lacks := runner.Missing(s, t, about)
			if needsFailPoint(t) && !about.Supports("client", engine.OpConfigureFailPoint) {
				lacks = append(lacks, engine.OpConfigureFailPoint)
			}
			needs := needsOf(t)
			key := fmt.Sprint(needs, lacks)
			g := by[key]
			if g == nil {
				g = &blocked{suite: s, needs: needs, lacks: lacks}
				by[key] = g
				groups = append(groups, g)
			}
			g.tests = append(g.tests, t)
		}
	}
	return groups
}

func needsFailPoint(t *specs.Test) bool {
	return slices.ContainsFunc(t.Steps, func(s specs.Step) bool {
		return s.Kind == "testRunner" && (s.Name == "failPoint" || s.Name == "targetedFailPoint")
	})
}

// needsOf returns the names of operations, arguments, entities and options of a test.
func needsOf(t *specs.Test) []string {
	found := map[string]bool{}
	add := func(what string, options *source.Value) {
		found[what] = true
		if options != nil {
			for _, f := range options.Fields {
				found[what+"."+f.Key] = true
			}
		}
	}
	for _, e := range t.Entities {
		add(string(e.Kind), e.Value)
	}
	for _, s := range t.Steps {
		add(string(s.Kind)+"."+s.Name, s.Arguments)
	}
	return slices.Sorted(maps.Keys(found))
}

// unlocking counts the tests that would run, and lists what the engine lacks: at each step, what unlocks the most tests
// in addition to those that the earlier steps unlock.
func unlocking(groups []*blocked) string {
	all, run := 0, 0
	open := map[*blocked]map[string]bool{}
	needed := map[string]int{}
	for _, g := range groups {
		all += len(g.tests)
		if len(g.lacks) == 0 {
			run += len(g.tests)
			continue
		}
		open[g] = map[string]bool{}
		for _, name := range g.lacks {
			open[g][name] = true
			needed[name] += len(g.tests)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s would run\n", run, plural.Of(all, "test"))
	if len(open) > 0 {
		b.WriteString("\nwould run  needed by  in the order of what each unlocks\n")
	}
	for len(open) > 0 {
		alone, share := map[string]int{}, map[string]float64{}
		for g, lacks := range open {
			for name := range lacks {
				share[name] += float64(len(g.tests)) / float64(len(lacks))
				if len(lacks) == 1 {
					alone[name] += len(g.tests)
				}
			}
		}
		names := slices.SortedFunc(maps.Keys(share), func(a, b string) int {
			return cmp.Or(cmp.Compare(alone[b], alone[a]), cmp.Compare(share[b], share[a]), cmp.Compare(a, b))
		})
		best := names[0]
		run += alone[best]
		fmt.Fprintf(&b, "%9d  %9d  %s\n", run, needed[best], best)
		for g, lacks := range open {
			if delete(lacks, best); len(lacks) == 0 {
				delete(open, g)
			}
		}
	}
	return b.String()
}
