package retry

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// story is one of the stories in testdata.
type story struct {
	file, title, text string
}

func stories(t *testing.T) []story {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []story
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
			title, _, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
			out = append(out, story{strings.TrimSuffix(filepath.Base(file), ".txt"), title, part + "\n"})
		}
	}
	return out
}

// witness finds the first story that goes otherwise without a rule. Deeply
// compares what is decided alone, and not by which rules and why.
func witness(t *testing.T, id string, deeply bool) (story, bool) {
	t.Helper()
	told := regexp.MustCompile(`(?m): .* \([^()]*\)$`)
	for _, s := range stories(t) {
		with, err := play(s.text, "")
		if err != nil {
			t.Fatal(err)
		}
		without, err := play(s.text, id)
		if err != nil {
			t.Fatal(err)
		}
		if deeply {
			with, without = told.ReplaceAllString(with, ""), told.ReplaceAllString(without, "")
		}
		if with != without {
			return s, true
		}
	}
	return story{}, false
}

// TestEveryRuleHasAStory: dropped, each rule changes what a story decides, but
// for those that only say why.
func TestEveryRuleHasAStory(t *testing.T) {
	reasons := map[string]string{
		"R3":  "R34 raises the same error: a selection error is none of the retryable ones",
		"R4":  "told under the policy retryable-reads@2024, the only one that has it; R5 and R32 send once, and raise it then",
		"R7":  "R34 raises the same error: that a command cannot be built is not retryable",
		"R21": "it says which error stays",
	}
	for _, r := range Rules() {
		if _, ok := witness(t, r.ID, false); !ok {
			t.Errorf("no story goes otherwise without %s: %s", r.ID, r.Statement)
		}
		_, decides := witness(t, r.ID, true)
		why, excepted := reasons[r.ID]
		if !decides && !excepted {
			t.Errorf("no story decides otherwise without %s: %s", r.ID, r.Statement)
		}
		if decides && excepted && r.ID != "R4" {
			t.Errorf("%s does more than was said of it: %s", r.ID, why)
		}
	}
}

// TestPoliciesDiffer: each constant of a policy changes a story or a decision.
func TestPoliciesDiffer(t *testing.T) {
	decide := func(p *Policy, op string) string {
		var out strings.Builder
		for _, set := range []Settings{{RetryReads: true}, {RetryReads: true, OverloadRetargeting: true}, {RetryReads: true, MaxAdaptiveRetries: new(int)}} {
			set.Operation, set.RetryWrites = Lookup(op), true
			for _, code := range append(readCodes(), 43, 462) {
				for _, sharded := range []bool{false, true} {
					f := Failure{Kind: Server, Code: code, Message: fmt.Sprint("message ", code)}
					if code == 462 {
						f.Labels, f.BaseBackoff = []string{labelOverloaded, labelRetryable}, 30_000_000
					}
					s := Start(p, set)
					in := Input{Kind: Begin}
					var d Decision
					if b := p.Bucket(); b != nil {
						d.Tokens = b.Capacity
					}
					for range 20 {
						in.Tokens = d.Tokens
						s, d = Next(s, in)
						fmt.Fprintln(&out, code, d)
						switch d.Action {
						case Select:
							in = Input{Kind: Selected, Chosen: Chosen{Address: fmt.Sprint("s", s.Attempt), Sharded: sharded, Wire: 21, RetryableWrites: true}}
						case Send:
							if s.Attempt == 6 {
								in = Input{Kind: Succeeded}
								break
							}
							f.BaseBackoff *= 100
							in = Input{Kind: Failed, Failure: f, Jitter: 0.5}
						case BackOff:
							in = Input{Kind: BackedOff}
						}
						if s.Done {
							break
						}
					}
				}
			}
		}
		return out.String()
	}
	const bucket, first = "client-backpressure@2025-12", "retryable-writes@2018-03-14"
	for _, c := range []struct {
		why, policy, op string
		change          func(*Policy)
	}{
		{"a code less", "", "find", func(p *Policy) { p.ReadCodes = p.ReadCodes[1:] }},
		{"a code more", "", "find", func(p *Policy) { p.ReadCodes = append(p.ReadCodes, 43) }},
		{"newer servers", "", "find", func(p *Policy) { p.MinWireVersion = 22; p.Rules = append(p.Rules, "R4", "R32") }},
		{"one deprioritized", "", "find", func(p *Policy) { p.DeprioritizeLastOnly = true }},
		{"always retargeting", "", "find", func(p *Policy) { p.RetargetOption = false }},
		{"one retry", "", "find", func(p *Policy) { p.Overload.MaxRetries = 1 }},
		{"another base", "", "find", func(p *Policy) { p.Overload.BaseBackoff++; p.Overload.ServerBase = false }},
		{"a lower cap", "", "find", func(p *Policy) { p.Overload.MaxBackoff = 1 }},
		{"another exponent", "", "find", func(p *Policy) { p.Overload.Exponent = -1 }},
		{"no base of servers'", "", "find", func(p *Policy) { p.Overload.ServerBase = false }},
		{"no option for the retries", "", "find", func(p *Policy) { p.Overload.Fixed = true }},
		{"an option for the retries", bucket, "find", func(p *Policy) { p.Overload.Fixed = false }},
		{"a small bucket", bucket, "find", func(p *Policy) { p.Overload.Bucket.Capacity = 2 * Token }},
		{"more given back", bucket, "find", func(p *Policy) { p.Overload.Bucket.Return = 2 }},
		{"a code of writes less", first, "insert", func(p *Policy) { p.WriteCodes = p.WriteCodes[1:] }},
		{"a code of writes more", first, "insert", func(p *Policy) { p.WriteCodes = append(p.WriteCodes, 43) }},
		{"a message more", first, "insert", func(p *Policy) { p.WriteMessages = append(p.WriteMessages, "message 43") }},
		{"a write less", first, "insert", func(p *Policy) { p.WriteCommands = p.WriteCommands[:2] }},
	} {
		p, err := Named(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		before := decide(p, c.op)
		c.change(p)
		if decide(p, c.op) == before {
			t.Errorf("%s changes nothing", c.why)
		}
	}
}

func TestStoriesSayWhatTheyAreAbout(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range stories(t) {
		if !strings.HasPrefix(s.text, "# ") || s.title == "" || seen[s.title] {
			t.Errorf("%s: a story without a title of its own: %q", s.file, s.title)
		}
		seen[s.title] = true
	}
	if !slices.ContainsFunc(stories(t), func(s story) bool { return s.file == "writes" }) {
		t.Error("no stories of writes")
	}
}
