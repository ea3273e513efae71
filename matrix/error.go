package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/meant"
	"github.com/unified-test-runner/utr/source"
)

// Problem is one thing that is wrong with a matrix file.
type Problem struct {
	Position source.Position
	Message  string
}

func (p Problem) Error() string { return p.Position.String() + ": " + p.Message }

// InvalidError is everything that is wrong with a matrix file, in the order of
// the file.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// didYouMean suggests one of the known words, if one is near.
func didYouMean(word string, known []string) string {
	if m := meant.Word(word, known); m != "" && m != word {
		return "; did you mean " + m + "?"
	}
	return ""
}

// problems collects what is wrong.
type problems []Problem

func (p *problems) add(at source.Position, format string, args ...any) {
	*p = append(*p, Problem{at, fmt.Sprintf(format, args...)})
}

// err gives all of them, each once, or nil.
func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	list := slices.Clone(*p)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
	seen := map[Problem]bool{} // what is wrong with a part is found in each of its cells
	return &InvalidError{slices.DeleteFunc(list, func(p Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})}
}
