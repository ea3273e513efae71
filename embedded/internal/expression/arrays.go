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
	out := bson.A{}
	for _, x := range v {
		list, ok := x.(bson.A)
		switch {
		case value.IsNull(x):
			return nil
		case !ok:
			return e.fail(28664, "$concatArrays only supports arrays, not %s", value.TypeName(x))
		}
		out = append(out, list...)
	}
	return e.count(out)
}

func in(e *Env, v []any) any {
	list, ok := v[1].(bson.A)
	if !ok {
		return e.fail(40081, "$in requires an array as a second argument, found: %s", value.TypeName(v[1]))
	}
	return slices.ContainsFunc(list, func(x any) bool { return e.equal(x, v[0]) })
}

func indexOfArray(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	switch {
	case value.IsNull(v[0]):
		return nil
	case !ok:
		return e.fail(40090, "$indexOfArray requires an array as a first argument, found: %s", value.TypeName(v[0]))
	}
	from, to, ok := e.bounds("$indexOfArray", v[2:], len(list))
	if !ok {
		return nil
	}
	for i := from; i < to; i++ {
		if e.equal(list[i], v[1]) {
			return int32(i)
		}
	}
	return int32(-1)
}

// bounds returns an optional start and end.
func (e *Env) bounds(name string, v []any, n int) (from, to int, ok bool) {
	to = n
	for i, x := range v {
		at, exact := value.Int64(x)
		if !exact {
			e.fail(40096, "%s requires an integral %s index, found a value of type: %s, with value: %s", name,
				[]string{"starting", "ending"}[i], value.TypeName(x), value.Text(x))
			return 0, 0, false
		}
		if at < 0 {
			e.fail(40097, "%s requires a nonnegative %s index, found: %d", name, []string{"starting", "ending"}[i], at)
			return 0, 0, false
		}
		if i == 0 {
			from = int(at)
		} else {
			to = min(int(at), n)
		}
	}
	return from, to, true
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

// whole returns numbers that must be integers. For each, the next code is the code of the error for another type, and the
// one after it for a fraction. The formats have the name of the argument and the type or the number.
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
		if out = append(out, int32(i)); 16*len(out) > value.MaxBuilt {
			break
		}
	}
	return e.count(out)
}

