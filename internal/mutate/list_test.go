package main

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The old text of every row occurs in its file exactly once.
func TestListFits(t *testing.T) {
	t.Chdir(testkit.Root(t))
	rows, err := readList("")
	testkit.Check(t, err)
	for _, m := range rows {
		if n := strings.Count(testkit.Read(t, m.File), m.Old); n != 1 || m.Old == m.New {
			t.Errorf("%s: %q occurs in the file %d times", m.File, m.Old, n)
		}
		if m.Why == "" {
			t.Errorf("%s: %q: the row has no reason", m.File, m.Old)
		}
	}
}

// Every row of docs/seeds cites a mutation that a test of the row kills, or says why there is none; and every mutation
// with a name is cited.
func TestSeedsCiteMutations(t *testing.T) {
	t.Chdir(testkit.Root(t))
	rows, err := readList("")
	testkit.Check(t, err)
	named, cited := map[string]Mutation{}, map[string]bool{}
	for _, m := range rows {
		if _, twice := named[m.Name]; twice && m.Name != "" {
			t.Errorf("two mutations have the name %s", m.Name)
		}
		named[m.Name] = m
	}
	delete(named, "")
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
				for name := range strings.SplitSeq(last, ", ") {
					m, exists := named[name]
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

func TestTry(t *testing.T) {
	t.Chdir(testkit.Root(t))
	const file = "internal/testkit/seed.go"
	text := testkit.Read(t, file)
	first, _, _ := strings.Cut(text, "\n")
	for _, r := range []struct {
		reason   string
		old, new string
		want     verdict
	}{
		{"a comment", first, first + "\n// changed", survived},
		{"a fault that a test finds", `os.Getenv("UTR_SEED")`, `os.Getenv("UTR_SEEDS")`, killed},
		{"a missing text", "no such text", "x", unfit},
		{"a program that does not build", first, "no Go", unfit},
	} {
		got, _ := (Mutation{File: file, Old: r.old, New: r.new}).try(testkit.Context(t))
		testkit.Equal(t, r.reason, got, r.want)
	}
}
