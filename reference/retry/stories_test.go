package retry

import (
	"regexp"
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// without takes a rule out of a policy.
func without(id string) func(*Policy) {
	return func(p *Policy) { p.Rules = slices.DeleteFunc(p.Rules, func(r string) bool { return r == id }) }
}

// witness finds the first story that goes otherwise under a changed policy.
// Deeply compares what is decided alone, and not by which rules and why.
func witness(t *testing.T, change func(*Policy), deeply bool) (testkit.Story, bool) {
	t.Helper()
	told := regexp.MustCompile(`(?m): .* \([^()]*\)$`)
	for _, s := range testkit.Stories(t, "testdata/*.txt") {
		before, err := play(s.Text, nil)
		testkit.Check(t, err)
		after, err := play(s.Text, change)
		testkit.Check(t, err)
		if deeply {
			before, after = told.ReplaceAllString(before, ""), told.ReplaceAllString(after, "")
		}
		if before != after {
			return s, true
		}
	}
	return testkit.Story{}, false
}

// TestEveryRuleHasAStory: dropped, each rule changes what a story decides, but
// for those that only say why.
func TestEveryRuleHasAStory(t *testing.T) {
	reasons := map[string]string{
		"R3":  "R34 raises the same error: a selection error is not retryable",
		"R4":  "told under the policy retryable-reads@2024, the only one that has it; R5 and R32 send once, and raise it then",
		"R7":  "R34 raises the same error: that a command cannot be built is not retryable",
		"R21": "it says which error stays",
	}
	for _, r := range Rules() {
		if _, ok := witness(t, without(r.ID), false); !ok {
			t.Errorf("no story goes otherwise without %s: %s", r.ID, r.Statement)
		}
		_, decides := witness(t, without(r.ID), true)
		why, excepted := reasons[r.ID]
		if !decides && !excepted {
			t.Errorf("no story decides otherwise without %s: %s", r.ID, r.Statement)
		}
		if decides && excepted && r.ID != "R4" {
			t.Errorf("%s does more than was said of it: %s", r.ID, why)
		}
	}
}
