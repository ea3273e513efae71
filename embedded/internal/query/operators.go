package query

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// A fieldOperator parses an operator on the field at a path.
type fieldOperator func(p *parser, parts []string, e bson.E) node

// fieldOperators is the table of operators on a field. init fills it, because some refer to it.
var fieldOperators map[string]fieldOperator

func init() {
	compare := leaf((*parser).compare)
	bits := leaf((*parser).bits)
	fieldOperators = map[string]fieldOperator{
		"$eq":  leaf(func(p *parser, e bson.E) predicate { return p.equality(e.Value) }),
		"$gt":  compare,
		"$gte": compare,
		"$lt":  compare,
		"$lte": compare,
		"$in":  leaf((*parser).in),
		"$nin": func(p *parser, parts []string, e bson.E) node { return not(at(parts, p.in(e))) },
		"$ne": func(p *parser, parts []string, e bson.E) node {
			p.Refuse(value.Is[bson.Regex](e.Value), fault.BadValue, "Can't have regex as arg to $ne.")
			return not(at(parts, p.equal(e.Value)))
		},
		"$exists": func(_ *parser, parts []string, e bson.E) node {
			present := at(parts, func(v any) bool { return !value.IsMissing(v) })
			if !value.Truthy(e.Value) {
				return not(present)
			}
			return present
		},
		"$not":          (*parser).not,
		"$type":         leaf(func(p *parser, e bson.E) predicate { return p.types(e.Value) }),
		"$size":         (*parser).size,
		"$elemMatch":    (*parser).elemMatch,
		"$all":          (*parser).all,
		"$mod":          leaf((*parser).mod),
		"$bitsAllSet":   bits,
		"$bitsAllClear": bits,
		"$bitsAnySet":   bits,
		"$bitsAnyClear": bits,
	}
}

// leaf is an operator on each value at a path, and on each element of an array there.
func leaf(parse func(p *parser, e bson.E) predicate) fieldOperator {
	return func(p *parser, parts []string, e bson.E) node { return at(parts, parse(p, e)) }
}

// operator parses one operator on a field, such as {$gt: 1}.
func (p *parser) operator(parts []string, e bson.E) node {
	parse := fieldOperators[e.Key]
	if parse == nil {
		p.Note(fault.Refusal("condition", e.Key, p.opts.Wire))
		p.Fail(fault.BadValue, "unknown operator: %s", e.Key)
		return nil
	}
	return parse(p, parts, e)
}

// operators parses a document of operators on a field. $regex and $options belong together.
func (p *parser) operators(parts []string, d bson.D) node {
	var nodes []node
	defer func(path string) { p.path = path }(p.path)
	p.path = strings.Join(parts, ".")
	_, hasRegex := value.Field(d, "$regex")
	for _, e := range d {
		switch {
		case e.Key == "$regex":
			nodes = append(nodes, at(parts, p.regexDocument(d)))
		case e.Key == "$options":
			p.Refuse(!hasRegex, fault.BadValue, "$options needs a $regex")
		default:
			nodes = append(nodes, p.operator(parts, e))
		}
	}
	return and(nodes)
}

func (p *parser) regexDocument(d bson.D) predicate {
	pattern, _ := value.Get(d, "$regex").(string)
	given, hasOptions := value.Field(d, "$options")
	options, isText := given.(string)
	p.Refuse(hasOptions && !isText, fault.BadValue, "$options has to be a string")
	switch r := value.Get(d, "$regex").(type) {
	case string:
	case bson.Regex:
		p.Refuse(r.Options != "" && options != "", 51075, "options set in both $regex and $options")
		pattern, options = r.Pattern, options+r.Options
	default:
		p.Fail(fault.BadValue, "$regex has to be a string")
	}
	return p.regex(pattern, options)
}

func (p *parser) not(parts []string, e bson.E) node {
	if r, ok := e.Value.(bson.Regex); ok {
		return not(at(parts, p.regex(r.Pattern, r.Options)))
	}
	d, ok := e.Value.(bson.D)
	p.Refuse(!ok, fault.BadValue, "$not needs a regex or a document")
	p.Refuse(len(d) == 0, fault.BadValue, "$not cannot be empty")
	return not(p.operators(parts, d))
}

// size is $size. It tests an array itself, not its elements.
func (p *parser) size(parts []string, e bson.E) node {
	text := e.Key + ": " + value.Text(e.Value)
	n, exact := value.Int64(e.Value)
	p.Refuse(!value.IsNumber(e.Value), fault.BadValue, "Failed to parse $size. Expected a number in: %s", text)
	p.Refuse(!exact, fault.BadValue, "Failed to parse $size. Expected an integer: %s", text)
	p.Refuse(n < 0, fault.BadValue, "Failed to parse $size. Expected a non-negative number in: %s", text)
	has := predicate(func(v any) bool {
		a, ok := v.(bson.A)
		return ok && int64(len(a)) == n
	})
	if parts == nil {
		return at(nil, has)
	}
	return func(doc any, c *run) bool { return c.found(has.find(doc, parts, true)) }
}

