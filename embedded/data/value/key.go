package value

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

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
