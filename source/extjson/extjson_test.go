package extjson

import (
	"errors"
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

func parse(t testing.TB, s string) *source.Value {
	t.Helper()
	v, err := source.ParseYAML("test.yml", []byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

var id = bson.ObjectID{1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 1, 0x23, 0x45, 0x67}

var rows = []struct {
	reason string
	value  string
	want   any    // what package bson encodes to the same
	wrong  string // else a part of the error
}{
	{"null", `null`, bson.Null{}, ""},
	{"bool", `true`, true, ""},
	{"an int32", `1`, int32(1), ""},
	{"the greatest int32", `2147483647`, int32(math.MaxInt32), ""},
	{"an int64", `2147483648`, int64(math.MaxInt32 + 1), ""},
	{"the least int32", `-2147483648`, int32(math.MinInt32), ""},
	{"a double stays one", `1.0`, 1.0, ""},
	{"string", `abc`, "abc", ""},
	{"array", `[1, {a: b}]`, bson.A{int32(1), bson.D{{Key: "a", Value: "b"}}}, ""},
	{"document in order", `{b: 1, a: 2}`, bson.D{{Key: "b", Value: int32(1)}, {Key: "a", Value: int32(2)}}, ""},
	{"empty document", `{}`, bson.D{}, ""},
	{"operators of the format are data", `{$$type: int}`, bson.D{{Key: "$$type", Value: "int"}}, ""},
	{"query operators are data", `{$regex: a, $options: i}`, bson.D{{Key: "$regex", Value: "a"}, {Key: "$options", Value: "i"}}, ""},
	{"DBRefs are documents", `{$ref: a, $id: 1}`, bson.D{{Key: "$ref", Value: "a"}, {Key: "$id", Value: int32(1)}}, ""},
	{"$oid", `{$oid: 0123456789abcdef01234567}`, id, ""},
	{"$oid too short", `{$oid: "0123"}`, nil, "24 hexadecimal digits"},
	{"$oid no string", `{$oid: 1}`, nil, "$oid wants a string, got 1"},
	{"another key", `{$oid: 0123456789abcdef01234567, x: 1}`, nil, "other keys"},
	{"another key before", `{x: 1, $oid: 0123456789abcdef01234567}`, nil, "other keys"},
	{"$symbol", `{$symbol: a}`, bson.Symbol("a"), ""},
	{"$symbol no string", `{$symbol: 1}`, nil, "wants a string"},
	{"$numberInt", `{$numberInt: "5"}`, int32(5), ""},
	{"$numberInt too large", `{$numberInt: "2147483648"}`, nil, "32-bit integer"},
	{"$numberInt no string", `{$numberInt: 5}`, nil, "wants a string"},
	{"$numberLong", `{$numberLong: "-9223372036854775808"}`, int64(math.MinInt64), ""},
	{"$numberLong small stays long", `{$numberLong: "1"}`, int64(1), ""},
	{"$numberLong too large", `{$numberLong: "9223372036854775808"}`, nil, "64-bit integer"},
	{"$numberDouble", `{$numberDouble: "-1.5e3"}`, -1500.0, ""},
	{"$numberDouble infinite", `{$numberDouble: "-Infinity"}`, math.Inf(-1), ""},
	{"$numberDouble -0", `{$numberDouble: "-0.0"}`, math.Copysign(0, -1), ""},
	{"$numberDouble malformed", `{$numberDouble: "0x1p4"}`, nil, "wants a double"},
	{"$numberDouble out of range", `{$numberDouble: "1e400"}`, nil, "wants a double"},
	{"$numberDecimal malformed", `{$numberDecimal: "1.0.0"}`, nil, "wants a decimal"},
	{"$binary", `{$binary: {base64: AQI=, subType: "80"}}`, bson.Binary{Subtype: 0x80, Data: []byte{1, 2}}, ""},
	{"$binary with a one-digit subtype", `{$binary: {base64: AQI=, subType: "4"}}`, bson.Binary{Subtype: 4, Data: []byte{1, 2}}, ""},
	{"$binary without subtype", `{$binary: {base64: AQI=}}`, nil, "base64 and subType"},
	{"$binary malformed", `{$binary: {base64: "*", subType: "00"}}`, nil, "$binary.base64"},
	{"$binary subtype malformed", `{$binary: {base64: "", subType: "100"}}`, nil, "$binary.subType"},
	{"$uuid", `{$uuid: 00000000-0000-0000-0000-0000000000ff}`, bson.Binary{Subtype: 4, Data: append(make([]byte, 15), 255)}, ""},
	{"$uuid malformed", `{$uuid: 000000000000000000000000000000ff}`, nil, "$uuid wants"},
	{"$code", `{$code: f}`, bson.JavaScript("f"), ""},
	{"$code with scope", `{$code: f, $scope: {x: 1}}`, bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: int32(1)}}}, ""},
	{"$code with something else", `{$code: f, x: 1}`, nil, "other keys than $scope"},
	{"$scope no document", `{$code: f, $scope: 1}`, nil, "want a document"},
	{"$timestamp", `{$timestamp: {t: 4294967295, i: 1}}`, bson.Timestamp{T: math.MaxUint32, I: 1}, ""},
	{"$timestamp negative", `{$timestamp: {t: -1, i: 1}}`, nil, "unsigned 32-bit"},
	{"$regularExpression", `{$regularExpression: {pattern: a, options: i}}`, bson.Regex{Pattern: "a", Options: "i"}, ""},
	{"$regularExpression without options", `{$regularExpression: {pattern: a}}`, nil, "pattern and options"},
	{"$dbPointer", `{$dbPointer: {$ref: a.b, $id: {$oid: 0123456789abcdef01234567}}}`, bson.DBPointer{DB: "a.b", Pointer: id}, ""},
	{"$dbPointer without ObjectID", `{$dbPointer: {$ref: a.b, $id: 1}}`, nil, "wants an ObjectID"},
	{"$date", `{$date: "1970-01-01T00:00:01.5Z"}`, bson.DateTime(1500), ""},
	{"$date with an offset", `{$date: "1970-01-01T01:00:01+01:00"}`, bson.DateTime(1000), ""},
	{"$date canonical", `{$date: {$numberLong: "-1"}}`, bson.DateTime(-1), ""},
	{"$date malformed", `{$date: "yesterday"}`, nil, "ISO-8601"},
	{"$date of another number", `{$date: {$numberInt: "1"}}`, nil, "$numberLong"},
	{"$minKey", `{$minKey: 1}`, bson.MinKey{}, ""},
	{"$maxKey", `{$maxKey: 1}`, bson.MaxKey{}, ""},
	{"$maxKey malformed", `{$maxKey: 2}`, nil, "wants 1"},
	{"$undefined", `{$undefined: true}`, bson.Undefined{}, ""},
	{"$undefined malformed", `{$undefined: false}`, nil, "wants true"},
	{"an error below", `{a: [1, {b: {$oid: ""}}]}`, nil, "test.yml:1:20"},
}

