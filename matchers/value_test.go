package matchers

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// valueRow is an expected value, an actual one, and what must come of it.
type valueRow struct {
	reason   string
	expected string // YAML
	actual   string // Extended JSON, "" is missing
	shape    Shape
	wrong    string // "": it matches; else a part of "path: message" of one mismatch
}

var lsid = `{"id":{"$binary":{"base64":"MDEyMzQ1Njc4OWFiY2RlZg==","subType":"04"}}}`

var valueRows = []valueRow{
	// Scalars.
	{"equal ints", `1`, `1`, Nested, ""},
	{"int and whole double", `1`, `1.0`, Nested, ""},
	{"double and int", `1.0`, `1`, Nested, ""},
	{"int and long", `1`, `{"$numberLong":"1"}`, Nested, ""},
	{"long and int", `{$numberLong: "1"}`, `1`, Nested, ""},
	{"1.5 is not 1 (Go's runner compares through int64)", `1`, `1.5`, Nested, "numbers differ"},
	{"1 is not 1.5", `1.5`, `1`, Nested, "numbers differ"},
	{"2^53+1 is not the double 2^53", `9007199254740993`, `{"$numberDouble":"9007199254740992"}`, Nested, "numbers differ"},
	{"2^53 is the double 2^53", `9007199254740992`, `{"$numberDouble":"9007199254740992"}`, Nested, ""},
	{"the greatest int64 is not 2^63", `9223372036854775807`, `{"$numberDouble":"9223372036854775808"}`, Nested, "numbers differ"},
	{"the least int64 is not 2^63", `-9223372036854775808`, `{"$numberDouble":"9223372036854775808"}`, Nested, "numbers differ"},
	{"the least int64 is not less than -2^63", `-9223372036854775808`, `-1e19`, Nested, "numbers differ"},
	{"the least int64 is -2^63", `-9223372036854775808`, `{"$numberDouble":"-9223372036854775808"}`, Nested, ""},
	{"NaN equals NaN", `{$numberDouble: NaN}`, `{"$numberDouble":"NaN"}`, Nested, ""},
	{"NaN is no number's equal", `0`, `{"$numberDouble":"NaN"}`, Nested, "numbers differ"},
	{"infinity equals infinity", `{$numberDouble: Infinity}`, `{"$numberDouble":"Infinity"}`, Nested, ""},
	{"infinities have a sign", `{$numberDouble: Infinity}`, `{"$numberDouble":"-Infinity"}`, Nested, "numbers differ"},
	{"infinity is no int", `9223372036854775807`, `{"$numberDouble":"Infinity"}`, Nested, "numbers differ"},
	{"-0 equals 0", `0`, `{"$numberDouble":"-0.0"}`, Nested, ""},
	{"a decimal equals a decimal", `{$numberDecimal: "1.0"}`, `{"$numberDecimal":"1.0"}`, Nested, ""},
	{"a decimal is no int", `1`, `{"$numberDecimal":"1"}`, Nested, "want a number, got decimal"},
	{"an int is no decimal", `{$numberDecimal: "1"}`, `1`, Nested, "want decimal, got int"},
	{"decimals compare by text", `{$numberDecimal: "1.0"}`, `{"$numberDecimal":"1.00"}`, Nested, "values differ"},
	{"a bool is no number", `1`, `true`, Nested, "want a number, got bool"},
	{"a number is no bool", `true`, `1`, Nested, "want bool, got int"},
	{"strings", `abc`, `"abc"`, Nested, ""},
	{"strings differ in case", `abc`, `"Abc"`, Nested, "values differ"},
	{"a string is no number", `"1"`, `1`, Nested, "want string, got int"},
	{"a symbol is no string", `abc`, `{"$symbol":"abc"}`, Nested, "want string, got symbol"},
	{"null", `null`, `null`, Nested, ""},
	{"null is not nothing", `null`, ``, Nested, "value is missing"},
	{"null is not false", `null`, `false`, Nested, "want null, got bool"},
	{"undefined is not null", `null`, `{"$undefined":true}`, Nested, "want null, got undefined"},
	{"a value is not nothing", `1`, ``, Nested, "value is missing"},
	{"ObjectIDs", `{$oid: 0123456789abcdef01234567}`, `{"$oid":"0123456789abcdef01234567"}`, Nested, ""},
	{"an ObjectID is a scalar, no document", `{$oid: 0123456789abcdef01234567}`, `{"x":"0123456789abcdef01234567"}`, Nested, "want objectId, got object"},
	{"dates in two notations", `{$date: "1970-01-01T00:00:01Z"}`, `{"$date":{"$numberLong":"1000"}}`, Nested, ""},
	{"a date is no number", `{$date: "1970-01-01T00:00:01Z"}`, `1000`, Nested, "want date, got int"},
	{"timestamps", `{$timestamp: {t: 1, i: 2}}`, `{"$timestamp":{"t":1,"i":2}}`, Nested, ""},
	{"binary", `{$binary: {base64: AQ==, subType: "00"}}`, `{"$binary":{"base64":"AQ==","subType":"00"}}`, Nested, ""},
	{"binary subtypes differ", `{$binary: {base64: AQ==, subType: "00"}}`, `{"$binary":{"base64":"AQ==","subType":"05"}}`, Nested, "values differ"},
	{"a UUID is a binary", `{$uuid: 00112233-4455-6677-8899-aabbccddeeff}`, `{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}`, Nested, ""},
	{"regular expressions, options in any order", `{$regularExpression: {pattern: a, options: mi}}`, `{"$regularExpression":{"pattern":"a","options":"im"}}`, Nested, ""},
	{"options differ", `{$regularExpression: {pattern: a, options: i}}`, `{"$regularExpression":{"pattern":"a","options":""}}`, Nested, "values differ"},
	{"patterns differ", `{$regularExpression: {pattern: a, options: i}}`, `{"$regularExpression":{"pattern":"b","options":"i"}}`, Nested, "values differ"},
	{"code", `{$code: "f()"}`, `{"$code":"f()"}`, Nested, ""},
	{"code differs", `{$code: "f()"}`, `{"$code":"g()"}`, Nested, "values differ"},
	{"code with scope, keys in any order", `{$code: f, $scope: {x: 1, y: 2}}`, `{"$code":"f","$scope":{"y":2,"x":1}}`, Nested, ""},
	{"a scope must match exactly: no extra key", `{$code: f, $scope: {x: 1}}`, `{"$code":"f","$scope":{"y":2,"x":1}}`, RootDocument, "values differ"},
	{"a scope must match exactly: types", `{$code: f, $scope: {x: 1}}`, `{"$code":"f","$scope":{"x":1.0}}`, Nested, "values differ"},
	{"a scope must match exactly: no operators", `{$code: f, $scope: {x: {$$exists: true}}}`, `{"$code":"f","$scope":{"x":1}}`, Nested, "values differ"},
	{"minKey is not maxKey", `{$minKey: 1}`, `{"$maxKey":1}`, Nested, "want minKey, got maxKey"},
	{"DBPointers", `{$dbPointer: {$ref: a.b, $id: {$oid: 0123456789abcdef01234567}}}`, `{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"0123456789abcdef01234567"}}}`, Nested, ""},
	{"malformed Extended JSON", `{$oid: 5}`, `5`, Nested, "malformed Extended JSON"},
	{"a wrapper with another key", `{$numberLong: "1", x: 1}`, `1`, Nested, "malformed Extended JSON"},
	{"$regex is the query operator", `{x: {$regex: a, $options: i}}`, `{"x":{"$regularExpression":{"pattern":"a","options":"i"}}}`, Nested, "x: want a document, got regex"},

	// Documents.
	{"documents", `{x: 1, y: 2}`, `{"x":1,"y":2}`, Nested, ""},
	{"key order is free", `{x: 1, y: 2}`, `{"y":2,"x":1}`, Nested, ""},
	{"an extra key in a root-level document", `{x: 1}`, `{"x":1,"y":2}`, RootDocument, ""},
	{"an extra key elsewhere", `{x: 1}`, `{"x":1,"y":2}`, Nested, `unexpected key "y"`},
	{"the root's license ends below it", `{x: {y: 1}}`, `{"x":{"y":1,"z":1}}`, RootDocument, `x: unexpected key "z"`},
	{"a missing key", `{x: 1, y: 1}`, `{"x":1}`, RootDocument, "y: the value is missing"},
	{"a missing key is not null", `{x: null}`, `{}`, RootDocument, "x: the value is missing"},
	{"a value below", `{x: {y: [1, {z: 2}]}}`, `{"x":{"y":[1,{"z":3}]}}`, RootDocument, "x.y[1].z: the numbers differ"},
	{"empty documents", `{}`, `{}`, Nested, ""},
	{"an empty root-level document matches any", `{}`, `{"x":1}`, RootDocument, ""},
	{"an empty document elsewhere matches the empty one alone", `{x: {}}`, `{"x":{"y":1}}`, RootDocument, `x: unexpected key "y"`},
	{"an array is no document", `{}`, `[]`, RootDocument, "want a document, got array"},
	{"a scalar is no document", `{x: 1}`, `1`, RootDocument, "want a document, got int"},
	{"nothing is no document", `{}`, ``, RootDocument, "value is missing"},
	{"a document is no scalar", `1`, `{"x":1}`, RootDocument, "want a number, got object"},
	{"keys with dots are quoted in paths", `{a.b: 1}`, `{"a.b":2}`, Nested, `["a.b"]: the numbers differ`},

	// Arrays.
	{"arrays", `[1, two]`, `[1,"two"]`, Nested, ""},
	{"an actual element too many (PyMongo walks lists in parallel)", `[1, 2, 3]`, `[1,2,3,4]`, Nested, "want 3 elements, got 4"},
	{"an actual element too few", `[1, 2, 3]`, `[1,2]`, Nested, "want 3 elements, got 2"},
	{"an empty array does not match a full one", `[]`, `[1]`, RootDocuments, "want 0 elements, got 1"},
	{"order matters", `[1, 2]`, `[2,1]`, Nested, "[0]: the numbers differ"},
	{"a document is no array", `[1]`, `{"0":1}`, Nested, "want an array, got object"},
	{"an array is no document", `{"0": 1}`, `[1]`, Nested, "want a document, got array"},
	{"root-level documents of an iterable", `[{x: 1}, {x: 2}]`, `[{"x":1,"y":1},{"x":2,"y":2}]`, RootDocuments, ""},
	{"documents of distinct", `[{x: 1}, {x: 2}]`, `[{"x":1,"y":1},{"x":2}]`, Nested, `[0]: unexpected key "y"`},
	{"a root document's own arrays are nested", `{a: [{x: 1}]}`, `{"a":[{"x":1,"y":1}]}`, RootDocument, `a[0]: unexpected key "y"`},
	{"only the outer array holds root-level documents", `[[{x: 1}]]`, `[[{"x":1,"y":1}]]`, RootDocuments, `[0][0]: unexpected key "y"`},
	{"a document where an iterable is expected is nested", `{x: 1}`, `{"x":1,"y":1}`, RootDocuments, `unexpected key "y"`},

	// $$exists.
	{"exists", `{x: {$$exists: true}}`, `{"x":1}`, Nested, ""},
	{"null exists", `{x: {$$exists: true}}`, `{"x":null}`, Nested, ""},
	{"does not exist", `{x: {$$exists: true}}`, `{"y":1}`, RootDocument, "x: the value is missing"},
	{"absent as wanted", `{x: {$$exists: false}}`, `{"y":1}`, RootDocument, ""},
	{"there against the wish", `{x: {$$exists: false}}`, `{"x":1}`, RootDocument, "x: want no value, got one"},
	{"null is there", `{x: {$$exists: false}}`, `{"x":null}`, RootDocument, "x: want no value, got one"},
	{"exists false allows no other key", `{x: {$$exists: false}}`, `{"y":1}`, Nested, `unexpected key "y"`},
	{"a result that exists", `{$$exists: true}`, `1`, Nested, ""},
	{"a result that does not", `{$$exists: true}`, ``, Nested, "value is missing"},
	{"exists takes booleans", `{x: {$$exists: 1}}`, `{"x":1}`, Nested, "x.$$exists: $$exists wants true or false"},
	{"exists is for keys", `[{$$exists: true}]`, `[1]`, Nested, "[0].$$exists: $$exists stands for the value of a key"},

	// $$type.
	{"one of several types", `{$$type: [int, long]}`, `{"$numberLong":"1"}`, Nested, ""},
	{"none of several types", `{$$type: [int, long]}`, `1.0`, Nested, "want type int or long, got double"},
	{"number: double", `{$$type: number}`, `1.5`, Nested, ""},
	{"number: int", `{$$type: number}`, `1`, Nested, ""},
	{"number: long", `{$$type: number}`, `{"$numberLong":"1"}`, Nested, ""},
	{"number: decimal", `{$$type: number}`, `{"$numberDecimal":"1"}`, Nested, ""},
	{"number: not a string", `{$$type: number}`, `"1"`, Nested, "want type number, got string"},
	{"only the array's own type counts", `{$$type: int}`, `[1]`, Nested, "want type int, got array"},
	{"a missing value has no type", `{x: {$$type: "null"}}`, `{}`, RootDocument, "x: the value is missing"},
	{"a result that is missing has no type", `{$$type: "null"}`, ``, Nested, "value is missing"},
	{"an array element", `[{$$type: int}]`, `[1]`, Nested, ""},
	{"an unknown type", `{$$type: integer}`, `1`, Nested, "$$type wants the string alias"},
	{"a type by number", `{$$type: 16}`, `1`, Nested, "$$type wants the string alias"},
	{"no type", `{$$type: []}`, `1`, Nested, "at least one type"},
	{"one unknown among known", `{$$type: [int, foo]}`, `1`, Nested, "$$type wants the string alias"},

	// $$matchesEntity.
	{"entity", `{$$matchesEntity: id0}`, `{"$oid":"0123456789abcdef01234567"}`, Nested, ""},
	{"entity differs", `{$$matchesEntity: id0}`, `{"$oid":"0123456789abcdef01234568"}`, Nested, "values differ"},
	{"numbers of entities are flexible", `{$$matchesEntity: int1}`, `1.0`, Nested, ""},
	{"an undefined entity", `{$$matchesEntity: foo}`, `1`, Nested, `entity "foo" is not defined`},
	{"an undefined entity that is not reached", `{x: {$$unsetOrMatches: {$$matchesEntity: foo}}}`, `{}`, Nested, `entity "foo" is not defined`},
	{"a name that is none", `{$$matchesEntity: 1}`, `1`, Nested, "wants the name of an entity"},
	{"a root-level document stays one", `{$$matchesEntity: doc}`, `{"x":1,"y":2}`, RootDocument, ""},
	{"a nested one stays one", `{a: {$$matchesEntity: doc}}`, `{"a":{"x":1,"y":2}}`, RootDocument, `a.$$matchesEntity: unexpected key "y"`},
	{"a nested document of an entity", `{$$matchesEntity: nested}`, `{"x":{"y":1,"z":1}}`, RootDocument, `x: unexpected key "z"`},
	{"root-level documents stay such", `{$$matchesEntity: list}`, `[{"x":1,"y":2}]`, RootDocuments, ""},
	{"an entity's content is no operator", `{a: {$$matchesEntity: operator}}`, `{"a":1}`, Nested, "want a document, got int"},
	{"an entity's content is data", `{a: {$$matchesEntity: operator}}`, `{"a":{"$$exists":true}}`, Nested, ""},
	{"a missing value is no entity", `{a: {$$matchesEntity: int1}}`, `{}`, Nested, "a: the value is missing"},

	// $$matchesHexBytes.
	{"bytes, either case", `{$$matchesHexBytes: "4Aff4b"}`, `{"$binary":{"base64":"Sv9L","subType":"00"}}`, Nested, ""},
	{"bytes of a string", `{$$matchesHexBytes: "4a4B"}`, `"JK"`, Nested, ""},
	{"no bytes", `{$$matchesHexBytes: ""}`, `""`, Nested, ""},
	{"bytes differ", `{$$matchesHexBytes: "4a4b"}`, `"JJ"`, Nested, "bytes differ"},
	{"a byte less", `{$$matchesHexBytes: "4a4b"}`, `"J"`, Nested, "bytes differ"},
	{"bytes are no number", `{$$matchesHexBytes: "01"}`, `1`, Nested, "want a string of bytes, got int"},
	{"a binary of another subtype is no string", `{$$matchesHexBytes: "4aff4b"}`, `{"$binary":{"base64":"Sv9L","subType":"05"}}`, Nested, "want a string of bytes, got binData"},
	{"an odd number of digits", `{$$matchesHexBytes: "4a4"}`, `"J"`, Nested, "even number of hexadecimal digits"},
	{"no digits", `{$$matchesHexBytes: "xy"}`, `"xy"`, Nested, "even number of hexadecimal digits"},
	{"no string", `{$$matchesHexBytes: 12}`, `"\u0012"`, Nested, "even number of hexadecimal digits"},

	// $$unsetOrMatches.
	{"unset", `{x: {$$unsetOrMatches: 1}}`, `{}`, Nested, ""},
	{"set and matching", `{x: {$$unsetOrMatches: 1}}`, `{"x":1.0}`, Nested, ""},
	{"set and not matching", `{x: {$$unsetOrMatches: 1}}`, `{"x":2}`, Nested, "x.$$unsetOrMatches: the numbers differ"},
	{"null is set", `{x: {$$unsetOrMatches: 1}}`, `{"x":null}`, Nested, "want a number, got null"},
	{"a result that is unset", `{$$unsetOrMatches: {x: 1}}`, ``, RootDocument, ""},
	{"a root-level document stays one", `{$$unsetOrMatches: {x: 1}}`, `{"x":1,"y":2}`, RootDocument, ""},
	{"a nested one stays one", `{a: {$$unsetOrMatches: {x: 1}}}`, `{"a":{"x":1,"y":2}}`, RootDocument, `a.$$unsetOrMatches: unexpected key "y"`},
	{"an iterable stays one", `{$$unsetOrMatches: [{x: 1}]}`, `[{"x":1,"y":2}]`, RootDocuments, ""},
	{"operators inside", `{x: {$$unsetOrMatches: {$$type: int}}}`, `{"x":"a"}`, Nested, "want type int, got string"},
	{"exists inside", `{x: {$$unsetOrMatches: {$$exists: true}}}`, `{"x":1}`, Nested, ""},
	{"exists false inside", `{x: {$$unsetOrMatches: {$$exists: false}}}`, `{"x":1}`, Nested, "want no value, got one"},
	{"not in arrays", `[{$$unsetOrMatches: 1}]`, `[1]`, Nested, "must not be an array element"},

	// $$sessionLsid.
	{"lsid", `{lsid: {$$sessionLsid: session0}}`, `{"lsid":` + lsid + `}`, Nested, ""},
	{"another lsid", `{lsid: {$$sessionLsid: session0}}`, `{"lsid":{"id":{"$binary":{"base64":"AQ==","subType":"04"}}}}`, Nested, "lsid.$$sessionLsid.id: the values differ"},
	{"no lsid", `{lsid: {$$sessionLsid: session0}}`, `{}`, RootDocument, "lsid: the value is missing"},
	{"more than an lsid", `{$$sessionLsid: session0}`, `{"x":1,` + lsid[1:], Nested, "unexpected key"},
	{"no session", `{lsid: {$$sessionLsid: foo}}`, `{"lsid":` + lsid + `}`, Nested, `entity "foo" is no session`},
	{"no name", `{lsid: {$$sessionLsid: {}}}`, `{"lsid":` + lsid + `}`, Nested, "wants the name of an entity"},

	// $$lte.
	{"equal", `{$$lte: 1}`, `1`, Nested, ""},
	{"equal as a double", `{$$lte: 1}`, `1.0`, Nested, ""},
	{"less", `{$$lte: 1}`, `0.0`, Nested, ""},
	{"greater by a tenth", `{$$lte: 1}`, `1.1`, Nested, "not less than or equal"},
	{"an int against a double", `{$$lte: 1.5}`, `2`, Nested, "not less than or equal"},
	{"an int below a double", `{$$lte: 1.5}`, `1`, Nested, ""},
	{"a negative double", `{$$lte: -1}`, `-1.5`, Nested, ""},
	{"a negative double above", `{$$lte: -2}`, `-1.5`, Nested, "not less than or equal"},
	{"no rounding", `{$$lte: {$numberDouble: "9007199254740992"}}`, `{"$numberLong":"9007199254740993"}`, Nested, "not less than or equal"},
	{"2^63 is above every int64", `{$$lte: 9223372036854775807}`, `{"$numberDouble":"9223372036854775808"}`, Nested, "not less than or equal"},
	{"NaN is not below", `{$$lte: 1}`, `{"$numberDouble":"NaN"}`, Nested, "not less than or equal"},
	{"nothing is below NaN", `{$$lte: {$numberDouble: NaN}}`, `1`, Nested, "not less than or equal"},
	{"-infinity is below", `{$$lte: 1}`, `{"$numberDouble":"-Infinity"}`, Nested, ""},
	{"a string is not below", `{$$lte: 1}`, `"0"`, Nested, "want a number to compare, got string"},
	{"a decimal is apart", `{$$lte: 1}`, `{"$numberDecimal":"0"}`, Nested, "want a number to compare, got decimal"},
	{"decimals", `{$$lte: {$numberDecimal: "1.5"}}`, `{"$numberDecimal":"15E-1"}`, Nested, ""},
	{"decimals above", `{$$lte: {$numberDecimal: "1.5"}}`, `{"$numberDecimal":"1.51"}`, Nested, "not less than or equal"},
	{"decimal NaN", `{$$lte: {$numberDecimal: "1.5"}}`, `{"$numberDecimal":"NaN"}`, Nested, "not less than or equal"},
	{"decimal -infinity is below", `{$$lte: {$numberDecimal: "1.5"}}`, `{"$numberDecimal":"-Infinity"}`, Nested, ""},
	{"decimal infinity", `{$$lte: {$numberDecimal: "1E+6000"}}`, `{"$numberDecimal":"Infinity"}`, Nested, "not less than or equal"},
	{"missing", `{x: {$$lte: 1}}`, `{}`, Nested, "x: the value is missing"},
	{"no number", `{$$lte: a}`, `1`, Nested, "$$lte wants a number"},
	{"a document", `{$$lte: {x: 1}}`, `1`, Nested, "$$lte wants a number"},

	// $$matchAsDocument and $$matchAsRoot.
	{"document", `{$$matchAsDocument: {x: 1, y: {$$type: string}}}`, `"{\"x\":1,\"y\":\"a\"}"`, Nested, ""},
	{"Extended JSON inside", `{$$matchAsDocument: {x: {$numberLong: "1"}}}`, `"{\"x\":{\"$numberLong\":\"1\"}}"`, Nested, ""},
	{"a value differs", `{$$matchAsDocument: {x: 1}}`, `"{\"x\":2}"`, Nested, "$$matchAsDocument.x: the numbers differ"},
	{"it is no root-level document", `{$$matchAsDocument: {x: 1}}`, `"{\"x\":1,\"y\":2}"`, RootDocument, `unexpected key "y"`},
	{"unless asked for", `{$$matchAsDocument: {$$matchAsRoot: {x: 1}}}`, `"{\"x\":1,\"y\":2}"`, Nested, ""},
	{"not a JSON object: number", `{$$matchAsDocument: {$$matchAsRoot: {}}}`, `"1"`, Nested, "not a JSON object"},
	{"not a JSON object: array", `{$$matchAsDocument: {$$matchAsRoot: {}}}`, `"[\"foo\"]"`, Nested, "not a JSON object"},
	{"invalid JSON", `{$$matchAsDocument: {$$matchAsRoot: {}}}`, `"{ \"x\" }"`, Nested, "invalid JSON"},
	{"truncated JSON", `{$$matchAsDocument: {$$matchAsRoot: {}}}`, `"{\"x\": 1..."`, Nested, "invalid JSON"},
	{"something after the document", `{$$matchAsDocument: {x: 1}}`, `"{\"x\":1} {}"`, Nested, "invalid JSON"},
	{"malformed Extended JSON", `{$$matchAsDocument: {$$matchAsRoot: {}}}`, `"{\"x\":{\"$oid\":\"1\"}}"`, Nested, "want a string of Extended JSON"},
	{"not a string", `{$$matchAsDocument: {x: 1}}`, `{"x":1}`, Nested, "want a string of Extended JSON, got object"},
	{"root", `{a: {$$matchAsRoot: {x: 1}}}`, `{"a":{"x":1.0,"y":2}}`, Nested, ""},
	{"root needs its keys", `{a: {$$matchAsRoot: {x: 1}}}`, `{"a":{"y":2}}`, Nested, "a.$$matchAsRoot.x: the value is missing"},
	{"root ends below", `{a: {$$matchAsRoot: {x: {y: 1}}}}`, `{"a":{"x":{"y":1,"z":1}}}`, Nested, `unexpected key "z"`},
	{"root of no document", `{a: {$$matchAsRoot: {}}}`, `{"a":[]}`, Nested, "want a document, got array"},
	{"root of an array expected", `{a: {$$matchAsRoot: [1]}}`, `{"a":[1]}`, Nested, "$$matchAsRoot wants a document"},

	// What is an operator.
	{"placeholder", `{a: {$$placeholder: 1}}`, `{"a":1}`, Nested, "$$placeholder has no place"},
	{"an unknown operator", `{a: {$$foo: 1}}`, `{"a":1}`, Nested, "$$foo is no special operator"},
	{"an unknown operator that is not reached", `{a: {$$unsetOrMatches: {$$foo: 1}}}`, `{}`, Nested, "$$foo is no special operator"},
	{"two keys are no operator", `{a: {$$exists: true, $$type: int}}`, `{"a":1}`, Nested, "a: want a document, got int"},
	{"two keys are data", `{a: {$$exists: true, x: 1}}`, `{"a":{"$$exists":true,"x":1}}`, Nested, ""},
	{"one $ is a query operator", `{a: {$exists: true}}`, `{"a":1}`, Nested, "a: want a document, got int"},
	{"one $ is data", `{a: {$exists: true}}`, `{"a":{"$exists":true}}`, Nested, ""},
	{"a string with $$ is data", `{a: "$$ROOT"}`, `{"a":"$$ROOT"}`, Nested, ""},
}

