package expression

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// operator is a row of the table of operators. Its argument is an array of arguments or a single one.
type operator struct {
	min, max int // number of arguments; max -1: unlimited
	eval     func(e *Env, args []Expr) any
}

var operators = map[string]operator{
	"$eq":       {2, 2, func(e *Env, args []Expr) any { return value.Equal(args[0](e), args[1](e)) }},
	"$lte":      {2, 2, func(e *Env, args []Expr) any { return value.Compare(args[0](e), args[1](e)) <= 0 }},
	"$or":       {0, -1, or},
	"$cond":     {3, 3, cond},
	"$ifNull":   {2, -1, ifNull},
	"$add":      {0, -1, arithmetic("$add", 0, value.Add)},
	"$multiply": {0, -1, arithmetic("$multiply", 1, value.Multiply)},
	"$rand":     {0, 1, func(*Env, []Expr) any { return rand.Float64() }},
	"$size":     {1, 1, size},
	"$type":     {1, 1, func(e *Env, args []Expr) any { return value.TypeName(args[0](e)) }},
}

func (p *parser) operator(name string, arg any) Expr {
	switch name {
	case "$literal":
		return constant(arg)
	case "$setField":
		return p.setField(arg)
	}
	o, ok := operators[name]
	if !ok {
		return p.fail(command.CodeInvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	list, ok := arg.(bson.A)
	if !ok {
		list = bson.A{arg}
	}
	switch n := len(list); {
	case o.min == o.max && n != o.min:
		return p.fail(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, o.min, n)
	case n < o.min || o.max >= 0 && n > o.max:
		return p.fail(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, o.min, o.max, n)
	}
	args := p.all(list)
	return func(e *Env) any { return o.eval(e, args) }
}

// or evaluates arguments up to the first true one.
func or(e *Env, args []Expr) any {
	for _, a := range args {
		if value.Truthy(a(e)) {
			return true
		}
	}
	return false
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
		if v = a(e); !value.IsNull(v) {
			break
		}
	}
	return v
}

// arithmetic is an operator on numbers. If one of them is null, so is the result. $add also accepts dates.
func arithmetic(name string, start int32, f func(a, b any) (any, bool)) func(*Env, []Expr) any {
	return func(e *Env, args []Expr) any {
		var result any = start
		isDate := false
		for _, a := range args {
			v := a(e)
			if e.err != nil || value.IsNull(v) {
				return nil
			}
			if date, ok := v.(bson.DateTime); ok && name == "$add" {
				v, isDate = int64(date), true
			}
			if !value.IsNumber(v) {
				return e.fail(command.CodeTypeMismatch, "%s only supports numeric types, not %s", name, value.TypeName(v))
			}
			if result, _ = f(result, v); result == nil {
				return e.fail(command.CodeNotImplemented, "%s of Decimal128 is not implemented by the embedded deployment", name)
			}
		}
		if isDate {
			whole, _ := value.Int64(result)
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

// setField is $setField, which has named arguments. All of them are required.
func (p *parser) setField(arg any) Expr {
	d, ok := arg.(bson.D)
	if !ok {
		return p.fail(command.CodeFailedToParse, "$setField only supports an object as its argument")
	}
	args := map[string]Expr{}
	for _, name := range []string{"field", "input", "value"} {
		arg, ok := value.Field(d, name)
		p.Refuse(!ok, command.CodeFailedToParse, "Missing '%s' parameter to $setField", name)
		args[name] = p.parse(arg)
	}
	for _, a := range d {
		p.Refuse(args[a.Key] == nil, command.CodeFailedToParse, "Unrecognized parameter to $setField: %s", a.Key)
	}
	return func(e *Env) any {
		field, input, v := args["field"](e), args["input"](e), args["value"](e)
		key, ok := field.(string)
		if !ok {
			return e.fail(4161107, "$setField requires 'field' to evaluate to type String, but got %s", value.TypeName(field))
		}
		if value.IsNull(input) {
			return nil
		}
		d, ok := input.(bson.D)
		if !ok {
			return e.fail(4161105, "$setField requires 'input' to evaluate to type Object")
		}
		if (v == value.Missing{}) {
			return value.Delete(d, key)
		}
		return e.count(value.Set(slices.Clone(d), key, v))
	}
}