func TestValue(t *testing.T) {
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			got, err := Value(parse(t, row.value))
			if row.wrong != "" {
				var e *Error
				if err == nil || !strings.Contains(err.Error(), row.wrong) || !errors.As(err, &e) || e.Position.Line != 1 {
					t.Errorf("%s: want %q, got %v", row.value, row.wrong, err)
				}
				return
			}
			typ, data, _ := bson.MarshalValue(row.want)
			if want := (bson.RawValue{Type: typ, Value: data}); err != nil || !got.Equal(want) {
				t.Errorf("%s: want %v, got %v, %v", row.value, want, got, err)
			}
		})
	}
}

func TestScalarAndDocument(t *testing.T) {
	for s, scalar := range map[string]bool{`1`: true, `{$oid: 0123456789abcdef01234567}`: true, `null`: true, `{x: 1}`: false, `[]`: false} {
		if _, ok, err := Scalar(parse(t, s)); ok != scalar || err != nil {
			t.Errorf("%s: scalar %v, %v", s, ok, err)
		}
	}
	for s, fine := range map[string]bool{`{x: 1}`: true, `{}`: true, `[]`: false, `1`: false, `{$numberInt: "1"}`: false} {
		if _, err := Document(parse(t, s)); (err == nil) != fine {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// Canonical Extended JSON written by package bson reads back to the same bytes.
func FuzzRoundTrip(f *testing.F) {
	for _, row := range rows {
		if row.wrong == "" {
			if d, err := bson.Marshal(bson.D{{Key: "v", Value: row.want}}); err == nil {
				f.Add(d)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bson.Raw(data).Validate() != nil {
			return
		}
		text, err := bson.MarshalExtJSON(bson.Raw(data), true, false)
		if err != nil || strings.Contains(string(text), `\ufffd`) {
			return // invalid UTF-8 is replaced on writing
		}
		v, err := source.ParseJSON("fuzz", text)
		if err != nil {
			return // keys twice, invalid UTF-8, too deep
		}
		again, err := Document(v)
		if err != nil {
			return // a document that looks like a wrapper, or a date beyond range
		}
		second, err := bson.MarshalExtJSON(again, true, false)
		if err != nil || string(second) != string(text) {
			t.Errorf("%s became %s, %v", text, second, err)
		}
	})
}
