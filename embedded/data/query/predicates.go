package query

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// predicate tests one value, which may be value.Missing.
type predicate func(v any) bool

func (p *parser) predicate(e bson.E) predicate {
	switch e.Key {
	case "$eq":
		return p.equality(e.Value)
	case "$gt", "$gte", "$lt", "$lte":
		return p.compare(e)
	case "$in":
		return p.in(e)
	case "$regex":
		if pattern, ok := e.Value.(string); ok {
			return p.regex(pattern, "")
		}
		r, ok := e.Value.(bson.Regex)
		p.Refuse(!ok, command.CodeBadValue, "$regex has to be a string")
		return p.regex(r.Pattern, r.Options)
	case "$type":
		return p.types(e.Value)
	}
	p.Fail(command.CodeBadValue, "unknown operator: %s", e.Key)
	return nil
}

func missing(v any) bool { return v == any(value.Missing{}) }

// equal parses a value in a filter, which may be a regular expression.
func (p *parser) equal(x any) predicate {
	if r, ok := x.(bson.Regex); ok {
		return p.regex(r.Pattern, r.Options)
	}
	return p.equality(x)
}

// equality is $eq. null also matches a missing field.
func (p *parser) equality(x any) predicate {
	c := p.opts.Collation
	x = c.Fold(x)
	return func(v any) bool {
		if x == nil {
			return value.IsNull(v)
		}
		return value.Equal(c.Fold(v), x) && !missing(v)
	}
}

// comparisons maps the ordering operators to conditions on the result of a comparison.
var comparisons = map[string]func(c int) bool{
	"$gt":  func(c int) bool { return c > 0 },
	"$gte": func(c int) bool { return c >= 0 },
	"$lt":  func(c int) bool { return c < 0 },
	"$lte": func(c int) bool { return c <= 0 },
}

// compare is $gt, $gte, $lt or $lte.
func (p *parser) compare(e bson.E) predicate {
	holds := comparisons[e.Key]
	x, collation, rank, nan := e.Value, p.opts.Collation, value.Rank(e.Value), isNaN(e.Value)
	_, isRegex := x.(bson.Regex)
	p.Refuse(isRegex, command.CodeBadValue, "Can't have RegEx as arg to predicate over field '%s'.", e.Key)
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
			if value.Rank(v) != rank || isNaN(v) != nan {
				return false
			}
		}
		return holds(collation.Compare(v, x))
	}
}

func isNaN(v any) bool { return math.IsNaN(value.Float(v)) }

// in is $in, which $nin negates.
func (p *parser) in(e bson.E) predicate {
	list, ok := e.Value.(bson.A)
	p.Refuse(!ok, command.CodeBadValue, "%s needs an array", e.Key)
	alternatives := make([]predicate, len(list))
	for i, item := range list {
		d, _ := item.(bson.D)
		p.Refuse(isOperators(d), command.CodeBadValue, "cannot nest $ under %s", e.Key)
		alternatives[i] = p.equal(item)
	}
	return func(v any) bool {
		return slices.ContainsFunc(alternatives, func(x predicate) bool { return x(v) })
	}
}

// regex matches a pattern in Go's syntax. It supports the options i, m and s.
func (p *parser) regex(pattern, options string) predicate {
	flagged := pattern
	if options != "" {
		flagged = "(?" + options + ")" + pattern
	}
	p.Refuse(strings.Trim(options, "ims") != "", 51108, "invalid flag in regex options: %s", options)
	re, err := regexp.Compile(flagged)
	p.Refuse(err != nil, 51091, "Regular expression is invalid: %v", err)
	as := bson.Regex{Pattern: pattern, Options: options}
	return func(v any) bool {
		switch x := v.(type) {
		case string:
			return re.MatchString(x)
		case bson.Regex:
			return x == as
		}
		return false
	}
}

// types is $type with one type name or an array of them.
func (p *parser) types(v any) predicate {
	list, ok := v.(bson.A)
	if !ok {
		list = bson.A{v}
	}
	for _, item := range list {
		name, _ := item.(string)
		p.Refuse(!value.IsTypeName(name), command.CodeBadValue, "Unknown type name alias: %s", name)
	}
	return func(v any) bool { return slices.Contains(list, any(value.TypeName(v))) && !missing(v) }
}

// Scripts is the environment of $where functions.
type Scripts struct {
	Disabled bool                      // the server has no script engine
	Sleep    func(time.Duration) error // the function sleep; its error ends the match
	// Stopped returns an error if the operation is over; the error ends the match. It is called from another
	// goroutine while a function runs.
	Stopped func() error
}

// longestSleep limits one call of sleep.
const longestSleep = 24 * time.Hour

// where parses $where: an expression or a function that is evaluated for each document.
func (p *parser) where(v any) node {
	s := p.opts.Scripts
	switch {
	case s == nil:
		p.Fail(command.CodeBadValue, "$where is not allowed in this context")
		return nil
	case s.Disabled:
		p.Fail(command.CodeBadValue, "no globalScriptEngine in $where parsing")
	}
	source, ok := v.(string)
	if code, isCode := v.(bson.JavaScript); isCode {
		source, ok = string(code), true
	}
	p.Refuse(!ok, command.CodeBadValue, "$where got bad type")
	f, err := script.ParseCondition(source)
	p.Note(err)
	p.scripted = true
	return func(doc any, c *run) bool {
		if c.err != nil {
			return false
		}
		var r any
		r, c.err = f.Call(s.Stopped, doc, map[string]script.Builtin{"sleep": s.sleep})
		return c.err == nil && r == true
	}
}

// sleep is the JavaScript function sleep(milliseconds).
func (s *Scripts) sleep(args []any) (any, error) {
	ms := math.NaN()
	if len(args) == 1 {
		ms, _ = args[0].(float64)
	}
	if !(ms > 0) {
		return nil, nil
	}
	ms = min(ms, float64(longestSleep/time.Millisecond))
	return nil, s.Sleep(time.Duration(ms * float64(time.Millisecond)))
}