// elemMatch is $elemMatch with conditions on elements, or on the fields of elements.
func (p *parser) elemMatch(parts []string, e bson.E) node {
	matches := p.element(e)
	return func(doc any, c *run) bool {
		inner := -1
		contains := predicate(func(v any) bool {
			a, _ := v.(bson.A)
			inner = slices.IndexFunc(a, matches)
			return inner >= 0
		})
		if parts == nil {
			return contains(doc)
		}
		outer, ok := contains.find(doc, parts, true)
		if outer < 0 {
			outer = inner
		}
		return c.found(outer, ok)
	}
}

// element parses the condition of $elemMatch on one element. For a condition on fields, an array is a document.
func (p *parser) element(e bson.E) predicate {
	d, ok := e.Value.(bson.D)
	p.Refuse(!ok, fault.BadValue, "$elemMatch needs an Object")
	var n node
	ofValues := IsOperators(d) && !slices.Contains([]string{"$and", "$or", "$nor", "$where", "$expr"}, d[0].Key)
	if ofValues {
		n = p.operators(nil, d)
	} else {
		defer func(before bool) { p.inElement = before }(p.inElement)
		p.inElement = true
		n = p.conjunction(d)
	}
	return func(item any) bool {
		_, isDocument := item.(bson.D)
		list, isArray := item.(bson.A)
		if isArray && !ofValues {
			item = asDocument(list)
		}
		return (ofValues || isDocument || isArray) && n(item, &run{})
	}
}

func (p *parser) all(parts []string, e bson.E) node {
	list, ok := e.Value.(bson.A)
	p.Refuse(!ok, fault.BadValue, "$all needs an array")
	var nodes []node
	for _, item := range list {
		d, _ := item.(bson.D)
		switch {
		case len(d) > 0 && d[0].Key == "$elemMatch":
			nodes = append(nodes, p.operator(parts, d[0]))
		case IsOperators(d):
			p.Fail(fault.BadValue, "no $ expressions in $all")
		default:
			nodes = append(nodes, at(parts, p.equal(item)))
		}
	}
	if len(nodes) == 0 {
		return func(any, *run) bool { return false }
	}
	return and(nodes)
}

func (p *parser) mod(e bson.E) predicate {
	list, ok := e.Value.(bson.A)
	p.Refuse(!ok, fault.BadValue, "malformed mod, needs to be an array")
	p.Refuse(len(list) < 2, fault.BadValue, "malformed mod, not enough elements")
	p.Refuse(len(list) > 2, fault.BadValue, "malformed mod, too many elements")
	if p.Err != nil {
		return nil
	}
	p.Refuse(!value.IsNumber(list[0]), fault.BadValue, "malformed mod, divisor not a number")
	p.Refuse(!value.IsNumber(list[1]), fault.BadValue, "malformed mod, remainder not a number")
	divisor, remainder := int64(value.Float(list[0])), int64(value.Float(list[1]))
	p.Refuse(divisor == 0, fault.BadValue, "divisor cannot be 0")
	return func(v any) bool {
		f := value.Float(v)
		if !value.IsNumber(v) || math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
		n, exact := value.Int64(v)
		if !exact {
			n = int64(f)
		}
		return n%divisor == remainder
	}
}

// bits is $bitsAllSet, $bitsAllClear, $bitsAnySet or $bitsAnyClear on numbers.
func (p *parser) bits(e bson.E) predicate {
	var mask uint64
	switch v := e.Value.(type) {
	case bson.A:
		for i, item := range v {
			n, ok := value.Int64(item)
			p.Refuse(!ok, fault.BadValue, "bit positions must be an integer but got: %d: %s", i, value.Text(item))
			p.Refuse(n < 0, fault.BadValue, "bit positions must be >= 0 but got: %d: %s", i, value.Text(item))
			mask |= 1 << max(0, min(n, 63))
		}
	case bson.Binary:
		p.Fail(fault.NotImplemented, "%s with BinData is not implemented by the embedded deployment", e.Key)
	default:
		n, ok := value.Int64(v)
		p.Refuse(!value.IsNumber(v), fault.BadValue, "%[1]s takes an Array, a number, or a BinData but received: %[1]s: %[2]s",
			e.Key, value.Text(v))
		p.Refuse(!ok, fault.FailedToParse, "Expected an integer: %s: %s", e.Key, value.Text(v))
		p.Refuse(n < 0, fault.FailedToParse, "Expected a non-negative number in: %s: %s", e.Key, value.Text(v))
		mask = uint64(n)
	}
	every, set := strings.HasPrefix(e.Key, "$bitsAll"), strings.HasSuffix(e.Key, "Set")
	return func(v any) bool {
		n, ok := value.Int64(v)
		found := uint64(n)
		if !set {
			found = ^found
		}
		return ok && (every && found&mask == mask || !every && found&mask != 0)
	}
}
