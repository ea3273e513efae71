package report

import (
	"fmt"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// warned collects the warnings of tests that passed. Failures have their own.
type warned struct {
	tests map[string]int // warning → tests
	order []string       // of the warnings
	first map[string]string
}

func (w *warned) add(v *result.Verdict) {
	if v.Status != result.Passed {
		return
	}
	for _, text := range v.Warnings {
		if w.tests == nil {
			w.tests, w.first = map[string]int{}, map[string]string{}
		}
		if w.tests[text]++; w.tests[text] == 1 {
			w.order = append(w.order, text)
			w.first[text] = title(v.Test)
		}
	}
}

// listedWarnings is how many warnings a report lists, unless it lists all.
const listedWarnings = 10

// lines returns a line for each warning, with the first test that has it.
func (w *warned) lines(limited bool) (lines []string) {
	for i, text := range w.order {
		if limited && i == listedWarnings {
			return append(lines, fmt.Sprintf("… %s (-v lists all)", plural.Of(len(w.order)-i, "more warning")))
		}
		line := text + " (" + w.first[text]
		add(&line, w.tests[text] > 1, ", and %s", plural.Of(w.tests[text]-1, "more test"))
		lines = append(lines, line+")")
	}
	return lines
}
