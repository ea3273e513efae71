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

// Text formats a value as the server does in messages.
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
		writeList(b, "{}", len(v), func(i int) {
			b.WriteString(v[i].Key + ": ")
			write(b, v[i].Value)
		})
	case bson.A:
		writeList(b, "[]", len(v), func(i int) { write(b, v[i]) })
	case string, bson.Symbol:
		fmt.Fprintf(b, "%q", v)
	case float64:
		switch {
		case math.IsNaN(v):
			b.WriteString("nan.0")
		case math.IsInf(v, 1):
			b.WriteString("inf.0")
		case math.IsInf(v, -1):
			b.WriteString("-inf.0")
		case v == math.Trunc(v) && math.Abs(v) < 1e15:
			fmt.Fprintf(b, "%.1f", v)
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
		} else {
			fmt.Fprintf(b, "BinData(%d, %X)", v.Subtype, v.Data)
		}
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

// writeList writes the items of a document or an array between its brackets.
func writeList(b *strings.Builder, brackets string, n int, item func(i int)) {
	if n == 0 {
		b.WriteString(brackets)
		return
	}
	before := brackets[:1]
	for i := range n {
		b.WriteString(before + " ")
		item(i)
		before = ","
	}
	b.WriteString(" " + brackets[1:])
}

// UUIDText formats a UUID with dashes, and bytes of any other length in base64.
func UUIDText(u []byte) string {
	if len(u) != 16 {
		return base64.StdEncoding.EncodeToString(u)
	}
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// types maps the BSON types to their names and their positions in the server's comparison order.
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

// TypeName returns the name of a value's BSON type as $type spells it; "missing" for Missing.
func TypeName(v any) string { return types[reflect.TypeOf(v)].name }
