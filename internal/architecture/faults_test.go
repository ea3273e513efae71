package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted finds what stands between backticks.
var quoted = regexp.MustCompile("`([^`]+)`")

// missing tells which tests that rows of docs/faults.md name are not there:
// each row is a fault, then files and the tests in them.
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
	rows, faults := missing(read(t, "docs/faults.md"), func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	})
	if rows < 15 {
		t.Errorf("the page has only %d rows of tests: the check does not see them", rows)
	}
	for _, f := range faults {
		t.Errorf("docs/faults.md: %s is not there", f)
	}
}

func TestMissing(t *testing.T) {
	const file = "package x\n\nfunc TestA(t *testing.T) {\n"
	for _, r := range []struct {
		reason, row string
		want        int
	}{
		{"a test that is there", "| a fault | `x_test.go` `TestA` |", 0},
		{"one that is not", "| a fault | `x_test.go` `TestB` |", 1},
		{"one that is and one that is not", "| a fault | `x_test.go` `TestA`, `TestAB` |", 1},
		{"no test at all", "| a fault | by hand |", 1},
		{"a test without a file", "| a fault | `TestA` |", 1},
	} {
		rows, faults := missing("# Page\n\n## The tests\n\n| fault | where |\n|---|---|\n"+r.row+"\n", func(string) string { return file })
		if rows != 1 || len(faults) != r.want {
			t.Errorf("%s: %d rows, %q", r.reason, rows, faults)
		}
	}
}
