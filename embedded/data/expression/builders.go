package expression

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// builders are the operators that see their argument as it is written. It is
// a function since they parse expressions again.
func builders() map[string]builder {
	return map[string]builder{
		"$literal":    func(_ string, arg any, _ int) (Expr, error) { return Constant(arg), nil },
		"$const":      func(_ string, arg any, _ int) (Expr, error) { return Constant(arg), nil },
		"$and":        logical,
		"$or":         logical,
		"$cond":       cond,
		"$ifNull":     ifNull,
		"$switch":     switchCase,
		"$let":        let,
		"$map":        mapArray,
		"$filter":     filterArray,
		"$reduce":     reduceArray,
		"$getField":   getField,
		"$setField":   setField,
		"$unsetField": setField,
		"$convert":    convertTo,
		"$regexMatch": regexMatch,
		"$trim":       trim,
		"$ltrim":      trim,
		"$rtrim":      trim,
	}
}

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

// named parses the named arguments of an operator. Names that are not allowed
// are refused; those that are not given are nil.
func named(op string, arg any, depth int, names ...string) (map[string]Expr, error) {
	d, ok := arg.(bson.D)
	if !ok {
		return nil, command.Errorf(9, "%s only supports an object as its argument", op)
	}
	out := map[string]Expr{}
	for _, e := range d {
		known := false
		for _, n := range names {
			known = known || n == e.Key
		}
		if !known {
			return nil, command.Errorf(9, "Unrecognized parameter to %s: %s", op, e.Key)
		}
		x, err := parse(e.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out[e.Key] = x
	}
	return out, nil
}

func require(op string, args map[string]Expr, names ...string) error {
	for _, n := range names {
		if args[n] == nil {
			return command.Errorf(9, "Missing '%s' parameter to %s", n, op)
		}
	}
	return nil
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
		if err == nil {
			err = require(name, args, "if", "then", "else")
		}
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

func switchCase(_ string, arg any, depth int) (Expr, error) {
	d, _ := arg.(bson.D)
	list, _ := value.Field(d, "branches")
	branches, ok := list.(bson.A)
	if !ok {
		return nil, command.Errorf(40061, "$switch expected an array for 'branches', found: %s", value.TypeName(list))
	}
	type branch struct{ test, then Expr }
	var all []branch
	for _, b := range branches {
		args, err := named("$switch", b, depth, "case", "then")
		if err == nil {
			err = require("$switch", args, "case", "then")
		}
		if err != nil {
			return nil, err
		}
		all = append(all, branch{args["case"], args["then"]})
	}
	var other Expr
	if v, ok := value.Field(d, "default"); ok {
		var err error
		if other, err = parse(v, depth+1); err != nil {
			return nil, err
		}
	}
	return func(e *Env) (any, error) {
		for _, b := range all {
			v, err := b.test(e)
			if err != nil {
				return nil, err
			}
			if value.Truthy(v) {
				return b.then(e)
			}
		}
		if other == nil {
			return nil, command.Errorf(40066, "$switch could not find a matching branch for an input, and no default was specified.")
		}
		return other(e)
	}, nil
}

func let(_ string, arg any, depth int) (Expr, error) {
	d, _ := arg.(bson.D)
	v, _ := value.Field(d, "vars")
	vars, ok := v.(bson.D)
	if !ok {
		return nil, command.Errorf(16876, "Missing 'vars' parameter to $let")
	}
	in, ok := value.Field(d, "in")
	if !ok {
		return nil, command.Errorf(16877, "Missing 'in' parameter to $let")
	}
	values := make([]Expr, len(vars))
	for i := range vars {
		x, err := parse(vars[i].Value, depth+1)
		if err != nil {
			return nil, err
		}
		values[i] = x
	}
	body, err := parse(in, depth+1)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		inner := e
		for i := range vars {
			v, err := values[i](e)
			if err == nil {
				v, err = keep(v)
			}
			if err != nil {
				return nil, err
			}
			inner = inner.With(vars[i].Key, v)
		}
		return body(inner)
	}, nil
}

// iteration parses what $map and $filter have in common.
func iteration(op string, arg any, depth int, body string) (input, each Expr, as string, err error) {
	as = "this"
	d, _ := arg.(bson.D)
	rest := make(bson.D, 0, len(d))
	for _, e := range d {
		if e.Key == "as" {
			if s, ok := e.Value.(string); ok {
				as = s
				continue
			}
		}
		rest = append(rest, e)
	}
	args, err := named(op, rest, depth, "input", body, "limit")
	if err == nil {
		err = require(op, args, "input", body)
	}
	if err != nil {
		return nil, nil, "", err
	}
	return args["input"], args[body], as, nil
}

func over(input Expr, e *Env, op string) (bson.A, bool, error) {
	v, err := input(e)
	if err != nil || nullish(v) {
		return nil, false, err
	}
	list, ok := v.(bson.A)
	if !ok {
		return nil, false, command.Errorf(16883, "input to %s must be an array not %s", op, value.TypeName(v))
	}
	return list, true, nil
}

func mapArray(name string, arg any, depth int) (Expr, error) {
	input, in, as, err := iteration(name, arg, depth, "in")
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		list, ok, err := over(input, e, name)
		if !ok {
			return nil, err
		}
		out := make(bson.A, len(list))
		for i, item := range list {
			v, err := in(e.With(as, item))
			if err != nil {
				return nil, err
			}
			if (v == value.Missing{}) {
				v = nil
			}
			out[i] = v
		}
		return e.make(out)
	}, nil
}

