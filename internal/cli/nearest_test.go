package cli

import (
	"testing"

	"github.com/unified-test-runner/utr/result"
)

func TestNearest(t *testing.T) {
	for _, r := range []struct{ reason, word, want string }{
		{"two letters swapped", "jbos", "jobs"},
		{"a letter left out", "topolgy", "topology"},
		{"a letter too many", "skipp", "skip"},
		{"the beginning", "j", "jobs"},
		{"a beginning of two", "s", ""},
		{"another case", "Jobs", "jobs"},
		{"nothing like it", "colour", ""},
		{"a letter alone that none begins with", "x", ""},
		{"nothing at all", "", ""},
		{"the word itself", "run", "run"},
	} {
		if got := nearest(r.word, []string{"jobs", "topology", "skip", "shuffle", "run"}); got != r.want {
			t.Errorf("%s: %q is taken for %q, want %q", r.reason, r.word, got, r.want)
		}
	}
}

// What a shell makes of the printed command finds the test, whatever its
// description holds, and nothing of it steers a terminal.
func TestRerunQuotes(t *testing.T) {
	for _, r := range []struct{ reason, description, want string }{
		{"signs of regular expressions", `(a|b)* \d [x] $y`, `\(a\|b\)\* \\d \[x\] \$y`},
		{"other scripts", "ünï ☃", "ünï ☃"},
		{"a new line, a tab and an escape", "a\nb\tc\x1b[31m", `a\x{a}b\x{9}c\x{1b}\[31m`},
		{"a sign that stands for what is no text", "\uFFFD", `\x{fffd}`},
		{"a space that looks like another", "a\u00a0b\u2028c", "a\u00a0b" + `\x{2028}c`},
	} {
		if got := quotePattern(r.description); got != r.want {
			t.Errorf("%s: %s, want %s", r.reason, got, r.want)
		}
		f := newFlags()
		p := f.patterns("run", "")
		if _, err := f.parse([]string{"--run", "^" + quotePattern(r.description) + "$"}); err != nil || !(*p)[0].MatchString(r.description) {
			t.Errorf("%s: %v does not find the test (%v)", r.reason, (*p), err)
		}
	}
	for _, r := range []struct{ reason, file, want string }{
		{"a file that looks like a flag", "-v.yml", "-v.yml"},
		{"standard input", stdinName, "-"},
	} {
		f := newFlags()
		run := declareRun(f)
		again := run.rerun(&call{program: &Program{}})(result.TestID{File: r.file, Description: "x"})
		paths, err := newFlagsOf("run").parse(again[2:])
		if err != nil || len(paths) != 1 || paths[0] != r.want {
			t.Errorf("%s: %q reads back as %q, %v", r.reason, again, paths, err)
		}
	}
}

func newFlagsOf(name string) *flags {
	f := newFlags()
	find(name).declare(f)
	return f
}
