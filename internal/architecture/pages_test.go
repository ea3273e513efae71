package architecture

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// link is a link of Markdown that leads to a file of ours, or to a heading.
var link = regexp.MustCompile(`\]\(([^()\s:]*)\)`)

// Every link of a page leads to a file that exists, and to a heading that it
// has.
func TestLinks(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			seen++
			if why := broken(page, text, l[1]); why != "" {
				t.Errorf("%s: (%s): %s", page, l[1], why)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d links were seen: the check does not see the pages", seen)
	}
}

func TestLinksCanBreak(t *testing.T) {
	const text = "# The heading, with `code`\n"
	for _, row := range []struct {
		reason, target string
		want           bool
	}{
		{"a page", "docs/running.md", true},
		{"a folder", "specs", true},
		{"no such page", "docs/walking.md", false},
		{"a heading of this page", "#the-heading-with-code", true},
		{"no such heading", "#the-heading", false},
		{"a heading of another page", "docs/running.md#which-tests", true},
		{"no such heading of another page", "docs/running.md#which-pests", false},
	} {
		if why := broken("README.md", text, row.target); (why == "") != row.want {
			t.Errorf("%s: %q", row.reason, why)
		}
	}
}

// README leads to every page of docs, and says how many tests our suites have.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	for _, page := range pages(t) {
		if page != "README.md" && page != "CHANGELOG.md" && !strings.Contains(text, "]("+page) {
			t.Errorf("README.md does not lead to %s", page)
		}
	}
	for _, name := range []string{"retryable-reads", "retryable-writes", "client-backpressure"} {
		files, err := filepath.Glob(filepath.Join(root, "specs", name, "*.yml"))
		if err != nil {
			t.Fatal(err)
		}
		tests := 0
		for _, file := range files {
			tests += strings.Count(read(t, strings.TrimPrefix(file, root)), "\n  - description: ")
		}
		if want := fmt.Sprintf("`%s` %d", name, tests); !strings.Contains(text, want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}

// requirement is a line of go.mod for a module that our own code imports.
var requirement = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)

// Every module that our code imports is on the page of dependencies.
func TestDependenciesPage(t *testing.T) {
	page := read(t, "docs/dependencies.md")
	direct := requirement.FindAllStringSubmatch(read(t, "go.mod"), -1)
	if len(direct) < 5 {
		t.Errorf("go.mod has only %d direct requirements: the check does not see them", len(direct))
	}
	for _, r := range direct {
		if !strings.Contains(page, "`"+r[1]+"`") {
			t.Errorf("docs/dependencies.md does not say what %s is for", r[1])
		}
	}
}

// pages names README, CHANGELOG and all below docs, as seen from the root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CHANGELOG.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// broken says what is wrong with a link of a page, "" if nothing is.
func broken(page, text, target string) string {
	file, heading, hasHeading := strings.Cut(target, "#")
	if file != "" {
		path := filepath.Join(root, filepath.Dir(page), file)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "there is no such file"
		case !hasHeading || info.IsDir():
			return ""
		}
		other, err := os.ReadFile(path)
		if err != nil {
			return err.Error()
		}
		text = string(other)
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") && anchor(line) == heading {
			return ""
		}
	}
	return "there is no such heading"
}

// anchor is what sites that show Markdown call a heading.
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

// quoted finds what stands between backticks.
var quoted = regexp.MustCompile("`([^`]+)`")

// missing gives the tests that rows of docs/faults.md name and that do not
// exist: each row is a fault, then files and the tests in them.
func missing(page string, file func(string) string) (rows int, faults []string) {
	_, table, _ := strings.Cut(page, "\n## The tests\n")
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

// Every fault on the page has the tests that the page says.
func TestFaultsPage(t *testing.T) {
	rows, faults := missing(read(t, "docs/faults.md"), func(name string) string { return read(t, name) })
	if rows < 15 {
		t.Errorf("the page has only %d rows of tests: the check does not see them", rows)
	}
	for _, f := range faults {
		t.Errorf("docs/faults.md: %s does not exist", f)
	}
}

func TestMissing(t *testing.T) {
	const file = "package x\n\nfunc TestA(t *testing.T) {\n"
	for _, r := range []struct {
		reason, row string
		want        int
	}{
		{"a test that exists", "| a fault | `x_test.go` `TestA` |", 0},
		{"one that does not", "| a fault | `x_test.go` `TestB` |", 1},
		{"one that does and one that does not", "| a fault | `x_test.go` `TestA`, `TestAB` |", 1},
		{"no test at all", "| a fault | by hand |", 1},
		{"a test without a file", "| a fault | `TestA` |", 1},
	} {
		rows, faults := missing("# Page\n\n## The tests\n\n| fault | where |\n|---|---|\n"+r.row+"\n", func(string) string { return file })
		if rows != 1 || len(faults) != r.want {
			t.Errorf("%s: %d rows, %q", r.reason, rows, faults)
		}
	}
}
