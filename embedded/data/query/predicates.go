package query

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// predicate tests one value, which may be value.Missing.
type predicate func(v any) bool

func (p *parser) predicate(e bson.E, all bson.D) predicate {
	switch e.Key {
	case "$eq":
		return p.equality(e.Value)
	case "$gt":
		return p.compare(e, func(c int) bool { return c > 0 })
	case "$gte":
		return p.compare(e, func(c int) bool { return c >= 0 })
	case "$lt":
		return p.compare(e, func(c int) bool { return c < 0 })
	case "$lte":
		return p.compare(e, func(c int) bool { return c <= 0 })
	case "$in":
		return p.in(e)
	case "$regex":
		return p.regexOperator(e.Value, all)
	case "$type":
		return p.types(e.Value)
	}
	p.Fail(command.CodeBadValue, "unknown operator: %s", e.Key)
	return nil
}

func missing(v any) bool { return v == any(value.Missing{}) }

// equal is what a field that has this value in a filter matches.
func (p *parser) equal(x any) predicate {
	if r, ok := x.(bson.Regex); ok {
		return p.regex(r.Pattern, r.Options)
	}
	return p.equality(x)
}

// equality is $eq; null also matches what is not there.
func (p *parser) equality(x any) predicate {
	fold := p.opts.Collation.fold()
	return func(v any) bool {
		if x == nil {
			switch v.(type) {
			case nil, value.Missing, bson.Undefined:
				return true
			}
			return false
		}
		return value.Rank(v) == value.Rank(x) && value.CompareWith(v, x, fold) == 0 && !missing(v)
	}
}

// compare is $gt, $gte, $lt or $lte.
func (p *parser) compare(e bson.E, holds func(int) bool) predicate {
	x, fold := e.Value, p.opts.Collation.fold()
	if _, ok := x.(bson.Regex); ok {
		p.Fail(command.CodeBadValue, "Can't have RegEx as arg to predicate over field '%s'.", e.Key)
	}
	return func(v any) bool {
		if x == nil {
			return holds(0) && (v == nil || missing(v))
		}
		if missing(v) {
			return false
		}
		switch x.(type) {
		case bson.MinKey, bson.MaxKey: // compared with every type
		default:
			if value.Rank(v) != value.Rank(x) || isNaN(x) != isNaN(v) {
				return false
			}
		}
		return holds(value.CompareWith(v, x, fold))
	}
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

// in is $in, and what $nin negates.
func (p *parser) in(e bson.E) predicate {
	list, ok := e.Value.(bson.A)
	if !ok {
		p.Fail(command.CodeBadValue, "%s needs an array", e.Key)
	}
	alternatives := make([]predicate, len(list))
	for i, item := range list {
		if d, ok := item.(bson.D); ok && isOperators(d) {
			p.Fail(command.CodeBadValue, "cannot nest $ under %s", e.Key)
		}
		alternatives[i] = p.equal(item)
	}
	return func(v any) bool {
		return slices.ContainsFunc(alternatives, func(x predicate) bool { return x(v) })
	}
}

// regexOperator is $regex, with the $options beside it.
func (p *parser) regexOperator(v any, all bson.D) predicate {
	pattern, options := "", ""
	switch r := v.(type) {
	case string:
		pattern = r
	case bson.Regex:
		pattern, options = r.Pattern, r.Options
	default:
		p.Fail(command.CodeBadValue, "$regex has to be a string")
	}
	if o, ok := value.Field(all, "$options"); ok {
		s, ok := o.(string)
		if !ok {
			p.Fail(command.CodeBadValue, "$options has to be a string")
		}
		if options != "" {
			p.Fail(51075, "options set in both $regex and $options")
		}
		options = s
	}
	return p.regex(pattern, options)
}

func (p *parser) regex(pattern, options string) predicate {
	re, err := compileRegexp(pattern, options)
	p.Note(err)
	as := bson.Regex{Pattern: pattern, Options: options}
	return func(v any) bool {
		switch x := v.(type) {
		case string:
			return re.MatchString(x)
		case bson.Symbol:
			return re.MatchString(string(x))
		case bson.Regex:
			return x == as
		}
		return false
	}
}

// types is $type.
func (p *parser) types(v any) predicate {
	list, ok := v.(bson.A)
	if !ok {
		list = bson.A{v}
	}
	if len(list) == 0 {
		p.Fail(command.CodeFailedToParse, "$type must match at least one type")
	}
	var types []int32
	for _, item := range list {
		if item == "number" {
			types = append(types, 1, 16, 18, 19)
			continue
		}
		var n int64
		if s, named := item.(string); named {
			code, ok := value.TypeNumber(s)
			if !ok {
				p.Fail(command.CodeBadValue, "Unknown type name alias: %s", s)
			}
			n = int64(code)
		} else if n, ok = value.Whole(item); !ok || n != int64(int32(n)) || !value.KnownType(int32(n)) {
			p.Fail(command.CodeBadValue, "Invalid numerical type code: %s", value.Text(item))
		}
		types = append(types, int32(n))
	}
	return func(v any) bool { return slices.Contains(types, value.TypeOf(v)) && !missing(v) }
}
