package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Story is one of the stories in a file of testdata. An empty line ends it.
type Story struct {
	File  string // without folder and extension
	Title string // of the lines that begin with "#"
	Head  string // these lines
	Text  string // the lines below them
}

// Golden compares a text with that of a file. With UTR_UPDATE=1 it writes the
// file anew.
func Golden(t testing.TB, file, got string) {
	t.Helper()
	if updates() {
		Check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	Check(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// Stories reads the stories of all files that a pattern matches. All formats of
// test data are read through it.
func Stories(t testing.TB, pattern string) (out []Story) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s: %v", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		Check(t, err)
		for part := range strings.SplitSeq(strings.Trim(string(text), "\n"), "\n\n") {
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

// Goes reports that a story went otherwise than it is written.
func (s Story) Goes(t testing.TB, told string) {
	t.Helper()
	if s.Title == "" || told != s.Text {
		t.Errorf("%s: %q goes otherwise:\n%s\nit should go:\n%s", s.File, s.Title, told, s.Text)
	}
}

// Retell plays stories at the same time, and expects each play to give the text of its
// story. With UTR_UPDATE=1 it writes the files anew. A story without a text is
// a comment on those that follow.
func Retell(t *testing.T, pattern string, play func(*testing.T, Story) string) {
	t.Helper()
	all := Stories(t, pattern)
	t.Run("stories", func(t *testing.T) {
		for i, s := range all {
			if s.Text == "" {
				continue
			}
			t.Run(s.File+"/"+s.Title, func(t *testing.T) {
				t.Parallel()
				if all[i].Text = play(t, s); !updates() {
					s.Goes(t, all[i].Text)
				}
			})
		}
	})
	if updates() && !t.Failed() {
		write(t, pattern, all)
	}
}

func updates() bool { return os.Getenv("UTR_UPDATE") != "" }

func write(t testing.TB, pattern string, all []Story) {
	t.Helper()
	files := map[string]string{}
	for _, s := range all {
		files[s.File] += "\n" + s.Head + s.Text
	}
	for file, text := range files {
		Check(t, os.WriteFile(filepath.Join(filepath.Dir(pattern), file+filepath.Ext(pattern)), []byte(text[1:]), 0o644))
	}
}
