package matchers

import (
	"github.com/unified-test-runner/utr/source"
)

// sequence is an ordered list of expectations against an ordered list of what
// was seen: events or log messages.
type sequence struct {
	what       string // "event"
	at         source.Position
	want, got  int
	allowExtra bool // after all expected ones
	// match compares the i-th expected with the j-th seen; the path is at the
	// i-th expected.
	match func(c *comparison, i, j int)
	// alike reports whether the two are of one kind, so that they are worth
	// comparing though they differ.
	alike        func(i, j int) bool
	position     func(i int) source.Position
	describeWant func(i int) string
	describeGot  func(j int) string
}

// compare holds the lists against each other, place by place. If the numbers
// do not fit, every later place would differ for that reason alone: the lists
// are aligned then, so that a report names what is missing and what is extra.
func (s sequence) compare(c *comparison) {
	if s.want == s.got || s.allowExtra && s.want < s.got {
		for i := range s.want {
			s.at1(c, i, i)
		}
		return
	}
	c.say(s.at, count(s.want, s.what), count(s.got, s.what), "want %s%s, got %d",
		either(s.allowExtra, "at least ", ""), count(s.want, s.what), s.got)
	if c.quiet {
		return
	}
	j := 0
	extra := func(until int) {
		for ; j < until; j++ {
			c.say(s.at, nothing, s.describeGot(j), "unexpected: the observed %s %d has no counterpart", s.what, j)
		}
	}
	for i, partner := range s.align() {
		if partner < 0 {
			c.path.index(i)
			c.say(s.position(i), s.describeWant(i), nothing, "missing: the expected %s %d has no counterpart", s.what, i)
			c.path.pop()
			continue
		}
		extra(partner)
		s.at1(c, i, partner)
		j = partner + 1
	}
	if !s.allowExtra {
		extra(s.got)
	}
}

func (s sequence) at1(c *comparison, i, j int) {
	c.path.index(i)
	s.match(c, i, j)
	c.path.pop()
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
func (s sequence) align() []int {
	partner := make([]int, s.want)
	if s.want*s.got > alignUpTo {
		for i := range partner {
			partner[i] = i
			if i >= s.got {
				partner[i] = -1
			}
		}
		return partner
	}
	pair := make([][]int, s.want)
	for i := range pair {
		pair[i] = make([]int, s.got)
		for j := range pair[i] {
			pair[i][j] = s.cost(i, j)
		}
	}
	// best[i][j] is the least cost of aligning what begins at i and at j.
	best := make([][]int, s.want+1)
	for i := s.want; i >= 0; i-- {
		best[i] = make([]int, s.got+1)
		for j := s.got; j >= 0; j-- {
			switch {
			case i == s.want:
				best[i][j] = (s.got - j) * costGap
			case j == s.got:
				best[i][j] = (s.want - i) * costGap
			default:
				best[i][j] = min(pair[i][j]+best[i+1][j+1], costGap+min(best[i+1][j], best[i][j+1]))
			}
		}
	}
	for i, j := 0, 0; i < s.want; {
		switch {
		case j < s.got && best[i][j] == pair[i][j]+best[i+1][j+1]:
			partner[i] = j
			i, j = i+1, j+1
		case j < s.got && best[i][j] == costGap+best[i][j+1]:
			j++
		default:
			partner[i] = -1
			i++
		}
	}
	return partner
}

func (s sequence) cost(i, j int) int {
	c := comparison{quiet: true}
	s.match(&c, i, j)
	switch {
	case !c.failed:
		return 0
	case s.alike(i, j):
		return costDiffer
	default:
		return costNever
	}
}
