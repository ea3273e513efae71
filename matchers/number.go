package matchers

import (
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// number is an int32, an int64 or a double, kept as it is.
type number struct {
	isFloat bool
	i       int64
	f       float64
}

// numberOf reads a number; Decimal128 is not one ("Flexible Numeric
// Comparisons").
func numberOf(v bson.RawValue) (number, bool) {
	switch v.Type {
	case bson.TypeInt32:
		n, ok := v.Int32OK()
		return number{i: int64(n)}, ok
	case bson.TypeInt64:
		n, ok := v.Int64OK()
		return number{i: n}, ok
	case bson.TypeDouble:
		f, ok := v.DoubleOK()
		return number{isFloat: true, f: f}, ok
	default:
		return number{}, false
	}
}

// equal is numeric equality without rounding. NaN equals NaN.
func (a number) equal(b number) bool {
	switch {
	case a.isFloat && b.isFloat:
		return a.f == b.f || a.f != a.f && b.f != b.f
	case a.isFloat:
		return b.equal(a)
	case b.isFloat:
		// Within these bounds the conversion of a whole double is exact.
		return b.f >= -1<<63 && b.f < 1<<63 && b.f == math.Trunc(b.f) && int64(b.f) == a.i
	default:
		return a.i == b.i
	}
}

// atMost is a <= b without rounding. It never holds for NaN.
func (a number) atMost(b number) bool {
	switch {
	case a.isFloat && b.isFloat:
		return a.f <= b.f
	case a.isFloat: // a.f <= b.i
		return a.f < -1<<63 || a.f < 1<<63 && int64(math.Ceil(a.f)) <= b.i
	case b.isFloat: // a.i <= b.f
		return b.f >= 1<<63 || b.f >= -1<<63 && a.i <= int64(math.Floor(b.f))
	default:
		return a.i <= b.i
	}
}

// decimalAtMost is a <= b for decimals. It never holds for NaN.
func decimalAtMost(a, b bson.Decimal128) bool {
	if a.IsNaN() || b.IsNaN() {
		return false
	}
	if i, j := a.IsInf(), b.IsInf(); i != 0 || j != 0 {
		return i <= j
	}
	x, e, errX := a.BigInt()
	y, f, errY := b.BigInt()
	if errX != nil || errY != nil {
		return false
	}
	// Scale the one with the greater exponent down to the other's.
	low := min(e, f)
	scale := func(n *big.Int, exponent int) *big.Int {
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent-low)), nil)
		return p.Mul(p, n)
	}
	return scale(x, e).Cmp(scale(y, f)) <= 0
}
