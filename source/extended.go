package source

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The readers of type wrappers: each gets what stands under the wrapper's key
// (Extended JSON v2, "Conversion table").

func appendObjectID(v *Value, to []byte) (bson.Type, []byte, error) {
	id, err := bson.ObjectIDFromHex(v.String)
	if v.Kind != String || err != nil {
		return 0, nil, v.malformed("$oid", "a string of 24 hexadecimal digits")
	}
	return bson.TypeObjectID, bsoncore.AppendObjectID(to, id), nil
}

func appendSymbol(v *Value, to []byte) (bson.Type, []byte, error) {
	if v.Kind != String {
		return 0, nil, v.malformed("$symbol", "a string")
	}
	return bson.TypeSymbol, bsoncore.AppendSymbol(to, v.String), nil
}

func appendNumberInt(v *Value, to []byte) (bson.Type, []byte, error) {
	n, ok := v.intOf(32)
	if !ok {
		return 0, nil, v.malformed("$numberInt", "a string with an integer of 32 bits")
	}
	return bson.TypeInt32, bsoncore.AppendInt32(to, int32(n)), nil
}

func appendNumberLong(v *Value, to []byte) (bson.Type, []byte, error) {
	n, ok := v.intOf(64)
	if !ok {
		return 0, nil, v.malformed("$numberLong", "a string with an integer of 64 bits")
	}
	return bson.TypeInt64, bsoncore.AppendInt64(to, n), nil
}

