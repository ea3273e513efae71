package value

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func itoa(i int) string { return strconv.Itoa(i) }

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
	case bson.JavaScript:
		b.WriteString(string(v))
	case bson.CodeWithScope:
		fmt.Fprintf(b, "CodeWScope( %s, %s)", v.Code, Text(v.Scope))
	case bson.DBPointer:
		fmt.Fprintf(b, "DBRef('%s', %s)", v.DB, v.Pointer.Hex())
	case bson.Undefined, Missing:
		b.WriteString("undefined")
	case bson.MinKey:
		b.WriteString("MinKey")
	case bson.MaxKey:
		b.WriteString("MaxKey")
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

// types are the names and numbers of BSON types as $type knows them.
var types = []struct {
	name   string
	number int32
}{
	{"double", 1}, {"string", 2}, {"object", 3}, {"array", 4}, {"binData", 5}, {"undefined", 6}, {"objectId", 7},
	{"bool", 8}, {"date", 9}, {"null", 10}, {"regex", 11}, {"dbPointer", 12}, {"javascript", 13}, {"symbol", 14},
	{"javascriptWithScope", 15}, {"int", 16}, {"timestamp", 17}, {"long", 18}, {"decimal", 19}, {"minKey", -1}, {"maxKey", 127},
}

// TypeNumber is the number of a type's name.
func TypeNumber(name string) (int32, bool) {
	for _, t := range types {
		if t.name == name {
			return t.number, true
		}
	}
	return 0, false
}

// KnownType reports whether a number names a BSON type.
func KnownType(n int32) bool {
	for _, t := range types {
		if t.number == n {
			return true
		}
	}
	return false
}

// TypeOf is the number of the BSON type of a value; 0 for Missing.
func TypeOf(v any) int32 {
	switch v.(type) {
	case float64:
		return 1
	case string:
		return 2
	case bson.D, bson.Raw:
		return 3
	case bson.A:
		return 4
	case bson.Binary:
		return 5
	case bson.Undefined:
		return 6
	case bson.ObjectID:
		return 7
	case bool:
		return 8
	case bson.DateTime:
		return 9
	case nil:
		return 10
	case bson.Regex:
		return 11
	case bson.DBPointer:
		return 12
	case bson.JavaScript:
		return 13
	case bson.Symbol:
		return 14
	case bson.CodeWithScope:
		return 15
	case int32:
		return 16
	case bson.Timestamp:
		return 17
	case int64:
		return 18
	case bson.Decimal128:
		return 19
	case bson.MinKey:
		return -1
	case bson.MaxKey:
		return 127
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
