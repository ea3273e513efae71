package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
)

// The old text of every named mutation occurs in its file exactly once. It has a unique title and names a test.
func TestNamedFit(t *testing.T) {
	t.Chdir(testkit.Root(t))
	named, err := readFile(namedFile)
	testkit.Check(t, err)
	titles := map[string]bool{}
	for _, m := range named {
		if n := strings.Count(testkit.Read(t, m.File), m.Old); n != 1 || m.Old == m.New || m.Run == "" || titles[m.Title] {
			t.Errorf("the old text occurs %d times, the test is missing, or the title is not unique:\n%s", n, m)
		}
		titles[m.Title] = true
		test, _, _ := strings.Cut(m.Run, "/")
		exists := false
		for _, dir := range m.packages() {
			files, err := filepath.Glob(path.Join(dir, "*_test.go"))
			testkit.Check(t, err)
			exists = exists || slices.ContainsFunc(files,
				func(name string) bool { return strings.Contains(testkit.Read(t, name), "func "+test+"(") })
		}
		if !exists {
			t.Errorf("no package has the test:\n%s", m)
		}
	}
}

// Every survivor can still be found, and its title is the reason why no test detects it.
func TestSurvivorsAreFound(t *testing.T) {
	t.Chdir(testkit.Root(t))
	survivors, err := readFile(survivorsFile)
	testkit.Check(t, err)
	for _, m := range survivors {
		found, err := mutationsIn(path.Dir(m.File), nil)
		testkit.Check(t, err)
		if len(without([]Mutation{m}, found)) > 0 || strings.Count(m.Title, " ") < 2 {
			t.Errorf("the code does not have this mutation, or its reason is missing:\n%s", m)
		}
	}
}

// A list is the text of its mutations.
func TestListForm(t *testing.T) {
	t.Chdir(testkit.Root(t))
	for _, name := range []string{namedFile, survivorsFile} {
		mutations, err := readFile(name)
		testkit.Check(t, err)
		var all strings.Builder
		for _, m := range mutations {
			all.WriteString(m.String())
		}
		text := regexp.MustCompile(`(?m)^(#.*)?\n`).ReplaceAllString(testkit.Read(t, name), "")
		testkit.Same(t, name, all.String(), text)
	}
}

// Every row of docs/seeds cites a mutation that a test of the row detects, or explains why it cannot; and every
// mutation with the form of a name is cited. A rule, such as R1, is a mutation, too: without it, a story must change. A
// row also cites a named mutation that makes the rule wrong, since a test that detects a missing rule can miss a wrong
// one.
func TestSeedsCiteMutations(t *testing.T) {
	t.Chdir(testkit.Root(t))
	named, cited := map[string]Mutation{}, map[string]bool{}
	list, err := readFile(namedFile)
	testkit.Check(t, err)
	for _, m := range list {
		if !strings.Contains(m.Title, " ") {
			named[m.Title] = m
		}
	}
	rules := map[string]bool{}
	for _, r := range retry.Rules() {
		rules[r.ID] = true
	}
	for _, r := range pinning.Rules() {
		rules[r.ID] = true
	}
	pages, err := filepath.Glob("docs/seeds/*.md")
	testkit.Check(t, err)
	for _, page := range pages {
		var head []string
		for line := range strings.Lines(testkit.Read(t, page)) {
			cells, row := strings.CutPrefix(strings.TrimSpace(line), "|")
			fields := strings.Split(strings.TrimSuffix(cells, "|"), "|")
			last := strings.TrimSpace(fields[len(fields)-1])
			switch {
			case !row:
				head = nil
			case head == nil:
				if head = fields; last != "mutation" {
					t.Errorf("%s: the last column of a table is not mutation", page)
				}
			case len(fields) != len(head):
				t.Errorf("%s: the row has %d cells, want %d: %s", page, len(fields), len(head), line)
			case strings.HasPrefix(last, "---"), strings.HasPrefix(last, "none: "):
			default:
				names := strings.Split(last, ", ")
				if !slices.ContainsFunc(names, func(name string) bool { return !rules[name] }) {
					t.Errorf("%s: the row cites only the removal of rules: %s", page, line)
				}
				for _, name := range names {
					m, exists := named[name]
					if rules[name] {
						m, exists = Mutation{Run: "TestEveryRuleHasAStory"}, true
					}
					_, killer := path.Split(strings.TrimPrefix(m.Run, "Test"))
					if cited[name] = true; !exists || !strings.Contains(strings.ToLower(cells), strings.ToLower(killer)) {
						t.Errorf("%s: mutation %q does not exist, or its test %q is not in the row: %s", page, name, m.Run, line)
					}
				}
			}
		}
	}
	for name := range named {
		if !cited[name] {
			t.Errorf("no page cites the mutation %s", name)
		}
	}
}

// A mutation that survives, one that does not fit, and an empty sample are errors.
func TestTryAll(t *testing.T) {
	t.Chdir(testkit.Root(t))
	all := func(int) bool { return false }
	const survived, unfit = "tests are missing, or reasons in " + survivorsFile, "named mutations do not fit the code"
	const file = "internal/testkit/seed.go"
	text := testkit.Read(t, file)
	first, _, _ := strings.Cut(text, "\n")
	for _, r := range []struct {
		reason   string
		old, new string
		want     string
	}{
		{"a comment", first, first + "\n// changed", survived},
		{"a mutation that a test detects", `os.Getenv("UTR_SEED")`, `os.Getenv("UTR_SEEDS")`, "<nil>"},
		{"a missing text", "no such text", "x", unfit},
		{"a program that does not build", first, "no Go", unfit},
	} {
		err := tryAll(testkit.Context(t), []Mutation{{File: file, Old: r.old, New: r.new}}, 1, all)
		testkit.Equal(t, r.reason, fmt.Sprint(err), r.want)
	}
	err := tryAll(testkit.Context(t), nil, 1, all)
	testkit.Equal(t, "an empty sample", fmt.Sprint(err), "no mutation was tried")
}

func TestMutationsIn(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Check(t, os.WriteFile("a.go", []byte(`package a

func f(n int) (bool, []int) {
	if n < 3 {
		n++
	}
	return n == 0 || true, []int{
		7,
		n,
	}
}
`), 0o600))
	mutations, err := mutationsIn(".", nil)
	testkit.Check(t, err)
	var got []string
	for _, m := range mutations {
		got = append(got, m.Title+": "+strings.Join(strings.Fields(m.New), " "))
	}
	slices.Sort(got)
	testkit.Same(t, "mutations", got, []string{
		"0 became 1: return n == 1 || true, []int{",
		"3 became 4: if n < 4 {",
		"7 became 8: 8,",
		"< became <=: if n <= 3 {",
		"== became !=: return n != 0 || true, []int{",
		"a condition was negated: if !(n < 3) {",
		"a statement was dropped: ",
		"an element was dropped: n,",
		"an element was dropped: }",
		"true was negated: return n == 0 || false, []int{",
		"|| became &&: return n == 0 && true, []int{",
	})
}
