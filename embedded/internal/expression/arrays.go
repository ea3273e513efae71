package expression

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func size(_ *Env, list bson.A) any  { return int32(len(list)) }
func first(_ *Env, list bson.A) any { return elementAt(list, 0) }
func last(_ *Env, list bson.A) any  { return elementAt(list, -1) }

func anyElementTrue(_ *Env, list bson.A) any { return slices.ContainsFunc(list, value.Truthy) }

func allElementsTrue(_ *Env, list bson.A) any {
	return !slices.ContainsFunc(list, func(x any) bool { return !value.Truthy(x) })
}

func bsonSize(_ *Env, d bson.D) any { return int32(len(value.Encode(d))) }

func arrayElemAt(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	switch {
	case anyNull(v):
		return nil
	case !ok:
		return e.fail(28689, "$arrayElemAt's first argument must be an array, but is %s", value.TypeName(v[0]))
	}
	n := e.whole(v[1:], 28690, "$arrayElemAt's %s argument must be a numeric value, but is %s",
		"$arrayElemAt's %s argument must be representable as a 32-bit integer: %s", "second")
	return elementAt(list, n[0])
}

// elementAt returns an element of an array, from the end if the position is negative.
func elementAt(list bson.A, n int64) any {
	if n < 0 {
		n += int64(len(list))
	}
	if n < 0 || n >= int64(len(list)) {
		return value.Missing{}
	}
	return list[n]
}

