package testkit

import (
	"strings"
	"testing"
)

// Commands are the commands of a transcript. Each line of input is a command with its arguments, which "|" separates,
// and has one output.
type Commands map[string]func(t *testing.T, args []string) (string, error)

// Play checks a transcript. SECRET in the input stands for Secret, which no output may contain.
func (c Commands) Play(t *testing.T, path string) {
	t.Helper()
	Transcript(t, path, func(t *testing.T, input string) string {
		var out []string
		for line := range strings.SplitSeq(strings.ReplaceAll(input, "SECRET", Secret), "\n") {
			name, rest, _ := strings.Cut(line, " ")
			if c[name] == nil {
				t.Fatalf("%q is not a command", name)
			}
			args := strings.Split(rest, "|")
			for i, arg := range args {
				args[i] = strings.TrimSpace(arg)
			}
			output, err := c[name](t, args)
			if err != nil {
				output = strings.TrimSpace(output + " error: " + err.Error())
			}
			Says(t, output)
			out = append(out, output)
		}
		return strings.Join(out, "\n")
	})
}
