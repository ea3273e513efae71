package retry

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestTranscripts plays the stories in testdata: a line that starts with ">"
// is what happened, the indented line below is what was decided.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case got == string(text):
			case !*update:
				t.Errorf("the story goes otherwise:\n%s", got)
			default:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
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
			wire := number("wire")
			if wire == 0 {
				wire = 21
			}
			in.Kind, in.Chosen = Selected, Chosen{Address: words[1], Sharded: has("sharded"), Wire: int32(wire), RetryableWrites: !has("standalone")}
		case "succeeded":
			in.Kind = Succeeded
		case "waited":
			in.Kind = BackedOff
		case "failed":
			in.Kind = Failed
			in.Failure = Failure{Code: int32(number("code")), BaseBackoff: millis("baseBackoffMS"),
				Message: strings.ReplaceAll(args["message"], "-", " ")}
			for k := Network; k <= Selection; k++ {
				if args["kind"] == strings.ReplaceAll(k.String(), " ", "-") {
					in.Failure.Kind = k
				}
			}
			if args["kind"] == "" {
				in.Failure.Kind = Server
			}
			if l := args["labels"]; l != "" {
				in.Failure.Labels = strings.Split(l, ",")
			}
			in.Failure.Handshake = has("handshake")
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
