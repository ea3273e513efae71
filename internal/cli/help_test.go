package cli

import (
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/embedded/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/matrix"
	"gopkg.in/yaml.v3"
)

// docs/commands.md, which make generate writes, is up to date.
func TestCommandsPage(t *testing.T) {
	if diff := cmp.Diff(read(t, filepath.Join("..", "..", "docs", "commands.md")), Markdown()); diff != "" {
		t.Errorf("docs/commands.md is stale: make generate (-page +table)\n%s", diff)
	}
}

// Every command and flag is explained, and every example can be parsed.
func TestEveryCommandAndFlagIsExplained(t *testing.T) {
	for _, c := range commands() {
		if c.summary == "" || strings.HasSuffix(c.summary, ".") {
			t.Errorf("summary of %s: %q", c.name, c.summary)
		}
		f := newFlags()
		c.declare(f)
		explained := map[string]bool{}
		for _, r := range f.declared {
			explained[r.name] = r.summary != ""
		}
		f.set.VisitAll(func(g *flag.Flag) {
			if !explained[g.Name] {
				t.Errorf("utr %s --%s has no summary", c.name, g.Name)
			}
			delete(explained, g.Name)
		})
		if len(explained) > 0 {
			t.Errorf("utr %s: %v are explained and do not exist", c.name, explained)
		}
		for _, e := range c.examples {
			if line, is := strings.CutPrefix(e.line, "utr "); is {
				if err := accepts(line); err != nil {
					t.Errorf("%s: %v", e.line, err)
				}
			}
		}
	}
}