// A driver may hand on options as a server wrote them, in an order that the
// parser of Extended JSON does not keep.
func TestRegexOptionsInAnyOrder(t *testing.T) {
	for options, want := range map[string]string{"im": "", "mi": "", "i": "values differ", "imm": "values differ"} {
		actual := bson.RawValue{Type: bson.TypeRegex, Value: append([]byte("a\x00"+options), 0)}
		check(t, options, New(nil).Value("v", yaml(t, `{$regularExpression: {pattern: a, options: im}}`), actual, Nested), want)
	}
}

func TestValue(t *testing.T) {
	for _, r := range valueRows {
		got := New(testEntities{}).Value("", yaml(t, r.expected), seen(t, r.actual), r.shape)
		check(t, r.reason, got, r.wrong)
	}
}

// Every alias of $type matches its own type and no other.
func TestTypeAliases(t *testing.T) {
	samples := map[string]string{
		"double": `1.5`, "string": `"a"`, "object": `{}`, "array": `[]`, "binData": `{"$binary":{"base64":"","subType":"00"}}`,
		"undefined": `{"$undefined":true}`, "objectId": `{"$oid":"0123456789abcdef01234567"}`, "bool": `true`,
		"date": `{"$date":{"$numberLong":"1"}}`, "null": `null`, "regex": `{"$regularExpression":{"pattern":"","options":""}}`,
		"dbPointer": `{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"0123456789abcdef01234567"}}}`, "javascript": `{"$code":""}`,
		"symbol": `{"$symbol":""}`, "javascriptWithScope": `{"$code":"","$scope":{}}`, "int": `1`,
		"timestamp": `{"$timestamp":{"t":0,"i":0}}`, "long": `{"$numberLong":"1"}`, "decimal": `{"$numberDecimal":"1"}`,
		"minKey": `{"$minKey":1}`, "maxKey": `{"$maxKey":1}`,
	}
	if len(samples)+1 != len(aliases) {
		t.Fatalf("%d samples for %d aliases", len(samples), len(aliases))
	}
	for alias := range samples {
		for name, sample := range samples {
			got := New(nil).Value("", yaml(t, "{$$type: '"+alias+"'}"), seen(t, sample), Nested)
			if (len(got) == 0) != (alias == name) {
				t.Errorf("$$type %s against %s:%s", alias, name, show(got))
			}
		}
	}
}

