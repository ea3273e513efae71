package matrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// Problem is one thing that is wrong with a matrix file.
type Problem struct {
	Position source.Position
	Message  string
}

func (p Problem) Error() string { return p.Position.String() + ": " + p.Message }

// Problems are everything that is wrong with a matrix file, in the order of the file.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(at source.Position, format string, args ...any) {
	*p = append(*p, Problem{at, fmt.Sprintf(format, args...)})
}

// err gives all of them, each once, or nil.
func (p *Problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	seen := map[Problem]bool{} // what is wrong with a part is found in each of its cells
	all := slices.DeleteFunc(slices.Clone(*p), func(p Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
	slices.SortStableFunc(all, func(a, b Problem) int {
		return a.Position.Compare(b.Position)
	})
	return all
}
