package expression

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// operator is a row of the table of operators.
type operator struct {
	min, max int      // number of arguments; max -1: any
	names    []string // of the arguments in a document, which is the only way if max is 0
	eval     func(e *Env, args []Expr) any
}

var operators = map[string]operator{
	"$eq":  comparison(func(c int) bool { return c == 0 }),
	"$ne":  comparison(func(c int) bool { return c != 0 }),
	"$gt":  comparison(func(c int) bool { return c > 0 }),
	"$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt":  comparison(func(c int) bool { return c < 0 }),
	"$lte": comparison(func(c int) bool { return c <= 0 }),

	"$and":    {max: -1, eval: logical(false)},
	"$or":     {max: -1, eval: logical(true)},
	"$not":    {min: 1, max: 1, eval: func(e *Env, args []Expr) any { return !value.Truthy(args[0](e)) }},
	"$cond":   {min: 3, max: 3, names: []string{"if", "then", "else"}, eval: cond},
	"$ifNull": {min: 2, max: -1, eval: ifNull},

	"$add":      {max: -1, eval: arithmetic("$add", 0, value.Add)},
	"$multiply": {max: -1, eval: arithmetic("$multiply", 1, value.Multiply)},
	"$rand":     {max: 1, eval: func(*Env, []Expr) any { return rand.Float64() }},

	"$size":     {min: 1, max: 1, eval: size},
	"$type":     {min: 1, max: 1, eval: func(e *Env, args []Expr) any { return value.TypeName(args[0](e)) }},
	"$setField": {names: []string{"field", "input", "value"}, eval: setField},
}

func (p *parser) operator(name string, arg any) Expr {
	if name == "$literal" {
		return constant(arg)
	}
	o, ok := operators[name]
	if !ok {
		return p.fail(command.CodeInvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	list, isList := arg.(bson.A)
	if !isList {
		list = bson.A{arg}
	}
	var args []Expr
	n := len(list)
	switch {
	case o.names != nil && (!isList || o.max == 0):
		args = p.named(name, arg, o.names)
	case o.min == o.max && n != o.min:
		return p.fail(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, o.min, n)
	case n < o.min || o.max >= 0 && n > o.max:
		return p.fail(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, o.min, o.max, n)
	default:
		args = p.all(list)
	}
	return func(e *Env) any { return o.eval(e, args) }
}

// named parses the named arguments of an operator, in the order of the names. All of them must be given, and no others.
func (p *parser) named(op string, arg any, names []string) []Expr {
	d, ok := arg.(bson.D)
	if !ok {
		p.fail(command.CodeFailedToParse, "%s only supports an object as its argument", op)
	}
	out := make([]Expr, len(names))
	for _, e := range d {
		i := slices.Index(names, e.Key)
		if i < 0 {
			p.fail(command.CodeFailedToParse, "Unrecognized parameter to %s: %s", op, e.Key)
			return out
		}
		out[i] = p.parse(e.Value)
	}
	for i, n := range names {
		if out[i] == nil {
			p.fail(command.CodeFailedToParse, "Missing '%s' parameter to %s", n, op)
		}
	}
	return out
}

func nullish(v any) bool {
	switch v.(type) {
	case nil, bson.Undefined, value.Missing:
		return true
	}
	return false
}

func comparison(holds func(int) bool) operator {
	return operator{min: 2, max: 2, eval: func(e *Env, args []Expr) any { return holds(value.Compare(args[0](e), args[1](e))) }}
}

// logical is $and and $or, which stop at an argument that decides.
func logical(stop bool) func(*Env, []Expr) any {
	return func(e *Env, args []Expr) any {
		for _, a := range args {
			if v := a(e); e.err != nil || value.Truthy(v) == stop {
				return stop
			}
		}
		return !stop
	}
}

func cond(e *Env, args []Expr) any {
	if value.Truthy(args[0](e)) {
		return args[1](e)
	}
	return args[2](e)
}

func ifNull(e *Env, args []Expr) any {
	var v any
	for _, a := range args {
		if v = a(e); e.err != nil || !nullish(v) {
			break
		}
	}
	return v
}

// arithmetic is an operator of any number of numbers; null among them makes null. $add takes dates as well.
func arithmetic(name string, start int32, f func(a, b any) (any, bool)) func(*Env, []Expr) any {
	what := map[string]string{"$add": "numeric or date"}[name]
	if what == "" {
		what = "numeric"
	}
	return func(e *Env, args []Expr) any {
		var result any = start
		dated := false
		for _, a := range args {
			v := a(e)
			if e.err != nil || nullish(v) {
				return nil
			}
			if date, ok := v.(bson.DateTime); ok && name == "$add" {
				v, dated = int64(date), true
			}
			if !value.IsNumber(v) {
				return e.fail(command.CodeTypeMismatch, "%s only supports %s types, not %s", name, what, value.TypeName(v))
			}
			result, _ = f(result, v)
		}
		if dated {
			whole, _ := value.Whole(result)
			return bson.DateTime(whole)
		}
		return result
	}
}

func size(e *Env, args []Expr) any {
	v := args[0](e)
	list, ok := v.(bson.A)
	if !ok {
		return e.fail(17124, "The argument to $size must be an array, but was of type: %s", value.TypeName(v))
	}
	return int32(len(list))
}

func setField(e *Env, args []Expr) any {
	field, input, v := args[0](e), args[1](e), args[2](e)
	key, ok := field.(string)
	if !ok {
		return e.fail(4161107, "$setField requires 'field' to evaluate to type String, but got %s", value.TypeName(field))
	}
	if nullish(input) {
		return nil
	}
	d, ok := input.(bson.D)
	if !ok {
		return e.fail(4161105, "$setField requires 'input' to evaluate to type Object")
	}
	if (v == value.Missing{}) {
		return value.Delete(d, key)
	}
	return e.make(value.Set(slices.Clone(d), key, v))
}
