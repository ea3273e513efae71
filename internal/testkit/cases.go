package testkit

import (
	"os"
	"strings"
	"testing"
)

// Case is a case of a file of cases.
type Case struct {
	Reason, In, Want string
	before           string // the text of the file between the previous Want and this one
}

// Cases reads a file of cases, which have this form:
//
//	== title of this part
//	# reason of the following cases
//	input -> output
//	input in a line
//		and in more lines, which begin with a tab
//	-> output
func Cases(t testing.TB, file string) (all []Case) {
	t.Helper()
	var c Case
	for i, s := range Stories(t, file) {
		if i > 0 {
			c.before += "\n"
		}
		for line := range strings.Lines(s.Head + s.Text) {
			reason, isReason := strings.CutPrefix(line, "# ")
			if isReason {
				c.Reason = strings.TrimSpace(reason)
			}
			if isReason || strings.HasPrefix(line, "== ") {
				c.before += line
				continue
			}
			in, want, ended := strings.Cut(strings.TrimSuffix(line, "\n"), "-> ")
			c.In = strings.TrimSpace(c.In + " " + strings.TrimSpace(in))
			if !ended {
				c.before += line
				continue
			}
			c.Want, c.before = want, strings.TrimSuffix(c.before+line, want+"\n")
			all = append(all, c)
			c = Case{Reason: c.Reason}
		}
	}
	if c.before != "" || len(all) == 0 {
		t.Fatalf("%s: a case without output: %s", file, c.before)
	}
	return all
}

// PlayCases checks the cases of a file. With UTR_UPDATE=1 it updates their outputs.
func PlayCases(t *testing.T, file string, play func(t *testing.T, in string) string) {
	t.Helper()
	text := ""
	for _, c := range Cases(t, file) {
		got := c.Want
		t.Run(c.Reason, func(t *testing.T) {
			if got = play(t, c.In); got != c.Want && !updates() {
				t.Errorf("%s\n got %s\nwant %s", c.In, got, c.Want)
			}
		})
		text += c.before + got + "\n"
	}
	if updates() && !t.Failed() {
		Check(t, os.WriteFile(file, []byte(text), 0o644))
	}
}
