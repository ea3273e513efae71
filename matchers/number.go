package matchers

import (
	"math"

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
