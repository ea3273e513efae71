package matchers

import (
	"github.com/unified-test-runner/utr/source"
)

// list is an ordered list of expectations against an ordered list of what was
// seen: events, log messages or documents.
type list[T any] struct {
	what       string // "event"
	at         source.Position
	want       []*source.Value
	got        []T
	allowExtra bool // after all expected ones
	match      func(want *source.Value, got T)
	// alike reports whether the two are of one kind, so that they are worth
	// comparing although they differ.
	alike    func(want *source.Value, got T) bool
	describe func(T) string // in one line
}

// matchList compares the lists place by place. If their lengths do not fit,
// every later place would differ for that reason alone: the lists are aligned
// then, so that a report names what is missing and what is extra.
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

// The costs of an alignment. Two of one kind that differ are cheaper as
// a pair than as one missing and one extra.
const (
	costDiffer = 3
	costGap    = 2
	costNever  = 1 << 30
	// alignUpTo bounds the work for lists that ran away.
	alignUpTo = 40_000
)

// align gives for each expected one the place of its counterpart, or -1,
// by the least edit distance. For very long lists it pairs by place.
func align[T any](m *Matcher, s list[T]) []int {
	wants, gots := len(s.want), len(s.got)
	partner := make([]int, wants)
	if wants*gots > alignUpTo {
		for i := range partner {
			partner[i] = i
			if i >= gots {
				partner[i] = -1
			}
		}
		return partner
	}
	pair := make([][]int, wants)
	for i := range pair {
		pair[i] = make([]int, gots)
		for j := range pair[i] {
			switch {
			case m.holds(func() { s.match(s.want[i], s.got[j]) }):
				pair[i][j] = 0
			case s.alike(s.want[i], s.got[j]):
				pair[i][j] = costDiffer
			default:
				pair[i][j] = costNever
			}
		}
	}
	// best[i][j] is the least cost of aligning what begins at i and at j.
	best := make([][]int, wants+1)
	for i := wants; i >= 0; i-- {
		best[i] = make([]int, gots+1)
		for j := gots; j >= 0; j-- {
			switch {
			case i == wants:
				best[i][j] = (gots - j) * costGap
			case j == gots:
				best[i][j] = (wants - i) * costGap
			default:
				best[i][j] = min(pair[i][j]+best[i+1][j+1], costGap+min(best[i+1][j], best[i][j+1]))
			}
		}
	}
	for i, j := 0, 0; i < wants; {
		switch {
		case j < gots && best[i][j] == pair[i][j]+best[i+1][j+1]:
			partner[i] = j
			i, j = i+1, j+1
		case j < gots && best[i][j] == costGap+best[i][j+1]:
			j++
		default:
			partner[i] = -1
			i++
		}
	}
	return partner
}
