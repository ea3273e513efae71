package testkit

import (
	"os"
	"strings"
	"testing"
)

// Transcript plays the scenes of a file of testdata, which empty lines separate.
// A scene has comments that give its reason, lines of input, which begin with
// ">", and the output, of which empty lines are left out. In an output … stands
// for anything. UTR_UPDATE=1 writes the outputs anew, except those with ….
func Transcript(t *testing.T, path string, play func(t *testing.T, input string) (output string)) {
	t.Helper()
	text, err := os.ReadFile(path)
	Check(t, err)
	var scenes []string
	played := 0
	for scene := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		var reason, input, want []string
		for line := range strings.SplitSeq(scene, "\n") {
			in, is := strings.CutPrefix(line, ">")
			switch {
			case is && want == nil:
				input = append(input, strings.TrimPrefix(in, " "))
			case strings.HasPrefix(line, "#") && input == nil:
				reason = append(reason, line)
			default:
				want = append(want, line)
			}
		}
		at := len(scenes)
		if scenes = append(scenes, scene); input == nil { // a headline
			continue
		}
		played++
		t.Run(strings.Trim(strings.Join(reason, " "), "# "), func(t *testing.T) {
			output, wanted := dense(play(t, strings.Join(input, "\n"))), strings.Join(want, "\n")
			if os.Getenv("UTR_UPDATE") == "1" && !strings.Contains(wanted, "…") {
				wanted = output
			}
			if !agrees(output, wanted) {
				t.Errorf("%s\ngives\n%s\nwant\n%s", strings.Join(input, "\n"), output, wanted)
			}
			head := reason
			for _, line := range input {
				head = append(head, strings.TrimSpace("> "+line))
			}
			scenes[at] = strings.TrimSpace(strings.Join(head, "\n") + "\n" + wanted)
		})
	}
	if played == 0 {
		t.Errorf("%s has no scene", path)
	}
	if os.Getenv("UTR_UPDATE") == "1" {
		Check(t, os.WriteFile(path, []byte(strings.Join(scenes, "\n\n")+"\n"), 0o644))
	}
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