// What Extended JSON cannot say: actual values that are broken.
func TestHostileActual(t *testing.T) {
	twice, _ := bson.Marshal(bson.D{{Key: "x", Value: 1}, {Key: "x", Value: 1}})
	for _, r := range []struct {
		reason, expected string
		actual           bson.RawValue
		shape            Shape
		wrong            string
	}{
		{"a key twice, expected", `{x: 1}`, document(twice), RootDocument, `the key "x" twice`},
		{"a key twice, extra", `{}`, document(twice), RootDocument, `the key "x" twice`},
		{"a length too long", `{}`, document([]byte{6, 0, 0, 0, 0}), RootDocument, "malformed"},
		{"a length too short", `{}`, document([]byte{4, 0, 0, 0, 0}), RootDocument, "malformed"},
		{"no bytes", `{}`, document(nil), RootDocument, "malformed"},
		{"a negative length", `[]`, bson.RawValue{Type: bson.TypeArray, Value: []byte{255, 255, 255, 255, 0}}, Nested, "malformed"},
		{"an unknown type inside", `{x: 1}`, document([]byte{12, 0, 0, 0, 0x30, 'x', 0, 0, 0, 0, 0, 0}), RootDocument, "malformed"},
		{"a string past the end", `{x: a}`, document([]byte{14, 0, 0, 0, 2, 'x', 0, 99, 0, 0, 0, 'a', 0, 0}), RootDocument, "malformed"},
		{"a short number", `1`, bson.RawValue{Type: bson.TypeInt32, Value: []byte{1}}, Nested, "want a number"},
		{"an empty bool", `true`, bson.RawValue{Type: bson.TypeBoolean}, Nested, "values differ"},
	} {
		check(t, r.reason, New(nil).Value("", yaml(t, r.expected), r.actual, r.shape), r.wrong)
	}
}

