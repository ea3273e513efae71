package compare

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The lines of a difference, for logs whose lines are letters.
func TestDiff(t *testing.T) {
	for _, r := range []struct{ reason, left, right, want string }{
		{"the same", "ab", "ab", " a  b"},
		{"a line more", "ac", "abc", " a +b  c"},
		{"a line less", "abc", "ac", " a -b  c"},
		{"lines of the left log come first", "axb", "ayb", " a -x +y  b"},
		{"most lines are common", "abcbdab", "bdcaba", "-a  b -c -b  d +c  a  b +a"},
		{"nothing is common", "ab", "cd", "-a -b +c +d"},
		{"the first of several equal lines", "aa", "a", " a -a"},
		{"an empty log", "", "a", "- +a"},
	} {
		lines := func(letters string) string { return strings.Join(strings.Split(letters, ""), "\n") }
		got := strings.NewReplacer("- ", "-", "+ ", "+", "  ", " ").Replace(diff(lines(r.left), lines(r.right)))
		testkit.Equal(t, r.reason, strings.ReplaceAll(strings.TrimSuffix(got, "\n"), "\n", " "), r.want)
	}
}
