package value

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Key is a string that two values share exactly if they are equal.
func Key(v any) string { return string(AppendKey(nil, v)) }

// AppendKey appends the key of a value.
func AppendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case int32:
		return intKey(dst, int64(v))
	case int:
		return intKey(dst, int64(v))
	case int64:
		return intKey(dst, v)
	case float64:
		if v == math.Trunc(v) && v >= -(1<<63) && v < 1<<63 {
			return intKey(dst, int64(v))
		}
		return fractionKey(dst, v)
	case bson.Decimal128:
		return fractionKey(dst, v)
	case string:
		return sized(append(dst, 4), v)
	case bson.Symbol:
		return sized(append(dst, 4), string(v))
	case bson.D:
		dst = append(dst, 5)
		for i := range v {
			dst = append(dst, 1)
			dst = sized(dst, v[i].Key)
			dst = AppendKey(dst, v[i].Value)
		}
		return append(dst, 0)
	case bson.A:
		dst = append(dst, 6)
		for i := range v {
			dst = AppendKey(append(dst, 1), v[i])
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

func intKey(dst []byte, i int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 3, 'i'), uint64(i))
}

func sized(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// fractionKey is the key of a number that may be no integer, or not finite.
func fractionKey(dst []byte, v any) []byte {
	if c := class(v); c != 0 {
		return append(dst, 3, 'c', byte(c))
	}
	r := rational(v)
	if r.IsInt() && r.Num().IsInt64() {
		return intKey(dst, r.Num().Int64())
	}
	return sized(append(dst, 3, 'd'), r.String())
}
