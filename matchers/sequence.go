package matchers

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/source"
)

// list pairs an ordered list of expectations with an ordered list of actual events, log messages or documents.
type list[T any] struct {
	what       string // "event"
	at         source.Position
	want       []*source.Value
	got        []T
	allowExtra bool // after the expected ones
	match      func(want *source.Value, got T)
	alike      func(want *source.Value, got T) bool // worth comparing even if they differ
	describe   func(T) string                       // on one line
}

// matchList compares the lists by index. If their lengths do not fit, it aligns
// them instead, so that a missing item does not make all later ones differ.
func matchList[T any](m *Matcher, s list[T]) {
	if len(s.want) == len(s.got) || s.allowExtra && len(s.want) < len(s.got) {
		for i := range s.want {
			m.atIndex(i, func() { s.match(s.want[i], s.got[i]) })
		}
		return
	}
	want := count(len(s.want), s.what)
	m.say(s.at, want, count(len(s.got), s.what), "expected %s%s, got %d", either(s.allowExtra, "at least ", ""), want, len(s.got))
	j := 0
	extra := func(until int) {
		for ; j < until; j++ {
			m.say(s.at, nothing, s.describe(s.got[j]), "unexpected: the observed %s %d has no counterpart", s.what, j)
		}
	}
	for i, partner := range align(m, s) {
		if partner >= 0 {
			extra(partner)
			j = partner + 1
		}
		m.atIndex(i, func() {
			if partner >= 0 {
				s.match(s.want[i], s.got[partner])
			} else {
				m.say(s.want[i].Position, abridge(s.want[i].JSON()), nothing, "missing: the expected %s %d has no counterpart", s.what, i)
			}
		})
	}
	if !s.allowExtra {
		extra(len(s.got))
	}
}

// Costs of an alignment. A pair of alike items that differ costs less than a missing and an extra one.
const (
	costDiffer = 3
	costGap    = 2
	costNever  = 1 << 30

	maxAlignment = 40_000 // product of the lengths
)

// align returns the index of the counterpart of each expected item, or -1, with
// the least edit distance. It pairs very long lists by index.
func align[T any](m *Matcher, s list[T]) []int {
	wants, gots := len(s.want), len(s.got)
	partner := slices.Repeat([]int{-1}, wants)
	if wants*gots > maxAlignment {
		for i := range min(wants, gots) {
			partner[i] = i
		}
		return partner
	}
	// best[i][j] is the least cost of aligning want[i:] with got[j:], paired[i][j]
	// that of doing so with want[i] and got[j] as a pair.
	best, paired := make([][]int, wants+1), make([][]int, wants+1)
	for i := wants; i >= 0; i-- {
		best[i], paired[i] = make([]int, gots+1), make([]int, gots+1)
		for j := gots; j >= 0; j-- {
			if best[i][j] = (wants - i + gots - j) * costGap; i == wants || j == gots {
				continue
			}
			paired[i][j] = best[i+1][j+1]
			if !m.holds(func() { s.match(s.want[i], s.got[j]) }) {
				paired[i][j] += costDiffer
				if !s.alike(s.want[i], s.got[j]) {
					paired[i][j] += costNever
				}
			}
			best[i][j] = min(paired[i][j], costGap+best[i+1][j], costGap+best[i][j+1])
		}
	}
	for i, j := 0, 0; i < wants; {
		switch {
		case j < gots && best[i][j] == paired[i][j]:
			partner[i] = j
			i, j = i+1, j+1
		case j < gots && best[i][j] == costGap+best[i][j+1]:
			j++
		default:
			i++
		}
	}
	return partner
}
