package value

import (
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// IsNumber reports whether a value is of a numeric type.
func IsNumber(v any) bool { return Rank(v) == number }

// Float returns a number as a float64, rounded if necessary.
func Float(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case bson.Decimal128:
		f, _ := strconv.ParseFloat(v.String(), 64) // an infinity if out of range
		return f
	}
	i, _ := asInt(v)
	return float64(i)
}

// Int64 returns a number as an int64 and reports whether the conversion is exact.
func Int64(v any) (int64, bool) {
	if i, ok := asInt(v); ok {
		return i, true
	}
	if !IsNumber(v) {
		return 0, false
	}
	f := Float(v)
	if f != math.Trunc(f) || f < -(1<<63) || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// Truthy reports whether a value counts as true: false, null, zero and a missing value do not.
func Truthy(v any) bool {
	return !IsNull(v) && v != false && !Equal(v, int32(0))
}

// Add adds two numbers as $add and $inc do. The sum has the wider of the two types; on overflow an int32
// becomes an int64. If an int64 overflows, ok is false and the sum is a double. Decimal128 arithmetic is not
// implemented: the sum is nil and ok is false.
func Add(a, b any) (sum any, ok bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	}, func(x, y float64) float64 { return x + y })
}

// Multiply multiplies two numbers as $multiply and $mul do. Types, overflow and Decimal128 are handled as by Add.
func Multiply(a, b any) (any, bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		if x == 0 || y == 0 {
			return 0, true
		}
		p := x * y
		return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	}, func(x, y float64) float64 { return x * y })
}

func arith(a, b any, ints func(x, y int64) (int64, bool), floats func(x, y float64) float64) (any, bool) {
	_, da := a.(bson.Decimal128)
	_, db := b.(bson.Decimal128)
	if da || db {
		return nil, false
	}
	x, xi := asInt(a)
	y, yi := asInt(b)
	if !xi || !yi {
		return floats(Float(a), Float(b)), true
	}
	r, ok := ints(x, y)
	if !ok {
		return floats(float64(x), float64(y)), false
	}
	_, la := a.(int64)
	_, lb := b.(int64)
	if la || lb || r < math.MinInt32 || r > math.MaxInt32 {
		return r, true
	}
	return int32(r), true
}