func appendNumberDouble(v *Value, to []byte) (bson.Type, []byte, error) {
	special := map[string]float64{"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN()}
	f, ok := special[v.String]
	if !ok {
		var err error
		f, err = strconv.ParseFloat(v.String, 64)
		// ParseFloat also knows hexadecimal numbers, underscores and words.
		ok = err == nil && strings.Trim(v.String, "+-.eE0123456789") == ""
	}
	if v.Kind != String || !ok {
		return 0, nil, v.malformed("$numberDouble", "a string with a number, Infinity, -Infinity or NaN")
	}
	return bson.TypeDouble, bsoncore.AppendDouble(to, f), nil
}

func appendNumberDecimal(v *Value, to []byte) (bson.Type, []byte, error) {
	d, err := bson.ParseDecimal128(v.String)
	if v.Kind != String || err != nil {
		return 0, nil, v.malformed("$numberDecimal", "a string with a decimal number of up to 34 digits")
	}
	h, l := d.GetBytes()
	return bson.TypeDecimal128, bsoncore.AppendDecimal128(to, h, l), nil
}

func appendBinary(v *Value, to []byte) (bson.Type, []byte, error) {
	const want = "{base64: a string, subType: one or two hexadecimal digits}"
	parts, ok := v.exactly("base64", "subType")
	if !ok || parts[0].Kind != String || parts[1].Kind != String {
		return 0, nil, v.malformed("$binary", want)
	}
	data, err := base64.StdEncoding.DecodeString(parts[0].String)
	if err != nil {
		return 0, nil, parts[0].malformed("$binary", "base64 with padding")
	}
	subtype, err := strconv.ParseUint(parts[1].String, 16, 8)
	if err != nil || len(parts[1].String) > 2 {
		return 0, nil, parts[1].malformed("$binary", "a subType of one or two hexadecimal digits")
	}
	return bson.TypeBinary, bsoncore.AppendBinary(to, byte(subtype), data), nil
}

func appendUUID(v *Value, to []byte) (bson.Type, []byte, error) {
	parts := strings.Split(v.String, "-")
	data, err := hex.DecodeString(strings.Join(parts, ""))
	lengths := make([]int, len(parts))
	for i, p := range parts {
		lengths[i] = len(p)
	}
	if v.Kind != String || err != nil || !slices.Equal(lengths, []int{8, 4, 4, 4, 12}) {
		return 0, nil, v.malformed("$uuid", "a string such as 73ffd264-44b3-4c69-90e8-e7d1dfc035d4")
	}
	return bson.TypeBinary, bsoncore.AppendBinary(to, bson.TypeBinaryUUID, data), nil
}

func (v *Value) appendCode(to []byte) (bson.Type, []byte, error) {
	code, scope := v.Get("$code"), v.Get("$scope")
	if code.Kind != String {
		return 0, nil, code.malformed("$code", "a string")
	}
	if scope == nil {
		return bson.TypeJavaScript, bsoncore.AppendJavaScript(to, code.String), nil
	}
	if scope.Kind != Document || scope.ExtendedScalar() {
		return 0, nil, scope.malformed("$scope", "a document")
	}
	document, err := scope.appendDocument(nil)
	if err != nil {
		return 0, nil, err
	}
	return bson.TypeCodeWithScope, bsoncore.AppendCodeWithScope(to, code.String, document), nil
}

func appendTimestamp(v *Value, to []byte) (bson.Type, []byte, error) {
	const want = "{t: seconds, i: ordinal}, both whole numbers below 2^32"
	parts, ok := v.exactly("t", "i")
	if !ok {
		return 0, nil, v.malformed("$timestamp", want)
	}
	t, okT := parts[0].uint32Of()
	i, okI := parts[1].uint32Of()
	if !okT || !okI {
		return 0, nil, v.malformed("$timestamp", want)
	}
	return bson.TypeTimestamp, bsoncore.AppendTimestamp(to, t, i), nil
}

func appendRegex(v *Value, to []byte) (bson.Type, []byte, error) {
	parts, ok := v.exactly("pattern", "options")
	if !ok || parts[0].Kind != String || parts[1].Kind != String || strings.Contains(parts[0].String+parts[1].String, "\x00") {
		return 0, nil, v.malformed("$regularExpression", "{pattern: a string, options: a string}, without zero bytes")
	}
	// BSON demands options in alphabetical order.
	options := []byte(parts[1].String)
	slices.Sort(options)
	return bson.TypeRegex, bsoncore.AppendRegex(to, parts[0].String, string(options)), nil
}

func appendDBPointer(v *Value, to []byte) (bson.Type, []byte, error) {
	const want = "{$ref: a string, $id: an ObjectId}"
	parts, ok := v.exactly("$ref", "$id")
	if !ok || parts[0].Kind != String {
		return 0, nil, v.malformed("$dbPointer", want)
	}
	value, err := parts[1].BSON()
	if err != nil {
		return 0, nil, err
	}
	id, ok := value.ObjectIDOK()
	if !ok {
		return 0, nil, parts[1].malformed("$dbPointer", want)
	}
	return bson.TypeDBPointer, bsoncore.AppendDBPointer(to, parts[0].String, id), nil
}

func appendDate(v *Value, to []byte) (bson.Type, []byte, error) {
	if v.Kind == String {
		// RFC 3339; some writers leave out the colon of the zone.
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
			if t, err := time.Parse(layout, v.String); err == nil {
				return bson.TypeDateTime, bsoncore.AppendDateTime(to, t.UnixMilli()), nil
			}
		}
	}
	if parts, ok := v.exactly("$numberLong"); ok {
		if n, ok := parts[0].intOf(64); ok {
			return bson.TypeDateTime, bsoncore.AppendDateTime(to, n), nil
		}
	}
	return 0, nil, v.malformed("$date", "an RFC 3339 date or {$numberLong: milliseconds}")
}

func appendMinKey(v *Value, to []byte) (bson.Type, []byte, error) {
	if v.Kind != Int || v.Int != 1 {
		return 0, nil, v.malformed("$minKey", "1")
	}
	return bson.TypeMinKey, to, nil
}

func appendMaxKey(v *Value, to []byte) (bson.Type, []byte, error) {
	if v.Kind != Int || v.Int != 1 {
		return 0, nil, v.malformed("$maxKey", "1")
	}
	return bson.TypeMaxKey, to, nil
}

func appendUndefined(v *Value, to []byte) (bson.Type, []byte, error) {
	if v.Kind != Bool || !v.Bool {
		return 0, nil, v.malformed("$undefined", "true")
	}
	return bson.TypeUndefined, to, nil
}
