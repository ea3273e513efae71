package value

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Missing is the value of an expression that yields no value. It sorts before null.
type Missing struct{}

// number is the rank of all numeric types.
const number = 3

// Rank returns the position of a value's type in the server's comparison order.
func Rank(v any) int { return types[reflect.TypeOf(v)].rank }

// Equal reports whether the server considers two values equal. Numbers are compared by value; the order of
// a document's fields matters.
func Equal(a, b any) bool { return Compare(a, b) == 0 }

// Compare is the order of a server: of values, of the keys of sorts and of indexes. With a collation, it compares what
// Collation.Fold returns.
func Compare(a, b any) int {
	if reflect.TypeOf(a) != reflect.TypeOf(b) { // equal types have equal ranks
		if c := cmp.Compare(Rank(a), Rank(b)); c != 0 {
			return c
		}
	}
	switch x := a.(type) {
	case nil, bson.Undefined, Missing:
		return 0
	case int32, int64, float64, bson.Decimal128:
		return compareNumbers(a, b)
	case string, bson.Symbol:
		return strings.Compare(text(a), text(b))
	case bson.D, byName:
		d, named := fields(a)
		e, _ := fields(b)
		return slices.CompareFunc(d, e, func(f, g bson.E) int {
			first, second := cmp.Compare(Rank(f.Value), Rank(g.Value)), strings.Compare(f.Key, g.Key)
			if named {
				first, second = second, first
			}
			return cmp.Or(first, second, Compare(f.Value, g.Value))
		})
	case bson.A:
		return slices.CompareFunc(x, b.(bson.A), Compare)
	case bson.Binary:
		y := b.(bson.Binary)
		return cmp.Or(cmp.Compare(len(x.Data), len(y.Data)), cmp.Compare(x.Subtype, y.Subtype), bytes.Compare(x.Data, y.Data))
	case bson.ObjectID:
		y := b.(bson.ObjectID)
		return bytes.Compare(x[:], y[:])
	case bson.DateTime:
		return cmp.Compare(x, b.(bson.DateTime))
	case bson.Timestamp:
		return x.Compare(b.(bson.Timestamp))
	case bson.Regex:
		y := b.(bson.Regex)
		return cmp.Or(strings.Compare(x.Pattern, y.Pattern), strings.Compare(x.Options, y.Options))
	case bson.JavaScript:
		return strings.Compare(string(x), string(b.(bson.JavaScript)))
	case bson.CodeWithScope:
		y := b.(bson.CodeWithScope)
		return cmp.Or(strings.Compare(string(x.Code), string(y.Code)), Compare(x.Scope, y.Scope))
	}
	// The rest are booleans and DBPointers, which sort by length and bytes.
	return bytes.Compare(Encode(bson.D{{Value: a}}), Encode(bson.D{{Value: b}}))
}

// byName is a document whose fields are compared by name before type.
type byName bson.D

// fields returns the fields of a document.
func fields(v any) (d bson.D, named bool) {
	if n, ok := v.(byName); ok {
		return bson.D(n), true
	}
	d, _ = v.(bson.D)
	return d, false
}

func text(v any) string {
	if s, ok := v.(bson.Symbol); ok {
		return string(s)
	}
	s, _ := v.(string)
	return s
}

// compareNumbers compares exactly, by mathematical value. NaN sorts before all numbers.
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
	}
	return 0, false
}

// class returns -2 for NaN, -1 or 1 for an infinity, and 0 for a finite number.
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

// rational returns the exact value of a finite number.
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

// Key returns a string that is the same for two values if and only if they are equal.
func Key(v any) string { return string(appendKey(nil, v)) }

func appendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case int32, int64, float64, bson.Decimal128:
		return numberKey(dst, v)
	case string, bson.Symbol:
		return sized(append(dst, 4), text(v))
	case byName:
		return appendKey(dst, bson.D(v))
	case bson.D:
		dst = append(dst, 5)
		for i := range v {
			dst = append(dst, 1)
			dst = sized(dst, v[i].Key)
			dst = appendKey(dst, v[i].Value)
		}
		return append(dst, 0)
	case bson.A:
		dst = append(dst, 6)
		for i := range v {
			dst = appendKey(append(dst, 1), v[i])
		}
		return append(dst, 0)
	case bson.ObjectID:
		return append(append(dst, 8), v[:]...)
	case nil, bson.Undefined, Missing, bson.MinKey, bson.MaxKey:
		return append(dst, byte(Rank(v)))
	case bson.CodeWithScope:
		return appendKey(sized(append(dst, byte(Rank(v))), string(v.Code)), v.Scope)
	}
	// Other values are equal if their encodings are.
	return sized(append(dst, byte(Rank(v))), string(Encode(bson.D{{Value: v}})))
}

func sized(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func numberKey(dst []byte, v any) []byte {
	dst = append(dst, number)
	if i, whole := asInt(v); whole {
		return sized(dst, strconv.FormatInt(i, 10))
	}
	if c := class(v); c != 0 {
		return append(dst, 0, byte(c)) // no other text is empty
	}
	return sized(dst, rational(v).RatString())
}

// OrNull returns nil for Missing and any other value unchanged.
func OrNull(v any) any {
	if IsMissing(v) {
		return nil
	}
	return v
}

// IsMissing reports whether a value is Missing.
func IsMissing(v any) bool { return v == any(Missing{}) }

// IsNull reports whether a value is null, undefined or missing.
func IsNull(v any) bool {
	switch v.(type) {
	case nil, bson.Undefined, Missing:
		return true
	}
	return false
}

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
	if Is[bson.Decimal128](a) || Is[bson.Decimal128](b) {
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
	if Is[int64](a) || Is[int64](b) || r < math.MinInt32 || r > math.MaxInt32 {
		return r, true
	}
	return int32(r), true
}
