package testkit

import (
	"strings"
	"testing"
)

// PlaySteps plays the stories in testdata/*.txt, which empty lines separate:
//
//	== title
//	a step, which can continue
//		in lines that begin with a tab
//	each A | B      plays the story once with step A here and once with step B
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
