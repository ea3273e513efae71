package expression

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode/utf8"

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
		return nil, command.Errorf(168, "Unrecognized expression '%s'", name)
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

// math1 is a function of one number that null passes through.
func math1(name string, f func(any) any) function {
	return function{1, 1, func(a []any) (any, error) {
		if nullish(a[0]) {
			return nil, nil
		}
		if !value.IsNumber(a[0]) {
			return nil, command.Errorf(28765, "%s only supports numeric types, not %s", name, value.TypeName(a[0]))
		}
		return f(a[0]), nil
	}}
}

func floatMath(name string, f func(float64) float64) function {
	return math1(name, func(v any) any { return f(value.Float(v)) })
}

// rounding keeps integers and decimals of no fraction as they are.
func rounding(name string, f func(float64) float64) function {
	return math1(name, func(v any) any {
		switch x := v.(type) {
		case float64:
			return f(x)
		case bson.Decimal128:
			return value.ToDecimal(f(value.Float(x)))
		}
		return v
	})
}

func fold(name string, f func(a, b any) (any, bool)) function {
	return function{0, -1, func(args []any) (any, error) {
		var sum any = int32(0)
		if name == "$multiply" {
			sum = int32(1)
		}
		for _, v := range args {
			if nullish(v) {
				return nil, nil
			}
			if !value.IsNumber(v) {
				if d, ok := v.(bson.DateTime); ok && name == "$add" {
					whole, _ := value.Whole(sum)
					sum = bson.DateTime(int64(d) + whole)
					continue
				}
				return nil, command.Errorf(14, "%s only supports numeric%s types, not %s", name, map[bool]string{true: " or date"}[name == "$add"], value.TypeName(v))
			}
			if d, ok := sum.(bson.DateTime); ok {
				whole, _ := value.Whole(v)
				sum = bson.DateTime(int64(d) + whole)
				continue
			}
			sum, _ = f(sum, v)
		}
		return sum, nil
	}}
}

// numeric2 is a function of two numbers that null passes through.
func numeric2(name string, f func(a, b any) (any, error)) function {
	return function{2, 2, func(a []any) (any, error) {
		if nullish(a[0]) || nullish(a[1]) {
			return nil, nil
		}
		if !value.IsNumber(a[0]) || !value.IsNumber(a[1]) {
			return nil, command.Errorf(16608, "%s only supports numeric types, not %s and %s", name, value.TypeName(a[0]), value.TypeName(a[1]))
		}
		return f(a[0], a[1])
	}}
}

func str1(f func(string) any) function {
	return function{1, 1, func(a []any) (any, error) {
		s, err := stringOf(a[0])
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}}
}

// stringOf is a value as the string operators take it: null is empty, numbers
// and dates are written out.
func stringOf(v any) (string, error) {
	switch v := v.(type) {
	case nil, bson.Undefined, value.Missing:
		return "", nil
	case string:
		return v, nil
	case bson.Symbol:
		return string(v), nil
	}
	s, err := convert(v, 2)
	if err != nil {
		return "", command.Errorf(16007, "can't convert from BSON type %s to String", value.TypeName(v))
	}
	return s.(string), nil
}

// array1 is a function of one array that null passes through.
func array1(name string, code int32, f func(bson.A) (any, error)) function {
	return function{1, 1, func(a []any) (any, error) {
		if nullish(a[0]) {
			return nil, nil
		}
		list, ok := a[0].(bson.A)
		if !ok {
			return nil, command.Errorf(code, "The argument to %s must be an array, but was of type: %s", name, value.TypeName(a[0]))
		}
		return f(list)
	}}
}

func toArrays(name string, args []any) ([]bson.A, bool, error) {
	out := make([]bson.A, len(args))
	for i, v := range args {
		if nullish(v) {
			return nil, true, nil
		}
		a, ok := v.(bson.A)
		if !ok {
			return nil, false, command.Errorf(17043, "All operands of %s must be arrays. One argument is of type: %s", name, value.TypeName(v))
		}
		out[i] = a
	}
	return out, false, nil
}

func set(a bson.A) map[string]bool {
	m := make(map[string]bool, len(a))
	for _, v := range a {
		m[value.Key(v)] = true
	}
	return m
}

