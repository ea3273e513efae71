package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// extended has Extended JSON, and the BSON value that it stands for as the driver
// prints it, or where it is malformed.
var extended = []struct{ reason, in, want string }{
	{"32 bits fit", `1`, `{"$numberInt":"1"}`},
	{"32 bits fit, just", `-2147483648`, `{"$numberInt":"-2147483648"}`},
	{"64 bits", `2147483648`, `{"$numberLong":"2147483648"}`},
	{"a double with a whole value", `1.0`, `{"$numberDouble":"1.0"}`},
	{"null", `null`, `null`},
	{"canonical int32", `{"$numberInt": "-5"}`, `{"$numberInt":"-5"}`},
	{"canonical int64 that fits 32 bits", `{"$numberLong": "5"}`, `{"$numberLong":"5"}`},
	{"canonical double", `{"$numberDouble": "1.5e3"}`, `{"$numberDouble":"1500.0"}`},
	{"infinity", `{"$numberDouble": "-Infinity"}`, `{"$numberDouble":"-Infinity"}`},
	{"decimal", `{"$numberDecimal": "1.20"}`, `{"$numberDecimal":"1.20"}`},
	{"decimal NaN", `{"$numberDecimal": "NaN"}`, `{"$numberDecimal":"NaN"}`},
	{"object id", `{"$oid": "57e193d7a9cc81b4027498b5"}`, `{"$oid":"57e193d7a9cc81b4027498b5"}`},
	{"binary", `{"$binary": {"base64": "AQI=", "subType": "80"}}`, `{"$binary":{"base64":"AQI=","subType":"80"}}`},
	{"binary, keys the other way round", `{"$binary": {"subType": "0", "base64": ""}}`, `{"$binary":{"base64":"","subType":"00"}}`},
	{"uuid", `{"$uuid": "73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}`, `{"$binary":{"base64":"c//SZESzTGmQ6OfR38A11A==","subType":"04"}}`},
	{"relaxed date", `{"$date": "1970-01-01T00:00:01.5Z"}`, `{"$date":{"$numberLong":"1500"}}`},
	{"date with a zone", `{"$date": "1970-01-01T01:00:00+01:00"}`, `{"$date":{"$numberLong":"0"}}`},
	{"canonical date", `{"$date": {"$numberLong": "-1"}}`, `{"$date":{"$numberLong":"-1"}}`},
	{"timestamp", `{"$timestamp": {"t": 4294967295, "i": 1}}`, `{"$timestamp":{"t":4294967295,"i":1}}`},
	{"regular expression, options get sorted", `{"$regularExpression": {"pattern": "a/b", "options": "xi"}}`, `{"$regularExpression":{"pattern":"a/b","options":"ix"}}`},
	{"code", `{"$code": "f()"}`, `{"$code":"f()"}`},
	{"code with scope", `{"$scope": {"x": 1}, "$code": "f()"}`, `{"$code":f(),"$scope":{"x": {"$numberInt":"1"}}}`},
	{"symbol", `{"$symbol": "s"}`, `{"$symbol":"s"}`},
	{"DBPointer", `{"$dbPointer": {"$ref": "c", "$id": {"$oid": "57e193d7a9cc81b4027498b5"}}}`, `{"$dbPointer":{"$ref":"c","$id":{"$oid":"57e193d7a9cc81b4027498b5"}}}`},
	{"undefined", `{"$undefined": true}`, `{"$undefined":true}`},
	{"minKey", `{"$minKey": 1}`, `{"$minKey":1}`},
	{"maxKey", `{"$maxKey": 1}`, `{"$maxKey":1}`},
	{"an empty document", `{}`, `{}`},
	{"order of keys and nesting", `{"b": [1, {"$oid": "57e193d7a9cc81b4027498b5"}], "a": {}}`, `{"b": [{"$numberInt":"1"},{"$oid":"57e193d7a9cc81b4027498b5"}],"a": {}}`},
	{"query operators stay", `{"$gt": 1}`, `{"$gt": {"$numberInt":"1"}}`},
	{"$type is an operator", `{"$type": "long"}`, `{"$type": "long"}`},
	{"$regex is an operator", `{"$regex": "a", "$options": "i"}`, `{"$regex": "a","$options": "i"}`},
	{"a DBRef is a document", `{"$ref": "c", "$id": 1}`, `{"$ref": "c","$id": {"$numberInt":"1"}}`},
	{"special operators stay", `{"$$type": "int"}`, `{"$$type": "int"}`},
	{"names of wrappers after $$", `{"$$date": 1}`, `{"$$date": {"$numberInt":"1"}}`},
	{"$scope by itself", `{"$scope": {}}`, `{"$scope": {}}`},
	{"too short", `{"$oid": "57e1"}`, `malformed at 1:10`},
	{"not a string", `{"$oid": 1}`, `malformed at 1:10`},
	{"a key beside it", `{"$oid": "57e193d7a9cc81b4027498b5", "x": 1}`, `malformed at 1:38`},
	{"a key before it", `{"x": 1, "$oid": "57e193d7a9cc81b4027498b5"}`, `malformed at 1:2`},
	{"too large for 32 bits", `{"$numberInt": "2147483648"}`, `malformed at 1:16`},
	{"a number, not a string", `{"$numberLong": 1}`, `malformed at 1:17`},
	{"a sign that is not allowed", `{"$numberLong": "+1"}`, `malformed at 1:17`},
	{"hexadecimal", `{"$numberDouble": "0x1p3"}`, `malformed at 1:19`},
	{"a word", `{"$numberDouble": "inf"}`, `malformed at 1:19`},
	{"a document", `{"$numberDouble": {}}`, `malformed at 1:19`},
	{"not a decimal", `{"$numberDecimal": "1.2.3"}`, `malformed at 1:20`},
	{"legacy binary", `{"$binary": "AQI=", "$type": "00"}`, `malformed at 1:21`},
	{"no padding", `{"$binary": {"base64": "AQI", "subType": "00"}}`, `malformed at 1:24`},
	{"subtype too long", `{"$binary": {"base64": "", "subType": "000"}}`, `malformed at 1:39`},
	{"subtype missing", `{"$binary": {"base64": ""}}`, `malformed at 1:13`},
	{"uuid without dashes", `{"$uuid": "73ffd26444b34c6990e8e7d1dfc035d4"}`, `malformed at 1:11`},
	{"not a date", `{"$date": "yesterday"}`, `malformed at 1:11`},
	{"date as a number", `{"$date": 5}`, `malformed at 1:11`},
	{"timestamp too large", `{"$timestamp": {"t": 4294967296, "i": 1}}`, `malformed at 1:16`},
	{"timestamp negative", `{"$timestamp": {"t": -1, "i": 1}}`, `malformed at 1:16`},
	{"timestamp with more", `{"$timestamp": {"t": 1, "i": 1, "x": 1}}`, `malformed at 1:16`},
	{"regular expression without options", `{"$regularExpression": {"pattern": "a"}}`, `malformed at 1:24`},
	{"code that is not a string", `{"$code": 1}`, `malformed at 1:11`},
	{"scope that is not a document", `{"$code": "", "$scope": 1}`, `malformed at 1:25`},
	{"malformed within a scope", `{"$code": "", "$scope": {"a": {"$oid": ""}}}`, `malformed at 1:40`},
	{"pointer to something else", `{"$dbPointer": {"$ref": "c", "$id": 1}}`, `malformed at 1:37`},
	{"minKey of something else", `{"$minKey": 2}`, `malformed at 1:13`},
	{"maxKey of something else", `{"$maxKey": true}`, `malformed at 1:13`},
	{"undefined that is false", `{"$undefined": false}`, `malformed at 1:16`},
	{"symbol that is not a string", `{"$symbol": 1}`, `malformed at 1:13`},
	{"deep inside", `{"a": [0, {"b": {"$oid": "x"}}]}`, `malformed at 1:26`},
	{"a zero byte in a key", `{"a\u0000": 1}`, `malformed at 1:2`},
}

