package testkit

import (
	"strings"
	"testing"
)

// Transcript plays the scenes in a file in order. Empty lines separate the scenes. A scene has comments with its
// reason, lines of input that begin with ">", and the output without empty lines. In outputs, … matches any text.
// UTR_UPDATE=1 updates the outputs that differ.
func Transcript(t *testing.T, path string, play func(t *testing.T, input string) (output string)) {
	t.Helper()
	playInOrder(t, path, func(t *testing.T, scene Story) (text string) {
		lines, want := scene.parts()
		if lines == nil { // a comment
			return scene.Text
		}
		output := Dense(play(t, strings.Join(lines, "\n")))
		if Agrees(output, want) {
			output = want
		}
		for _, line := range lines {
			text += strings.TrimSpace("> "+line) + "\n"
		}
		return strings.TrimSpace(text+output) + "\n"
	})
}

func (s Story) parts() (input []string, output string) {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(s.Text, "\n"), "\n") {
		if command, ok := strings.CutPrefix(line, ">"); ok && out == nil {
			input = append(input, strings.TrimPrefix(command, " "))
		} else {
			out = append(out, line)
		}
	}
	return input, strings.Join(out, "\n")
}

// Dense removes empty lines and trailing spaces.
func Dense(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRight(line, " \r"); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Agrees reports whether an output matches the expected one. In the expected output, … matches any text.
func Agrees(output, wanted string) bool {
	parts := strings.Split(wanted, "…")
	if len(parts) == 1 {
		return output == wanted
	}
	for i, part := range parts {
		_, rest, found := strings.Cut(output, strings.TrimSpace(part))
		if !found || i == 0 && !strings.HasPrefix(output, strings.TrimSpace(part)) {
			return false
		}
		output = rest
	}
	return true
}

// Commands contains the commands of a transcript. Each line of input is a command with arguments, separated by "|", and
// has one output.
type Commands map[string]func(t *testing.T, args []string) (string, error)

// Play checks a transcript. SECRET in the input stands for Secret. No output may contain it.
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
			Contains(t, output)
			out = append(out, output)
		}
		return strings.Join(out, "\n")
	})
}