func arrayToObject(e *Env, list bson.A) any {
	out := bson.D{}
	for _, item := range list {
		var key, x any
		switch pair := item.(type) {
		case bson.A:
			if len(pair) != 2 {
				return e.fail(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", len(pair))
			}
			key, x = pair[0], pair[1]
			if _, ok := key.(string); !ok {
				return e.fail(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", value.TypeName(key))
			}
		case bson.D:
			if len(pair) != 2 {
				return e.fail(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d",
					len(pair))
			}
			key, x = value.Get(pair, "k"), value.Get(pair, "v")
			if _, ok := key.(string); !ok {
				return e.fail(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of "+
					"type string. Found type: %s", value.TypeName(key))
			}
		default:
			return e.fail(40398, "Unrecognised input type format for $arrayToObject: %s", value.TypeName(item))
		}
		out = value.Set(out, key.(string), x)
	}
	return e.count(out)
}

func objectToArray(e *Env, d bson.D) any {
	out := bson.A{}
	for _, f := range d {
		out = append(out, bson.D{{Key: "k", Value: f.Key}, {Key: "v", Value: f.Value}})
	}
	return e.count(out)
}

// MergeObjects merges documents.
func MergeObjects(e *Env, values []any) any {
	out := bson.D{}
	for _, x := range values {
		d, ok := x.(bson.D)
		if !ok && !value.IsNull(x) {
			return e.fail(40400, "$mergeObjects requires object inputs, but input %s is of type %s", value.Text(x),
				value.TypeName(x))
		}
		for _, f := range d {
			out = value.Set(out, f.Key, f.Value)
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
			out[i] = e.set(slices.Clone(list))
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
			list, null := e.array(input, notArray, "input to "+op+" must be an array not %s")
			if null {
				return nil
			}
			out := bson.A{}
			for _, item := range list {
				if out = add(out, item, e.with(x, bson.E{Key: name, Value: item})); e.err != nil {
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
	args := p.named("$reduce", arg, 40075, 40076, 40077, "input", "initialValue", "in")
	input, initial := p.parse(args["input"]), p.parse(args["initialValue"])
	in := p.scope(args["in"], "value", "this")
	return func(e *Env) any {
		list, null := e.array(input, 40080, "$reduce requires that 'input' be an array, found: %s")
		if null {
			return nil
		}
		result := initial(e)
		for _, item := range list {
			result = e.with(in, bson.E{Key: "this", Value: item}, bson.E{Key: "value", Value: result})
		}
		return result
	}
}

// array returns the value of an expression that must be an array or null.
func (e *Env) array(x Expr, code int32, format string) (list bson.A, null bool) {
	v := x(e)
	list, ok := v.(bson.A)
	if !ok && !value.IsNull(v) {
		e.fail(code, format, value.TypeName(v))
	}
	return list, !ok || e.err != nil
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
		var arrays []bson.A
		n := -1
		for _, x := range inputs {
			a, null := e.array(x, 34468, "$zip found a non-array expression in input: %s")
			if null {
				return nil
			}
			arrays = append(arrays, a)
			if n < 0 || longest && len(a) > n || !longest && len(a) < n {
				n = len(a)
			}
		}
		out := bson.A{}
		for i := range max(n, 0) {
			row := bson.A{}
			for j, a := range arrays {
				v := value.OrNull(value.Element(a, i))
				if i >= len(a) && j < len(others) {
					v = value.OrNull(others[j](e))
				}
				row = append(row, v)
			}
			out = append(out, row)
		}
		return e.count(out)
	}
}

// setField is $setField, which has named arguments. All of them are required.
func (p *parser) setField(arg any) Expr { return p.fieldSetter("$setField", arg, 4161100) }

// unsetField is $unsetField: $setField without a value.
func (p *parser) unsetField(arg any) Expr { return p.fieldSetter("$unsetField", arg, 4161100) }

func (p *parser) fieldSetter(op string, arg any, code int32) Expr {
	d, ok := arg.(bson.D)
	if !ok {
		return p.fail(code, "%s only supports an object as its argument", op)
	}
	names := []string{"field", "input", "value"}
	if op == "$unsetField" {
		names = names[:2]
	}
	for _, a := range d {
		p.Refuse(!slices.Contains(names, a.Key), code+1, "%s found an unknown argument: %s", op, a.Key)
	}
	args := map[string]Expr{"value": constant(value.Missing{})}
	for _, name := range names {
		v, ok := value.Field(d, name)
		p.Refuse(!ok, 4161102, "%s requires '%s' to be specified", op, name)
		args[name] = p.parse(v)
	}
	return func(e *Env) any {
		field, input, v := args["field"](e), args["input"](e), args["value"](e)
		key, ok := field.(string)
		if !ok {
			return e.fail(4161107, "%s requires 'field' to evaluate to type String, but got %s", op, value.TypeName(field))
		}
		if value.IsNull(input) {
			return nil
		}
		d, ok := input.(bson.D)
		if !ok {
			return e.fail(4161105, "%s requires 'input' to evaluate to type Object", op)
		}
		if (v == value.Missing{}) {
			return value.Delete(d, key)
		}
		return e.count(value.Set(slices.Clone(d), key, v))
	}
}

func (p *parser) getField(arg any) Expr {
	field, input := arg, any("$$CURRENT")
	if d, ok := arg.(bson.D); ok && (len(d) == 0 || !strings.HasPrefix(d[0].Key, "$")) {
		for _, e := range d {
			p.Refuse(e.Key != "field" && e.Key != "input", 3041701, "$getField found an unknown argument: %s", e.Key)
		}
		var hasField, hasInput bool
		field, hasField = value.Field(d, "field")
		input, hasInput = value.Field(d, "input")
		p.Refuse(!hasField, 3041702, "$getField requires 'field' to be specified")
		p.Refuse(!hasInput, 3041703, "$getField requires 'input' to be specified")
	}
	name, from := p.parse(field), p.parse(input)
	return func(e *Env) any {
		f := name(e)
		key, ok := f.(string)
		if !ok {
			return e.fail(3041704, "$getField requires 'field' to evaluate to type String, but got %s", value.TypeName(f))
		}
		in := from(e)
		d, ok := in.(bson.D)
		if !ok && value.IsNull(in) && in != any(value.Missing{}) {
			return nil
		}
		return value.Lookup(d, key)
	}
}
