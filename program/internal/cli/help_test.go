package cli

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/unified-test-runner/utr/internal/process/official"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
)

// Every command and flag has a summary. Every example can be parsed, and help shows it in 100 columns. The help of a
// command with many flags begins with no more than ten of them.
func TestEveryCommandAndFlagHasASummary(t *testing.T) {
	const many, margin = 28, 2
	for all := Root().Commands(); len(all) > 0; all = all[1:] {
		c := all[0]
		all = append(all, c.Commands()...)
		testkit.Equal(t, c.Name()+" has a summary without a full stop", c.Short != "" &&
			!strings.HasSuffix(c.Short, "."), true)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			testkit.Equal(t, c.Name()+" "+f.Name+" has a summary without a full stop", f.Usage != "" &&
				!strings.HasSuffix(f.Usage, "."), true)
		})
		for line := range strings.SplitSeq(c.Example, "\n") {
			testkit.Equal(t, line+" fits in 100 columns", len(line)+margin <= 100, true)
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(c.Example, "\\\n", ""), "\n") {
			if line, is := strings.CutPrefix(line, "utr "); is {
				testkit.Equal(t, line, accepts(line), nil)
			}
		}
		flags, lead := 0, len(strings.Fields(c.Annotations[usedMost]))
		c.Flags().VisitAll(func(*pflag.Flag) { flags++ })
		testkit.Equal(t, c.Name()+" begins with a few of its flags", lead > 0 && lead <= 10, flags > many)
	}
}

// Shells can read the completion scripts.
func TestCompletionScripts(t *testing.T) {
	b := newBench(t)
	for shell, flag := range map[string]string{"bash": "-n", "zsh": "-n", "fish": "-n", "powershell": ""} {
		b.expect(t, shell, "completion "+shell, 0, "__complete")
		path, err := exec.LookPath(shell)
		if err != nil || flag == "" {
			t.Logf("%s is not installed: its script is not read", shell)
			continue
		}
		check := exec.Command(path, flag)
		check.Stdin = strings.NewReader(b.out.String())
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s cannot read its script: %v\n%s", shell, err, out)
		}
	}
}

// The tables of conflicts name existing flags.
func TestConflicts(t *testing.T) {
	known := map[string]bool{}
	for all := Root().Commands(); len(all) > 0; {
		c := all[0]
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		all = append(all[1:], c.Commands()...)
	}
	names := slices.Clone(targets)
	for _, r := range needs {
		names = append(names, r.flag, r.other)
	}
	for _, r := range excludes {
		names = append(append(names, r.flag), r.others...)
	}
	for _, name := range names {
		testkit.Equal(t, name+" is a flag", known[name], true)
	}
}

// The command lines and matrix files in workflows and pages are valid.
func TestWrittenCommandLines(t *testing.T) {
	lines := map[string]int{}
	for _, pattern := range []string{".github/workflows/*.yml", "docs/*.md", "docs/*/*.md", "README.md"} {
		files, err := filepath.Glob(filepath.Join("../../..", pattern))
		testkit.Check(t, err)
		for _, file := range files {
			name := filepath.Base(file)
			for i, block := range strings.Split(testkit.Read(t, file), "\n```") {
				text, isYAML := strings.CutPrefix(block, "yaml\n")
				if name == "commands.md" || filepath.Ext(name) == ".md" && (i%2 == 0 || isYAML && name != "your-night.md") {
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
					_, err := matrix.Parse(name, []byte(text), nil, func(string) string { return "mongodb://h/" },
						matrix.Known{Versions: func(string) []string { return []string{"1.2.3"} }})
					testkit.Equal(t, text, err, nil)
				}
			}
		}
	}
	for where, least := range map[string]int{"nightly.yml": 5, "your-night.md": 6, "scale.md": 6, "running.md": 10,
		"matrix files": 4} {
		if lines[where] < least {
			t.Errorf("%s: the check saw only %d command lines", where, lines[where])
		}
	}
}

// zsh refuses a command line with an unquoted ? or [ that matches no file, and every shell splits at &.
func TestCommandLinesAreQuoted(t *testing.T) {
	var lines []string
	for all := Root().Commands(); len(all) > 0; all = append(all[1:], all[0].Commands()...) {
		lines = append(lines, strings.Split(all[0].Example, "\n")...)
	}
	files, err := filepath.Glob("../../../docs/*.md")
	below, failed := filepath.Glob("../../../docs/*/*.md")
	testkit.Check(t, errors.Join(err, failed))
	for _, file := range append(append(files, below...), "../../../README.md") {
		lines = append(lines, regexp.MustCompile(`(?m)^\$ .*`).FindAllString(testkit.Read(t, file), -1)...)
	}
	quoted := regexp.MustCompile(`'[^']*'|"[^"]*"|#.*|\$\?|&&| &$`)
	for _, line := range lines {
		testkit.Equal(t, line, strings.ContainsAny(quoted.ReplaceAllString(line, ""), "?[&"), false)
	}
}

// program finds a command line of utr after a prompt, other commands or variables.
var program = regexp.MustCompile(`(?:^|[ \t;&|("'])(?:go run \./cmd/|exec )?utr ([a-z]+(?: .*)?)$`)

func commandLines(script string) (found []string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	for line := range strings.SplitSeq(script, "\n") {
		if m := program.FindStringSubmatch(line); m != nil && accepts(strings.Fields(m[1])[0]) == nil {
			found = append(found, m[1])
		}
	}
	return found
}

// Expressions of workflows and shells stand for a word or a part of one. The list of known failures may be empty.
var (
	expression = regexp.MustCompile(`\$\{\{[^}]*\}\}|\$\(\([^)]*\)\)|\$\([^)]*\)|\$\{[^}]*\}|\$[A-Za-z_]+`)
	optional   = regexp.MustCompile(`\$\{\{[^}]*known-failing[^}]*\}\}|\$\([^)]*known-failing[^)]*\)|\$\{[^}]*known-failing[^}]*\}`)
)

// accepts parses a command line with the flags of its command.
func accepts(line string) error {
	args, err := split(expression.ReplaceAllString(optional.ReplaceAllString(line, ""), "1"))
	if err != nil {
		return err
	}
	command, rest, err := Root().Find(joinSeeds(args))
	switch {
	case err != nil:
		return err
	case !command.HasParent():
		return unknownCommand(command, rest)
	}
	return command.ParseFlags(rest)
}

// The matrix files that utr new writes are valid in any folder, if the official suites are there.
func TestMatrixTemplates(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"retryable-reads", "retryable-writes", "client-backpressure"} {
		write(t, filepath.Join("specifications", name, "tests", "suite.yml"), suite)
	}
	b.env[official.EnvDir] = "specifications"
	for _, name := range matrixTemplates() {
		b.expect(t, name, "new "+name+" "+name+"-mine.yml", 0, "next: utr matrix --dry-run "+name+"-mine.yml")
		b.expect(t, name, "matrix --dry-run -v "+name+"-mine.yml", 0, "--engine driver")
	}
}
