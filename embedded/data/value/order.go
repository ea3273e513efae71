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

// Missing is the value of an expression that has none. It sorts before null.
type Missing struct{}

// types are the BSON types: their names, and their places in the server's comparison order.
var types = map[reflect.Type]struct {
	name string
	rank int
}{
	reflect.TypeFor[bson.MinKey]():        {"minKey", 0},
	reflect.TypeFor[Missing]():            {"missing", 1},
	reflect.TypeFor[bson.Undefined]():     {"undefined", 1},
	nil:                                   {"null", 2},
	reflect.TypeFor[int32]():              {"int", number},
	reflect.TypeFor[int64]():              {"long", number},
	reflect.TypeFor[float64]():            {"double", number},
	reflect.TypeFor[bson.Decimal128]():    {"decimal", number},
	reflect.TypeFor[string]():             {"string", 4},
	reflect.TypeFor[bson.Symbol]():        {"symbol", 4},
	reflect.TypeFor[bson.D]():             {"object", 5},
	reflect.TypeFor[bson.A]():             {"array", 6},
	reflect.TypeFor[bson.Binary]():        {"binData", 7},
	reflect.TypeFor[bson.ObjectID]():      {"objectId", 8},
	reflect.TypeFor[bool]():               {"bool", 9},
	reflect.TypeFor[bson.DateTime]():      {"date", 10},
	reflect.TypeFor[bson.Timestamp]():     {"timestamp", 11},
	reflect.TypeFor[bson.Regex]():         {"regex", 12},
	reflect.TypeFor[bson.DBPointer]():     {"dbPointer", 13},
	reflect.TypeFor[bson.JavaScript]():    {"javascript", 14},
	reflect.TypeFor[bson.CodeWithScope](): {"javascriptWithScope", 15},
	reflect.TypeFor[bson.MaxKey]():        {"maxKey", 16},
}

// number is the rank of all numeric types.
const number = 3

// Rank is the place of a value's type in the server's comparison order.
func Rank(v any) int { return types[reflect.TypeOf(v)].rank }

// TypeName is the name of the BSON type of a value, as $type knows it; "missing" for Missing.
func TypeName(v any) string { return types[reflect.TypeOf(v)].name }

// IsTypeName reports whether a BSON type has this name.
func IsTypeName(name string) bool {
	for _, t := range types {
		if t.name == name {
			return name != "missing"
		}
	}
	return false
}

// Equal reports whether the server holds two values equal: numbers by value,
// documents with their fields in order.
func Equal(a, b any) bool { return Compare(a, b) == 0 }

// Compare orders values as the server does without a collation.
func Compare(a, b any) int {
	if reflect.TypeOf(a) != reflect.TypeOf(b) { // else the ranks need no look
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
	case bson.D:
		return slices.CompareFunc(x, b.(bson.D), func(e, f bson.E) int {
			return cmp.Or(cmp.Compare(Rank(e.Value), Rank(f.Value)), strings.Compare(e.Key, f.Key), Compare(e.Value, f.Value))
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
	}
	// Booleans are in the order of their bytes. Of rare types, equality alone matters.
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

// Key is a string that two values share exactly if they are equal.
func Key(v any) string { return string(appendKey(nil, v)) }

func appendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case int32, int64, float64, bson.Decimal128:
		return numberKey(dst, v)
	case string, bson.Symbol:
		return sized(append(dst, 4), text(v))
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
	}
	// Other values are equal if they are written alike.
	return sized(append(dst, byte(Rank(v))), string(Encode(bson.D{{Value: v}})))
}

func sized(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func numberKey(dst []byte, v any) []byte {
	i, whole := asInt(v)
	if !whole {
		if c := class(v); c != 0 {
			return append(dst, number, 'c', byte(c))
		}
		r := rational(v)
		if !r.IsInt() || !r.Num().IsInt64() {
			return sized(append(dst, number, 'd'), r.String())
		}
		i = r.Num().Int64()
	}
	return binary.BigEndian.AppendUint64(append(dst, number, 'i'), uint64(i))
}

// IsNumber reports whether a value is of a numeric type.
func IsNumber(v any) bool { return Rank(v) == number }

// Float is a number as a float64, perhaps rounded.
func Float(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case bson.Decimal128:
		f, _ := strconv.ParseFloat(v.String(), 64) // an infinity if it is too large
		return f
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
	return !IsNull(v) && v != false && !Equal(v, int32(0))
}

// IsNull reports whether a value is null, undefined or missing.
func IsNull(v any) bool {
	switch v.(type) {
	case nil, bson.Undefined, Missing:
		return true
	}
	return false
}

// Add and Multiply work as $add, $inc and $mul do: the wider of the
// two types, int32 becoming int64 and, in sums of expressions, int64 becoming
// double on overflow. ok is false if an int64 overflows, and for Decimal128, which is not
// calculated with: the result is then nil.
func Add(a, b any) (sum any, ok bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	}, func(x, y float64) float64 { return x + y })
}

// Multiply is a × b; see Add.
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
