package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// Placeholders of flags that accept more than a list of words.
var anything = strings.Fields("N S I/N MS NUMBER PERCENT DURATION SEED bool REGEXP NAME=VALUE DOCUMENT URL URI ADDRESS " +
	"PATH FILE DIR DIR|PATH FILE|DIR")

// Flags whose placeholder could be a list of words.
var names = map[string]string{
	"cell":                  "a cell of any matrix",
	"lock-name":             "a person or a job",
	"user":                  "a new user",
	"orchestration-version": "a release that only the service knows",
	"wire":                  "a number",
}

// late are flags whose values are checked when the command line or the suites have been read: one of the values, and
// the arguments of a command line for that check.
var late = map[string]struct{ word, args string }{
	"engine":       {"driver", "--engine reference smoke"}, // --engines names more
	"operation":    {"collection.find", "retryable-reads"},
	"fail-command": {"find", "retryable-reads"},
	"label":        {"RetryableWriteError", "retryable-writes"},
	"event":        {"commandStartedEvent", "retryable-reads"},
	"operator":     {"$$exists", "retryable-reads"},
}

// Each flag whose value is one of a list of words suggests the word that a misspelled value most likely means.
func TestFlagsSuggestValues(t *testing.T) {
	tested, b := map[string]bool{}, newBench(t)
	for all := Root().Commands(); len(all) > 0; all = append(all[1:], all[0].Commands()...) {
		command := all[0]
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || slices.Contains(anything, f.Value.Type()) || names[f.Name] != "" {
				return
			}
			words, try := []string(nil), func(word string) string { return errorOf(f.Value.Set(word)) }
			if one, isLate := late[f.Name]; isLate && try("?") == "" {
				words, try = []string{one.word}, func(word string) string { return b.run(command, one.args, f, word) }
			} else {
				words = wordsOf(command, f)
			}
			name, found := command.CommandPath()+" --"+f.Name, false
			for _, word := range words {
				misspelled := word + word[len(word)-1:]
				if suggest.Word(misspelled, words) != word {
					continue // it could be another one
				}
				found, tested[f.Name] = true, true
				if got := try(misspelled); !strings.Contains(got, "did you mean "+word+"?") {
					t.Errorf("%s %s does not suggest %s, but says: %q", name, misspelled, word, got)
				}
			}
			if !found {
				t.Errorf("%s %s has no list of words: pass it to set, or add the placeholder or the flag above", name, f.Value.Type())
			}
		})
	}
	for _, name := range strings.Fields("topology server-version engine policy cluster disable format operation try fault label") {
		testkit.Equal(t, "--"+name+" was tested", tested[name], true)
	}
}

// wordsOf returns the words that shells complete. A colon is for more after it.
func wordsOf(command *cobra.Command, f *pflag.Flag) (words []string) {
	if complete, found := command.GetFlagCompletionFunc(f.Name); found {
		words, _ = complete(command, nil, "")
	}
	return slices.DeleteFunc(words, func(word string) bool { return strings.HasSuffix(word, ":") })
}

func errorOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// run runs a command with a flag, and returns what it prints on standard error.
func (b *bench) run(command *cobra.Command, args string, f *pflag.Flag, value string) string {
	b.err.Reset()
	line := append(strings.Fields(command.CommandPath())[1:], strings.Fields(args)...)
	b.Main(b.ctx, append(line, "--"+f.Name, value))
	return b.err.String()
}