// The completion scripts name every command and flag, and shells can read
// them.
func TestCompletion(t *testing.T) {
	for shell, script := range map[string]string{"bash": bashCompletion(), "zsh": zshCompletion(), "fish": fishCompletion()} {
		for _, c := range commands() {
			for _, r := range c.rows() {
				spelled := r.long()
				if shell == "fish" {
					spelled = "-l " + r.name
					if len(r.name) == 1 {
						spelled = "-s " + r.name
					}
				}
				if !strings.Contains(script, spelled) {
					t.Errorf("%s: utr %s %s is missing", shell, c.name, spelled)
				}
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its script is not read", shell)
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s cannot read its script: %v\n%s", shell, err, out)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		testkit.Lacking(t, "bash", err)
	}
	ask := exec.Command(bash, "-c", bashCompletion()+"\nCOMP_WORDS=(utr run --topology ''); COMP_CWORD=3; _utr; printf '%s ' \"${COMPREPLY[@]}\"")
	out, err := ask.CombinedOutput()
	if string(out) != "auto all single replicaset sharded load-balanced " || err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestNearest(t *testing.T) {
	for _, r := range []struct{ reason, word, want string }{
		{"two letters swapped", "jbos", "jobs"},
		{"a missing letter", "topolgy", "topology"},
		{"an extra letter", "skipp", "skip"},
		{"the beginning", "j", "jobs"},
		{"the beginning of two words", "s", ""},
		{"another case", "Jobs", "jobs"},
		{"nothing similar", "colour", ""},
		{"a letter with which none begins", "x", ""},
		{"nothing at all", "", ""},
		{"the word itself", "run", "run"},
	} {
		if got := nearest(r.word, []string{"jobs", "topology", "skip", "shuffle", "run"}); got != r.want {
			t.Errorf("%s: %q is taken for %q, want %q", r.reason, r.word, got, r.want)
		}
	}
}

// The command lines of workflows, manifests and pages are accepted by the
// commands that they name.
func TestWrittenCommandLines(t *testing.T) {
	const root = "../.."
	lines := map[string]int{}
	check := func(where, script string) {
		for _, line := range commandLines(script) {
			lines[filepath.Base(where)]++
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
		var w struct {
			Name string
			Jobs map[string]struct {
				Steps []struct{ Run, Uses string }
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, name)), &w); err != nil || w.Name == "" || len(w.Jobs) == 0 {
			t.Errorf("%s is not a workflow: %v", name, err)
		}
		for job, j := range w.Jobs {
			for i, s := range j.Steps {
				if (s.Run == "") == (s.Uses == "") {
					t.Errorf("%s: step %d of %s does nothing, or two things", name, i+1, job)
				}
				check(name, s.Run)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, filepath.Join(root, "README.md")) {
		if filepath.Base(name) == "commands.md" {
			continue // usage lines
		}
		for i, block := range strings.Split(read(t, name), "\n```") {
			text, isYAML := strings.CutPrefix(block, "yaml\n")
			if i%2 == 0 || isYAML && filepath.Base(name) != "nightly.md" {
				continue
			}
			if check(name, block); !isYAML {
				continue
			}
			// A matrix file, or the rest of one.
			lines["matrix files"]++
			if !strings.HasPrefix(text, "clusters:") {
				text += "\nclusters: [{name: replicaset-8.0, embedded: replicaset}]\nsuites: [smoke]\n"
			}
			if _, err := matrix.Parse(name, []byte(text), matrix.Options{Getenv: func(string) string { return "mongodb://h/" }}); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	}
	for where, least := range map[string]int{"nightly.yml": 5, "nightly.md": 6, "scale.md": 6, "running.md": 10, "matrix files": 4} {
		if lines[where] < least {
			t.Errorf("%s: the check saw only %d command lines", where, lines[where])
		}
	}
}

// program finds a command line of utr behind a prompt, other commands or
// variables.
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

// Expressions of workflows and shells stand for a word or a part of one; the
// list of known failures has its own blanks, or is empty.
var (
	expression = regexp.MustCompile(`\$\{\{[^}]*\}\}|\$\(\([^)]*\)\)|\$\([^)]*\)|\$\{[^}]*\}|\$[A-Za-z_]+`)
	optional   = regexp.MustCompile(`\$\{\{[^}]*known-failing[^}]*\}\}|\$\([^)]*known-failing[^)]*\)|\$\{[^}]*known-failing[^}]*\}`)
)

// accepts parses a command line as its command does.
func accepts(line string) error {
	args, err := split(expression.ReplaceAllString(optional.ReplaceAllString(line, ""), "1"))
	if err != nil {
		return err
	}
	f := newFlags()
	c := find(args[0])
	c.declare(f)
	if c.verbatim {
		_, err = process.Parse(c.name == "mongos", args[1:], "")
	} else {
		_, err = f.parse(args[1:])
	}
	return err
}

// The check of written command lines notices mistakes.
func TestWrittenCommandLinesCanBeWrong(t *testing.T) {
	for _, r := range []struct {
		reason, script string
		lines          int
		ok             bool
	}{
		{"a good one", "$ utr run --jobs 2 smoke   # a comment --nonsense", 1, true},
		{"an unknown flag", "utr run --jbos 2 smoke", 1, false},
		{"a bad value", "utr matrix m.yml --jobs none", 1, false},
		{"a mistake in a second line", "utr run \\\n  --nonsense smoke", 1, false},
		{"a mistake after another command", "mkdir x && utr merge --nonsense a.json", 1, false},
		{"a mistake of another command", "utr merge a.json --json b.json > out --nonsense", 1, true},
		{"expressions", `utr matrix n.yml --shard "$((JOB_COMPLETION_INDEX + 1))/8" --json part-${{ matrix.part }}.json`, 1, true},
		{"an open quote", "utr run 'smoke", 1, false},
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

// The project's own matrix is accepted, with the driver's known failures.
func TestNightly(t *testing.T) {
	root := testkit.Root(t)
	b := newBench(t)
	t.Chdir(root)
	b.expect(t, "nightly.yml", "matrix nightly.yml --dry-run -v", 0, "")
	if !slices.Contains(strings.Fields(b.out.String()), "known-failing/driver.txt") {
		t.Errorf("the driver's known failures are not used:\n%s", b.out.String())
	}
}
