package extjson

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// wrappers are the documents by which Extended JSON writes scalars, by the
// key that tells them ("Conversion table"). It is filled by init because the
// readers of $code and $dbPointer lead back to it; it is never changed after.
var wrappers map[string]func(*source.Value) (any, error)

func init() {
	wrappers = map[string]func(*source.Value) (any, error){
		"$oid":               single(objectID),
		"$symbol":            single(symbol),
		"$numberInt":         single(numberInt),
		"$numberLong":        single(numberLong),
		"$numberDouble":      single(numberDouble),
		"$numberDecimal":     single(numberDecimal),
		"$binary":            single(binary),
		"$uuid":              single(uuid),
		"$code":              code,
		"$timestamp":         single(timestamp),
		"$regularExpression": single(regularExpression),
		"$dbPointer":         single(dbPointer),
		"$date":              single(date),
		"$minKey":            single(minKey),
		"$maxKey":            single(maxKey),
		"$undefined":         single(undefined),
	}
}

// wrapperKey gives the first key that makes a document a wrapper, or "".
func wrapperKey(v *source.Value) string {
	for i := range v.Fields {
		if key := v.Fields[i].Key; len(key) > 1 && key[0] == '$' && wrappers[key] != nil {
			return key
		}
	}
	return ""
}

// single demands that the wrapper has no other key and reads its value.
func single(read func(*source.Value) (any, error)) func(*source.Value) (any, error) {
	return func(v *source.Value) (any, error) {
		if len(v.Fields) != 1 {
			return nil, fault(v, "%s has other keys beside it", wrapperKey(v))
		}
		return read(v.Fields[0].Value)
	}
}

func objectID(v *source.Value) (any, error) {
	s, err := text(v, "$oid")
	if err != nil {
		return nil, err
	}
	id, err := bson.ObjectIDFromHex(s)
	if err != nil {
		return nil, fault(v, "$oid wants 24 hexadecimal digits, got %q", s)
	}
	return id, nil
}

func symbol(v *source.Value) (any, error) {
	s, err := text(v, "$symbol")
	return bson.Symbol(s), err
}

func numberInt(v *source.Value) (any, error) {
	s, err := text(v, "$numberInt")
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return nil, fault(v, "$numberInt wants a 32-bit integer in a string, got %q", s)
	}
	return int32(n), nil
}

func numberLong(v *source.Value) (any, error) {
	s, err := text(v, "$numberLong")
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, fault(v, "$numberLong wants a 64-bit integer in a string, got %q", s)
	}
	return n, nil
}

// number is the decimal notation of a double; ParseFloat alone would also
// take hexadecimal, underscores and "inf".
var number = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

func numberDouble(v *source.Value) (any, error) {
	s, err := text(v, "$numberDouble")
	if err != nil {
		return nil, err
	}
	switch s {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !number.MatchString(s) {
		return nil, fault(v, "$numberDouble wants a double in a string, got %q", s)
	}
	return f, nil
}

func numberDecimal(v *source.Value) (any, error) {
	s, err := text(v, "$numberDecimal")
	if err != nil {
		return nil, err
	}
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		return nil, fault(v, "$numberDecimal wants a decimal in a string, got %q", s)
	}
	return d, nil
}

func binary(v *source.Value) (any, error) {
	if err := keys(v, "$binary", "base64", "subType"); err != nil {
		return nil, err
	}
	encoded, err := text(v.Get("base64"), "$binary.base64")
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fault(v.Get("base64"), "$binary.base64: %v", err)
	}
	s, err := text(v.Get("subType"), "$binary.subType")
	if err != nil {
		return nil, err
	}
	subtype, err := strconv.ParseUint(s, 16, 8)
	if err != nil || len(s) > 2 {
		return nil, fault(v.Get("subType"), "$binary.subType wants one or two hexadecimal digits, got %q", s)
	}
	return bson.Binary{Subtype: byte(subtype), Data: data}, nil
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func uuid(v *source.Value) (any, error) {
	s, err := text(v, "$uuid")
	if err != nil {
		return nil, err
	}
	data, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || !uuidForm.MatchString(s) {
		return nil, fault(v, "$uuid wants the form 00000000-0000-0000-0000-000000000000, got %q", s)
	}
	return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: data}, nil
}

func code(v *source.Value) (any, error) {
	s, err := text(v.Get("$code"), "$code")
	if err != nil {
		return nil, err
	}
	scope := v.Get("$scope")
	switch {
	case len(v.Fields) == 1:
		return bson.JavaScript(s), nil
	case len(v.Fields) == 2 && scope != nil:
		d, err := Document(scope)
		if err != nil {
			return nil, err
		}
		return bson.CodeWithScope{Code: bson.JavaScript(s), Scope: d}, nil
	default:
		return nil, fault(v, "$code has other keys than $scope beside it")
	}
}