// All mismatches are found, each with path, position and both values.
func TestAllMismatches(t *testing.T) {
	expected := yaml(t, "u: {$$matchesEntity: int1}\nv: {$$unsetOrMatches: {$$type: int}}\nx: 12345\ny:\n  - {a: b}\n  - 2\nz: {$$type: int}\nw: 5\n")
	got := New(testEntities{}).Value("expectResult", expected, seen(t, `{"u":2,"v":"s","x":{"$numberLong":"2"},"y":[{"a":"c"},2.5],"z":"s"}`), RootDocument)
	var said [][]string
	for _, m := range got {
		said = append(said, []string{m.Path, m.Position.String(), m.Want, m.Got})
	}
	if diff := cmp.Diff([][]string{
		{"expectResult.u.$$matchesEntity", "test.yml:1:22", "1", "2"},
		{"expectResult.v.$$unsetOrMatches", "test.yml:2:23", `{"$$type":"int"}`, `"s"`},
		{"expectResult.x", "test.yml:3:4", "12345", "2"},
		{"expectResult.y[0].a", "test.yml:5:9", `"b"`, `"c"`},
		{"expectResult.y[1]", "test.yml:6:5", "2", "2.5"},
		{"expectResult.z", "test.yml:7:4", `{"$$type":"int"}`, `"s"`},
		{"expectResult.w", "test.yml:8:4", "5", "(nothing)"},
	}, said); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
}

