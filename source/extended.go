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

// wrapper is a type wrapper of Extended JSON v2 ("Conversion table").
type wrapper struct {
	of    bson.Type
	needs string // what must stand under the wrapper's key
	// read appends what stands there, and reports whether it is well-formed.
	read func(v *Value, to []byte) ([]byte, bool)
}

// wrappers has the type wrappers by their keys. Regular expressions written as
// {$regex, $options} are not among them: that is the query operator, and equal
// in effect.
var wrappers = map[string]wrapper{
	"$oid":    {bson.TypeObjectID, "a string of 24 hexadecimal digits", readObjectID},
	"$symbol": {bson.TypeSymbol, "a string", readSymbol},
	"$numberInt": {bson.TypeInt32, "a string with an integer of 32 bits", func(v *Value, to []byte) ([]byte, bool) {
		n, ok := v.intOf(32)
		return bsoncore.AppendInt32(to, int32(n)), ok
	}},
	"$numberLong": {bson.TypeInt64, "a string with an integer of 64 bits", func(v *Value, to []byte) ([]byte, bool) {
		n, ok := v.intOf(64)
		return bsoncore.AppendInt64(to, n), ok
	}},
	"$numberDouble":      {bson.TypeDouble, "a string with a number, Infinity, -Infinity or NaN", readDouble},
	"$numberDecimal":     {bson.TypeDecimal128, "a string with a decimal number of up to 34 digits", readDecimal},
	"$binary":            {bson.TypeBinary, "{base64: a string with padding, subType: one or two hexadecimal digits}", readBinary},
	"$uuid":              {bson.TypeBinary, "a string such as 73ffd264-44b3-4c69-90e8-e7d1dfc035d4", readUUID},
	"$code":              {}, // read by appendCode, together with $scope
	"$timestamp":         {bson.TypeTimestamp, "{t: seconds, i: ordinal}, both whole numbers below 2^32", readTimestamp},
	"$regularExpression": {bson.TypeRegex, "{pattern: a string, options: a string}, without zero bytes", readRegex},
	"$dbPointer":         {bson.TypeDBPointer, "{$ref: a string, $id: an ObjectId}", readDBPointer},
	"$date":              {bson.TypeDateTime, "an RFC 3339 date or {$numberLong: milliseconds}", readDate},
	"$minKey":            {bson.TypeMinKey, "1", readOne},
	"$maxKey":            {bson.TypeMaxKey, "1", readOne},
	"$undefined": {bson.TypeUndefined, "true", func(v *Value, to []byte) ([]byte, bool) {
		return to, v.Kind == Bool && v.Bool
	}},
}

// wrapper gives the key of the type wrapper that a document is, and its row;
// "" for any other document.
func (v *Value) wrapper() (string, wrapper) {
	for _, f := range v.Fields {
		if w, known := wrappers[f.Key]; known {
			return f.Key, w
		}
	}
	return "", wrapper{}
}