func sets(name string, min, max int, f func(a []bson.A) any) function {
	return function{min, max, func(args []any) (any, error) {
		arrays, null, err := toArrays(name, args)
		if err != nil || null {
			return nil, err
		}
		return f(arrays), nil
	}}
}

func element(a bson.A, i int64) any {
	if i < 0 {
		i += int64(len(a))
	}
	if i < 0 || i >= int64(len(a)) {
		return value.Missing{}
	}
	return a[i]
}

// accumulated is an accumulator used as an expression: over its arguments, or
// over the array that is its one argument.
func accumulated(name string) function {
	return function{0, -1, func(args []any) (any, error) {
		if len(args) == 1 {
			if a, ok := args[0].(bson.A); ok {
				args = a
			}
		}
		acc := accumulators[name]()
		for _, v := range args {
			if err := acc.Add(v); err != nil {
				return nil, err
			}
		}
		return acc.Result(), nil
	}}
}

func conversion(typ int32) function {
	return function{1, 1, func(a []any) (any, error) {
		if nullish(a[0]) {
			return nil, nil
		}
		return convert(a[0], typ)
	}}
}

func between(v any) (int64, bool) { return value.Whole(v) }

var functions = map[string]function{
	"$eq":  comparison(func(c int) bool { return c == 0 }),
	"$ne":  comparison(func(c int) bool { return c != 0 }),
	"$gt":  comparison(func(c int) bool { return c > 0 }),
	"$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt":  comparison(func(c int) bool { return c < 0 }),
	"$lte": comparison(func(c int) bool { return c <= 0 }),
	"$cmp": {2, 2, func(a []any) (any, error) { return int32(value.Compare(a[0], a[1])), nil }},
	"$not": {1, 1, func(a []any) (any, error) { return !value.Truthy(a[0]), nil }},

	"$add":      fold("$add", value.Add),
	"$multiply": fold("$multiply", value.Multiply),
	"$subtract": {2, 2, func(a []any) (any, error) {
		if nullish(a[0]) || nullish(a[1]) {
			return nil, nil
		}
		if d, ok := a[0].(bson.DateTime); ok {
			if e, ok := a[1].(bson.DateTime); ok {
				return int64(d - e), nil
			}
			if n, ok := value.Whole(a[1]); ok {
				return d - bson.DateTime(n), nil
			}
		}
		if !value.IsNumber(a[0]) || !value.IsNumber(a[1]) {
			return nil, command.Errorf(14, "can't $subtract %s from %s", value.TypeName(a[1]), value.TypeName(a[0]))
		}
		v, _ := value.Subtract(a[0], a[1])
		return v, nil
	}},
	"$divide": numeric2("$divide", func(a, b any) (any, error) {
		if value.Compare(b, int32(0)) == 0 {
			return nil, command.Errorf(2, "can't $divide by zero")
		}
		return value.Float(a) / value.Float(b), nil
	}),
	"$mod": numeric2("$mod", func(a, b any) (any, error) {
		if value.Compare(b, int32(0)) == 0 {
			return nil, command.Errorf(16610, "can't $mod by zero")
		}
		_, fa := a.(float64)
		_, fb := b.(float64)
		x, xi := value.Whole(a)
		y, yi := value.Whole(b)
		if fa || fb || !xi || !yi {
			return math.Mod(value.Float(a), value.Float(b)), nil
		}
		_, la := a.(int64)
		_, lb := b.(int64)
		if y == -1 {
			x, y = 0, 1
		}
		if la || lb {
			return x % y, nil
		}
		return int32(x % y), nil
	}),
	"$pow": numeric2("$pow", func(a, b any) (any, error) {
		f := math.Pow(value.Float(a), value.Float(b))
		_, xi := a.(int32)
		_, yi := b.(int32)
		if xi && yi && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return value.Int(int64(f)), nil
		}
		return f, nil
	}),
	"$abs": math1("$abs", func(v any) any {
		if value.Compare(v, int32(0)) < 0 {
			n, _ := value.Subtract(int32(0), v)
			return n
		}
		return v
	}),
	"$ceil":  rounding("$ceil", math.Ceil),
	"$floor": rounding("$floor", math.Floor),
	"$sqrt":  floatMath("$sqrt", math.Sqrt),
	"$exp":   floatMath("$exp", math.Exp),
	"$ln":    floatMath("$ln", math.Log),
	"$log10": floatMath("$log10", math.Log10),
	"$round": {1, 2, func(a []any) (any, error) { return round(a, math.RoundToEven) }},
	"$trunc": {1, 2, func(a []any) (any, error) { return round(a, math.Trunc) }},

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
	"$toUpper":     str1(func(s string) any { return strings.ToUpper(s) }),
	"$toLower":     str1(func(s string) any { return strings.ToLower(s) }),
	"$strLenBytes": str1(func(s string) any { return int32(len(s)) }),
	"$strLenCP":    str1(func(s string) any { return int32(utf8.RuneCountInString(s)) }),
	"$strcasecmp": {2, 2, func(a []any) (any, error) {
		s, err := stringOf(a[0])
		if err != nil {
			return nil, err
		}
		t, err := stringOf(a[1])
		return int32(strings.Compare(strings.ToUpper(s), strings.ToUpper(t))), err
	}},
	"$split": {2, 2, func(a []any) (any, error) {
		if nullish(a[0]) || nullish(a[1]) {
			return nil, nil
		}
		s, ok := a[0].(string)
		sep, ok2 := a[1].(string)
		if !ok || !ok2 || sep == "" {
			return nil, command.Errorf(40085, "$split requires an expression that evaluates to a string as a first argument, found: %s", value.TypeName(a[0]))
		}
		out := bson.A{}
		for _, p := range strings.Split(s, sep) {
			out = append(out, p)
		}
		return out, nil
	}},
	"$substrCP":    {3, 3, substring(true)},
	"$substrBytes": {3, 3, substring(false)},
	"$substr":      {3, 3, substring(false)},
	"$indexOfCP": {2, 4, func(a []any) (any, error) {
		if nullish(a[0]) {
			return nil, nil
		}
		s, _ := a[0].(string)
		t, _ := a[1].(string)
		i := strings.Index(s, t)
		if i < 0 {
			return int32(-1), nil
		}
		return int32(utf8.RuneCountInString(s[:i])), nil
	}},

	"$size": {1, 1, func(a []any) (any, error) {
		list, ok := a[0].(bson.A)
		if !ok {
			return nil, command.Errorf(17124, "The argument to $size must be an array, but was of type: %s", value.TypeName(a[0]))
		}
		return int32(len(list)), nil
	}},
	"$isArray":  {1, 1, func(a []any) (any, error) { _, ok := a[0].(bson.A); return ok, nil }},
	"$isNumber": {1, 1, func(a []any) (any, error) { return value.IsNumber(a[0]), nil }},
	"$type":     {1, 1, func(a []any) (any, error) { return value.TypeName(a[0]), nil }},
	"$first":    array1("$first", 28689, func(a bson.A) (any, error) { return element(a, 0), nil }),
	"$last":     array1("$last", 28689, func(a bson.A) (any, error) { return element(a, -1), nil }),
	"$arrayElemAt": {2, 2, func(a []any) (any, error) {
		if nullish(a[0]) || nullish(a[1]) {
			return nil, nil
		}
		list, ok := a[0].(bson.A)
		if !ok {
			return nil, command.Errorf(28689, "$arrayElemAt's first argument must be an array, but is %s", value.TypeName(a[0]))
		}
		i, ok := between(a[1])
		if !ok {
			return nil, command.Errorf(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", value.TypeName(a[1]))
		}
		return element(list, i), nil
	}},
	"$slice": {2, 3, slice},
	"$concatArrays": {0, -1, func(args []any) (any, error) {
		out := bson.A{}
		for _, v := range args {
			if nullish(v) {
				return nil, nil
			}
			a, ok := v.(bson.A)
			if !ok {
				return nil, command.Errorf(28664, "$concatArrays only supports arrays, not %s", value.TypeName(v))
			}
			if out = append(out, a...); 16*len(out) > value.MaxBuilt {
				return nil, tooMuch()
			}
		}
		return out, nil
	}},
	"$reverseArray": array1("$reverseArray", 34435, func(a bson.A) (any, error) {
		out := make(bson.A, len(a))
		for i := range a {
			out[len(a)-1-i] = a[i]
		}
		return out, nil
	}),
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
	"$indexOfArray": {2, 4, func(a []any) (any, error) {
		list, ok := a[0].(bson.A)
		if !ok {
			return nil, nil
		}
		for i, v := range list {
			if value.Equal(v, a[1]) {
				return int32(i), nil
			}
		}
		return int32(-1), nil
	}},
	"$range": {2, 3, func(a []any) (any, error) {
		from, ok1 := value.Whole(a[0])
		to, ok2 := value.Whole(a[1])
		step, ok3 := int64(1), true
		if len(a) == 3 {
			step, ok3 = value.Whole(a[2])
		}
		if !ok1 || !ok2 || !ok3 || step == 0 {
			return nil, command.Errorf(34443, "$range requires numeric arguments and a step that is not 0")
		}
		if n := (float64(to) - float64(from)) / float64(step); n > 1<<20 {
			return nil, command.Errorf(146, "$range would make an array of %g elements", n)
		}
		out := bson.A{}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			out = append(out, value.Int(i))
			if len(out) > 1<<20 {
				break // i has overflowed
			}
		}
		return out, nil
	}},
	"$setUnion": sets("$setUnion", 0, -1, func(arrays []bson.A) any {
		seen, out := map[string]bool{}, bson.A{}
		for _, a := range arrays {
			for _, v := range a {
				if k := value.Key(v); !seen[k] {
					seen[k] = true
					out = append(out, v)
				}
			}
		}
		return out
	}),
	"$setIntersection": sets("$setIntersection", 1, -1, func(arrays []bson.A) any {
		out := bson.A{}
		for _, v := range arrays[0] {
			all := true
			for _, a := range arrays[1:] {
				all = all && set(a)[value.Key(v)]
			}
			if all && !set(out)[value.Key(v)] {
				out = append(out, v)
			}
		}
		return out
	}),
	"$setDifference": sets("$setDifference", 2, 2, func(a []bson.A) any {
		out, not := bson.A{}, set(a[1])
		for _, v := range a[0] {
			if k := value.Key(v); !not[k] {
				not[k] = true
				out = append(out, v)
			}
		}
		return out
	}),
	"$setEquals": sets("$setEquals", 2, -1, func(a []bson.A) any {
		first := set(a[0])
		for _, other := range a[1:] {
			s := set(other)
			if len(s) != len(first) {
				return false
			}
			for k := range s {
				if !first[k] {
					return false
				}
			}
		}
		return true
	}),
	"$setIsSubset": sets("$setIsSubset", 2, 2, func(a []bson.A) any {
		of := set(a[1])
		for k := range set(a[0]) {
			if !of[k] {
				return false
			}
		}
		return true
	}),

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
	"$objectToArray": {1, 1, func(a []any) (any, error) {
		if nullish(a[0]) {
			return nil, nil
		}
		d, ok := a[0].(bson.D)
		if !ok {
			return nil, command.Errorf(40390, "$objectToArray requires a document input, found: %s", value.TypeName(a[0]))
		}
		out := bson.A{}
		for _, e := range d {
			out = append(out, bson.D{{Key: "k", Value: e.Key}, {Key: "v", Value: e.Value}})
		}
		return out, nil
	}},
	"$arrayToObject": array1("$arrayToObject", 40386, func(a bson.A) (any, error) {
		out := bson.D{}
		for _, v := range a {
			var k, x any
			switch p := v.(type) {
			case bson.D:
				k, _ = value.Field(p, "k")
				x, _ = value.Field(p, "v")
			case bson.A:
				if len(p) == 2 {
					k, x = p[0], p[1]
				}
			}
			key, ok := k.(string)
			if !ok {
				return nil, command.Errorf(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string")
			}
			out = value.Set(out, key, x)
		}
		return out, nil
	}),
	"$bsonSize": {1, 1, func(a []any) (any, error) {
		d, ok := a[0].(bson.D)
		if !ok {
			return nil, nil
		}
		return int32(len(value.Encode(d))), nil
	}},

	"$toBool":     conversion(8),
	"$toInt":      conversion(16),
	"$toLong":     conversion(18),
	"$toDouble":   conversion(1),
	"$toDecimal":  conversion(19),
	"$toString":   conversion(2),
	"$toObjectId": conversion(7),
	"$toDate":     conversion(9),

	"$rand": {0, 1, func([]any) (any, error) { return rand.Float64(), nil }},

	"$sum": accumulated("$sum"), "$avg": accumulated("$avg"), "$min": accumulated("$min"), "$max": accumulated("$max"),
}