func concatArrays(e *Env, v []any) any {
	lists, ok := allOf[bson.A](e, v, 28664, "$concatArrays only supports arrays, not %s")
	if !ok {
		return nil
	}
	return e.count(append(bson.A{}, slices.Concat(lists...)...))
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

func indexOfArray(e *Env, v []any) any {
	list, ok := as[bson.A](e, v[0], 40090, "$indexOfArray requires an array as a first argument, found: %s")
	if !ok {
		return nil
	}
	from, to, ok := e.bounds("$indexOfArray", v[2:], len(list))
	if !ok {
		return nil
	}
	for i := from; i < to && !e.done(); i++ {
		if e.equal(list[i], v[1]) {
			return int32(i)
		}
	}
	return int32(-1)
}

// bounds returns an optional start and end.
func (e *Env) bounds(name string, v []any, n int) (from, to int, ok bool) {
	ends := []int{0, n}
	for i, x := range v {
		which := []string{"starting", "ending"}[i]
		at, exact := value.Int64(x)
		if !exact {
			e.fail(40096, "%s requires an integral %s index, found a value of type: %s, with value: %s", name, which,
				value.TypeName(x), value.Text(x))
		} else if at < 0 {
			e.fail(40097, "%s requires a nonnegative %s index, found: %d", name, which, at)
		}
		ends[i] = int(at)
	}
	return ends[0], min(ends[1], n), e.err == nil
}

func reverseArray(_ *Env, list bson.A) any {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func slice(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	if anyNull(v) {
		return nil
	}
	if !ok {
		return e.fail(28724, "First argument to $slice must be an array, but is of type: %s", value.TypeName(v[0]))
	}
	n := e.whole(v[1:], 28725, "%s argument to $slice must be numeric, but is of type: %s",
		"%s argument to $slice can't be represented as a 32-bit integer: %s", "Second", "Third")
	if len(n) == 1 {
		return Slice(list, n[0], nil)
	}
	if n[1] <= 0 {
		return e.fail(28729, "Third argument to $slice must be positive: %s", value.Text(v[2]))
	}
	return Slice(list, n[0], &n[1])
}

// whole returns numbers that must be integers. code is the code of the error for the first if it has another type; the
// next one is for a fraction, and so on. The formats have the name of the argument and the type or the number.
func (e *Env) whole(v []any, code int32, notNumber, notWhole string, names ...string) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		n, exact := value.Int64(x)
		if out[i] = n; !value.IsNumber(x) {
			e.fail(code+2*int32(i), notNumber, names[i], value.TypeName(x))
		} else if !exact {
			e.fail(code+2*int32(i)+1, notWhole, names[i], value.Text(x))
		}
	}
	return out
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

func sequence(e *Env, v []any) any {
	n := append(e.whole(v, 34443, "$range requires a numeric %s value, found value of type: %s",
		"$range requires a %s value that can be represented as a 32-bit integer, found value: %s",
		"starting", "ending", "step"), 1)
	if n[2] == 0 {
		return e.fail(34449, "$range requires a non-zero step value")
	}
	out := bson.A{}
	for i := n[0]; n[2] > 0 && i < n[1] || n[2] < 0 && i > n[1]; i += n[2] {
		if out = append(out, int32(i)); e.done() || 16*len(out) > value.MaxBuilt {
			break
		}
	}
	return e.count(out)
}

func arrayToObject(e *Env, list bson.A) any {
	out := bson.D{}
	for _, item := range list {
		pair, isPair := item.(bson.A)
		d, isDocument := item.(bson.D)
		switch {
		case !isPair && !isDocument:
			return e.fail(40398, "Unrecognised input type format for $arrayToObject: %s", value.TypeName(item))
		case isPair && len(pair) != 2:
			return e.fail(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", len(pair))
		case isDocument && len(d) != 2:
			return e.fail(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", len(d))
		case isDocument:
			pair = bson.A{value.Get(d, "k"), value.Get(d, "v")}
		}
		key, isText := pair[0].(string)
		switch {
		case !isText && isPair:
			return e.fail(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. "+
				"Found key type: %s", value.TypeName(pair[0]))
		case !isText:
			return e.fail(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of "+
				"type string. Found type: %s", value.TypeName(pair[0]))
		}
		if out = value.Set(out, key, pair[1]); e.done() {
			return nil
		}
	}
	return e.count(out)
}

func objectToArray(e *Env, d bson.D) any {
	out := bson.A{}
	for _, f := range d {
		if out = append(out, value.Doc("k", f.Key, "v", f.Value)); e.done() {
			return nil
		}
	}
	return e.count(out)
}

func mergeObjects(e *Env, values []any) any {
	out := bson.D{}
	for _, x := range values {
		d, ok := x.(bson.D)
		if !ok && !value.IsNull(x) {
			return e.fail(40400, "$mergeObjects requires object inputs, but input %s is of type %s", value.Text(x),
				value.TypeName(x))
		}
		for _, f := range d {
			if out = value.Set(out, f.Key, f.Value); e.done() {
				return nil
			}
		}
	}
	return e.count(out)
}

// sets is an operator on arrays as sets, without duplicates and in order; f also gets the arrays as they are. The error
// for an argument that is not an array has one code, or one for each of two.
func sets(name string, nullable bool, f func(e *Env, sets []bson.A, v []any) any, codes ...int32) evaluator {
	return of(func(e *Env, v []any) any {
		out := make([]bson.A, len(v))
		for i, x := range v {
			list, ok := x.(bson.A)
			switch {
			case nullable && value.IsNull(x):
				return nil
			case !ok && len(codes) == 2:
				return e.fail(codes[i], "both operands of %s must be arrays. %s argument is of type: %s", name,
					[]string{"First", "Second"}[i], value.TypeName(x))
			case !ok:
				return e.fail(codes[0], "All operands of %s must be arrays. One argument is of type: %s", name, value.TypeName(x))
			}
			if out[i] = e.set(slices.Clone(list)); e.done() {
				return nil
			}
		}
		return f(e, out, v)
	})
}

// set sorts an array in place and removes duplicates.
func (e *Env) set(list bson.A) bson.A {
	slices.SortStableFunc(list, e.Collation.Compare)
	return slices.CompactFunc(list, e.equal)
}

func (e *Env) contains(list bson.A, v any) bool {
	_, ok := slices.BinarySearchFunc(list, v, e.Collation.Compare)
	return ok
}

func (e *Env) equal(a, b any) bool { return e.Collation.Compare(a, b) == 0 }

func setUnion(e *Env, sets []bson.A, _ []any) any {
	return e.count(e.set(slices.Concat(append(sets, bson.A{})...)))
}

func setIntersection(e *Env, sets []bson.A, _ []any) any {
	if len(sets) == 0 {
		return bson.A{}
	}
	return slices.DeleteFunc(sets[0], func(x any) bool {
		return slices.ContainsFunc(sets[1:], func(s bson.A) bool { return !e.contains(s, x) })
	})
}

func setDifference(e *Env, sets []bson.A, v []any) any {
	out := bson.A{}
	for _, x := range v[0].(bson.A) { // in the order of the array
		if !e.contains(sets[1], x) && !slices.ContainsFunc(out, func(y any) bool { return e.equal(x, y) }) {
			out = append(out, x)
		}
		if e.done() {
			return nil
		}
	}
	return out
}

func setEquals(e *Env, sets []bson.A, _ []any) any {
	return !slices.ContainsFunc(sets[1:], func(s bson.A) bool { return !e.equal(s, sets[0]) })
}

func setIsSubset(e *Env, sets []bson.A, _ []any) any {
	return !slices.ContainsFunc(sets[0], func(x any) bool { return !e.contains(sets[1], x) })
}

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

func (p *parser) zip(arg any) Expr {
	args := p.named("$zip", arg, 34460, 34464, 34465, "inputs", "useLongestLength?", "defaults?")
	list, ok := args["inputs"].(bson.A)
	p.Refuse(!ok, 34461, "inputs must be an array of expressions, found %s", value.TypeName(args["inputs"]))
	defaults, _ := args["defaults"].(bson.A)
	longest := args["useLongestLength"] == true
	p.Refuse(len(defaults) > 0 && !longest, 34466, "cannot specify defaults unless useLongestLength is true")
	p.Refuse(len(defaults) > 0 && len(defaults) != len(list), 34467, "defaults and inputs must have the same length")
	inputs, others := p.all(list), p.all(defaults)
	return func(e *Env) any {
		arrays := make([]bson.A, len(inputs))
		n := 0
		for i, x := range inputs {
			var ok bool
			if arrays[i], ok = as[bson.A](e, x(e), 34468, "$zip found a non-array expression in input: %s"); !ok {
				return nil
			}
			if size := len(arrays[i]); i == 0 || size > n == longest {
				n = size
			}
		}
		out := make(bson.A, n)
		for i := range out {
			row := make(bson.A, len(arrays))
			for j, a := range arrays {
				if i < len(a) {
					row[j] = a[i]
				} else if len(others) > 0 {
					row[j] = value.OrNull(others[j](e))
				}
			}
			if out[i] = row; e.done() {
				return nil
			}
		}
		return e.count(out)
	}
}

// setField is $setField, or without the name value $unsetField.
func setField(op string, names ...string) func(*parser, any) Expr {
	return func(p *parser, arg any) Expr {
		d, ok := arg.(bson.D)
		if !ok {
			return p.fail(4161100, "%s only supports an object as its argument", op)
		}
		args := p.required(op, d, 4161101, []int32{4161102, 4161109, 4161103}, names...)
		return of(func(e *Env, v []any) any {
			key, isText := v[0].(string)
			d, isDocument := v[1].(bson.D)
			switch {
			case !isText:
				return e.fail(4161107, "%s requires 'field' to evaluate to type String, but got %s", op, value.TypeName(v[0]))
			case value.IsNull(v[1]):
				return nil
			case !isDocument:
				return e.fail(4161105, "%s requires 'input' to evaluate to type Object", op)
			case len(v) == 2 || value.IsMissing(v[2]):
				return value.Delete(d, key)
			}
			return e.count(value.Set(slices.Clone(d), key, v[2]))
		}).bind(args)
	}
}

func (p *parser) getField(arg any) Expr {
	d, ok := arg.(bson.D)
	if !ok || len(d) > 0 && strings.HasPrefix(d[0].Key, "$") {
		d = value.Doc("field", arg, "input", "$$CURRENT")
	}
	args := p.required("$getField", d, 3041701, []int32{3041702, 3041703}, "field", "input")
	return of(func(e *Env, v []any) any {
		key, isText := v[0].(string)
		d, _ := v[1].(bson.D)
		switch {
		case !isText:
			return e.fail(3041704, "$getField requires 'field' to evaluate to type String, but got %s", value.TypeName(v[0]))
		case value.IsNull(v[1]) && !value.IsMissing(v[1]):
			return nil
		}
		return value.Lookup(d, key)
	}).bind(args)
}

// required parses the named arguments of $setField or $getField. missing has the code of the error for each.
func (p *parser) required(op string, d bson.D, unknown int32, missing []int32, names ...string) []Expr {
	for _, a := range d {
		p.Refuse(!slices.Contains(names, a.Key), unknown, "%s found an unknown argument: %s", op, a.Key)
	}
	out := make([]Expr, len(names))
	for i, name := range names {
		v, ok := value.Field(d, name)
		p.Refuse(!ok, missing[i], "%s requires '%s' to be specified", op, name)
		out[i] = p.parse(v)
	}
	return out
}
