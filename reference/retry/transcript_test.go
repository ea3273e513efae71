package retry

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestTranscripts plays the stories in testdata: a line that starts with ">"
// is what happened, the indented line below is what was decided.
func TestTranscripts(t *testing.T) {
	texts, seen := map[string]string{}, map[string]bool{}
	for _, s := range stories(t) {
		got, err := play(s.text, nil)
		if err != nil || !strings.HasPrefix(s.text, "# ") || s.title == "" || seen[s.title] {
			t.Errorf("%s: a story without a title of its own: %q, %v", s.file, s.title, err)
		}
		if got != s.text && !*update {
			t.Errorf("%s: the story goes otherwise:\n%s", s.file, got)
		}
		seen[s.title], texts[s.file] = true, texts[s.file]+"\n"+got
	}
	for file, text := range texts {
		if *update {
			testkit.Check(t, os.WriteFile("testdata/"+file+".txt", []byte(text[1:]), 0o644))
		}
	}
}

// play tells a story anew, under a policy that is changed if need be.
func play(text string, change func(*Policy)) (string, error) {
	var out strings.Builder
	var s State
	var tokens Tokens
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		out.WriteString(line + "\n")
		told, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		words := strings.Fields(told)
		args := map[string]string{}
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			args[k] = v
		}
		has := func(key string) bool { _, ok := args[key]; return ok }
		number := func(key string) int { n, _ := strconv.Atoi(args[key]); return n }
		millis := func(key string) time.Duration { return time.Duration(number(key)) * time.Millisecond }
		in := Input{Left: millis("left"), Jitter: 0.5, Tokens: tokens}
		switch words[0] {
		case "begin":
			p, err := Named(args["policy"])
			if err != nil {
				return "", err
			}
			if change != nil {
				change(p)
			}
			s = Start(p, Settings{Operation: Lookup(strings.ReplaceAll(args["op"], "-", " ")), RetryReads: args["retryReads"] != "false",
				RetryWrites: args["retryWrites"] != "false", Timeout: has("timeoutMS"), InTransaction: has("transaction"), OverloadRetargeting: has("retarget")})
			if has("retries") {
				n := number("retries")
				s.Settings.MaxAdaptiveRetries = &n
			}
			in.Kind = Begin
			if b := p.Bucket(); b != nil {
				tokens = b.Capacity
			}
			if has("tokens") {
				tokens = Tokens(number("tokens")) * Token
			}
			in.Tokens = tokens
		case "selected":
			in.Kind, in.Chosen = Selected, Chosen{Address: words[1], Sharded: has("sharded"), Wire: 21, RetryableWrites: !has("standalone")}
			if has("wire") {
				in.Chosen.Wire = int32(number("wire"))
			}
		case "succeeded":
			in.Kind = Succeeded
		case "waited":
			in.Kind = BackedOff
		case "failed":
			in.Kind = Failed
			in.Failure = Failure{Kind: Server, Code: int32(number("code")), BaseBackoff: millis("baseBackoffMS"), Handshake: has("handshake"),
				Message: strings.ReplaceAll(args["message"], "-", " "), Labels: strings.FieldsFunc(args["labels"], func(r rune) bool { return r == ',' })}
			for k := Network; k <= Selection; k++ {
				if args["kind"] == strings.ReplaceAll(k.String(), " ", "-") {
					in.Failure.Kind = k
				}
			}
		default:
			return "", fmt.Errorf("no such input: %s", line)
		}
		var d Decision
		s, d = Next(s, in)
		fmt.Fprintf(&out, "    %s", d.Action)
		if len(d.Deprioritized) > 0 {
			fmt.Fprintf(&out, " without %s", strings.Join(d.Deprioritized, ", "))
		}
		switch d.Action {
		case BackOff:
			fmt.Fprintf(&out, " for %v", d.Delay)
		case ReturnError:
			fmt.Fprintf(&out, " of attempt %d", d.Raise.Attempt)
			if d.Expired {
				out.WriteString(", as a timeout")
			}
		}
		if d.Tokens != tokens {
			fmt.Fprintf(&out, ", %v tokens left", d.Tokens)
			tokens = d.Tokens
		}
		fmt.Fprintf(&out, ": %s (%s)\n", d.Reason, strings.Join(d.Rules, " "))
	}
	return out.String(), nil
}
