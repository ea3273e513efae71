package value

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Missing is the value of an expression that has none. It sorts before null.
type Missing struct{}

// Rank is the place of a value's type in the server's comparison order.
func Rank(v any) int {
	switch v.(type) {
	case bson.MinKey:
		return 0
	case Missing, bson.Undefined:
		return 1
	case nil:
		return 2
	case int32, int64, float64, bson.Decimal128, int:
		return 3
	case string, bson.Symbol:
		return 4
	case bson.D, bson.Raw:
		return 5
	case bson.A:
		return 6
	case bson.Binary:
		return 7
	case bson.ObjectID:
		return 8
	case bool:
		return 9
	case bson.DateTime:
		return 10
	case bson.Timestamp:
		return 11
	case bson.Regex:
		return 12
	case bson.DBPointer:
		return 13
	case bson.JavaScript:
		return 14
	case bson.CodeWithScope:
		return 15
	case bson.MaxKey:
		return 17
	}
	return 16
}

// Equal reports whether the server holds two values equal: numbers by value,
// documents with their fields in order.
func Equal(a, b any) bool { return Compare(a, b) == 0 }

// Compare orders values as the server does without a collation.
func Compare(a, b any) int { return CompareWith(a, b, nil) }

// CompareWith orders values; fold, if not nil, maps strings before they are
// compared (a collation).
func CompareWith(a, b any, fold func(string) string) int {
	if c := cmp.Compare(Rank(a), Rank(b)); c != 0 {
		return c
	}
	switch x := a.(type) {
	case int32, int64, float64, bson.Decimal128, int:
		return compareNumbers(a, b)
	case string, bson.Symbol:
		s, t := text(a), text(b)
		if fold != nil {
			s, t = fold(s), fold(t)
		}
		return strings.Compare(s, t)
	case bson.D:
		y, _ := b.(bson.D)
		for i := range x {
			if i >= len(y) {
				return 1
			}
			if c := cmp.Compare(Rank(x[i].Value), Rank(y[i].Value)); c != 0 {
				return c
			}
			if c := strings.Compare(x[i].Key, y[i].Key); c != 0 {
				return c
			}
			if c := CompareWith(x[i].Value, y[i].Value, fold); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	case bson.A:
		y := b.(bson.A)
		for i := range x {
			if i >= len(y) {
				return 1
			}
			if c := CompareWith(x[i], y[i], fold); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	case bson.Binary:
		y := b.(bson.Binary)
		if c := cmp.Compare(len(x.Data), len(y.Data)); c != 0 {
			return c
		}
		if c := cmp.Compare(x.Subtype, y.Subtype); c != 0 {
			return c
		}
		return bytes.Compare(x.Data, y.Data)
	case bson.ObjectID:
		y := b.(bson.ObjectID)
		return bytes.Compare(x[:], y[:])
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case bson.DateTime:
		return cmp.Compare(x, b.(bson.DateTime))
	case bson.Timestamp:
		return x.Compare(b.(bson.Timestamp))
	case nil, bson.Undefined, Missing, bson.MinKey, bson.MaxKey:
		return 0
	}
	// Of rare types, equality alone matters.
	return bytes.Compare(Encode(bson.D{{Value: a}}), Encode(bson.D{{Value: b}}))
}

func text(v any) string {
	if s, ok := v.(bson.Symbol); ok {
		return string(s)
	}
	s, _ := v.(string)
	return s
}

// compareNumbers compares by mathematical value, without loss; NaN sorts
// before all numbers.
func compareNumbers(a, b any) int {
	x, xi := asInt(a)
	y, yi := asInt(b)
	if xi && yi {
		return cmp.Compare(x, y)
	}
	f, ff := a.(float64)
	g, gg := b.(float64)
	if ff && gg {
		return cmp.Compare(f, g) // cmp sorts NaN first
	}
	ca, cb := class(a), class(b)
	if ca != cb || ca != 0 {
		return cmp.Compare(ca, cb)
	}
	return rational(a).Cmp(rational(b))
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}

// class is -2 for NaN, -1 and 1 for the infinities, else 0.
func class(v any) int {
	switch v := v.(type) {
	case float64:
		switch {
		case math.IsNaN(v):
			return -2
		case math.IsInf(v, -1):
			return -1
		case math.IsInf(v, 1):
			return 1
		}
	case bson.Decimal128:
		if v.IsNaN() {
			return -2
		}
		return v.IsInf()
	}
	return 0
}

// rational is a finite number, exactly.
func rational(v any) *big.Rat {
	r := new(big.Rat)
	switch x := v.(type) {
	case float64:
		r.SetFloat64(x)
	case bson.Decimal128:
		r.SetString(x.String())
	default:
		i, _ := asInt(v)
		r.SetInt64(i)
	}
	return r
}
