package retry

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// story is one of the stories in testdata.
type story struct {
	file, title, text string
}

func stories(t *testing.T) (out []story) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	testkit.Check(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		testkit.Check(t, err)
		for _, part := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
			title, _, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
			out = append(out, story{strings.TrimSuffix(filepath.Base(file), ".txt"), title, part + "\n"})
		}
	}
	return out
}

// without takes a rule out of a policy.
func without(id string) func(*Policy) {
	return func(p *Policy) { p.Rules = slices.DeleteFunc(p.Rules, func(r string) bool { return r == id }) }
}

// witness finds the first story that goes otherwise under a changed policy.
// Deeply compares what is decided alone, and not by which rules and why.
func witness(t *testing.T, change func(*Policy), deeply bool) (story, bool) {
	t.Helper()
	told := regexp.MustCompile(`(?m): .* \([^()]*\)$`)
	for _, s := range stories(t) {
		before, err := play(s.text, nil)
		testkit.Check(t, err)
		after, err := play(s.text, change)
		testkit.Check(t, err)
		if deeply {
			before, after = told.ReplaceAllString(before, ""), told.ReplaceAllString(after, "")
		}
		if before != after {
			return s, true
		}
	}
	return story{}, false
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

// TestPoliciesDiffer: each constant of a policy changes a story.
func TestPoliciesDiffer(t *testing.T) {
	overload := func(change func(*Overload)) func(*Policy) {
		return func(p *Policy) {
			if p.Overload != nil {
				change(p.Overload)
			}
		}
	}
	for why, change := range map[string]func(*Policy){
		"a code fewer":              func(p *Policy) { p.ReadCodes = slices.DeleteFunc(p.ReadCodes, func(c int32) bool { return c == 91 }) },
		"a code more":               func(p *Policy) { p.ReadCodes = append(p.ReadCodes, 43) },
		"newer servers":             func(p *Policy) { p.MinWireVersion = min(p.MinWireVersion, 5) },
		"one deprioritized":         func(p *Policy) { p.DeprioritizeLastOnly = true },
		"several deprioritized":     func(p *Policy) { p.DeprioritizeLastOnly = false },
		"always retargeting":        func(p *Policy) { p.RetargetOption = false },
		"one retry":                 overload(func(o *Overload) { o.MaxRetries = 1 }),
		"another base":              overload(func(o *Overload) { o.BaseBackoff += time.Millisecond }),
		"a lower cap":               overload(func(o *Overload) { o.MaxBackoff = time.Second }),
		"a higher cap":              overload(func(o *Overload) { o.MaxBackoff = time.Hour }),
		"another exponent":          overload(func(o *Overload) { o.Exponent++ }),
		"no base of servers":        overload(func(o *Overload) { o.ServerBase = false }),
		"no option for the retries": overload(func(o *Overload) { o.Fixed = true }),
		"an option for the retries": overload(func(o *Overload) { o.Fixed = false }),
		"a small bucket":            overload(func(o *Overload) { o.Bucket = &Bucket{2 * Token, Token / 10} }),
		"more given back":           overload(func(o *Overload) { o.Bucket = &Bucket{1000 * Token, 2} }),
		"a code of writes fewer":    func(p *Policy) { p.WriteCodes = nil },
		"a code of writes more":     func(p *Policy) { p.WriteCodes = append(p.WriteCodes, 262) },
		"no messages":               func(p *Policy) { p.WriteMessages = nil },
		"all messages":              func(p *Policy) { p.WriteMessages = append(p.WriteMessages, "") },
		"fewer commands that write": func(p *Policy) { p.WriteCommands = nil },
		"more commands that write":  func(p *Policy) { p.WriteCommands = append(p.WriteCommands, "commitTransaction", "bulkWrite") },
	} {
		if _, ok := witness(t, change, true); !ok {
			t.Errorf("no story goes otherwise with %s", why)
		}
	}
}
