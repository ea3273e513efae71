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
		testkit.Equal(t, c.name+" has a summary without a full stop", c.summary != "" && !strings.HasSuffix(c.summary, "."), true)
		f := newFlags()
		c.declare(f)
		var explained, exist []string
		for _, r := range f.declared {
			testkit.Equal(t, c.name+" "+r.name+": no summary", r.summary == "", false)
			explained = append(explained, r.name)
		}
		f.set.VisitAll(func(g *flag.Flag) { exist = append(exist, g.Name) })
		slices.Sort(explained)
		testkit.Equal(t, "the flags of "+c.name, explained, exist)
		for _, e := range c.examples {
			if line, is := strings.CutPrefix(e.line, "utr "); is {
				testkit.Equal(t, e.line, accepts(line), nil)
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
				switch {
				case shell == "fish" && len(r.name) == 1:
					spelled = "-s " + r.name
				case shell == "fish":
					spelled = "-l " + r.name
				}
				testkit.Equal(t, shell+": utr "+c.name+" has "+spelled, strings.Contains(script, spelled), true)
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
	ask := exec.Command("bash", "-c", bashCompletion()+"\nCOMP_WORDS=(utr run --topology ''); COMP_CWORD=3; _utr; printf '%s ' \"${COMPREPLY[@]}\"")
	out, err := ask.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		testkit.Lacking(t, "bash", err)
	}
	testkit.Equal(t, "words after --topology", string(out), "auto all single replicaset sharded load-balanced ")
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"jbos": "jobs", "topolgy": "topology", "skipp": "skip", "Jobs": "jobs", "run": "run", // typing errors
		"j": "jobs", "s": "", // the beginning of one, and of two
		"colour": "", "x": "", "": "",
	} {
		testkit.Equal(t, word, nearest(word, []string{"jobs", "topology", "skip", "shuffle", "run"}), want)
	}
}

// The command lines of workflows and pages are accepted by the commands that they
// name, and so are the matrix files of the page about nights.
func TestWrittenCommandLines(t *testing.T) {
	lines := map[string]int{}
	for _, pattern := range []string{".github/workflows/*.yml", "docs/*.md", "README.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		testkit.Check(t, err)
		for _, file := range files {
			name := filepath.Base(file)
			for i, block := range strings.Split(read(t, file), "\n```") {
				text, isYAML := strings.CutPrefix(block, "yaml\n")
				if name == "commands.md" || filepath.Ext(name) == ".md" && (i%2 == 0 || isYAML && name != "nightly.md") {
					continue // usage lines, or not a script
				}
				for _, line := range commandLines(block) {
					lines[name]++
					testkit.Equal(t, name+": "+line, accepts(line), nil)
				}
				if isYAML { // a matrix file, or the rest of one
					lines["matrix files"]++
					if !strings.HasPrefix(text, "clusters:") {
						text += "\nclusters: [{name: replicaset-8.0, embedded: replicaset}]\nsuites: [smoke]\n"
					}
					_, err := matrix.Parse(name, []byte(text), matrix.Options{Getenv: func(string) string { return "mongodb://h/" }})
					testkit.Equal(t, text, err, nil)
				}
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

// The project's own matrix is accepted, with the driver's known failures.
func TestNightly(t *testing.T) {
	root, b := testkit.Root(t), newBench(t)
	t.Chdir(root)
	b.expect(t, "nightly.yml", "matrix nightly.yml --dry-run -v", 0, "known-failing/driver.txt")
}
