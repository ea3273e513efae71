package retry

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestTranscripts plays the stories in testdata: a line that starts with ">"
// is what happened, the indented line below is what was decided.
func TestTranscripts(t *testing.T) {
	testkit.Retell(t, "testdata/*.txt", func(t *testing.T, s testkit.Story) string {
		told, err := play(s.Text, nil)
		testkit.Check(t, err)
		return told
	})
}

// TestTransactions plays the stories of withTransaction, of which each rule has one.
func TestTransactions(t *testing.T) {
	const file, kinds = "testdata/transactions/*.txt", "begin callback-failed callback-ended callback-returned commit-failed committed waited "
	testkit.Retell(t, file, func(t *testing.T, s testkit.Story) string {
		var state TransactionState
		told, err := retell(s.Text, func(happened happening) (Decision, error) {
			if happened.name == "begin" {
				p, err := Named(happened.args["policy"])
				testkit.Check(t, err)
				state = TransactionState{Policy: p, Attempt: happened.number("attempt"), Timeout: TransactionTime}
			}
			before, _, known := strings.Cut(kinds, happened.name+" ")
			if !known {
				t.Fatalf("no such input: %s", happened.name)
			}
			in := TransactionInput{Kind: TransactionInputKind(1 + strings.Count(before, " ")), Labels: happened.labels(), Code: int32(happened.number("code"))}
			in.Elapsed, _ = time.ParseDuration(happened.args["elapsed"])
			in.Jitter, _ = strconv.ParseFloat(cmp.Or(happened.args["jitter"], "0.5"), 64)
			var d Decision
			state, d = NextTransaction(state, in)
			return d, nil
		})
		testkit.Check(t, err)
		return told
	})
	told := ""
	for _, s := range testkit.Stories(t, file) {
		told += s.Text
	}
	for _, r := range TransactionRules() {
		if !regexp.MustCompile(`[( ]` + r.ID + `[) ]`).MatchString(told) {
			t.Errorf("no story has %s", r.ID)
		}
	}
}

// happening is a line that says what happened: a name, words, and arguments.
type happening struct {
	name  string
	words []string
	args  map[string]string
}

func (h happening) has(key string) bool   { _, ok := h.args[key]; return ok }
func (h happening) number(key string) int { n, _ := strconv.Atoi(h.args[key]); return n }

func (h happening) millis(key string) time.Duration {
	return time.Duration(h.number(key)) * time.Millisecond
}

func (h happening) labels() []string {
	return strings.FieldsFunc(h.args["labels"], func(r rune) bool { return r == ',' })
}

// retell tells a story anew: what happens in it is answered.
func retell(text string, answer func(happening) (Decision, error)) (told string, err error) {
	var tokens Tokens
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		words := strings.Fields(strings.TrimPrefix(line, ">"))
		h := happening{words[0], words[1:], map[string]string{}}
		for _, w := range h.words {
			k, v, _ := strings.Cut(w, "=")
			h.args[k] = v
		}
		d, err := answer(h)
		if err != nil {
			return "", err
		}
		told += line + "    " + d.Action.String()
		if len(d.Deprioritized) > 0 {
			told += " without " + strings.Join(d.Deprioritized, ", ")
		}
		if d.Action == BackOff {
			told += fmt.Sprintf(" for %v", d.Delay)
		} else if d.Action == ReturnError && d.Raise.Attempt > 0 {
			told += fmt.Sprintf(" of attempt %d", d.Raise.Attempt)
		}
		if d.Expired {
			told += ", as a timeout"
		}
		if d.Tokens != tokens && h.name != "begin" {
			told += fmt.Sprintf(", %v tokens left", d.Tokens)
		}
		tokens = d.Tokens
		told += fmt.Sprintf(": %s (%s)\n", d.Reason, strings.Join(d.Rules, " "))
	}
	return told, nil
}

// play tells a story of an operation anew, under a policy that is changed if need be.
func play(text string, change func(*Policy)) (string, error) {
	var s State
	var tokens Tokens
	return retell(text, func(happened happening) (d Decision, err error) {
		has, number := happened.has, happened.number
		in := Input{Left: happened.millis("left"), Jitter: 0.5, Tokens: tokens}
		switch happened.name {
		case "begin":
			p, err := Named(happened.args["policy"])
			if err != nil {
				return d, err
			}
			if change != nil {
				change(p)
			}
			s = Start(p, Settings{Operation: Lookup(strings.ReplaceAll(happened.args["op"], "-", " ")), RetryReads: happened.args["retryReads"] != "false",
				RetryWrites: happened.args["retryWrites"] != "false", Timeout: has("timeoutMS"), InTransaction: has("transaction"), OverloadRetargeting: has("retarget")})
			if has("retries") {
				n := number("retries")
				s.Settings.MaxAdaptiveRetries = &n
			}
			in.Kind = Begin
			if b := p.Bucket(); b != nil {
				in.Tokens = b.Capacity
			}
			if has("tokens") {
				in.Tokens = Tokens(number("tokens")) * Token
			}
		case "selected":
			in.Kind, in.Chosen = Selected, Chosen{Address: happened.words[0], Sharded: has("sharded"), Wire: 21, RetryableWrites: !has("standalone")}
			if has("wire") {
				in.Chosen.Wire = int32(number("wire"))
			}
		case "succeeded":
			in.Kind = Succeeded
		case "waited":
			in.Kind = BackedOff
		case "failed":
			in.Kind = Failed
			in.Failure = Failure{Kind: Server, Code: int32(number("code")), BaseBackoff: happened.millis("baseBackoffMS"), Handshake: has("handshake"),
				Message: strings.ReplaceAll(happened.args["message"], "-", " "), Labels: happened.labels()}
			for k := Network; k <= Selection; k++ {
				if happened.args["kind"] == strings.ReplaceAll(k.String(), " ", "-") {
					in.Failure.Kind = k
				}
			}
		default:
			return d, fmt.Errorf("no such input: %s", happened.name)
		}
		s, d = Next(s, in)
		tokens = d.Tokens
		return d, nil
	})
}

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
