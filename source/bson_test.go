package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/unified-test-runner/utr/internal/testkit"
	"math"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var extended = []struct {
	reason, in string
	want       any
}{
	{"32 bits fit", `1`, int32(1)},
	{"32 bits fit, just", `-2147483648`, int32(math.MinInt32)},
	{"64 bits", `2147483648`, int64(2147483648)},
	{"a double with a whole value", `1.0`, 1.0},
	{"null", `null`, bson.Null{}},
	{"canonical int32", `{"$numberInt": "-5"}`, int32(-5)},
	{"canonical int64 that fits 32 bits", `{"$numberLong": "5"}`, int64(5)},
	{"canonical double", `{"$numberDouble": "1.5e3"}`, 1500.0},
	{"infinity", `{"$numberDouble": "-Infinity"}`, math.Inf(-1)},
	{"decimal", `{"$numberDecimal": "1.20"}`, decimal("1.20")},
	{"decimal NaN", `{"$numberDecimal": "NaN"}`, decimal("NaN")},
	{"object id", `{"$oid": "57e193d7a9cc81b4027498b5"}`, objectID("57e193d7a9cc81b4027498b5")},
	{"binary", `{"$binary": {"base64": "AQI=", "subType": "80"}}`, bson.Binary{Subtype: 0x80, Data: []byte{1, 2}}},
	{"binary, keys the other way round", `{"$binary": {"subType": "0", "base64": ""}}`, bson.Binary{Data: []byte{}}},
	{"uuid", `{"$uuid": "73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}`, bson.Binary{Subtype: 4, Data: []byte{0x73, 0xff, 0xd2, 0x64, 0x44, 0xb3, 0x4c, 0x69, 0x90, 0xe8, 0xe7, 0xd1, 0xdf, 0xc0, 0x35, 0xd4}}},
	{"relaxed date", `{"$date": "1970-01-01T00:00:01.5Z"}`, bson.NewDateTimeFromTime(time.UnixMilli(1500))},
	{"date with a zone", `{"$date": "1970-01-01T01:00:00+01:00"}`, bson.NewDateTimeFromTime(time.UnixMilli(0))},
	{"canonical date", `{"$date": {"$numberLong": "-1"}}`, bson.DateTime(-1)},
	{"timestamp", `{"$timestamp": {"t": 4294967295, "i": 1}}`, bson.Timestamp{T: math.MaxUint32, I: 1}},
	{"regular expression, options get sorted", `{"$regularExpression": {"pattern": "a/b", "options": "xi"}}`, bson.Regex{Pattern: "a/b", Options: "ix"}},
	{"code", `{"$code": "f()"}`, bson.JavaScript("f()")},
	{"code with scope", `{"$scope": {"x": 1}, "$code": "f()"}`, bson.CodeWithScope{Code: "f()", Scope: bson.D{{Key: "x", Value: int32(1)}}}},
	{"symbol", `{"$symbol": "s"}`, bson.Symbol("s")},
	{"DBPointer", `{"$dbPointer": {"$ref": "c", "$id": {"$oid": "57e193d7a9cc81b4027498b5"}}}`, bson.DBPointer{DB: "c", Pointer: objectID("57e193d7a9cc81b4027498b5")}},
	{"undefined", `{"$undefined": true}`, bson.Undefined{}},
	{"minKey", `{"$minKey": 1}`, bson.MinKey{}},
	{"maxKey", `{"$maxKey": 1}`, bson.MaxKey{}},
	{"an empty document", `{}`, bson.D{}},
	{"order of keys and nesting", `{"b": [1, {"$oid": "57e193d7a9cc81b4027498b5"}], "a": {}}`, bson.D{{Key: "b", Value: bson.A{int32(1), objectID("57e193d7a9cc81b4027498b5")}}, {Key: "a", Value: bson.D{}}}},
	{"query operators stay", `{"$gt": 1}`, bson.D{{Key: "$gt", Value: int32(1)}}},
	{"$type is an operator", `{"$type": "long"}`, bson.D{{Key: "$type", Value: "long"}}},
	{"$regex is an operator", `{"$regex": "a", "$options": "i"}`, bson.D{{Key: "$regex", Value: "a"}, {Key: "$options", Value: "i"}}},
	{"a DBRef is a document", `{"$ref": "c", "$id": 1}`, bson.D{{Key: "$ref", Value: "c"}, {Key: "$id", Value: int32(1)}}},
	{"special operators stay", `{"$$type": "int"}`, bson.D{{Key: "$$type", Value: "int"}}},
	{"names of wrappers after $$", `{"$$date": 1}`, bson.D{{Key: "$$date", Value: int32(1)}}},
	{"$scope by itself", `{"$scope": {}}`, bson.D{{Key: "$scope", Value: bson.D{}}}},
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

func objectID(s string) bson.ObjectID {
	id, err := bson.ObjectIDFromHex(s)
	if err != nil {
		panic(err)
	}
	return id
}

func TestBSON(t *testing.T) {
	for _, tt := range extended {
		v, err := ParseJSON("f", []byte(tt.in))
		testkit.Check(t, err)
		got, err := v.BSON()
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		wantType, want, err := bson.MarshalValue(tt.want)
		if err != nil {
			t.Fatalf("%s: %v", tt.reason, err)
		}
		if got.Type != wantType || string(got.Value) != string(want) {
			t.Errorf("%s: got %s, want %s", tt.reason, got, bson.RawValue{Type: wantType, Value: want})
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
		_, isDocument := tt.want.(bson.D)
		if v.Kind == Document && v.ExtendedScalar() == isDocument {
			t.Errorf("%s: ExtendedScalar is %v", tt.reason, v.ExtendedScalar())
		}
	}
}

var malformedExtended = []struct{ reason, in, at string }{
	{"too short", `{"$oid": "57e1"}`, "1:10"},
	{"not a string", `{"$oid": 1}`, "1:10"},
	{"a key beside it", `{"$oid": "57e193d7a9cc81b4027498b5", "x": 1}`, "1:38"},
	{"a key before it", `{"x": 1, "$oid": "57e193d7a9cc81b4027498b5"}`, "1:2"},
	{"too large for 32 bits", `{"$numberInt": "2147483648"}`, "1:16"},
	{"a number, not a string", `{"$numberLong": 1}`, "1:17"},
	{"a sign that is not allowed", `{"$numberLong": "+1"}`, "1:17"},
	{"hexadecimal", `{"$numberDouble": "0x1p3"}`, "1:19"},
	{"a word", `{"$numberDouble": "inf"}`, "1:19"},
	{"a document", `{"$numberDouble": {}}`, "1:19"},
	{"not a decimal", `{"$numberDecimal": "1.2.3"}`, "1:20"},
	{"legacy binary", `{"$binary": "AQI=", "$type": "00"}`, "1:21"},
	{"no padding", `{"$binary": {"base64": "AQI", "subType": "00"}}`, "1:24"},
	{"subtype too long", `{"$binary": {"base64": "", "subType": "000"}}`, "1:39"},
	{"subtype missing", `{"$binary": {"base64": ""}}`, "1:13"},
	{"uuid without dashes", `{"$uuid": "73ffd26444b34c6990e8e7d1dfc035d4"}`, "1:11"},
	{"not a date", `{"$date": "yesterday"}`, "1:11"},
	{"date as a number", `{"$date": 5}`, "1:11"},
	{"timestamp too large", `{"$timestamp": {"t": 4294967296, "i": 1}}`, "1:16"},
	{"timestamp negative", `{"$timestamp": {"t": -1, "i": 1}}`, "1:16"},
	{"timestamp with more", `{"$timestamp": {"t": 1, "i": 1, "x": 1}}`, "1:16"},
	{"regular expression without options", `{"$regularExpression": {"pattern": "a"}}`, "1:24"},
	{"code that is not a string", `{"$code": 1}`, "1:11"},
	{"scope that is not a document", `{"$code": "", "$scope": 1}`, "1:25"},
	{"malformed within a scope", `{"$code": "", "$scope": {"a": {"$oid": ""}}}`, "1:40"},
	{"pointer to something else", `{"$dbPointer": {"$ref": "c", "$id": 1}}`, "1:37"},
	{"minKey of something else", `{"$minKey": 2}`, "1:13"},
	{"maxKey of something else", `{"$maxKey": true}`, "1:13"},
	{"undefined that is false", `{"$undefined": false}`, "1:16"},
	{"symbol that is not a string", `{"$symbol": 1}`, "1:13"},
	{"deep inside", `{"a": [0, {"b": {"$oid": "x"}}]}`, "1:26"},
	{"a zero byte in a key", `{"a\u0000": 1}`, "1:2"},
}

func TestMalformedExtendedJSON(t *testing.T) {
	for _, tt := range malformedExtended {
		v, err := ParseJSON("f", []byte(tt.in))
		testkit.Check(t, err)
		_, err = v.BSON()
		var e *Error
		if !errors.As(err, &e) || e.Reason != ExtendedJSON {
			t.Errorf("%s: %s is accepted: %v", tt.reason, tt.in, err)
			continue
		}
		if e.Position.String() != "f:"+tt.at {
			t.Errorf("%s: at %s, want %s", tt.reason, e.Position, tt.at)
		}
	}
}

func TestRaw(t *testing.T) {
	var absent *Value
	if raw, err := absent.Raw(); raw != nil || err != nil {
		t.Errorf("nothing gives %v, %v", raw, err)
	}
	if value, err := absent.BSON(); value.Value != nil || err != nil {
		t.Errorf("nothing gives %v, %v", value, err)
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
	if got, want := fmt.Sprintf("%#v", v.Plain()), `map[string]interface {}{"a":[]interface {}{"1", "1.0", "x", true, interface {}(nil)}, `+
		`"b":map[string]interface {}{"c":"1e+300"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if text, err := json.Marshal(v.Plain()); err != nil || string(text) != `{"a":[1,1.0,"x",true,null],"b":{"c":1e+300}}` {
		t.Errorf("got %s, %v", text, err)
	}
	var absent *Value
	if absent.Plain() != nil {
		t.Error("nothing is something")
	}
}
