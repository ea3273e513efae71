package enginekit

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// Nothing is the result of operations that return nothing.
type Nothing struct{}

// ValueOf converts a result to BSON: nil is null, Nothing is the zero RawValue.
func ValueOf(v any) (result.Value, error) {
	switch v := v.(type) {
	case Nothing:
		return result.Value{}, nil
	case bson.RawValue:
		return result.Value{RawValue: v}, nil
	case bson.RawArray:
		return result.Value{RawValue: bson.RawValue{Type: bson.TypeArray, Value: v}}, nil
	case bson.Raw:
		if v == nil {
			return ValueOf(nil)
		}
	case nil:
		return result.Value{RawValue: bson.RawValue{Type: bson.TypeNull}}, nil
	}
	t, data, err := bson.MarshalValue(v)
	return result.Value{RawValue: bson.RawValue{Type: t, Value: data}}, err
}

// Integer returns the value of a BSON number that is an integer. Doubles must not exceed 2^53.
func Integer(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		return int64(v.Int32()), true
	case bson.TypeInt64:
		return v.Int64(), true
	case bson.TypeDouble:
		d := v.Double()
		if d != math.Trunc(d) || math.Abs(d) > 1<<53 {
			return 0, false
		}
		return int64(d), true
	}
	return 0, false
}

// AddWriteError adds the error of one write of a bulk write.
func AddWriteError(to *result.Error, index int, e bson.Raw) {
	if to.WriteErrors == nil {
		to.WriteErrors = map[int]result.Document{}
	}
	to.WriteErrors[index] = result.Document(e)
}

// WriteErrorDocument converts an error of a client bulk write to the fields of the format. details may be nil.
func WriteErrorDocument(code, message any, details bson.Raw) bson.Raw {
	raw, _ := bson.Marshal(struct {
		Code, Message any
		Details       bson.Raw `bson:",omitempty"`
	}{code, message, details})
	return raw // nil if the details are not a document
}