// Types are visible where the relaxed form would hide them.
func TestCanonicalWhereItMatters(t *testing.T) {
	got := New(nil).Collection("outcome[0].documents", source.Position{}, []*source.Value{yaml(t, `{_id: 1}`)},
		raws(t, `{"_id":{"$numberLong":"1"}}`))
	if len(got) != 1 || got[0].Want != `{"$numberInt":"1"}` || got[0].Got != `{"$numberLong":"1"}` {
		t.Errorf("got%s", show(got))
	}
}

func TestDiff(t *testing.T) {
	got := New(nil).Value("", yaml(t, `{a: {$$type: int}, b: [1, 2], c: {d: 1}}`), seen(t, `{"a":5,"b":[1,2,3],"c":{"d":1},"e":1}`), RootDocument)
	if len(got) != 1 || got[0].Path != "b" || !strings.Contains(got[0].Diff, `+ `) || strings.Contains(got[0].Diff, "\u00a0") {
		t.Fatalf("got%s\n%s", show(got), got[0].Diff)
	}
	got = New(nil).Value("", yaml(t, `[{x: 1}]`), seen(t, `[{"x":3,"y":1},{"x":2}]`), RootDocuments)
	if len(got) != 1 || regexp.MustCompile(`(?m)^[-+].*"y"`).MatchString(got[0].Diff) || !strings.Contains(got[0].Diff, `"3"`) {
		t.Errorf("a diff shows an extra key that is allowed:%s\n%s", show(got), got[0].Diff)
	}
	const rendered = `{"a":12,"b":[null,1.5,true,"x"]}`
	if got := text(yaml(t, `{a: 12, b: [null, 1.5, true, x]}`)); got != rendered {
		t.Errorf("an expected value is rendered as %s, want %s", got, rendered)
	}
	got = New(nil).Value("", yaml(t, `{a: {$$type: int}, b: 1}`), seen(t, `{"a":5,"b":1,"extra":true}`), Nested)
	if len(got) != 1 || !strings.Contains(got[0].Diff, `"extra"`) || strings.Contains(got[0].Diff, "$$type") {
		t.Errorf("a diff shows what is apart and not what an operator allows:%s\n%s", show(got), got[0].Diff)
	}
}
