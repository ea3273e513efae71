package retry

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestTranscripts plays the stories in testdata: a line that starts with ">" is an input, and the indented line below
// is the decision.
func TestTranscripts(t *testing.T) {
	testkit.PlayStories(t, "testdata/*.txt", func(t *testing.T, s testkit.Story) string {
		transcript, err := play(s.Text, nil)
		testkit.Check(t, err)
		return transcript
	})
}

// TestTransactions plays the stories of withTransaction, and checks that each rule has one.
func TestTransactions(t *testing.T) {
	const file = "testdata/transactions/*.txt"
	kinds := map[string]InputKind{"begin": Begin, "callback-failed": CallbackFailed, "callback-ended": CallbackEnded,
		"callback-returned": CallbackReturned, "commit-failed": CommitFailed, "committed": Committed, "waited": BackedOff}
	testkit.PlayStories(t, file, func(t *testing.T, s testkit.Story) string {
		var state TransactionState
		transcript, err := playStory(s.Text, func(ev event) (Decision, error) {
			if ev.name == "begin" {
				p, err := Named(ev.args["policy"])
				testkit.Check(t, err)
				state = TransactionState{Policy: p, attempt: ev.number("attempt")}
			}
			if kinds[ev.name] == 0 {
				t.Fatalf("unknown input: %s", ev.name)
			}
			elapsed, _ := time.ParseDuration(ev.args["elapsed"])
			in := Input{Kind: kinds[ev.name], Failure: Failure{Labels: ev.labels(), Code: int32(ev.number("code"))},
				Left: TransactionTime - elapsed}
			in.Jitter, _ = strconv.ParseFloat(cmp.Or(ev.args["jitter"], "0.5"), 64)
			var d Decision
			state, d = NextTransaction(state, in)
			return d, nil
		})
		testkit.Check(t, err)
		return transcript
	})
	transcript := ""
	for _, s := range testkit.Stories(t, file) {
		transcript += s.Text
	}
	for _, r := range TransactionRules() {
		if !regexp.MustCompile(`[( ]` + r.ID + `[) ]`).MatchString(transcript) {
			t.Errorf("no story has %s", r.ID)
		}
	}
}

// event is an input line: a name, words, and arguments.
type event struct {
	name  string
	words []string
	args  map[string]string
}

func (e event) has(key string) bool   { _, ok := e.args[key]; return ok }
func (e event) number(key string) int { n, _ := strconv.Atoi(e.args[key]); return n }

func (e event) millis(key string) time.Duration {
	return time.Duration(e.number(key)) * time.Millisecond
}

func (e event) labels() []string {
	return strings.FieldsFunc(e.args["labels"], func(r rune) bool { return r == ',' })
}

// playStory plays a story: decide returns the decision for each input.
func playStory(text string, decide func(event) (Decision, error)) (transcript string, err error) {
	var tokens Tokens
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		words := strings.Fields(strings.TrimPrefix(line, ">"))
		e := event{words[0], words[1:], map[string]string{}}
		for _, w := range e.words {
			k, v, _ := strings.Cut(w, "=")
			e.args[k] = v
		}
		d, err := decide(e)
		if err != nil {
			return "", err
		}
		transcript += line + "    " + d.Action.String()
		if len(d.Deprioritized) > 0 {
			transcript += " without " + strings.Join(d.Deprioritized, ", ")
		}
		if d.Action == BackOff {
			transcript += fmt.Sprintf(" for %v", d.Delay)
		} else if d.Action == ReturnError && d.Raise.Attempt > 0 {
			transcript += fmt.Sprintf(" of attempt %d", d.Raise.Attempt)
		}
		if d.Expired {
			transcript += ", as a timeout"
		}
		if d.Tokens != tokens && e.name != "begin" {
			transcript += fmt.Sprintf(", %v tokens left", d.Tokens)
		}
		tokens = d.Tokens
		transcript += fmt.Sprintf(": %s (%s)\n", d.Reason, d.Rules)
	}
	return transcript, nil
}

