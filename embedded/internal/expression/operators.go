package expression

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// operator is a row of the table of operators. Its argument is an array of arguments or a single one.
type operator struct {
	min, max int // number of arguments; max -1: unlimited
	eval     evaluator
}

// operators is the table of the operators with arguments by position.
var operators = map[string]operator{
	"$eq":  comparison(func(c int) bool { return c == 0 }),
	"$ne":  comparison(func(c int) bool { return c != 0 }),
	"$gt":  comparison(func(c int) bool { return c > 0 }),
	"$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt":  comparison(func(c int) bool { return c < 0 }),
	"$lte": comparison(func(c int) bool { return c <= 0 }),
	"$cmp": {2, 2, of(func(e *Env, v []any) any { return int32(e.Collation.Compare(v[0], v[1])) })},

	"$and": {0, -1, func(e *Env, args []Expr) any {
		return !slices.ContainsFunc(args, func(a Expr) bool { return !value.Truthy(a(e)) })
	}},
	"$or": {0, -1, func(e *Env, args []Expr) any {
		return slices.ContainsFunc(args, func(a Expr) bool { return value.Truthy(a(e)) })
	}},
	"$not":    {1, 1, of(func(_ *Env, v []any) any { return !value.Truthy(v[0]) })},
	"$cond":   {3, 3, cond},
	"$ifNull": {2, -1, ifNull},

	"$add":      {0, -1, arithmetic("$add", "numeric or date", 0, value.Add)},
	"$multiply": {0, -1, arithmetic("$multiply", "numeric", 1, value.Multiply)},
	"$subtract": {2, 2, of(subtract)},
	"$divide":   binary("$divide", fault.TypeMismatch, divide),
	"$mod":      binary("$mod", 16611, mod),
	"$round":    rounding("$round", math.RoundToEven),
	"$trunc":    rounding("$trunc", math.Trunc),
	"$abs":      numeric("$abs", 28765, 1, abs),
	"$ceil":     numeric("$ceil", 28765, 1, wholeOr(math.Ceil)),
	"$floor":    numeric("$floor", 28765, 1, wholeOr(math.Floor)),
	"$sqrt":     numeric("$sqrt", 28765, 1, squareRoot),
	"$rand":     {0, 1, func(*Env, []Expr) any { return rand.Float64() }},

	"$size":         on(false, 17124, "The argument to $size must be an array, but was of type: %s", size),
	"$isArray":      {1, 1, of(func(_ *Env, v []any) any { return value.Is[bson.A](v[0]) })},
	"$arrayElemAt":  {2, 2, of(arrayElemAt)},
	"$first":        on(true, 28689, "$first's argument must be an array, but is %s", first),
	"$last":         on(true, 28689, "$last's argument must be an array, but is %s", last),
	"$concatArrays": {0, -1, of(concatArrays)},
	"$in":           {2, 2, of(in)},
	"$indexOfArray": {2, 4, of(indexOfArray)},
	"$reverseArray": on(true, 34435, "The argument to $reverseArray must be an array, but was of type: %s",
		reverseArray),
	"$slice":           {2, 3, of(slice)},
	"$range":           {2, 3, of(sequence)},
	"$arrayToObject":   on(true, 40386, "$arrayToObject requires an array input, found: %s", arrayToObject),
	"$objectToArray":   on(true, 40390, "$objectToArray requires a document input, found: %s", objectToArray),
	"$setUnion":        {0, -1, sets("$setUnion", true, setUnion, 17043)},
	"$setIntersection": {0, -1, sets("$setIntersection", true, setIntersection, 17047)},
	"$setDifference":   {2, 2, sets("$setDifference", true, setDifference, 17048, 17049)},
	"$setEquals":       {2, -1, sets("$setEquals", false, setEquals, 17044)},
	"$setIsSubset":     {2, 2, sets("$setIsSubset", false, setIsSubset, 17046, 17042)},
	"$anyElementTrue":  on(false, 17041, "$anyElementTrue's argument must be an array, but is %s", anyElementTrue),
	"$allElementsTrue": on(false, 17040, "$allElementsTrue's argument must be an array, but is %s", allElementsTrue),

	"$concat":       {0, -1, of(concat)},
	"$toLower":      {1, 1, of(func(e *Env, v []any) any { return lower(text(e, v[0])) })},
	"$toUpper":      {1, 1, of(func(e *Env, v []any) any { return upper(text(e, v[0])) })},
	"$strcasecmp":   {2, 2, of(strcasecmp)},
	"$strLenCP":     on(false, 34471, "$strLenCP requires a string argument, found: %s", codePoints),
	"$strLenBytes":  on(false, 34473, "$strLenBytes requires a string argument, found: %s", bytes),
	"$split":        {2, 2, of(split)},
	"$indexOfCP":    {2, 4, of(func(e *Env, v []any) any { return indexOf(e, "$indexOfCP", v, true) })},
	"$indexOfBytes": {2, 4, of(func(e *Env, v []any) any { return indexOf(e, "$indexOfBytes", v, false) })},
	"$substr":       {3, 3, of(func(e *Env, v []any) any { return substring(e, "$substr", v, false) })},
	"$substrBytes":  {3, 3, of(func(e *Env, v []any) any { return substring(e, "$substrBytes", v, false) })},
	"$substrCP":     {3, 3, of(func(e *Env, v []any) any { return substring(e, "$substrCP", v, true) })},

	"$type":       {1, 1, func(e *Env, args []Expr) any { return value.TypeName(args[0](e)) }},
	"$isNumber":   {1, 1, of(func(_ *Env, v []any) any { return value.IsNumber(v[0]) })},
	"$bsonSize":   on(true, 31393, "$bsonSize requires a document input, found: %s", bsonSize),
	"$toBool":     converter("bool"),
	"$toDate":     converter("date"),
	"$toDouble":   converter("double"),
	"$toInt":      converter("int"),
	"$toLong":     converter("long"),
	"$toString":   converter("string"),
	"$toObjectId": converter("objectId"),
	"$toDecimal":  converter("decimal"),

	"$sum": accumulating(sum), "$avg": accumulating(average), "$mergeObjects": accumulating(mergeObjects),
	"$max": accumulating(extreme(1)), "$min": accumulating(extreme(-1)),
}

