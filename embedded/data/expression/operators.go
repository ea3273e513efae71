package expression

import (
	"math/rand/v2"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// builder makes an expression of an operator's argument as written.
type builder func(name string, arg any, depth int) (Expr, error)

// function is an operator whose arguments are evaluated before it.
type function struct {
	min, max int // number of arguments; max -1 means any
	eval     func(args []any) (any, error)
}

func operator(name string, arg any, depth int) (Expr, error) {
	if b, ok := builders()[name]; ok {
		return b(name, arg, depth)
	}
	f, ok := functions[name]
	if !ok {
		return nil, command.Errorf(command.CodeInvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	list, isList := arg.(bson.A)
	if !isList {
		list = bson.A{arg}
	}
	if len(list) < f.min || f.max >= 0 && len(list) > f.max {
		if f.min == f.max {
			return nil, command.Errorf(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, f.min, len(list))
		}
		return nil, command.Errorf(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, f.min, f.max, len(list))
	}
	args, err := parseAll(list, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		values := make([]any, len(args))
		for i := range args {
			v, err := args[i](e)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		v, err := f.eval(values)
		if err != nil {
			return nil, err
		}
		return e.make(v)
	}, nil
}

func nullish(v any) bool {
	switch v.(type) {
	case nil, bson.Undefined, value.Missing:
		return true
	}
	return false
}

func comparison(holds func(int) bool) function {
	return function{2, 2, func(a []any) (any, error) { return holds(value.Compare(a[0], a[1])), nil }}
}

// arithmetic is an operator of any number of numbers; null among them makes null. $add takes dates as well.
func arithmetic(name string, start int32, f func(a, b any) (any, bool)) function {
	return function{0, -1, func(args []any) (any, error) {
		var result any = start
		for _, v := range args {
			if nullish(v) {
				return nil, nil
			}
			date, isDate := v.(bson.DateTime)
			if isDate && name == "$add" {
				v = int64(date)
			}
			if !value.IsNumber(v) {
				return nil, command.Errorf(command.CodeTypeMismatch, "%s only supports numeric%s types, not %s", name, map[bool]string{true: " or date"}[name == "$add"], value.TypeName(v))
			}
			sum, wasDate := result.(bson.DateTime)
			if wasDate {
				result = int64(sum)
			}
			result, _ = f(result, v)
			if isDate || wasDate {
				whole, _ := value.Whole(result)
				result = bson.DateTime(whole)
			}
		}
		return result, nil
	}}
}

var functions = map[string]function{
	"$eq":  comparison(func(c int) bool { return c == 0 }),
	"$ne":  comparison(func(c int) bool { return c != 0 }),
	"$gt":  comparison(func(c int) bool { return c > 0 }),
	"$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt":  comparison(func(c int) bool { return c < 0 }),
	"$lte": comparison(func(c int) bool { return c <= 0 }),
	"$not": {1, 1, func(a []any) (any, error) { return !value.Truthy(a[0]), nil }},

	"$add":      arithmetic("$add", 0, value.Add),
	"$multiply": arithmetic("$multiply", 1, value.Multiply),
	"$rand":     {0, 1, func([]any) (any, error) { return rand.Float64(), nil }},

	"$type": {1, 1, func(a []any) (any, error) { return value.TypeName(a[0]), nil }},
	"$concat": {0, -1, func(args []any) (any, error) {
		var b strings.Builder
		for _, v := range args {
			if nullish(v) {
				return nil, nil
			}
			s, ok := v.(string)
			if !ok {
				return nil, command.Errorf(16702, "$concat only supports strings, not %s", value.TypeName(v))
			}
			if b.WriteString(s); b.Len() > value.MaxBuilt {
				return nil, tooMuch()
			}
		}
		return b.String(), nil
	}},
	"$size": {1, 1, func(a []any) (any, error) {
		list, ok := a[0].(bson.A)
		if !ok {
			return nil, command.Errorf(17124, "The argument to $size must be an array, but was of type: %s", value.TypeName(a[0]))
		}
		return int32(len(list)), nil
	}},
	"$in": {2, 2, func(a []any) (any, error) {
		list, ok := a[1].(bson.A)
		if !ok {
			return nil, command.Errorf(40081, "$in requires an array as a second argument, found: %s", value.TypeName(a[1]))
		}
		for _, v := range list {
			if value.Equal(v, a[0]) {
				return true, nil
			}
		}
		return false, nil
	}},
	"$mergeObjects": {0, -1, func(args []any) (any, error) {
		if len(args) == 1 {
			if a, ok := args[0].(bson.A); ok {
				args = a
			}
		}
		out := bson.D{}
		for _, v := range args {
			if nullish(v) {
				continue
			}
			d, ok := v.(bson.D)
			if !ok {
				return nil, command.Errorf(40400, "$mergeObjects requires object inputs, but input %s is of type %s", value.Text(v), value.TypeName(v))
			}
			for _, e := range d {
				out = value.Set(out, e.Key, e.Value)
			}
		}
		return out, nil
	}},
}
