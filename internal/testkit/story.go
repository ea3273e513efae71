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
	Head  string // the first lines, which begin with "#"
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

// Stories reads the stories in all files that match a pattern. All formats of test
// data are based on it.
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

// Goes fails the test if the story has another text, or no title.
func (s Story) Goes(t testing.TB, got string) {
	t.Helper()
	if s.Title == "" || got != s.Text {
		t.Errorf("%s: %q\ngot\n%s\nwant\n%s", s.File, s.Title, got, s.Text)
	}
}

// Retell plays stories concurrently and expects play to return the text of each. With
// UTR_UPDATE=1 it updates the files. A story without text is a comment.
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
