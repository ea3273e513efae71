package expression

import (
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// convert makes a value of the type of a number, as $convert does.
func convert(v any, typ int32) (any, error) {
	if value.TypeOf(v) == typ {
		return v, nil
	}
	fail := command.Errorf(241, "Unsupported conversion from %s to %s in $convert with no onError value", value.TypeName(v), typeName(typ))
	switch typ {
	case 8:
		return value.Truthy(v), nil
	case 2:
		switch x := v.(type) {
		case int32, int64:
			i, _ := value.Whole(x)
			return strconv.FormatInt(i, 10), nil
		case float64:
			return strconv.FormatFloat(x, 'g', -1, 64), nil
		case bson.Decimal128:
			return x.String(), nil
		case bool:
			return strconv.FormatBool(x), nil
		case bson.ObjectID:
			return x.Hex(), nil
		case bson.DateTime:
			return x.Time().UTC().Format("2006-01-02T15:04:05.000Z"), nil
		}
	case 16, 18, 1, 19:
		n, err := number(v, fail)
		if err != nil {
			return nil, err
		}
		switch typ {
		case 1:
			return value.Float(n), nil
		case 19:
			return value.ToDecimal(n), nil
		}
		i, ok := value.Whole(n)
		if !ok {
			f := math.Trunc(value.Float(n))
			if math.IsNaN(f) || f < -(1<<63) || f >= 1<<63 {
				return nil, command.Errorf(241, "Conversion would overflow target type in $convert with no onError value: %s", value.Text(v))
			}
			i = int64(f)
		}
		if typ == 18 {
			return i, nil
		}
		if i < math.MinInt32 || i > math.MaxInt32 {
			return nil, command.Errorf(241, "Conversion would overflow target type in $convert with no onError value: %s", value.Text(v))
		}
		return int32(i), nil
	case 7:
		if s, ok := v.(string); ok {
			id, err := bson.ObjectIDFromHex(s)
			if err != nil {
				return nil, command.Errorf(241, "Failed to parse objectId '%s' in $convert with no onError value", s)
			}
			return id, nil
		}
	case 9:
		switch x := v.(type) {
		case string:
			t, err := time.Parse(time.RFC3339, x)
			if err != nil {
				return nil, command.Errorf(241, "Error parsing date string '%s'", x)
			}
			return bson.NewDateTimeFromTime(t), nil
		case bson.ObjectID:
			return bson.NewDateTimeFromTime(x.Timestamp()), nil
		case bson.Timestamp:
			return bson.DateTime(int64(x.T) * 1000), nil
		case int64, float64, bson.Decimal128:
			return bson.DateTime(int64(value.Float(x))), nil
		}
	}
	return nil, fail
}

func number(v any, fail error) (any, error) {
	switch x := v.(type) {
	case bool:
		if x {
			return int32(1), nil
		}
		return int32(0), nil
	case string:
		if i, err := strconv.ParseInt(x, 10, 64); err == nil {
			return i, nil
		}
		f, err := strconv.ParseFloat(x, 64)
		if err != nil {
			return nil, command.Errorf(241, "Failed to parse number '%s' in $convert with no onError value", x)
		}
		return f, nil
	case bson.DateTime:
		return int64(x), nil
	}
	if !value.IsNumber(v) {
		return nil, fail
	}
	return v, nil
}

func typeName(n int32) string {
	for _, name := range []string{"double", "string", "object", "array", "binData", "objectId", "bool", "date", "int", "timestamp", "long", "decimal"} {
		if m, _ := value.TypeNumber(name); m == n {
			return name
		}
	}
	return strconv.Itoa(int(n))
}