func (v *Value) appendExtended(to []byte, key string, w wrapper) (bson.Type, []byte, error) {
	for _, f := range v.Fields {
		if f.Key != key && (key != "$code" || f.Key != "$scope") {
			return 0, nil, errorAt(f.KeyPosition, ExtendedJSON, "key %q cannot stand beside %s in Extended JSON", f.Key, key)
		}
	}
	if key == "$code" {
		return v.appendCode(to)
	}
	content := v.Get(key)
	to, ok := w.read(content, to)
	if !ok {
		return 0, nil, content.malformed(key, w.needs)
	}
	return w.of, to, nil
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

// malformed is an error about what stands under a type wrapper's key.
func (v *Value) malformed(key, needs string) error {
	what := v.JSON()
	if v.Kind == Array || v.Kind == Document {
		what = "of type " + v.Kind.String()
	}
	return errorAt(v.Position, ExtendedJSON, "malformed Extended JSON: %s needs %s, this is %s", key, needs, what)
}

func readObjectID(v *Value, to []byte) ([]byte, bool) {
	id, err := bson.ObjectIDFromHex(v.String)
	return bsoncore.AppendObjectID(to, id), v.Kind == String && err == nil
}

func readSymbol(v *Value, to []byte) ([]byte, bool) {
	return bsoncore.AppendSymbol(to, v.String), v.Kind == String
}

func readDouble(v *Value, to []byte) ([]byte, bool) {
	special := map[string]float64{"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN()}
	f, ok := special[v.String]
	if !ok {
		var err error
		f, err = strconv.ParseFloat(v.String, 64)
		// ParseFloat also knows hexadecimal numbers, underscores and words.
		ok = err == nil && strings.Trim(v.String, "+-.eE0123456789") == ""
	}
	return bsoncore.AppendDouble(to, f), v.Kind == String && ok
}

func readDecimal(v *Value, to []byte) ([]byte, bool) {
	d, err := bson.ParseDecimal128(v.String)
	h, l := d.GetBytes()
	return bsoncore.AppendDecimal128(to, h, l), v.Kind == String && err == nil
}

func readBinary(v *Value, to []byte) ([]byte, bool) {
	parts, ok := v.exactly("base64", "subType")
	if !ok || parts[0].Kind != String || parts[1].Kind != String {
		return nil, false
	}
	data, malformed := base64.StdEncoding.DecodeString(parts[0].String)
	subtype, err := strconv.ParseUint(parts[1].String, 16, 8)
	return bsoncore.AppendBinary(to, byte(subtype), data), malformed == nil && err == nil && len(parts[1].String) <= 2
}

func readUUID(v *Value, to []byte) ([]byte, bool) {
	parts := strings.Split(v.String, "-")
	data, err := hex.DecodeString(strings.Join(parts, ""))
	lengths := make([]int, len(parts))
	for i, p := range parts {
		lengths[i] = len(p)
	}
	ok := v.Kind == String && err == nil && slices.Equal(lengths, []int{8, 4, 4, 4, 12})
	return bsoncore.AppendBinary(to, bson.TypeBinaryUUID, data), ok
}

func readTimestamp(v *Value, to []byte) ([]byte, bool) {
	parts, ok := v.exactly("t", "i")
	for _, p := range parts {
		ok = ok && p.Kind == Int && p.Int >= 0 && p.Int <= math.MaxUint32
	}
	if !ok {
		return nil, false
	}
	return bsoncore.AppendTimestamp(to, uint32(parts[0].Int), uint32(parts[1].Int)), true
}

func readRegex(v *Value, to []byte) ([]byte, bool) {
	parts, ok := v.exactly("pattern", "options")
	if !ok || parts[0].Kind != String || parts[1].Kind != String || strings.Contains(parts[0].String+parts[1].String, "\x00") {
		return nil, false
	}
	// BSON requires options in alphabetical order.
	options := []byte(parts[1].String)
	slices.Sort(options)
	return bsoncore.AppendRegex(to, parts[0].String, string(options)), true
}

func readDBPointer(v *Value, to []byte) ([]byte, bool) {
	parts, ok := v.exactly("$ref", "$id")
	if !ok || parts[0].Kind != String {
		return nil, false
	}
	id, ok := parts[1].exactly("$oid")
	if !ok {
		return nil, false
	}
	to = bsoncore.AppendString(to, parts[0].String)
	return readObjectID(id[0], to)
}

func readDate(v *Value, to []byte) ([]byte, bool) {
	if v.Kind == String {
		// RFC 3339; some writers leave out the colon of the zone.
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
			if t, err := time.Parse(layout, v.String); err == nil {
				return bsoncore.AppendDateTime(to, t.UnixMilli()), true
			}
		}
	}
	if parts, ok := v.exactly("$numberLong"); ok {
		n, ok := parts[0].intOf(64)
		return bsoncore.AppendDateTime(to, n), ok
	}
	return nil, false
}

func readOne(v *Value, to []byte) ([]byte, bool) { return to, v.Kind == Int && v.Int == 1 }

// exactly gives the values of the keys of a document that has just these.
func (v *Value) exactly(keys ...string) ([]*Value, bool) {
	if v.Kind != Document || len(v.Fields) != len(keys) {
		return nil, false
	}
	out := make([]*Value, len(keys))
	for i, k := range keys {
		if out[i] = v.Get(k); out[i] == nil {
			return nil, false
		}
	}
	return out, true
}

// intOf reads the string of a $number wrapper strictly: a decimal integer.
func (v *Value) intOf(bits int) (int64, bool) {
	if v.Kind != String || strings.HasPrefix(v.String, "+") {
		return 0, false
	}
	n, err := strconv.ParseInt(v.String, 10, bits)
	return n, err == nil
}