// accumulating is an operator that reduces its arguments, or the elements of a single array, as the accumulator does.
func accumulating(f Accumulator) operator {
	return operator{0, -1, of(func(e *Env, v []any) any { return f(e, operands(v)) })}
}

// special are the operators whose argument has a form of its own, such as named arguments. init fills it, because they
// parse expressions.
var special map[string]func(p *parser, arg any) Expr

func init() {
	special = map[string]func(p *parser, arg any) Expr{
		"$literal": func(_ *parser, arg any) Expr { return constant(arg) },
		"$const":   func(_ *parser, arg any) Expr { return constant(arg) },
		"$cond":    named("$cond", 0, 17083, 17080, cond, "if", "then", "else"),
		"$let":     (*parser).let, "$switch": (*parser).switchCase,
		"$map": over("$map", 16878, 16883, "in", mapped), "$filter": over("$filter", 28646, 28651, "cond", filtered),
		"$reduce": (*parser).reduce, "$zip": (*parser).zip,
		"$getField":   (*parser).getField,
		"$setField":   setField("$setField", "field", "input", "value"),
		"$unsetField": setField("$unsetField", "field", "input"),
		"$convert": named("$convert", fault.FailedToParse, fault.FailedToParse, 0, convertTo,
			"input", "to", "onError?", "onNull?"),
		"$trim":       trimmer("$trim", strings.Trim),
		"$ltrim":      trimmer("$ltrim", strings.TrimLeft),
		"$rtrim":      trimmer("$rtrim", strings.TrimRight),
		"$replaceOne": replacer("$replaceOne", 1), "$replaceAll": replacer("$replaceAll", -1),
		"$regexMatch":   regexes("$regexMatch", 1, func(found bson.A) any { return len(found) > 0 }),
		"$regexFind":    regexes("$regexFind", 1, func(found bson.A) any { return value.OrNull(value.Element(found, 0)) }),
		"$regexFindAll": regexes("$regexFindAll", -1, func(found bson.A) any { return found }),
		"$dateToString": named("$dateToString", 18629, 18534, 18628, dateToString,
			"date", "format?", "timezone?", "onNull?"),
		"$dateAdd": moved("$dateAdd", 1), "$dateSubtract": moved("$dateSubtract", -1),
	}
	for name, part := range dateParts {
		special[name] = datePart(name, part)
	}
}

