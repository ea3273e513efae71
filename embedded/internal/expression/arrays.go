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

func arrayElemAt(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	n, exact := value.Int64(v[1])
	switch {
	case anyNull(v):
		return nil
	case !ok:
		return e.fail(28689, "$arrayElemAt's first argument must be an array, but is %s", value.TypeName(v[0]))
	case !value.IsNumber(v[1]):
		return e.fail(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", value.TypeName(v[1]))
	case !exact:
		return e.fail(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s", value.Text(v[1]))
	}
	return elementAt(list, n)
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

func element(e *Env, name string, v any, n int64) any {
	list, ok := v.(bson.A)
	switch {
	case value.IsNull(v):
		return nil
	case !ok:
		return e.fail(28689, "%s's argument must be an array, but is %s", name, value.TypeName(v))
	}
	return elementAt(list, n)
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

func reverseArray(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	switch {
	case value.IsNull(v[0]):
		return nil
	case !ok:
		return e.fail(34435, "The argument to $reverseArray must be an array, but was of type: %s", value.TypeName(v[0]))
	}
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
	var n [2]int64
	for i, x := range v[1:] {
		var exact bool
		if n[i], exact = value.Int64(x); !value.IsNumber(x) {
			return e.fail(28725+2*int32(i), "%s argument to $slice must be numeric, but is of type: %s",
				[]string{"Second", "Third"}[i], value.TypeName(x))
		} else if !exact {
			return e.fail(28726+2*int32(i), "%s argument to $slice can't be represented as a 32-bit integer: %s",
				[]string{"Second", "Third"}[i], value.Text(x))
		}
	}
	if len(v) == 3 && n[1] <= 0 {
		return e.fail(28729, "Third argument to $slice must be positive: %s", value.Text(v[2]))
	}
	if len(v) == 2 {
		return Slice(list, n[0], nil)
	}
	return Slice(list, n[0], &n[1])
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

// integers is $range.
func integers(e *Env, v []any) any {
	n := [3]int64{0, 0, 1}
	for i, x := range v {
		var exact bool
		if n[i], exact = value.Int64(x); !value.IsNumber(x) {
			return e.fail(34443+2*int32(i), "$range requires a numeric %s value, found value of type: %s",
				[]string{"starting", "ending", "step"}[i], value.TypeName(x))
		} else if !exact {
			return e.fail(34444+2*int32(i),
				"$range requires a %s value that can be represented as a 32-bit integer, found value: %s",
				[]string{"starting", "ending", "step"}[i], value.Text(x))
		}
	}
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

func arrayToObject(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	switch {
	case value.IsNull(v[0]):
		return nil
	case !ok:
		return e.fail(40386, "$arrayToObject requires an array input, found: %s", value.TypeName(v[0]))
	}
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

func objectToArray(e *Env, v []any) any {
	d, ok := v[0].(bson.D)
	switch {
	case value.IsNull(v[0]):
		return nil
	case !ok:
		return e.fail(40390, "$objectToArray requires a document input, found: %s", value.TypeName(v[0]))
	}
	out := bson.A{}
	for _, f := range d {
		out = append(out, bson.D{{Key: "k", Value: f.Key}, {Key: "v", Value: f.Value}})
	}
	return e.count(out)
}

func mergeObjects(e *Env, v []any) any { return MergeObjects(e, operands(v)) }

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

// sets returns the arguments of an operator on sets, without duplicates and in order. null is set if one is null.
func (e *Env) sets(name string, code int32, v []any) (out []bson.A, null bool) {
	for i, x := range v {
		list, ok := x.(bson.A)
		switch {
		case value.IsNull(x):
			return nil, true
		case !ok && len(v) == 2 && code == 17048:
			e.fail(code+int32(i), "both operands of %s must be arrays. %s argument is of type: %s", name,
				[]string{"First", "Second"}[i], value.TypeName(x))
			return nil, true
		case !ok:
			e.fail(code, "All operands of %s must be arrays. One argument is of type: %s", name, value.TypeName(x))
			return nil, true
		}
		list = slices.Clone(list)
		slices.SortStableFunc(list, e.Collation.Compare)
		out = append(out, slices.CompactFunc(list, e.equal))
	}
	return out, false
}

func (e *Env) contains(list bson.A, v any) bool {
	_, ok := slices.BinarySearchFunc(list, v, e.Collation.Compare)
	return ok
}

func (e *Env) equal(a, b any) bool { return e.Collation.Compare(a, b) == 0 }

func setUnion(e *Env, v []any) any {
	sets, null := e.sets("$setUnion", 17043, v)
	if null {
		return nil
	}
	all := bson.A{}
	for _, s := range sets {
		all = append(all, s...)
	}
	slices.SortStableFunc(all, e.Collation.Compare)
	return e.count(slices.CompactFunc(all, e.equal))
}

func setIntersection(e *Env, v []any) any {
	sets, null := e.sets("$setIntersection", 17047, v)
	if null {
		return nil
	}
	out := bson.A{}
	if len(sets) == 0 {
		return out
	}
	for _, x := range sets[0] {
		if !slices.ContainsFunc(sets[1:], func(s bson.A) bool { return !e.contains(s, x) }) {
			out = append(out, x)
		}
	}
	return out
}

func setDifference(e *Env, v []any) any {
	sets, null := e.sets("$setDifference", 17048, v)
	if null {
		return nil
	}
	out, list := bson.A{}, v[0].(bson.A) // in the order of the array
	for _, x := range list {
		if !e.contains(sets[1], x) && !slices.ContainsFunc(out, func(y any) bool { return e.equal(x, y) }) {
			out = append(out, x)
		}
	}
	return out
}

func setEquals(e *Env, v []any) any {
	sets, null := e.sets("$setEquals", 17044, v)
	if null {
		if e.err == nil {
			return e.fail(17044, "All operands of $setEquals must be arrays. One argument is of type: null")
		}
		return nil
	}
	return !slices.ContainsFunc(sets[1:], func(s bson.A) bool { return !e.equal(s, sets[0]) })
}

func setIsSubset(e *Env, v []any) any {
	for i, x := range v {
		if _, ok := x.(bson.A); !ok {
			return e.fail(17046-int32(i)*4, "both operands of $setIsSubset must be arrays. %s argument is of type: %s",
				[]string{"First", "Second"}[i], value.TypeName(x))
		}
	}
	sets, _ := e.sets("$setIsSubset", 17046, v)
	return !slices.ContainsFunc(sets[0], func(x any) bool { return !e.contains(sets[1], x) })
}

func anyElementTrue(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	if !ok {
		return e.fail(17041, "$anyElementTrue's argument must be an array, but is %s", value.TypeName(v[0]))
	}
	return slices.ContainsFunc(list, value.Truthy)
}

func allElementsTrue(e *Env, v []any) any {
	list, ok := v[0].(bson.A)
	if !ok {
		return e.fail(17040, "$allElementsTrue's argument must be an array, but is %s", value.TypeName(v[0]))
	}
	return !slices.ContainsFunc(list, func(x any) bool { return !value.Truthy(x) })
}

// alias returns the name of the variable of $map or $filter.
func alias(args map[string]any) string {
	if name, ok := args["as"].(string); ok {
		return name
	}
	return "this"
}

func (p *parser) mapArray(arg any) Expr {
	args := p.named("$map", arg, 16878, 16879, 16880, "input", "as?", "in")
	input, name := p.parse(args["input"]), alias(args)
	in := p.scope(args["in"], name)
	return func(e *Env) any {
		list, null := e.array(input, 16883, "input to $map must be an array not %s")
		if null {
			return nil
		}
		out := make(bson.A, 0, len(list))
		for _, item := range list {
			if out = append(out, value.OrNull(e.with(in, bson.E{Key: name, Value: item}))); e.err != nil {
				return nil
			}
		}
		return e.count(out)
	}
}

func (p *parser) filter(arg any) Expr {
	args := p.named("$filter", arg, 28646, 28647, 28648, "input", "as?", "cond")
	input, name := p.parse(args["input"]), alias(args)
	in := p.scope(args["cond"], name)
	return func(e *Env) any {
		list, null := e.array(input, 28651, "input to $filter must be an array not %s")
		if null {
			return nil
		}
		out := bson.A{}
		for _, item := range list {
			if value.Truthy(e.with(in, bson.E{Key: name, Value: item})) {
				out = append(out, item)
			}
		}
		return e.count(out)
	}
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

func bsonSize(e *Env, v []any) any {
	d, ok := v[0].(bson.D)
	switch {
	case value.IsNull(v[0]):
		return nil
	case !ok:
		return e.fail(31393, "$bsonSize requires a document input, found: %s", value.TypeName(v[0]))
	}
	return int32(len(value.Encode(d)))
}
