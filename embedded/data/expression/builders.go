package expression

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// builders are the operators that see their argument as it is written. It is
// a function since they parse expressions again.
func builders() map[string]builder {
	return map[string]builder{
		"$literal":  literal,
		"$const":    literal,
		"$and":      logical,
		"$or":       logical,
		"$cond":     cond,
		"$ifNull":   ifNull,
		"$filter":   filter,
		"$setField": setField,
	}
}

func literal(_ string, arg any, _ int) (Expr, error) { return Constant(arg), nil }

func logical(name string, arg any, depth int) (Expr, error) {
	list, ok := arg.(bson.A)
	if !ok {
		list = bson.A{arg}
	}
	args, err := parseAll(list, depth)
	if err != nil {
		return nil, err
	}
	stop := name == "$or"
	return func(e *Env) (any, error) {
		for _, a := range args {
			v, err := a(e)
			if err != nil {
				return nil, err
			}
			if value.Truthy(v) == stop {
				return stop, nil
			}
		}
		return !stop, nil
	}, nil
}

// named parses the named arguments of an operator. All of them must be given, and no others.
func named(op string, arg any, depth int, names ...string) (map[string]Expr, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(command.CodeFailedToParse, "%s only supports an object as its argument", op)
	}
	out := map[string]Expr{}
	for _, e := range d {
		if !slices.Contains(names, e.Key) {
			return nil, command.Errorf(command.CodeFailedToParse, "Unrecognized parameter to %s: %s", op, e.Key)
		}
		x, err := parse(e.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out[e.Key] = x
	}
	for _, n := range names {
		if out[n] == nil {
			return nil, command.Errorf(command.CodeFailedToParse, "Missing '%s' parameter to %s", n, op)
		}
	}
	return out, nil
}

func cond(name string, arg any, depth int) (Expr, error) {
	var test, then, other Expr
	if list, ok := arg.(bson.A); ok {
		if len(list) != 3 {
			return nil, command.Errorf(16020, "Expression $cond takes exactly 3 arguments. %d were passed in.", len(list))
		}
		args, err := parseAll(list, depth)
		if err != nil {
			return nil, err
		}
		test, then, other = args[0], args[1], args[2]
	} else {
		args, err := named(name, arg, depth, "if", "then", "else")
		if err != nil {
			return nil, err
		}
		test, then, other = args["if"], args["then"], args["else"]
	}
	return func(e *Env) (any, error) {
		v, err := test(e)
		if err != nil {
			return nil, err
		}
		if value.Truthy(v) {
			return then(e)
		}
		return other(e)
	}, nil
}

func ifNull(_ string, arg any, depth int) (Expr, error) {
	list, ok := arg.(bson.A)
	if !ok || len(list) < 2 {
		return nil, command.Errorf(1257300, "$ifNull needs at least two arguments, had: 1")
	}
	args, err := parseAll(list, depth)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		var v any
		var err error
		for _, a := range args {
			if v, err = a(e); err != nil || !nullish(v) {
				return v, err
			}
		}
		return v, nil
	}, nil
}

func filter(name string, arg any, depth int) (Expr, error) {
	d, _ := arg.(bson.D)
	as, others := "this", bson.D{}
	for _, e := range d {
		if s, ok := e.Value.(string); ok && e.Key == "as" {
			as = s
			continue
		}
		others = append(others, e)
	}
	args, err := named(name, others, depth, "input", "cond")
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		v, err := args["input"](e)
		if err != nil || nullish(v) {
			return nil, err
		}
		list, ok := v.(bson.A)
		if !ok {
			return nil, command.Errorf(16883, "input to %s must be an array not %s", name, value.TypeName(v))
		}
		out := bson.A{}
		for _, item := range list {
			v, err := args["cond"](e.With(as, item))
			if err != nil {
				return nil, err
			}
			if value.Truthy(v) {
				out = append(out, item)
			}
		}
		return out, nil
	}, nil
}

func setField(name string, arg any, depth int) (Expr, error) {
	args, err := named(name, arg, depth, "field", "input", "value")
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		f, err := args["field"](e)
		if err != nil {
			return nil, err
		}
		key, ok := f.(string)
		if !ok {
			return nil, command.Errorf(4161107, "%s requires 'field' to evaluate to type String, but got %s", name, value.TypeName(f))
		}
		in, err := args["input"](e)
		if err != nil {
			return nil, err
		}
		if nullish(in) {
			return nil, nil
		}
		d, ok := in.(bson.D)
		if !ok {
			return nil, command.Errorf(4161105, "%s requires 'input' to evaluate to type Object", name)
		}
		v, err := args["value"](e)
		if err != nil {
			return nil, err
		}
		if (v == value.Missing{}) {
			return value.Delete(d, key), nil
		}
		return value.Set(append(bson.D{}, d...), key, v), nil
	}, nil
}
