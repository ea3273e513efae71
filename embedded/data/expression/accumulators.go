package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Accumulator gathers the values of a group.
type Accumulator interface {
	Add(v any) error
	Result() any
}

// NewAccumulator is an empty accumulator of a name such as $sum. The error has
// the server's code for an unknown name.
func NewAccumulator(name string) (func() Accumulator, error) {
	f, ok := accumulators[name]
	if !ok {
		return nil, command.Errorf(15952, "unknown group operator '%s'", name)
	}
	return f, nil
}

var accumulators = map[string]func() Accumulator{
	"$sum":      func() Accumulator { return &sum{total: int32(0)} },
	"$avg":      func() Accumulator { return &avg{sum: sum{total: int32(0)}} },
	"$min":      func() Accumulator { return &extreme{sign: -1, v: value.Missing{}} },
	"$max":      func() Accumulator { return &extreme{sign: 1, v: value.Missing{}} },
	"$first":    func() Accumulator { return &first{} },
	"$last":     func() Accumulator { return &last{} },
	"$push":     func() Accumulator { return &push{list: bson.A{}} },
	"$addToSet": func() Accumulator { return &addToSet{list: bson.A{}, seen: map[string]bool{}} },
	"$count":    func() Accumulator { return &count{} },
}

type sum struct{ total any }

func (s *sum) Add(v any) error {
	if value.IsNumber(v) {
		s.total, _ = value.Add(s.total, v)
	}
	return nil
}
func (s *sum) Result() any { return s.total }

type avg struct {
	sum
	n int
}

func (a *avg) Add(v any) error {
	if value.IsNumber(v) {
		a.n++
	}
	return a.sum.Add(v)
}

func (a *avg) Result() any {
	if a.n == 0 {
		return nil
	}
	mean := value.Float(a.total) / float64(a.n)
	if _, ok := a.total.(bson.Decimal128); ok {
		return value.ToDecimal(mean)
	}
	return mean
}

type extreme struct {
	sign int
	v    any
}

func (x *extreme) Add(v any) error {
	if !nullish(v) && ((x.v == value.Missing{}) || value.Compare(v, x.v)*x.sign > 0) {
		x.v = v
	}
	return nil
}

func (x *extreme) Result() any {
	if (x.v == value.Missing{}) {
		return nil
	}
	return x.v
}

type first struct {
	v   any
	set bool
}

func (f *first) Add(v any) error {
	if !f.set {
		f.v, f.set = v, true
	}
	return nil
}
func (f *first) Result() any { return nullIfMissing(f.v) }

type last struct{ v any }

func (l *last) Add(v any) error { l.v = v; return nil }
func (l *last) Result() any     { return nullIfMissing(l.v) }

func nullIfMissing(v any) any {
	if (v == value.Missing{}) {
		return nil
	}
	return v
}

type push struct{ list bson.A }

func (p *push) Add(v any) error {
	if (v != value.Missing{}) {
		p.list = append(p.list, v)
	}
	return nil
}
func (p *push) Result() any { return p.list }

type addToSet struct {
	list bson.A
	seen map[string]bool
}

func (s *addToSet) Add(v any) error {
	if (v == value.Missing{}) {
		return nil
	}
	if k := value.Key(v); !s.seen[k] {
		s.seen[k] = true
		s.list = append(s.list, v)
	}
	return nil
}
func (s *addToSet) Result() any { return s.list }

type count struct{ n int64 }

func (c *count) Add(any) error { c.n++; return nil }
func (c *count) Result() any   { return value.Int(c.n) }
