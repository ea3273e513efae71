package testkit

import (
	"strings"
	"testing"
)

// Transcript plays the scenes of a file of testdata, which empty lines separate.
// A scene has comments that give its reason, lines of input, which begin with
// ">", and the output, of which empty lines are left out. In an output … stands
// for anything. UTR_UPDATE=1 writes the outputs anew, except those with ….
func Transcript(t *testing.T, path string, play func(t *testing.T, input string) (output string)) {
	t.Helper()
	scenes, played := Stories(t, path), 0
	for i := range scenes {
		scene := &scenes[i]
		lines, want := scene.parts()
		if lines == nil { // a headline
			continue
		}
		played++
		input := strings.Join(lines, "\n")
		t.Run(scene.Title, func(t *testing.T) {
			output := dense(play(t, input))
			if updates() && !strings.Contains(want, "…") {
				want = output
			}
			if !agrees(output, want) {
				t.Errorf("%s\ngives\n%s\nwant\n%s", input, output, want)
			}
			asked := ""
			for _, line := range lines {
				asked += strings.TrimSpace("> "+line) + "\n"
			}
			scene.Text = strings.TrimSpace(asked+want) + "\n"
		})
	}
	if played == 0 {
		t.Errorf("%s has no scene", path)
	}
	if updates() {
		write(t, path, scenes)
	}
}

func (s Story) parts() (input []string, output string) {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(s.Text, "\n"), "\n") {
		if given, is := strings.CutPrefix(line, ">"); is && out == nil {
			input = append(input, strings.TrimPrefix(given, " "))
		} else {
			out = append(out, line)
		}
	}
	return input, strings.Join(out, "\n")
}

// dense leaves out empty lines, and blanks at the end of others.
func dense(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRight(line, " \r"); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// agrees reports whether an output is as wanted, where … stands for anything.
func agrees(output, wanted string) bool {
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
