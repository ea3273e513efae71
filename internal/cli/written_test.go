package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/matrix"
	"gopkg.in/yaml.v3"
)

// What workflows, manifests and pages tell people to type is accepted by the
// commands: each line is parsed as they would.
func TestWrittenCommandLines(t *testing.T) {
	const root = "../.."
	lines := map[string]int{}
	check := func(where, script string) {
		for _, line := range commandLines(script) {
			lines[where]++
			if err := accepts(line); err != nil {
				t.Errorf("%s: %s\n  %v", where, line, err)
			}
		}
	}
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(workflows) < 2 {
		t.Fatalf("%v %v", workflows, err)
	}
	for _, name := range workflows {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Name string
			Jobs map[string]struct {
				Steps []struct{ Run, Uses string }
			}
		}
		if err := yaml.Unmarshal(text, &w); err != nil || w.Name == "" || len(w.Jobs) == 0 {
			t.Errorf("%s is no workflow: %v", name, err)
		}
		for job, j := range w.Jobs {
			for i, s := range j.Steps {
				if (s.Run == "") == (s.Uses == "") {
					t.Errorf("%s: step %d of %s does nothing, or two things", name, i+1, job)
				}
				check(filepath.Base(name), s.Run)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "commands.md" {
			continue // usage lines
		}
		for i, block := range strings.Split(string(text), "\n```") {
			if i%2 == 1 {
				check(filepath.Base(name), block)
			}
		}
	}
	for where, least := range map[string]int{"nightly.yml": 5, "nightly.md": 6, "scale.md": 6, "running.md": 10} {
		if lines[where] < least {
			t.Errorf("%s: only %d command lines were found: the check does not see them", where, lines[where])
		}
	}
}

// program finds a command line of utr behind what may stand before it: a
// prompt, other commands, variables.
var program = regexp.MustCompile(`(?:^|[ \t;&|("'])(?:go run \./cmd/|exec )?utr ([a-z]+(?: .*)?)$`)

// commandLines finds the command lines of utr in a script.
func commandLines(script string) (found []string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	for line := range strings.SplitSeq(script, "\n") {
		if m := program.FindStringSubmatch(line); m != nil && find(strings.Fields(m[1])[0]) != nil {
			found = append(found, m[1])
		}
	}
	return found
}

// accepts parses a command line as the command does, and does nothing.
func accepts(line string) error {
	args, err := words(line)
	if err != nil {
		return err
	}
	f := newFlags()
	find(args[0]).declare(f)
	_, err = f.parse(args[1:])
	return err
}

// Expressions of workflows and shells, each of which stands for a word or a part of one.
var expression = regexp.MustCompile(`\$\{\{[^}]*\}\}|\$\(\([^)]*\)\)|\$\([^)]*\)|\$\{[^}]*\}|\$[A-Za-z_]+`)

// words splits a command line as a shell does, up to what is no part of it.
func words(line string) (out []string, err error) {
	line = expression.ReplaceAllStringFunc(line, func(e string) string {
		if strings.Contains(e, "known-failing") {
			return "" // which has its own blanks, or is not there
		}
		return "1"
	})
	word, has, quote := "", false, rune(0)
	end := func() {
		if has {
			out = append(out, word)
		}
		word, has = "", false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, has = c, true
		case c == ' ' || c == '\t':
			end()
		case strings.ContainsRune("|;&<>()", c) || c == '#' && !has:
			end()
			return out, nil
		default:
			word, has = word+string(c), true
		}
	}
	if end(); quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	return out, nil
}

// A wrong flag is noticed wherever it stands.
func TestWrittenCommandLinesCanBeWrong(t *testing.T) {
	for _, r := range []struct {
		reason, script string
		lines          int
		ok             bool
	}{
		{"a good one", "$ utr run --jobs 2 smoke   # a comment --nonsense", 1, true},
		{"a flag that there is not", "utr run --jbos 2 smoke", 1, false},
		{"a value that it cannot have", "utr matrix m.yml --jobs none", 1, false},
		{"on a second line", "utr run \\\n  --nonsense smoke", 1, false},
		{"behind another command", "mkdir x && utr merge --nonsense a.json", 1, false},
		{"before another one", "utr merge a.json --json b.json > out --nonsense", 1, true},
		{"with expressions", `utr matrix n.yml --shard "$((JOB_COMPLETION_INDEX + 1))/8" --json part-${{ matrix.part }}.json`, 1, true},
		{"a quote that is open", "utr run 'smoke", 1, false},
		{"prose", "utr runs suites", 0, true},
	} {
		lines := commandLines(r.script)
		var err error
		for _, l := range lines {
			err = errors.Join(err, accepts(l))
		}
		if len(lines) != r.lines || (err == nil) != r.ok {
			t.Errorf("%s: %q %v", r.reason, lines, err)
		}
	}
}

// The matrix files of the page can be read: one begins with clusters, and what
// begins otherwise is a part of one.
func TestMatrixFilesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/nightly.md")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for i, block := range strings.Split(string(page), "\n```") {
		text, isYAML := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !isYAML {
			continue
		}
		files++
		if !strings.HasPrefix(text, "clusters:") {
			text += "\nclusters: [{name: replicaset-8.0, embedded: replicaset}]\nsuites: [smoke]\n"
		}
		if _, err := matrix.Parse("nightly.md", []byte(text), matrix.Options{Getenv: func(string) string { return "mongodb://h/" }}); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if files < 4 {
		t.Errorf("only %d files were found: the check does not see them", files)
	}
}

// Files that pages and workflows name are there.
func TestNightlyIsThere(t *testing.T) {
	b := newBench()
	b.Program.Engines["driver"] = b.Program.Engines["reference"]
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if code := b.Main(t.Context(), []string{"matrix", "nightly.yml", "--dry-run", "-v"}); code != 0 {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
	if _, err := os.Stat("known-failing/driver.txt"); errors.Is(err, fs.ErrNotExist) || !slices.Contains(strings.Fields(b.out.String()), "known-failing/driver.txt") {
		t.Errorf("the driver's known failures are not used: %v", err)
	}
}