func filterArray(name string, arg any, depth int) (Expr, error) {
	input, test, as, err := iteration(name, arg, depth, "cond")
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		list, ok, err := over(input, e, name)
		if !ok {
			return nil, err
		}
		out := bson.A{}
		for _, item := range list {
			v, err := test(e.With(as, item))
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

func reduceArray(name string, arg any, depth int) (Expr, error) {
	args, err := named(name, arg, depth, "input", "initialValue", "in")
	if err == nil {
		err = require(name, args, "input", "initialValue", "in")
	}
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		list, ok, err := over(args["input"], e, name)
		if !ok {
			return nil, err
		}
		v, err := args["initialValue"](e)
		for _, item := range list {
			if err != nil {
				return nil, err
			}
			if v, err = args["in"](e.With("value", v).With("this", item)); err == nil {
				v, err = keep(v)
			}
		}
		return v, err
	}, nil
}

func getField(_ string, arg any, depth int) (Expr, error) {
	input := Expr(func(e *Env) (any, error) { return e.Root, nil })
	name := arg
	if d, ok := arg.(bson.D); ok {
		if f, ok := value.Field(d, "field"); ok {
			name = f
			if in, ok := value.Field(d, "input"); ok {
				var err error
				if input, err = parse(in, depth+1); err != nil {
					return nil, err
				}
			}
		}
	}
	field, err := parse(name, depth+1)
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		f, err := field(e)
		if err != nil {
			return nil, err
		}
		key, ok := f.(string)
		if !ok {
			return nil, command.Errorf(3041704, "$getField requires 'field' to evaluate to type String, but got %s", value.TypeName(f))
		}
		v, err := input(e)
		if err != nil {
			return nil, err
		}
		if nullish(v) {
			return nil, nil
		}
		if d, ok := v.(bson.D); ok {
			if x, ok := value.Field(d, key); ok {
				return x, nil
			}
		}
		return value.Missing{}, nil
	}, nil
}

func setField(name string, arg any, depth int) (Expr, error) {
	args, err := named(name, arg, depth, "field", "input", "value")
	if err == nil {
		err = require(name, args, "field", "input")
	}
	if err == nil && name == "$setField" {
		err = require(name, args, "value")
	}
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
		var v any = value.Missing{}
		if args["value"] != nil {
			if v, err = args["value"](e); err != nil {
				return nil, err
			}
		}
		if (v == value.Missing{}) {
			return value.Delete(d, key), nil
		}
		return value.Set(append(bson.D{}, d...), key, v), nil
	}, nil
}

func convertTo(name string, arg any, depth int) (Expr, error) {
	args, err := named(name, arg, depth, "input", "to", "onError", "onNull")
	if err == nil {
		err = require(name, args, "input", "to")
	}
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		in, err := args["input"](e)
		if err != nil {
			return nil, err
		}
		if nullish(in) {
			if args["onNull"] != nil {
				return args["onNull"](e)
			}
			return nil, nil
		}
		to, err := args["to"](e)
		if err != nil {
			return nil, err
		}
		number, ok := int32(0), false
		switch t := to.(type) {
		case string:
			number, ok = value.TypeNumber(t)
		default:
			n, whole := value.Whole(t)
			number, ok = int32(n), whole
		}
		if !ok {
			return nil, command.Errorf(2, "Unknown type name: %s", value.Text(to))
		}
		v, err := convert(in, number)
		if err != nil && args["onError"] != nil {
			return args["onError"](e)
		}
		return v, err
	}, nil
}

func regexMatch(name string, arg any, depth int) (Expr, error) {
	args, err := named(name, arg, depth, "input", "regex", "options")
	if err == nil {
		err = require(name, args, "input", "regex")
	}
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		in, err := args["input"](e)
		if err != nil {
			return nil, err
		}
		s, ok := in.(string)
		if !ok {
			if nullish(in) {
				return false, nil
			}
			return nil, command.Errorf(51104, "$regexMatch needs 'input' to be of type string")
		}
		r, err := args["regex"](e)
		if err != nil {
			return nil, err
		}
		options := ""
		if args["options"] != nil {
			o, err := args["options"](e)
			if err != nil {
				return nil, err
			}
			options, _ = o.(string)
		}
		pattern := ""
		switch r := r.(type) {
		case string:
			pattern = r
		case bson.Regex:
			pattern, options = r.Pattern, options+r.Options
		default:
			return nil, command.Errorf(51105, "$regexMatch needs 'regex' to be of type string or regex")
		}
		re, err := Regexp(pattern, options)
		if err != nil {
			return nil, err
		}
		return re.MatchString(s), nil
	}, nil
}

func trim(name string, arg any, depth int) (Expr, error) {
	args, err := named(name, arg, depth, "input", "chars")
	if err == nil {
		err = require(name, args, "input")
	}
	if err != nil {
		return nil, err
	}
	return func(e *Env) (any, error) {
		in, err := args["input"](e)
		if err != nil || nullish(in) {
			return nil, err
		}
		s, ok := in.(string)
		if !ok {
			return nil, command.Errorf(50699, "%s requires its input to be a string, got %s", name, value.TypeName(in))
		}
		cut := " \t\n\r\v\f\x00\u00a0"
		if args["chars"] != nil {
			c, err := args["chars"](e)
			if err != nil {
				return nil, err
			}
			cut, _ = c.(string)
		}
		if name != "$rtrim" {
			s = strings.TrimLeft(s, cut)
		}
		if name != "$ltrim" {
			s = strings.TrimRight(s, cut)
		}
		return s, nil
	}, nil
}
