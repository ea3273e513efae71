package matchers

import (
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// number is an int32, an int64 or a double, exactly; nil is NaN.
type number struct{ *big.Float }

// numberOf reads a number; Decimal128 is not one ("Flexible Numeric
// Comparisons").
func numberOf(v bson.RawValue) (number, bool) {
	switch v.Type {
	case bson.TypeInt32:
		n, ok := v.Int32OK()
		return whole(int64(n)), ok
	case bson.TypeInt64:
		n, ok := v.Int64OK()
		return whole(n), ok
	case bson.TypeDouble:
		f, ok := v.DoubleOK()
		if math.IsNaN(f) {
			return number{}, ok
		}
		return number{big.NewFloat(f)}, ok
	default:
		return number{}, false
	}
}

func whole(n int64) number { return number{new(big.Float).SetInt64(n)} }

// equal is numeric equality without rounding. NaN equals NaN.
func (a number) equal(b number) bool {
	if a.Float == nil || b.Float == nil {
		return a.Float == b.Float
	}
	return a.Cmp(b.Float) == 0
}

// atMost is a <= b without rounding. It never holds for NaN.
func (a number) atMost(b number) bool {
	return a.Float != nil && b.Float != nil && a.Cmp(b.Float) <= 0
}