func round(a []any, f func(float64) float64) (any, error) {
	if nullish(a[0]) {
		return nil, nil
	}
	if !value.IsNumber(a[0]) {
		return nil, command.Errorf(51081, "$round only supports numeric types, not %s", value.TypeName(a[0]))
	}
	place := int64(0)
	if len(a) == 2 {
		var ok bool
		if place, ok = value.Whole(a[1]); !ok || place < -20 || place > 100 {
			return nil, command.Errorf(51083, "cannot apply $round with precision value %s value must be in [-20, 100]", value.Text(a[1]))
		}
	}
	scale := math.Pow(10, float64(place))
	x := value.Float(a[0])
	r := f(x*scale) / scale
	switch a[0].(type) {
	case int32, int64:
		if place >= 0 {
			return a[0], nil
		}
		if _, ok := a[0].(int64); ok {
			return int64(r), nil
		}
		return value.Int(int64(r)), nil
	case bson.Decimal128:
		return value.ToDecimal(r), nil
	}
	return r, nil
}

func substring(runes bool) func([]any) (any, error) {
	return func(a []any) (any, error) {
		s, err := stringOf(a[0])
		if err != nil {
			return nil, err
		}
		from, ok := value.Whole(a[1])
		n, ok2 := value.Whole(a[2])
		if !ok || !ok2 || from < 0 {
			return nil, command.Errorf(16034, "$substr: starting index and length must be numbers that are not negative")
		}
		if runes {
			r := []rune(s)
			from = min(from, int64(len(r)))
			if n < 0 || n > int64(len(r))-from {
				n = int64(len(r)) - from
			}
			return string(r[from : from+n]), nil
		}
		from = min(from, int64(len(s)))
		if n < 0 || n > int64(len(s))-from {
			n = int64(len(s)) - from
		}
		return s[from : from+n], nil
	}
}

