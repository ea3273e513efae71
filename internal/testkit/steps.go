package testkit

import (
	"strings"
	"testing"
)

// PlaySteps plays the stories of testdata/*.txt, which empty lines separate:
//
//	== its title
//	a step, which may go on
//		in lines that begin with a tab
//	each A | B      the story is played with A, and with B, in this place
func PlaySteps(t *testing.T, play func(t *testing.T, title, steps string)) {
	t.Helper()
	for _, s := range Stories(t, "testdata/*.txt") {
		title, steps, _ := strings.Cut(strings.ReplaceAll(strings.TrimPrefix(s.Head+s.Text, "== "), "\n\t", " "), "\n")
		before, rest, _ := strings.Cut("\n"+strings.TrimSuffix(steps, "\n"), "\neach ")
		choices, after, _ := strings.Cut(rest, "\n")
		for choice := range strings.SplitSeq(choices, " | ") {
			t.Run(strings.TrimSpace(title+" "+choice), func(t *testing.T) { play(t, title, before+"\n"+choice+"\n"+after) })
		}
	}
}