func TestBSON(t *testing.T) {
	for _, r := range extended {
		v, err := ParseJSON("f", []byte(r.in))
		testkit.Check(t, err)
		value, err := v.BSON()
		got := value.String()
		var e *Error
		if errors.As(err, &e) && e.Reason == ExtendedJSON {
			got = "malformed at " + strings.TrimPrefix(e.Position.String(), "f:")
		} else if err != nil || value.Validate() != nil || v.Kind == Document && v.ExtendedScalar() == (value.Type == bson.TypeEmbeddedDocument) {
			t.Errorf("%s: %v, %v, ExtendedScalar is %v", r.reason, err, value.Validate(), v.ExtendedScalar())
		}
		testkit.Equal(t, r.reason, got, r.want)
	}
}

func TestRaw(t *testing.T) {
	var absent *Value
	raw, noRaw := absent.Raw()
	if value, err := absent.BSON(); raw != nil || value.Value != nil || noRaw != nil || err != nil || absent.Plain() != nil {
		t.Errorf("nothing gives %v, %v, %v, %v, %v", raw, noRaw, value, err, absent.Plain())
	}
	v, _ := ParseYAML("f", []byte("{a: {b: 1}, c: 1}"))
	if raw, err := v.Raw(); err != nil || raw.Lookup("a", "b").Int32() != 1 {
		t.Errorf("%v, %v", raw, err)
	}
	if _, err := v.Get("c").Raw(); err == nil {
		t.Error("an integer is taken for a document")
	}
}

func TestPlain(t *testing.T) {
	v, _ := ParseYAML("f", []byte("{a: [1, 1.0, x, true, null], b: {c: 1e300}}"))
	testkit.Equal(t, "plain values", fmt.Sprintf("%#v", v.Plain()), `map[string]interface {}{"a":[]interface {}{"1", "1.0", "x", true, interface {}(nil)}, `+
		`"b":map[string]interface {}{"c":"1e+300"}}`)
	if text, err := json.Marshal(v.Plain()); err != nil || string(text) != `{"a":[1,1.0,"x",true,null],"b":{"c":1e+300}}` {
		t.Errorf("got %s, %v", text, err)
	}
}
