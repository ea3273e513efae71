package architecture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/unified-test-runner/utr/internal/testkit"
)

const root = "../../.."

// link matches a Markdown link to a file or a heading.
var link = regexp.MustCompile(`\]\(([^()\s:]*)\)`)

// Every link in a page has an existing target.
func TestLinks(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			seen++
			testkit.Equal(t, page+": ("+l[1]+")", broken(page, text, l[1]), nil)
		}
	}
	testkit.Equal(t, "30 links or more", seen >= 30, true)
}

// README links to every page of the folder docs, and each page below docs can be reached from these pages. README
// states how many tests the suites have.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	reached := map[string]bool{"README.md": true, "CHANGELOG.md": true}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		for _, l := range link.FindAllStringSubmatch(read(t, next[0]), -1) {
			file, _, _ := strings.Cut(l[1], "#")
			if page := path.Join(path.Dir(next[0]), file); path.Ext(file) == ".md" && !reached[page] {
				reached[page] = true
				next = append(next, page)
			}
		}
	}
	for _, page := range pages(t) {
		testkit.Equal(t, "links from README.md lead to "+page, reached[page], true)
		if path.Dir(page) == "docs" {
			testkit.Equal(t, "README.md links to "+page, strings.Contains(text, "]("+page), true)
		}
	}
	for _, name := range []string{"retryable-reads", "retryable-writes", "client-backpressure"} {
		files, err := filepath.Glob(filepath.Join(root, "specs", name, "*.yml"))
		testkit.Check(t, err)
		tests := 0
		for _, file := range files {
			tests += strings.Count(read(t, strings.TrimPrefix(file, root)), "\n  - description: ")
		}
		testkit.Contains(t, text, fmt.Sprintf("`%s` %d", name, tests))
		if name == "retryable-reads" { // the first command
			testkit.Contains(t, text, fmt.Sprintf("$ go run ./cmd/utr run specs/%s\n…\n%d passed, 0 failed, 0 skipped\n$ make test\n", name, tests))
		}
	}
}

// requirement matches a direct requirement in go.mod.
var requirement = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)

// The page of dependencies has every direct requirement.
func TestDependenciesPage(t *testing.T) {
	page, seen := read(t, "docs/dependencies.md"), 0
	for _, r := range requirement.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		seen++
		testkit.Equal(t, "docs/dependencies.md has "+r[1], strings.Contains(page, "`"+r[1]+"`"), true)
	}
	testkit.Equal(t, "5 requirements or more", seen >= 5, true)
}

// Every folder in a script exists. Otherwise, make check would skip a package that was moved.
func TestScripts(t *testing.T) {
	seen := 0
	for _, script := range []string{"Makefile", ".ci/test", ".ci/peers"} {
		for _, f := range folder.FindAllStringSubmatch(read(t, script), -1) {
			seen++
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(f[1])))
			testkit.Equal(t, f[1]+" in "+script, err, nil)
		}
	}
	testkit.Equal(t, "20 folders or more", seen >= 20, true)
}

var folder = regexp.MustCompile(`[\s"]\./([a-z][a-z0-9/]*[a-z0-9])`)

// pages returns README, CHANGELOG and the pages of docs, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CHANGELOG.md"}
	testkit.Check(t, fs.WalkDir(os.DirFS(root), "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			all = append(all, name)
		}
		return err
	}))
	return all
}

func read(t *testing.T, page string) string {
	t.Helper()
	return testkit.Read(t, filepath.Join(root, filepath.FromSlash(page)))
}

// broken returns an error if a link in a page has no target.
func broken(page, text, target string) error {
	file, heading, hasHeading := strings.Cut(target, "#")
	if file != "" {
		path := filepath.Join(root, filepath.Dir(page), file)
		if _, err := os.Stat(path); err != nil || !hasHeading {
			return err
		}
		other, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = string(other)
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") && anchor(line) == heading {
			return nil
		}
	}
	return errors.New("no such heading")
}

// anchor returns the anchor of a heading in rendered Markdown.
func anchor(heading string) string {
	text := strings.TrimSpace(strings.TrimLeft(heading, "#"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// quoted matches text between backticks.
var quoted = regexp.MustCompile("`([^`]+)`")

// missing returns the number of rows of docs/faults.md, and the tests in them that do not exist. A row has a fault, and
// files with tests.
func missing(page string, file func(string) string) (rows int, faults []string) {
	_, table, _ := strings.Cut(page, "\n## More tests\n")
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || strings.HasPrefix(line, "| fault |") {
			continue
		}
		rows++
		text, tests := "", 0
		for _, q := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if strings.HasSuffix(q[1], ".go") {
				text = file(q[1])
				continue
			}
			tests++
			if !strings.Contains(text, "\nfunc "+q[1]+"(t *testing.T)") {
				faults = append(faults, q[1])
			}
		}
		if tests == 0 {
			faults = append(faults, cells[0]+" has no test")
		}
	}
	return rows, faults
}

// Every fault on the page has existing tests.
func TestFaultsPage(t *testing.T) {
	rows, faults := missing(read(t, "docs/faults.md"), func(name string) string { return read(t, name) })
	testkit.Equal(t, "15 rows or more", rows >= 15, true)
	testkit.Equal(t, "tests of docs/faults.md that do not exist", fmt.Sprint(faults), "[]")
}
