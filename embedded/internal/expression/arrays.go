package expression

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func size(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	if !ok {
		return e.fail(17124, "The argument to $size must be an array, but was of type: %s", value.TypeName(v[0]))
	}
	return int32(len(list))
}

func concatArrays(e *Env, v []any) any {
	lists, ok := allOf[bson.A](e, v, 28664, "$concatArrays only supports arrays, not %s")
	if !ok {
		return nil
	}
	return e.count(append(bson.A{}, slices.Concat(lists...)...))
}

func concat(e *Env, v []any) any {
	parts, ok := allOf[string](e, v, 16702, "$concat only supports strings, not %s")
	for _, s := range parts {
		e.count(s)
	}
	if !ok || e.err != nil {
		return nil
	}
	return strings.Join(parts, "")
}

// as returns a value of a type. It returns false if the value is null or, with an error, if it has another type.
func as[T any](e *Env, v any, code int32, format string) (x T, ok bool) {
	x, ok = v.(T)
	if !ok && !value.IsNull(v) {
		e.fail(code, format, value.TypeName(v))
	}
	return x, ok && e.err == nil
}

// allOf returns values of one type, or false as the function as does.
func allOf[T any](e *Env, v []any, code int32, format string) ([]T, bool) {
	out := make([]T, len(v))
	for i, x := range v {
		var ok bool
		if out[i], ok = as[T](e, x, code, format); !ok {
			return nil, false
		}
	}
	return out, true
}

func in(e *Env, v []any) any {
	list, ok := v[1].(bson.A)
	if !ok {
		return e.fail(40081, "$in requires an array as a second argument, found: %s", value.TypeName(v[1]))
	}
	return slices.ContainsFunc(list, func(x any) bool { return e.equal(x, v[0]) })
}

// Slice returns up to count elements from a position, which counts from the end if it is negative. Without count, n is
// the number of elements, the last ones if it is negative.
func Slice(list bson.A, n int64, count *int64) bson.A {
	size := int64(len(list))
	switch {
	case count == nil && n >= 0:
		return list[:min(n, size)]
	case count == nil:
		return list[max(size+n, 0):]
	case n < 0:
		n = max(size+n, 0)
	}
	n = min(n, size)
	return list[n : n+min(*count, size-n)]
}

func (e *Env) equal(a, b any) bool { return e.Collation.Compare(a, b) == 0 }

// over is $map or $filter, whose argument in is evaluated for each element of an array.
func over(op string, notDocument, notArray int32, in string,
	add func(out bson.A, item, result any) bson.A) func(*parser, any) Expr {
	return func(p *parser, arg any) Expr {
		args := p.named(op, arg, notDocument, notDocument+1, notDocument+2, "input", "as?", in)
		input, name := p.parse(args["input"]), "this"
		if as, ok := args["as"].(string); ok {
			name = as
		}
		x := p.scope(args[in], name)
		return func(e *Env) any {
			list, ok := as[bson.A](e, input(e), notArray, "input to "+op+" must be an array not %s")
			if !ok {
				return nil
			}
			out := bson.A{}
			for _, item := range list {
				if out = add(out, item, e.with(x, value.Doc(name, item))); e.err != nil {
					return nil
				}
			}
			return e.count(out)
		}
	}
}

func mapped(out bson.A, _, result any) bson.A { return append(out, value.OrNull(result)) }

func filtered(out bson.A, item, result any) bson.A {
	if value.Truthy(result) {
		out = append(out, item)
	}
	return out
}

func (p *parser) reduce(arg any) Expr {
	args := p.named("$reduce", arg, 40075, 40076, 0, "input", "initialValue", "in")
	input, initial := p.parse(args["input"]), p.parse(args["initialValue"])
	in := p.scope(args["in"], "value", "this")
	return func(e *Env) any {
		list, ok := as[bson.A](e, input(e), 40080, "$reduce requires that 'input' be an array, found: %s")
		if !ok {
			return nil
		}
		result := initial(e)
		for _, item := range list {
			if result = e.with(in, value.Doc("this", item, "value", result)); e.err != nil {
				return nil
			}
		}
		return result
	}
}

func (p *parser) setField(arg any) Expr {
	d, ok := arg.(bson.D)
	if !ok {
		return p.fail(4161100, "$setField only supports an object as its argument")
	}
	args := p.required(d, []int32{4161102, 4161109, 4161103}, "field", "input", "value")
	return of(func(e *Env, v []any) any {
		key, isText := v[0].(string)
		d, isDocument := v[1].(bson.D)
		switch {
		case !isText:
			return e.fail(4161107, "$setField requires 'field' to evaluate to type String, but got %s", value.TypeName(v[0]))
		case value.IsNull(v[1]):
			return nil
		case !isDocument:
			return e.fail(4161105, "$setField requires 'input' to evaluate to type Object")
		case value.IsMissing(v[2]):
			return value.Delete(d, key)
		}
		return e.count(value.Set(slices.Clone(d), key, v[2]))
	}).bind(args)
}

// required parses the named arguments of $setField. missing has the code of the error for each.
func (p *parser) required(d bson.D, missing []int32, names ...string) []Expr {
	for _, a := range d {
		p.Refuse(!slices.Contains(names, a.Key), 4161101, "$setField found an unknown argument: %s", a.Key)
	}
	out := make([]Expr, len(names))
	for i, name := range names {
		v, ok := value.Field(d, name)
		p.Refuse(!ok, missing[i], "$setField requires '%s' to be specified", name)
		out[i] = p.parse(v)
	}
	return out
}
