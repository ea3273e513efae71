package query

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/expression"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// predicate tests one value, which may be value.Missing.
type predicate struct {
	test func(v any, c *run) bool
	// elements: those of an array are tested, too.
	elements bool
}

func (p parser) predicate(e bson.E, all bson.D, depth int) (*predicate, error) {
	switch e.Key {
	case "$eq":
		return p.equal(e.Value), nil
	case "$gt", "$gte", "$lt", "$lte":
		if _, ok := e.Value.(bson.Regex); ok {
			return nil, command.Errorf(command.CodeBadValue, "Can't have RegEx as arg to predicate over field '%s'.", e.Key)
		}
		return p.compare(e), nil
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
			return nil, command.Errorf(command.CodeBadValue, "$regex has to be a string")
		}
		if o, ok := value.Field(all, "$options"); ok {
			s, ok := o.(string)
			if !ok {
				return nil, command.Errorf(command.CodeBadValue, "$options has to be a string")
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
			return nil, command.Errorf(command.CodeBadValue, "Failed to parse $size. Expected a number in: $size: %s", value.Text(e.Value))
		}
		if n < 0 {
			return nil, command.Errorf(command.CodeBadValue, "Failed to parse $size. Expected a non-negative number in: $size: %s", value.Text(e.Value))
		}
		return &predicate{test: func(v any, _ *run) bool {
			a, ok := v.(bson.A)
			return ok && int64(len(a)) == n
		}}, nil
	case "$mod":
		list, ok := e.Value.(bson.A)
		if !ok {
			return nil, command.Errorf(command.CodeBadValue, "malformed mod, needs to be an array")
		}
		if len(list) < 2 {
			return nil, command.Errorf(command.CodeBadValue, "malformed mod, not enough elements")
		}
		if len(list) > 2 {
			return nil, command.Errorf(command.CodeBadValue, "malformed mod, too many elements")
		}
		if !value.IsNumber(list[0]) || !value.IsNumber(list[1]) {
			return nil, command.Errorf(command.CodeBadValue, "malformed mod, divisor and remainder must be numbers")
		}
		d, r := int64(value.Float(list[0])), int64(value.Float(list[1]))
		if d == 0 {
			return nil, command.Errorf(command.CodeBadValue, "divisor cannot be 0")
		}
		return mod(d, r), nil
	case "$elemMatch":
		return p.elemMatch(e.Value, depth)
	}
	return nil, command.Errorf(command.CodeBadValue, "unknown operator: %s", e.Key)
}

// equal is equality; null also matches what is not there.
func (p parser) equal(x any) *predicate {
	fold := p.opts.Collation.fold()
	return &predicate{elements: true, test: func(v any, _ *run) bool {
		if x == nil {
			switch v.(type) {
			case nil, value.Missing, bson.Undefined:
				return true
			}
			return false
		}
		return value.Rank(v) == value.Rank(x) && value.CompareWith(v, x, fold) == 0 && !missing(v)
	}}
}

func missing(v any) bool { return v == any(value.Missing{}) }

