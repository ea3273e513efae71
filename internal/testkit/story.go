package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Story is a paragraph of a file in testdata.
type Story struct {
	File  string // without folder and extension
	Title string // the text of Head
	Head  string // the first lines: they begin with "#"
	Text  string // the other lines
}

// Golden compares a text with a file. With UTR_UPDATE=1 it updates the file.
func Golden(t testing.TB, file, got string) {
	t.Helper()
	if updates() {
		Check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	Same(t, file, strings.Split(got, "\n"), strings.Split(Read(t, file), "\n"))
}

// Stories reads the stories in all files that match a pattern. All formats of test data are based on it.
func Stories(t testing.TB, pattern string) (out []Story) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s: %v", pattern, err)
	}
	for _, file := range files {
		for part := range strings.SplitSeq(strings.Trim(Read(t, file), "\n"), "\n\n") {
			s := Story{File: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
			for line := range strings.Lines(part + "\n") {
				if s.Text == "" && strings.HasPrefix(line, "#") {
					s.Head += line
				} else {
					s.Text += line
				}
			}
			s.Title = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(s.Head), "# "), "\n# ", " ")
			out = append(out, s)
		}
	}
	return out
}

// compare fails the test if got is not the text of the story.
func (s Story) compare(t testing.TB, got string) {
	t.Helper()
	if got != s.Text {
		t.Errorf("%s: %q\ngot\n%s\nwant\n%s", s.File, s.Title, got, s.Text)
	}
}

// PlayStories plays stories concurrently and expects play to return the text of each. With
// UTR_UPDATE=1 it updates the files. A story without text is a comment.
func PlayStories(t *testing.T, pattern string, play func(*testing.T, Story) string) {
	t.Helper()
	playInOrder(t, pattern, func(t *testing.T, s Story) string {
		t.Parallel()
		s.mustHaveTitle(t)
		return play(t, s)
	})
}

func (s Story) mustHaveTitle(t testing.TB) {
	t.Helper()
	if s.Title == "" {
		t.Errorf("%s: a story without a title", s.File)
	}
}

func playInOrder(t *testing.T, pattern string, play func(*testing.T, Story) string) {
	t.Helper()
	all := Stories(t, pattern)
	t.Run("stories", func(t *testing.T) {
		for i, s := range all {
			if s.Text == "" {
				continue
			}
			t.Run(s.File+"/"+s.Title, func(t *testing.T) {
				if all[i].Text = play(t, s); !updates() {
					s.compare(t, all[i].Text)
				}
			})
		}
	})
	if !updates() || t.Failed() {
		return
	}
	files := map[string]string{}
	for _, s := range all {
		files[s.File] += "\n" + s.Head + s.Text
	}
	for file, text := range files {
		Check(t, os.WriteFile(filepath.Join(filepath.Dir(pattern), file+filepath.Ext(pattern)), []byte(text[1:]), 0o644))
	}
}

func updates() bool { return os.Getenv("UTR_UPDATE") != "" }

// PlaySteps plays the stories in testdata/*.txt. They are separated by empty lines:
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

// Case is a case of a file of cases.
type Case struct {
	Reason, In, Want string
	before           string // the text of the file between the previous Want and this one
}

// Cases reads a file of cases in this form:
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
