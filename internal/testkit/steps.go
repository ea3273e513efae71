package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PlaySteps plays the stories of testdata/*.txt, which empty lines part:
//
//	== its title
//	a step, which may go on
//		in lines that begin with a tab
//	each A | B      the story is played with A, and with B, in this place
func PlaySteps(t *testing.T, play func(t *testing.T, title, steps string)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of stories, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		Check(t, err)
		for story := range strings.SplitSeq(string(text), "\n\n") {
			title, steps, _ := strings.Cut(strings.ReplaceAll(strings.TrimPrefix(story, "== "), "\n\t", " "), "\n")
			before, rest, _ := strings.Cut("\n"+steps, "\neach ")
			choices, after, _ := strings.Cut(rest, "\n")
			for choice := range strings.SplitSeq(choices, " | ") {
				t.Run(strings.TrimSpace(title+" "+choice), func(t *testing.T) { play(t, title, before+"\n"+choice+"\n"+after) })
			}
		}
	}
}