// play plays the story of an operation, with a policy changed by change if it is not nil.
func play(text string, change func(*Policy)) (string, error) {
	var s State
	var tokens Tokens
	return playStory(text, func(ev event) (d Decision, err error) {
		has, number := ev.has, ev.number
		in := Input{Left: ev.millis("left"), Jitter: 0.5, Tokens: tokens}
		switch ev.name {
		case "begin":
			p, err := Named(ev.args["policy"])
			if err != nil {
				return d, err
			}
			if change != nil {
				change(p)
			}
			s = Start(p, Settings{Operation: Lookup(strings.ReplaceAll(ev.args["op"], "_", " ")),
				RetryReads:  ev.args["retryReads"] != "false",
				RetryWrites: ev.args["retryWrites"] != "false", Timeout: has("timeoutMS"), InTransaction: has("transaction"),
				OverloadRetargeting: has("retarget")})
			if has("retries") {
				n := number("retries")
				s.Settings.MaxAdaptiveRetries = &n
			}
			in.Kind = Begin
			if b := p.Bucket(); b != nil {
				in.Tokens = b.Capacity
			}
			if has("tokens") {
				n, _ := strconv.ParseFloat(ev.args["tokens"], 64)
				in.Tokens = Tokens(math.Round(n * float64(Token)))
			}
		case "selected":
			in.Kind, in.Chosen = Selected, Chosen{Address: ev.words[0], Sharded: has("sharded"), Wire: 21,
				RetryableWrites: !has("standalone")}
			if has("wire") {
				in.Chosen.Wire = int32(number("wire"))
			}
		case "succeeded":
			in.Kind = Succeeded
		case "waited":
			in.Kind = BackedOff
		case "failed":
			in.Kind = Failed
			in.Failure = Failure{Kind: Server, Code: int32(number("code")), BaseBackoff: ev.millis("baseBackoffMS"),
				Handshake: has("handshake"),
				Message:   strings.ReplaceAll(ev.args["message"], "-", " "), Labels: ev.labels()}
			for k := Network; k <= Selection; k++ {
				if ev.args["kind"] == strings.ReplaceAll(k.String(), " ", "-") {
					in.Failure.Kind = k
				}
			}
		default:
			return d, fmt.Errorf("unknown input: %s", ev.name)
		}
		s, d = Next(s, in)
		tokens = d.Tokens
		return d, nil
	})
}

// without removes a rule from a policy.
func without(id string) func(*Policy) {
	return func(p *Policy) { p.Rules = p.Rules.Without(id) }
}

// witness returns the first story that changes under a changed policy. deeply ignores reasons and rules.
func witness(t *testing.T, change func(*Policy), deeply bool) (testkit.Story, bool) {
	t.Helper()
	reasons := regexp.MustCompile(`(?m): .* \([^()]*\)$`)
	for _, s := range testkit.Stories(t, "testdata/*.txt") {
		before, err := play(s.Text, nil)
		testkit.Check(t, err)
		after, err := play(s.Text, change)
		testkit.Check(t, err)
		if deeply {
			before, after = reasons.ReplaceAllString(before, ""), reasons.ReplaceAllString(after, "")
		}
		if before != after {
			return s, true
		}
	}
	return testkit.Story{}, false
}

// TestEveryRuleHasAStory checks that each rule changes the decisions of a story, except rules that only give a reason.
func TestEveryRuleHasAStory(t *testing.T) {
	reasons := map[string]string{
		"R3":  "R34 raises the same error: a selection error is not retryable",
		"R4":  "R5 and R32 send once, and then raise the same error",
		"R7":  "R34 raises the same error: that a command cannot be built is not retryable",
		"R21": "it only records which error is kept",
	}
	for _, r := range Rules() {
		if _, ok := witness(t, without(r.ID), false); !ok {
			t.Errorf("no story changes without %s: %s", r.ID, r.Statement)
		}
		_, decides := witness(t, without(r.ID), true)
		why, excepted := reasons[r.ID]
		if !decides && !excepted {
			t.Errorf("no decision changes without %s: %s", r.ID, r.Statement)
		}
		if decides && excepted && r.ID != "R4" {
			t.Errorf("without %s a decision changes, but: %s", r.ID, why)
		}
	}
}
