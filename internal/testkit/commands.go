package testkit

import (
	"strings"
	"testing"
)

// Commands are those of a transcript whose lines of input each give one output, in the same order. A command gets what
// follows its name, cut at each "|".
type Commands map[string]func(t *testing.T, about []string) (string, error)

// Play plays a transcript. SECRET stands for Secret, which no output may hold.
func (c Commands) Play(t *testing.T, path string) {
	t.Helper()
	Transcript(t, path, func(t *testing.T, input string) string {
		var out []string
		for line := range strings.SplitSeq(strings.ReplaceAll(input, "SECRET", Secret), "\n") {
			name, rest, _ := strings.Cut(line, " ")
			if c[name] == nil {
				t.Fatalf("%q is not a command", name)
			}
			about := strings.Split(rest, "|")
			for i, part := range about {
				about[i] = strings.TrimSpace(part)
			}
			said, err := c[name](t, about)
			if err != nil {
				said = strings.TrimSpace(said + " error: " + err.Error())
			}
			Says(t, said)
			out = append(out, said)
		}
		return strings.Join(out, "\n")
	})
}
