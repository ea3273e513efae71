package matchers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// list pairs an ordered list of expectations with an ordered list of actual events, log messages or documents.
type list[T any] struct {
	what       string // "event"
	of         string // client or collection
	at         source.Position
	want       []*source.Value
	got        []T
	allowExtra bool // after the expected ones
	anywhere   bool // allowExtra, also before and between them
	match      func(want *source.Value, got T)
	alike      func(want *source.Value, got T) bool // worth comparing even if they differ
	describe   func(T) string                       // on one line
	wanted     func(*source.Value) string           // the same of an expectation, for result.List
	observed   func(T) string
	// below compares what is inside a pair, and returns its rows. If an item has no counterpart, the counterpart is
	// nil. below itself may be nil.
	below func(want *source.Value, got T) []result.Row
}

// matchList compares the lists by index. If their lengths do not fit, it aligns
// them instead, so that a missing item does not make all later ones differ.
func matchList[T any](m *Matcher, s list[T]) {
	before := len(m.mismatches)
	rows := pairs(m, s)
	if len(m.mismatches) > before && !m.quiet {
		m.mismatches[before].List = &result.List{Name: strings.TrimSpace(s.what + "s of " + s.of), Rows: around(rows)}
	}
}

func pairs[T any](m *Matcher, s list[T]) (rows []result.Row) {
	same := len(s.want) == len(s.got) || s.allowExtra && len(s.want) < len(s.got)
	if !same {
		m.say(s.at, "", "", "expected %s%s, got %d", either(s.allowExtra, "at least ", ""), plural.Of(len(s.want), s.what),
			len(s.got))
	}
	var none T
	below := func(want *source.Value, got T) {
		if s.below != nil {
			rows = append(rows, s.below(want, got)...)
		}
	}
	j := 0
	extra := func(until int) {
		for ; j < until; j++ {
			unexpected := !s.allowExtra || !s.anywhere && until < len(s.got)
			rows = append(rows, result.Row{Got: s.observed(s.got[j]), Differs: unexpected})
			if unexpected {
				m.say(s.at, nothing, s.describe(s.got[j]), "observed %s %d is unexpected", s.what, j)
			}
			below(nil, s.got[j])
		}
	}
	partners := byPosition(len(s.want), len(s.got))
	if !same || s.anywhere {
		partners = align(m, s)
	}
	for i, partner := range partners {
		if partner >= 0 {
			extra(partner)
			j = partner + 1
		}
		row, before := result.Row{Want: s.wanted(s.want[i])}, len(m.mismatches)
		m.atIndex(i, func() {
			got := none
			if partner >= 0 {
				got = s.got[partner]
				row.Got = s.observed(got)
				s.match(s.want[i], got)
			} else {
				m.say(s.want[i].Position, abridge(s.want[i].JSON()), nothing, "expected %s %d is missing", s.what, i)
			}
			row.Differs = len(m.mismatches) > before
			rows = append(rows, row)
			below(s.want[i], got)
		})
	}
	extra(len(s.got))
	return rows
}

// mostRows bounds the rows of a list in a report.
const mostRows, rowsBefore = 20, 5

// around returns the rows near the first difference.
func around(rows []result.Row) []result.Row {
	if len(rows) <= mostRows {
		return rows
	}
	first := slices.IndexFunc(rows, func(r result.Row) bool { return r.Differs })
	from := max(0, min(first-rowsBefore, len(rows)-mostRows))
	note := func(n int) []result.Row {
		if n == 0 {
			return nil
		}
		text := fmt.Sprintf("… %d more", n)
		return []result.Row{{Want: text, Got: text}}
	}
	return slices.Concat(note(from), rows[from:from+mostRows], note(len(rows)-from-mostRows))
}

func byPosition(wants, gots int) []int {
	partner := slices.Repeat([]int{-1}, wants)
	for i := range min(wants, gots) {
		partner[i] = i
	}
	return partner
}

// Costs of an alignment. A pair of alike items that differ costs less than a missing and an extra one.
const (
	costDiffer = 3
	costGaps   = 4 // a missing and an extra item together
	costNever  = 1 << 30

	maxAlignment = 40_000 // product of the lengths
)

// align returns the index of the counterpart of each expected item, or -1, with
// the least edit distance. It pairs very long lists by index.
func align[T any](m *Matcher, s list[T]) []int {
	wants, gots := len(s.want), len(s.got)
	if wants*gots > maxAlignment {
		return byPosition(wants, gots)
	}
	partner := slices.Repeat([]int{-1}, wants)
	costMissing, costExtra := costGaps/2, costGaps/2
	if s.anywhere {
		costMissing, costExtra = costGaps, 0
	}
	holds := func(want *source.Value, got T) bool {
		return m.holds(func() {
			if s.match(want, got); s.below != nil {
				s.below(want, got)
			}
		})
	}
	// best[i][j] is the least cost of aligning want[i:] with got[j:]. paired[i][j] is the least cost if want[i] and
	// got[j] are a pair.
	best, paired := make([][]int, wants+1), make([][]int, wants+1)
	for i := wants; i >= 0; i-- {
		best[i], paired[i] = make([]int, gots+1), make([]int, gots+1)
		for j := gots; j >= 0; j-- {
			if best[i][j] = (wants-i)*costMissing + (gots-j)*costExtra; i == wants || j == gots {
				continue
			}
			paired[i][j] = best[i+1][j+1]
			if !holds(s.want[i], s.got[j]) {
				paired[i][j] += costDiffer
				if !s.alike(s.want[i], s.got[j]) {
					paired[i][j] += costNever
				}
			}
			best[i][j] = min(paired[i][j], costMissing+best[i+1][j], costExtra+best[i][j+1])
		}
	}
	for i, j := 0, 0; i < wants; {
		switch {
		case j < gots && best[i][j] == paired[i][j]:
			partner[i] = j
			i, j = i+1, j+1
		case j < gots && best[i][j] == costExtra+best[i][j+1]:
			j++
		default:
			i++
		}
	}
	return partner
}
