package expression

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// arithmetic is an operator on numbers. If one of them is null, so is the result. $add also accepts dates.
func arithmetic(name, what string, start int32, f func(a, b any) (any, bool)) func(*Env, []Expr) any {
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
				return e.fail(fault.TypeMismatch, "%s only supports %s types, not %s", name, what, value.TypeName(v))
			}
			if result, _ = f(result, v); result == nil {
				return e.decimal(name)
			}
		}
		if isDate {
			whole, _ := value.Int64(result)
			return bson.DateTime(whole)
		}
		return result
	}
}

// decimal is the error of arithmetic on Decimal128.
func (e *Env) decimal(name string) any {
	return e.fail(fault.NotImplemented, "%s of Decimal128 is not implemented by the embedded deployment", name)
}

// numeric is an operator on a number, with further arguments. code is the code of the error for another type.
func numeric(name string, code int32, most int, f func(e *Env, v []any) any) operator {
	return operator{1, most, of(func(e *Env, v []any) any {
		switch {
		case anyNull(v):
			return nil
		case !value.IsNumber(v[0]):
			return e.fail(code, "%s only supports numeric types, not %s", name, value.TypeName(v[0]))
		case value.Is[bson.Decimal128](v[0]):
			return e.decimal(name)
		}
		return f(e, v)
	})}
}

func abs(e *Env, v []any) any {
	switch v := v[0].(type) {
	case int32:
		if v == math.MinInt32 {
			return -int64(v)
		}
		return max(v, -v)
	case int64:
		if v == math.MinInt64 {
			return e.fail(28680, "can't take $abs of long long min")
		}
		return max(v, -v)
	}
	return math.Abs(value.Float(v[0]))
}

// wholeOr is a function of doubles that does not change integers.
func wholeOr(f func(float64) float64) func(*Env, []any) any {
	return func(_ *Env, v []any) any {
		if d, ok := v[0].(float64); ok {
			return f(d)
		}
		return v[0]
	}
}

func squareRoot(e *Env, v []any) any {
	if value.Float(v[0]) < 0 {
		return e.fail(28714, "$sqrt's argument must be greater than or equal to 0")
	}
	return math.Sqrt(value.Float(v[0]))
}

// binary is an operator on two numbers. code is the code of the error for other types.
func binary(name string, code int32, f func(e *Env, a, b any) any) operator {
	return operator{2, 2, of(func(e *Env, v []any) any {
		switch {
		case anyNull(v):
			return nil
		case !value.IsNumber(v[0]) || !value.IsNumber(v[1]):
			return e.fail(code, "%s only supports numeric types, not %s and %s", name, value.TypeName(v[0]), value.TypeName(v[1]))
		case value.Is[bson.Decimal128](v[0]) || value.Is[bson.Decimal128](v[1]):
			return e.decimal(name)
		}
		return f(e, v[0], v[1])
	})}
}

func subtract(e *Env, v []any) any {
	a, aDate := v[0].(bson.DateTime)
	b, bDate := v[1].(bson.DateTime)
	switch {
	case anyNull(v):
		return nil
	case aDate && bDate:
		return int64(a) - int64(b)
	case aDate && value.IsNumber(v[1]):
		n, _ := value.Int64(v[1])
		return a - bson.DateTime(n)
	case !value.IsNumber(v[0]) || !value.IsNumber(v[1]):
		return e.fail(fault.TypeMismatch, "can't $subtract %s from %s", value.TypeName(v[1]), value.TypeName(v[0]))
	}
	negative, _ := value.Multiply(v[1], int32(-1))
	if r, _ := value.Add(v[0], negative); r != nil && negative != nil {
		return r
	}
	return e.decimal("$subtract")
}

func divide(e *Env, a, b any) any {
	if value.Float(b) == 0 {
		return e.fail(fault.BadValue, "can't $divide by zero")
	}
	return value.Float(a) / value.Float(b)
}

func mod(e *Env, a, b any) any {
	n, _ := value.Int64(a)
	by, _ := value.Int64(b)
	switch {
	case value.Float(b) == 0:
		return e.fail(16610, "can't $mod by zero")
	case value.Is[float64](a) || value.Is[float64](b):
		return math.Mod(value.Float(a), value.Float(b))
	case value.Is[int64](a) || value.Is[int64](b):
		return n % by
	}
	return int32(n % by)
}

// rounding is $round or $trunc. Other numbers of places than 0 are refused: a server rounds in decimal.
func rounding(name string, f func(float64) float64) operator {
	return numeric(name, 51081, 2, func(e *Env, v []any) any {
		if len(v) == 2 {
			places, ok := value.Int64(v[1])
			switch {
			case !ok:
				return e.fail(51082, "precision argument to  %s must be a integral value", name)
			case places < -20 || places > 100:
				return e.fail(51083, "cannot apply %s with precision value %d value must be in [-20, 100]", name, places)
			case places != 0:
				return e.fail(fault.NotImplemented, "%s with places is not implemented by the embedded deployment", name)
			}
		}
		return wholeOr(f)(e, v)
	})
}

// Accumulator reduces values to one.
type Accumulator func(e *Env, values []any) any

// Accumulators are the operators that also reduce the values of a group.
var Accumulators = map[string]Accumulator{"$sum": sum, "$avg": average, "$max": extreme(1), "$min": extreme(-1),
	"$mergeObjects": mergeObjects}

// operands returns the values of an accumulator in an expression: its arguments, or the elements of a single array.
func operands(v []any) []any {
	if len(v) == 1 {
		if a, ok := v[0].(bson.A); ok {
			return a
		}
	}
	return v
}

// sum adds the numbers among values.
func sum(e *Env, values []any) any {
	var total any = int32(0)
	for _, v := range values {
		if value.IsNumber(v) {
			if total, _ = value.Add(total, v); total == nil {
				return e.decimal("$sum")
			}
		}
	}
	return total
}

// average returns the average of the numbers among values, null without numbers.
func average(e *Env, values []any) any {
	n, sum := 0, 0.0
	for _, v := range values {
		if value.Is[bson.Decimal128](v) {
			return e.decimal("$avg")
		}
		if value.IsNumber(v) {
			n++
			sum += value.Float(v)
		}
	}
	if n == 0 {
		return nil
	}
	return sum / float64(n)
}

// extreme returns the greatest (sign 1) or least (-1) value that is not null, null without one.
func extreme(sign int) Accumulator {
	return func(e *Env, values []any) (best any) {
		for _, v := range values {
			if !value.IsNull(v) && (best == nil || e.Collation.Compare(v, best)*sign > 0) {
				best = v
			}
		}
		return best
	}
}