func timestamp(v *source.Value) (any, error) {
	if err := keys(v, "$timestamp", "t", "i"); err != nil {
		return nil, err
	}
	part := func(key string) (uint32, error) {
		p := v.Get(key)
		if p.Kind != source.Int || p.Int < 0 || p.Int > math.MaxUint32 {
			return 0, fault(p, "$timestamp.%s wants an unsigned 32-bit integer, got %s", key, describe(p))
		}
		return uint32(p.Int), nil
	}
	t, err := part("t")
	if err != nil {
		return nil, err
	}
	i, err := part("i")
	return bson.Timestamp{T: t, I: i}, err
}

func regularExpression(v *source.Value) (any, error) {
	if err := keys(v, "$regularExpression", "pattern", "options"); err != nil {
		return nil, err
	}
	pattern, err := text(v.Get("pattern"), "$regularExpression.pattern")
	if err != nil {
		return nil, err
	}
	options, err := text(v.Get("options"), "$regularExpression.options")
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(pattern+options, 0) {
		return nil, fault(v, "$regularExpression contains a zero byte")
	}
	return bson.Regex{Pattern: pattern, Options: options}, nil
}

func dbPointer(v *source.Value) (any, error) {
	if err := keys(v, "$dbPointer", "$ref", "$id"); err != nil {
		return nil, err
	}
	ref, err := text(v.Get("$ref"), "$dbPointer.$ref")
	if err != nil {
		return nil, err
	}
	id, err := native(v.Get("$id"))
	if err != nil {
		return nil, err
	}
	oid, ok := id.(bson.ObjectID)
	if !ok {
		return nil, fault(v.Get("$id"), "$dbPointer.$id wants an ObjectID, got %s", describe(v.Get("$id")))
	}
	return bson.DBPointer{DB: ref, Pointer: oid}, nil
}

func date(v *source.Value) (any, error) {
	if v.Kind == source.Document {
		ms, err := native(v)
		if err != nil {
			return nil, err
		}
		if n, ok := ms.(int64); ok && len(v.Fields) == 1 {
			return bson.DateTime(n), nil
		}
		return nil, fault(v, "$date wants a $numberLong or an ISO-8601 string, got %s", describe(v))
	}
	s, err := text(v, "$date")
	if err != nil {
		return nil, err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return bson.DateTime(t.UnixMilli()), nil
		}
	}
	return nil, fault(v, "$date wants a $numberLong or an ISO-8601 string, got %q", s)
}

func minKey(v *source.Value) (any, error) { return bson.MinKey{}, one(v, "$minKey") }
func maxKey(v *source.Value) (any, error) { return bson.MaxKey{}, one(v, "$maxKey") }

func one(v *source.Value, wrapper string) error {
	if v.Kind != source.Int || v.Int != 1 {
		return fault(v, "%s wants 1, got %s", wrapper, describe(v))
	}
	return nil
}

func undefined(v *source.Value) (any, error) {
	if v.Kind != source.Bool || !v.Bool {
		return nil, fault(v, "$undefined wants true, got %s", describe(v))
	}
	return bson.Undefined{}, nil
}

// text demands a string.
func text(v *source.Value, where string) (string, error) {
	if v.Kind != source.String {
		return "", fault(v, "%s wants a string, got %s", where, describe(v))
	}
	return v.String, nil
}

// keys demands a document with exactly these keys.
func keys(v *source.Value, wrapper string, want ...string) error {
	ok := v.Kind == source.Document && len(v.Fields) == len(want)
	for _, key := range want {
		ok = ok && v.Get(key) != nil
	}
	if !ok {
		return fault(v, "%s wants a document with the keys %s", wrapper, strings.Join(want, " and "))
	}
	return nil
}

func fault(v *source.Value, format string, args ...any) error {
	return &Error{Position: v.Position, Reason: fmt.Sprintf(format, args...)}
}

// describe names a value in an error message.
func describe(v *source.Value) string {
	switch v.Kind {
	case source.Bool:
		return strconv.FormatBool(v.Bool)
	case source.Int:
		return strconv.FormatInt(v.Int, 10)
	case source.Float:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	case source.String:
		return strconv.Quote(v.String)
	case source.Array:
		return "an array"
	case source.Document:
		return "a document"
	default:
		return "null"
	}
}