func (p *parser) operator(name string, arg any) Expr {
	p.Note(fault.Refusal("expression", name, p.wire))
	if !fault.Exists("expression", name, p.wire) {
		return p.fail(fault.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	if parse := special[name]; parse != nil && (name != "$cond" || value.Is[bson.D](arg)) {
		return parse(p, arg)
	}
	o := operators[name]
	list, ok := arg.(bson.A)
	if !ok {
		list = bson.A{arg}
	}
	switch n := len(list); {
	case o.min == o.max && n != o.min:
		return p.fail(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, o.min, n)
	case n < o.min && o.max < 0:
		return p.fail(1257300, "%s needs at least two arguments, had: %d", name, n)
	case n < o.min || o.max >= 0 && n > o.max:
		return p.fail(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name,
			o.min, o.max, n)
	}
	return o.eval.bind(p.all(list))
}

// evaluator is what an operator does with its arguments.
type evaluator func(e *Env, args []Expr) any

// bind returns the expression of an operator with arguments.
func (f evaluator) bind(args []Expr) Expr { return func(e *Env) any { return f(e, args) } }

// of is an operator on the values of its arguments.
func of(f func(e *Env, v []any) any) evaluator {
	return func(e *Env, args []Expr) any {
		values := make([]any, len(args))
		for i, a := range args {
			if values[i] = a(e); e.err != nil {
				return nil
			}
		}
		return f(e, values)
	}
}

// on is an operator on a value of a type. The error for another type has the name of that type; a nullable operator
// returns null for null.
func on[T any](nullable bool, code int32, format string, f func(e *Env, v T) any) operator {
	return operator{1, 1, of(func(e *Env, v []any) any {
		x, ok := v[0].(T)
		switch {
		case ok:
			return f(e, x)
		case nullable && value.IsNull(v[0]):
			return nil
		}
		return e.fail(code, format, value.TypeName(v[0]))
	})}
}

func comparison(holds func(c int) bool) operator {
	return operator{2, 2, of(func(e *Env, v []any) any { return holds(e.Collation.Compare(v[0], v[1])) })}
}

func anyNull(v []any) bool { return slices.ContainsFunc(v, value.IsNull) }

func cond(e *Env, args []Expr) any {
	if value.Truthy(args[0](e)) {
		return args[1](e)
	}
	return args[2](e)
}

func ifNull(e *Env, args []Expr) any {
	var v any
	for _, a := range args {
		if v = a(e); !value.IsNull(v) {
			break
		}
	}
	return v
}

// named parses the named arguments of an operator. missing is the code of the error for a missing argument; the codes of
// the others follow it. It is 0 if they are not known: then a missing argument is refused. Names that end in ? are
// optional.
func (p *parser) named(op string, arg any, notDocument, unknown int32, missing int32, names ...string) map[string]any {
	d, ok := arg.(bson.D)
	if !ok {
		p.Fail(notDocument, "%s only supports an object as its argument", op)
		return nil
	}
	out := map[string]any{}
	for _, e := range d {
		p.Refuse(!slices.Contains(names, e.Key) && !slices.Contains(names, e.Key+"?"), unknown,
			"Unrecognized parameter to %s: %s", op, e.Key)
		out[e.Key] = e.Value
	}
	for i, name := range names {
		_, given := out[name]
		given = given || name[len(name)-1] == '?'
		p.Refuse(!given && missing == 0, fault.NotImplemented,
			"%s without '%s' is not implemented by the embedded deployment", op, name)
		p.Refuse(!given, missing+int32(i), "Missing '%s' parameter to %s", name, op)
	}
	return out
}

// named is an operator whose eval gets the named arguments in this order, nil for an optional one that is not given.
func named(op string, notDocument, unknown, missing int32, eval evaluator, names ...string) func(*parser, any) Expr {
	return func(p *parser, arg any) Expr {
		given := p.named(op, arg, notDocument, unknown, missing, names...)
		args := make([]Expr, len(names))
		for i, name := range names {
			args[i] = p.optional(given, strings.TrimSuffix(name, "?"))
		}
		return eval.bind(args)
	}
}

// optional parses an argument, or returns nil if it is missing.
func (p *parser) optional(args map[string]any, name string) Expr {
	v, ok := args[name]
	if !ok {
		return nil
	}
	return p.parse(v)
}

// or returns the value of an optional argument, or another value if it is not given.
func (e *Env) or(x Expr, otherwise any) any {
	if x == nil {
		return otherwise
	}
	return x(e)
}

func (p *parser) let(arg any) Expr {
	args := p.named("$let", arg, 16874, 16875, 16876, "vars", "in")
	vars, _ := args["vars"].(bson.D)
	var names []string
	values := make([]Expr, len(vars))
	for i, v := range vars {
		values[i] = p.parse(v.Value)
		names = append(names, v.Key)
	}
	in := p.scope(args["in"], names...)
	return func(e *Env) any {
		bound := slices.Clone(vars)
		for i, x := range values {
			bound[i].Value = x(e)
		}
		return e.with(in, bound)
	}
}

func (p *parser) switchCase(arg any) Expr {
	d, ok := arg.(bson.D)
	if !ok {
		return p.fail(40060, "$switch requires an object as an argument, found: %s", value.TypeName(arg))
	}
	var conditions, results []Expr
	var otherwise Expr
	for _, e := range d {
		switch e.Key {
		case "branches":
			list, ok := e.Value.(bson.A)
			p.Refuse(!ok, 40061, "$switch expected an array for 'branches', found: %s", value.TypeName(e.Value))
			for _, item := range list {
				branch, ok := item.(bson.D)
				p.Refuse(!ok, 40062, "$switch expected each branch to be an object, found: %s", value.TypeName(item))
				when, hasCase := value.Field(branch, "case")
				then, hasThen := value.Field(branch, "then")
				p.Refuse(!hasCase, 40064, "$switch requires each branch have a 'case' expression")
				p.Refuse(!hasThen, 40065, "$switch requires each branch have a 'then' expression.")
				conditions, results = append(conditions, p.parse(when)), append(results, p.parse(then))
			}
		case "default":
			otherwise = p.parse(e.Value)
		default:
			return p.fail(40067, "$switch found an unknown argument: %s", e.Key)
		}
	}
	p.Refuse(len(conditions) == 0, 40068, "$switch requires at least one branch.")
	return func(e *Env) any {
		for i, c := range conditions {
			if value.Truthy(c(e)) {
				return results[i](e)
			}
		}
		if otherwise == nil {
			return e.fail(40066, "$switch could not find a matching branch for an input, and no default was specified.")
		}
		return otherwise(e)
	}
}
