package value

import (
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// IsNumber reports whether a value is of a numeric type.
func IsNumber(v any) bool {
	switch v.(type) {
	case int32, int64, float64, bson.Decimal128, int:
		return true
	}
	return false
}

// Float is a number as a float64, perhaps rounded.
func Float(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case bson.Decimal128:
		switch {
		case v.IsNaN():
			return math.NaN()
		case v.IsInf() != 0:
			return math.Inf(v.IsInf())
		}
		f, _, err := big.ParseFloat(v.String(), 10, 64, big.ToNearestEven)
		if err != nil {
			return 0
		}
		r, _ := f.Float64()
		return r
	}
	i, _ := asInt(v)
	return float64(i)
}

// Whole is a number as an int64, and whether it is one exactly.
func Whole(v any) (int64, bool) {
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

// Truthy is the boolean meaning of a value: false for false, null, a missing
// value and zero.
func Truthy(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case nil, bson.Undefined, Missing:
		return false
	}
	if IsNumber(v) {
		return class(v) == -2 || class(v) != 0 || compareNumbers(v, int32(0)) != 0
	}
	return true
}

// Add and Multiply work as $add, $inc and $mul do: the wider of the
// two types, int32 becoming int64 and, in sums of expressions, int64 becoming
// double on overflow. ok is false if an int64 overflows.
func Add(a, b any) (sum any, ok bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	}, func(x, y float64) float64 { return x + y }, func(z, x, y *big.Int, e, f int) int {
		x, y, e = align(x, y, e, f)
		z.Add(x, y)
		return e
	})
}

// Multiply is a × b; see Add.
func Multiply(a, b any) (any, bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		if x == 0 || y == 0 {
			return 0, true
		}
		p := x * y
		return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	}, func(x, y float64) float64 { return x * y }, func(z, x, y *big.Int, e, f int) int {
		z.Mul(x, y)
		return e + f
	})
}

// align brings two numbers to the smaller power of ten.
func align(x, y *big.Int, e, f int) (*big.Int, *big.Int, int) {
	switch {
	case e > f:
		return new(big.Int).Mul(x, pow10(e-f)), y, f
	case f > e:
		return x, new(big.Int).Mul(y, pow10(f-e)), e
	}
	return x, y, e
}

func arith(a, b any, ints func(x, y int64) (int64, bool), floats func(x, y float64) float64,
	decimals func(z, x, y *big.Int, e, f int) int) (any, bool) {
	_, da := a.(bson.Decimal128)
	_, db := b.(bson.Decimal128)
	if da || db {
		if class(a) != 0 || class(b) != 0 {
			return ToDecimal(floats(Float(a), Float(b))), true
		}
		x, e := parts(a)
		y, f := parts(b)
		z := new(big.Int)
		exp := decimals(z, x, y, e, f)
		return decimal(z, exp), true
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

// decimal rounds a big decimal to the 34 digits of Decimal128.
func decimal(m *big.Int, e int) bson.Decimal128 {
	m = new(big.Int).Set(m)
	for len(new(big.Int).Abs(m).String()) > 34 {
		var r big.Int
		m.QuoRem(m, big.NewInt(10), &r)
		if c := new(big.Int).Abs(&r).Cmp(big.NewInt(5)); c >= 0 {
			m.Add(m, big.NewInt(int64(r.Sign())))
		}
		e++
	}
	d, ok := bson.ParseDecimal128FromBigInt(m, e)
	if !ok {
		return ToDecimal(math.Inf(m.Sign()))
	}
	return d
}

// ToDecimal is a float64 as a Decimal128.
func ToDecimal(f float64) bson.Decimal128 {
	s := "NaN"
	switch {
	case math.IsInf(f, 1):
		s = "Infinity"
	case math.IsInf(f, -1):
		s = "-Infinity"
	case !math.IsNaN(f):
		m, e := parts(f)
		return decimal(m, e)
	}
	d, _ := bson.ParseDecimal128(s)
	return d
}