// compare is $gt, $gte, $lt or $lte.
func (p parser) compare(e bson.E) *predicate {
	op, x, fold := e.Key, e.Value, p.opts.Collation.fold()
	return &predicate{elements: true, test: func(v any, _ *run) bool {
		if x == nil {
			switch v.(type) {
			case nil, value.Missing:
				return op == "$gte" || op == "$lte"
			}
			return false
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
		c := value.CompareWith(v, x, fold)
		switch op {
		case "$gt":
			return c > 0
		case "$gte":
			return c >= 0
		case "$lt":
			return c < 0
		}
		return c <= 0
	}}
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

func (p parser) in(e bson.E) (*predicate, error) {
	list, ok := e.Value.(bson.A)
	if !ok {
		return nil, command.Errorf(command.CodeBadValue, "%s needs an array", e.Key)
	}
	var alternatives []*predicate
	for _, item := range list {
		switch x := item.(type) {
		case bson.Regex:
			r, err := newRegex(x.Pattern, x.Options)
			if err != nil {
				return nil, err
			}
			alternatives = append(alternatives, r)
			continue
		case bson.D:
			if isOperators(x) {
				return nil, command.Errorf(command.CodeBadValue, "cannot nest $ under %s", e.Key)
			}
		}
		alternatives = append(alternatives, p.equal(item))
	}
	return &predicate{elements: true, test: func(v any, c *run) bool {
		return slices.ContainsFunc(alternatives, func(x *predicate) bool { return x.test(v, c) })
	}}, nil
}

func newRegex(pattern, options string) (*predicate, error) {
	re, err := expression.Regexp(pattern, options)
	if err != nil {
		return nil, err
	}
	as := bson.Regex{Pattern: pattern, Options: options}
	return &predicate{elements: true, test: func(v any, _ *run) bool {
		switch x := v.(type) {
		case string:
			return re.MatchString(x)
		case bson.Symbol:
			return re.MatchString(string(x))
		case bson.Regex:
			return x == as
		}
		return false
	}}, nil
}

// exists is {$exists: true}.
var exists = &predicate{test: func(v any, _ *run) bool { return !missing(v) }}

func newTypes(v any) (*predicate, error) {
	list, ok := v.(bson.A)
	if !ok {
		list = bson.A{v}
	}
	if len(list) == 0 {
		return nil, command.Errorf(command.CodeFailedToParse, "$type must match at least one type")
	}
	var out []int32
	for _, item := range list {
		if s, ok := item.(string); ok {
			if s == "number" {
				out = append(out, 1, 16, 18, 19)
				continue
			}
			n, ok := value.TypeNumber(s)
			if !ok {
				return nil, command.Errorf(command.CodeBadValue, "Unknown type name alias: %s", s)
			}
			out = append(out, n)
			continue
		}
		n, ok := value.Whole(item)
		if !ok || n < math.MinInt32 || n > math.MaxInt32 || !value.KnownType(int32(n)) {
			return nil, command.Errorf(command.CodeBadValue, "Invalid numerical type code: %s", value.Text(item))
		}
		out = append(out, int32(n))
	}
	return &predicate{elements: true, test: func(v any, _ *run) bool {
		return slices.Contains(out, value.TypeOf(v)) && !missing(v)
	}}, nil
}

// mod is $mod.
func mod(divisor, remainder int64) *predicate {
	return &predicate{elements: true, test: func(v any, _ *run) bool {
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
		if divisor == -1 {
			return remainder == 0
		}
		return i%divisor == remainder
	}}
}

func (p parser) elemMatch(arg any, depth int) (*predicate, error) {
	n, documents, err := p.element(arg, depth)
	return &predicate{test: func(v any, c *run) bool {
		a, ok := v.(bson.A)
		if !ok {
			return false
		}
		for i, item := range a {
			if documents {
				switch item.(type) {
				case bson.D, bson.A:
				default:
					continue
				}
			}
			outer := c.single
			c.single = !documents
			ok := n.match(item, c)
			if c.single = outer; ok {
				c.index = i
				return true
			}
		}
		return false
	}}, err
}

// element parses the condition of $elemMatch, and reports whether it is on fields of the elements.
func (p parser) element(arg any, depth int) (n node, documents bool, err error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, false, command.Errorf(command.CodeBadValue, "$elemMatch needs an Object")
	}
	if onValue(d) {
		n, err = p.operators(nil, d, depth+1)
		return n, false, err
	}
	n, err = p.conjunction(d, false, depth+1)
	return n, true, err
}

// onValue reports whether a document has operators on a value, not conditions on fields.
func onValue(d bson.D) bool {
	return isOperators(d) && !slices.Contains([]string{"$and", "$or", "$nor", "$expr"}, d[0].Key)
}
