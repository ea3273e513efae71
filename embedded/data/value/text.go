package value

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Text is a value as the server writes it in messages.
func Text(v any) string {
	var b strings.Builder
	write(&b, v)
	return b.String()
}

func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bson.D:
		if len(v) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{ ")
		for i := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v[i].Key + ": ")
			write(b, v[i].Value)
		}
		b.WriteString(" }")
	case bson.Raw:
		write(b, Must(v))
	case bson.A:
		if len(v) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteString("[ ")
		for i := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, v[i])
		}
		b.WriteString(" ]")
	case string:
		b.WriteString(strconv.Quote(v))
	case bson.Symbol:
		b.WriteString(strconv.Quote(string(v)))
	case float64:
		switch {
		case math.IsNaN(v):
			b.WriteString("nan.0")
		case math.IsInf(v, 1):
			b.WriteString("inf.0")
		case math.IsInf(v, -1):
			b.WriteString("-inf.0")
		case v == math.Trunc(v) && math.Abs(v) < 1e15:
			b.WriteString(strconv.FormatFloat(v, 'f', 1, 64))
		default:
			b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
		}
	case bson.Decimal128:
		fmt.Fprintf(b, "NumberDecimal(\"%s\")", v)
	case bson.ObjectID:
		fmt.Fprintf(b, "ObjectId('%s')", v.Hex())
	case bson.Binary:
		if v.Subtype == 4 && len(v.Data) == 16 {
			fmt.Fprintf(b, "UUID(\"%s\")", UUIDText(v.Data))
			return
		}
		fmt.Fprintf(b, "BinData(%d, %s)", v.Subtype, strings.ToUpper(hex.EncodeToString(v.Data)))
	case bson.DateTime:
		fmt.Fprintf(b, "new Date(%d)", int64(v))
	case bson.Timestamp:
		fmt.Fprintf(b, "Timestamp(%d, %d)", v.T, v.I)
	case bson.Regex:
		fmt.Fprintf(b, "/%s/%s", v.Pattern, v.Options)
	case bson.Undefined, Missing:
		b.WriteString("undefined")
	default:
		fmt.Fprint(b, v)
	}
}

// UUIDText is a UUID with dashes.
func UUIDText(u []byte) string {
	if len(u) != 16 {
		return base64.StdEncoding.EncodeToString(u)
	}
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// types are the BSON types as $type knows them, each with a value.
var types = []struct {
	name   string
	number int32
	value  any
}{
	{"double", 1, 0.0},
	{"string", 2, ""},
	{"object", 3, bson.D{}},
	{"object", 3, bson.Raw{}},
	{"array", 4, bson.A{}},
	{"binData", 5, bson.Binary{}},
	{"undefined", 6, bson.Undefined{}},
	{"objectId", 7, bson.ObjectID{}},
	{"bool", 8, false},
	{"date", 9, bson.DateTime(0)},
	{"null", 10, nil},
	{"regex", 11, bson.Regex{}},
	{"dbPointer", 12, bson.DBPointer{}},
	{"javascript", 13, bson.JavaScript("")},
	{"symbol", 14, bson.Symbol("")},
	{"javascriptWithScope", 15, bson.CodeWithScope{}},
	{"int", 16, int32(0)},
	{"timestamp", 17, bson.Timestamp{}},
	{"long", 18, int64(0)},
	{"decimal", 19, bson.Decimal128{}},
	{"minKey", -1, bson.MinKey{}},
	{"maxKey", 127, bson.MaxKey{}},
	{"missing", 0, Missing{}},
}

// TypeNumber is the number of a type's name.
func TypeNumber(name string) (int32, bool) {
	for _, t := range types {
		if t.name == name {
			return t.number, t.number != 0
		}
	}
	return 0, false
}

// TypeOf is the number of the BSON type of a value; 0 for Missing.
func TypeOf(v any) int32 {
	for _, t := range types {
		if reflect.TypeOf(t.value) == reflect.TypeOf(v) {
			return t.number
		}
	}
	return 0
}

// TypeName is the name of the BSON type of a value; "missing" for Missing.
func TypeName(v any) string {
	n := TypeOf(v)
	for _, t := range types {
		if t.number == n {
			return t.name
		}
	}
	return "missing"
}
