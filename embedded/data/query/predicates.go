package query

import (
	"math"
	"regexp"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/expression"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// predicate tests one value, which may be value.Missing.
type predicate interface {
	test(v any, c *run) bool
	// elements tells whether the elements of an array are tested too.
	elements() bool
}

func (p parser) predicate(e bson.E, all bson.D, depth int) (predicate, error) {
	switch e.Key {
	case "$eq":
		return p.equal(e.Value), nil
	case "$gt", "$gte", "$lt", "$lte":
		if _, ok := e.Value.(bson.Regex); ok {
			return nil, command.Errorf(2, "Can't have RegEx as arg to predicate over field '%s'.", e.Key)
		}
		return compare{op: e.Key, v: e.Value, fold: p.opts.Collation.fold()}, nil
	case "$in":
		return p.in(e)
	case "$regex":
		pattern, options := "", ""
		switch r := e.Value.(type) {
		case string:
			pattern = r
		case bson.Regex:
			pattern, options = r.Pattern, r.Options
		default:
			return nil, command.Errorf(2, "$regex has to be a string")
		}
		if o, ok := value.Field(all, "$options"); ok {
			s, ok := o.(string)
			if !ok {
				return nil, command.Errorf(2, "$options has to be a string")
			}
			if options != "" {
				return nil, command.Errorf(51075, "options set in both $regex and $options")
			}
			options = s
		}
		return newRegex(pattern, options)
	case "$type":
		return newTypes(e.Value)
	case "$size":
		n, ok := value.Whole(e.Value)
		if !ok {
			return nil, command.Errorf(2, "Failed to parse $size. Expected a number in: $size: %s", value.Text(e.Value))
		}
		if n < 0 {
			return nil, command.Errorf(2, "Failed to parse $size. Expected a non-negative number in: $size: %s", value.Text(e.Value))
		}
		return size(n), nil
	case "$mod":
		list, ok := e.Value.(bson.A)
		if !ok {
			return nil, command.Errorf(2, "malformed mod, needs to be an array")
		}
		if len(list) < 2 {
			return nil, command.Errorf(2, "malformed mod, not enough elements")
		}
		if len(list) > 2 {
			return nil, command.Errorf(2, "malformed mod, too many elements")
		}
		if !value.IsNumber(list[0]) || !value.IsNumber(list[1]) {
			return nil, command.Errorf(2, "malformed mod, divisor and remainder must be numbers")
		}
		d, r := int64(value.Float(list[0])), int64(value.Float(list[1]))
		if d == 0 {
			return nil, command.Errorf(2, "divisor cannot be 0")
		}
		return mod{d, r}, nil
	case "$elemMatch":
		d, ok := e.Value.(bson.D)
		if !ok {
			return nil, command.Errorf(2, "$elemMatch needs an Object")
		}
		if isOperators(d) && d[0].Key != "$and" && d[0].Key != "$or" && d[0].Key != "$nor" && d[0].Key != "$expr" {
			n, err := p.operators(nil, d, depth+1)
			return elemMatch{n: n}, err
		}
		n, err := p.conjunction(d, false, depth+1)
		return elemMatch{n: n, documents: true}, err
	}
	return nil, command.Errorf(2, "unknown operator: %s", e.Key)
}

// equal is equality; null also matches what is not there.
func (p parser) equal(v any) predicate { return equal{v: v, fold: p.opts.Collation.fold()} }

type equal struct {
	v    any
	fold func(string) string
}

func (e equal) elements() bool { return true }
func (e equal) test(v any, _ *run) bool {
	if e.v == nil {
		switch v.(type) {
		case nil, value.Missing, bson.Undefined:
			return true
		}
		return false
	}
	return value.Rank(v) == value.Rank(e.v) && value.CompareWith(v, e.v, e.fold) == 0 && !missing(v)
}

func missing(v any) bool { return v == any(value.Missing{}) }

type compare struct {
	op   string
	v    any
	fold func(string) string
}

func (p compare) elements() bool { return true }
func (p compare) test(v any, _ *run) bool {
	if p.v == nil {
		switch v.(type) {
		case nil, value.Missing:
			return p.op == "$gte" || p.op == "$lte"
		}
		return false
	}
	if missing(v) {
		return false
	}
	switch p.v.(type) {
	case bson.MinKey, bson.MaxKey: // compared with every type
	default:
		if value.Rank(v) != value.Rank(p.v) {
			return false
		}
		if isNaN(p.v) != isNaN(v) {
			return false
		}
	}
	c := value.CompareWith(v, p.v, p.fold)
	switch p.op {
	case "$gt":
		return c > 0
	case "$gte":
		return c >= 0
	case "$lt":
		return c < 0
	}
	return c <= 0
}

func isNaN(v any) bool {
	switch x := v.(type) {
	case float64:
		return math.IsNaN(x)
	case bson.Decimal128:
		return x.IsNaN()
	}
	return false
}

type in []predicate

func (p parser) in(e bson.E) (predicate, error) {
	list, ok := e.Value.(bson.A)
	if !ok {
		return nil, command.Errorf(2, "%s needs an array", e.Key)
	}
	out := make(in, 0, len(list))
	for _, item := range list {
		switch x := item.(type) {
		case bson.Regex:
			r, err := newRegex(x.Pattern, x.Options)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
			continue
		case bson.D:
			if isOperators(x) {
				return nil, command.Errorf(2, "cannot nest $ under %s", e.Key)
			}
		}
		out = append(out, p.equal(item))
	}
	return out, nil
}

func (p in) elements() bool { return true }
func (p in) test(v any, c *run) bool {
	for _, x := range p {
		if x.test(v, c) {
			return true
		}
	}
	return false
}

type regex struct {
	re *regexp.Regexp
	as bson.Regex
}

func newRegex(pattern, options string) (predicate, error) {
	re, err := expression.Regexp(pattern, options)
	if err != nil {
		return nil, err
	}
	return regex{re, bson.Regex{Pattern: pattern, Options: options}}, nil
}

func (p regex) elements() bool { return true }
func (p regex) test(v any, _ *run) bool {
	switch x := v.(type) {
	case string:
		return p.re.MatchString(x)
	case bson.Symbol:
		return p.re.MatchString(string(x))
	case bson.Regex:
		return x == p.as
	}
	return false
}

type exists struct{}

func (exists) elements() bool          { return false }
func (exists) test(v any, _ *run) bool { return !missing(v) }

type types []int32

func newTypes(v any) (predicate, error) {
	list, ok := v.(bson.A)
	if !ok {
		list = bson.A{v}
	}
	if len(list) == 0 {
		return nil, command.Errorf(9, "$type must match at least one type")
	}
	var out types
	for _, item := range list {
		if s, ok := item.(string); ok {
			if s == "number" {
				out = append(out, 1, 16, 18, 19)
				continue
			}
			n, ok := value.TypeNumber(s)
			if !ok {
				return nil, command.Errorf(2, "Unknown type name alias: %s", s)
			}
			out = append(out, n)
			continue
		}
		n, ok := value.Whole(item)
		if !ok || n < math.MinInt32 || n > math.MaxInt32 || !value.KnownType(int32(n)) {
			return nil, command.Errorf(2, "Invalid numerical type code: %s", value.Text(item))
		}
		out = append(out, int32(n))
	}
	return out, nil
}

func (p types) elements() bool { return true }
func (p types) test(v any, _ *run) bool {
	n := value.TypeOf(v)
	for _, t := range p {
		if t == n && !missing(v) {
			return true
		}
	}
	return false
}

type size int64

func (p size) elements() bool { return false }
func (p size) test(v any, _ *run) bool {
	a, ok := v.(bson.A)
	return ok && int64(len(a)) == int64(p)
}

type mod struct{ divisor, remainder int64 }

func (p mod) elements() bool { return true }
func (p mod) test(v any, _ *run) bool {
	if !value.IsNumber(v) {
		return false
	}
	f := value.Float(v)
	if math.IsNaN(f) || f >= 1<<63 || f < -(1<<63) {
		return false
	}
	i, ok := value.Whole(v)
	if !ok {
		i = int64(f)
	}
	if p.divisor == -1 {
		return p.remainder == 0
	}
	return i%p.divisor == p.remainder
}

type elemMatch struct {
	n         node
	documents bool // the conditions are on fields of the elements
}

func (p elemMatch) elements() bool { return false }
func (p elemMatch) test(v any, c *run) bool {
	a, ok := v.(bson.A)
	if !ok {
		return false
	}
	for i, item := range a {
		if p.documents {
			switch item.(type) {
			case bson.D, bson.A:
			default:
				continue
			}
		}
		outer := c.single
		c.single = !p.documents
		ok := p.n.match(item, c)
		if c.single = outer; ok {
			c.index = i
			return true
		}
	}
	return false
}