func slice(a []any) (any, error) {
	if nullish(a[0]) || nullish(a[1]) {
		return nil, nil
	}
	list, ok := a[0].(bson.A)
	if !ok {
		return nil, command.Errorf(28724, "First argument to $slice must be an array, but is of type: %s", value.TypeName(a[0]))
	}
	n, ok := value.Whole(a[1])
	if !ok {
		return nil, command.Errorf(28725, "Second argument to $slice must be a numeric value, but is of type: %s", value.TypeName(a[1]))
	}
	length := int64(len(list))
	if len(a) == 2 {
		if n >= 0 {
			return list[:min(n, length)], nil
		}
		return list[length-min(-n, length):], nil
	}
	if n < 0 {
		n = max(length+n, 0)
	}
	n = min(n, length)
	count, ok := value.Whole(a[2])
	if !ok || count <= 0 {
		return nil, command.Errorf(28729, "Third argument to $slice must be positive: %s", value.Text(a[2]))
	}
	return list[n : n+min(count, length-n)], nil
}

// Regexp compiles a pattern of BSON, with options, to Go's syntax.
func Regexp(pattern, options string) (*regexp.Regexp, error) {
	flags := ""
	for _, o := range options {
		switch o {
		case 'i', 'm', 's':
			flags += string(o)
		case 'x':
			var b strings.Builder
			for _, line := range strings.Split(pattern, "\n") {
				line, _, _ = strings.Cut(line, "#")
				b.WriteString(strings.Join(strings.Fields(line), ""))
			}
			pattern = b.String()
		case 'u', 'l':
		default:
			return nil, command.Errorf(51108, "invalid flag in regex options: %c", o)
		}
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, command.Errorf(51091, "Regular expression is invalid: %v", err)
	}
	return re, nil
}
