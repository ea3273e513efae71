package expression

import (
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

// Accumulator reduces values to one.
type Accumulator func(e *Env, values []any) any

// Accumulators are the operators that also reduce the values of a group.
var Accumulators = map[string]Accumulator{"$sum": sum, "$max": extreme(1), "$min": extreme(-1)}

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
