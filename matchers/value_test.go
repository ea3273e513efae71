package matchers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// valueCase returns the actual value, in Extended JSON, and the shape of a case
// of testdata/values.txt.
func valueCase(actual string) (string, operations.Shape) {
	if rest, found := strings.CutSuffix(actual, " as a document"); found {
		return strings.TrimSuffix(rest, "nothing"), operations.RootDocument
	}
	if rest, found := strings.CutSuffix(actual, " as documents"); found {
		return rest, operations.RootDocuments
	}
	return actual, operations.Value
}

// Drivers may return options in the order of the server. The Extended JSON parser does not preserve it.
func TestRegexOptionsInAnyOrder(t *testing.T) {
	for options, want := range map[string]string{"im": matches, "mi": matches, "i": "the values differ",
		"imm": "the values differ"} {
		actual := bson.RawValue{Type: bson.TypeRegex, Value: append([]byte("a\x00"+options), 0)}
		testkit.Equal(t, options, summary(t,
			New(nil).Value("", yaml(t, `{$regularExpression: {pattern: a, options: im}}`), actual, operations.Value)), want)
	}
}

func TestValue(t *testing.T) {
	transcript(t, "values.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		actual, shape := valueCase(actual)
		return New(testEntities{}).Value("", yaml(t, expected), seen(t, actual), shape)
	})
}

// Each alias of $type matches only its type.
func TestTypeAliases(t *testing.T) {
	samples := map[string]string{
		"double": `1.5`, "string": `"a"`, "object": `{}`, "array": `[]`,
		"binData":   `{"$binary":{"base64":"","subType":"00"}}`,
		"undefined": `{"$undefined":true}`, "objectId": `{"$oid":"0123456789abcdef01234567"}`, "bool": `true`,
		"date": `{"$date":{"$numberLong":"1"}}`, "null": `null`,
		"regex":     `{"$regularExpression":{"pattern":"","options":""}}`,
		"dbPointer": `{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"0123456789abcdef01234567"}}}`, "javascript": `{"$code":""}`,
		"symbol": `{"$symbol":""}`, "javascriptWithScope": `{"$code":"","$scope":{}}`, "int": `1`,
		"timestamp": `{"$timestamp":{"t":0,"i":0}}`, "long": `{"$numberLong":"1"}`, "decimal": `{"$numberDecimal":"1"}`,
		"minKey": `{"$minKey":1}`, "maxKey": `{"$maxKey":1}`,
	}
	for i := range 256 {
		if v := (bson.RawValue{Type: bson.Type(i)}); v.Type.IsValid() && samples[typeName(v)] == "" {
			t.Errorf("no sample of type %s", v.Type)
		}
	}
	for alias := range samples {
		for name, sample := range samples {
			got := New(nil).Value("", yaml(t, "{$$type: '"+alias+"'}"), seen(t, sample), operations.Value)
			if (len(got) == 0) != (alias == name) {
				t.Errorf("$$type %s against %s:%s", alias, name, show(got))
			}
		}
	}
}

// Malformed actual values: Extended JSON cannot represent them.
func TestHostileActual(t *testing.T) {
	twice, _ := bson.Marshal(bson.D{{Key: "x", Value: 1}, {Key: "x", Value: 1}})
	for _, r := range []struct {
		reason, expected string
		actual           bson.RawValue
		shape            operations.Shape
		wrong            string
	}{
		{"an expected duplicate key", `{x: 1}`, document(twice), operations.RootDocument, `the key "x" twice`},
		{"an extra duplicate key", `{}`, document(twice), operations.RootDocument, `the key "x" twice`},
		{"a length that is too large", `{}`, document([]byte{6, 0, 0, 0, 0}), operations.RootDocument, "malformed"},
		{"a length that is too small", `{}`, document([]byte{4, 0, 0, 0, 0}), operations.RootDocument, "malformed"},
		{"no bytes", `{}`, document(nil), operations.RootDocument, "malformed"},
		{"a negative length", `[]`, bson.RawValue{Type: bson.TypeArray, Value: []byte{255, 255, 255, 255, 0}}, operations.Value,
			"malformed"},
		{"an unknown type inside", `{x: 1}`, document([]byte{12, 0, 0, 0, 0x30, 'x', 0, 0, 0, 0, 0, 0}), operations.RootDocument,
			"malformed"},
		{"a string past the end", `{x: a}`, document([]byte{14, 0, 0, 0, 2, 'x', 0, 99, 0, 0, 0, 'a', 0, 0}), operations.RootDocument,
			"malformed"},
		{"a short number", `1`, bson.RawValue{Type: bson.TypeInt32, Value: []byte{1}}, operations.Value, "expected a number"},
		{"an empty bool", `true`, bson.RawValue{Type: bson.TypeBoolean}, operations.Value, "values differ"},
	} {
		if got := summary(t, New(nil).Value("", yaml(t, r.expected), r.actual, r.shape)); !strings.Contains(got, r.wrong) {
			t.Errorf("%s: %s, want %q", r.reason, got, r.wrong)
		}
	}
}

// All mismatches are reported, each with path, position and both values.
func TestAllMismatches(t *testing.T) {
	expected := yaml(t, "u: {$$matchesEntity: int1}\nv: {$$unsetOrMatches: {$$type: int}}\nx: 12345\ny:\n  - {a: b}\n  - 2\nz: {$$type: int}\nw: 5\n")
	got := New(testEntities{}).Value("expectResult", expected,
		seen(t, `{"u":2,"v":"s","x":{"$numberLong":"2"},"y":[{"a":"c"},2.5],"z":"s"}`), operations.RootDocument)
	var mismatches [][]string
	for _, m := range got {
		mismatches = append(mismatches, []string{m.Path, m.Position.String(), m.Want, m.Got})
	}
	testkit.Same(t, "mismatches", mismatches, [][]string{
		{"expectResult.u.$$matchesEntity", "test.yml:1:22", "1", "2"},
		{"expectResult.v.$$unsetOrMatches", "test.yml:2:23", `{"$$type":"int"}`, `"s"`},
		{"expectResult.x", "test.yml:3:4", "12345", "2"},
		{"expectResult.y[0].a", "test.yml:5:9", `"b"`, `"c"`},
		{"expectResult.y[1]", "test.yml:6:5", "2", "2.5"},
		{"expectResult.z", "test.yml:7:4", `{"$$type":"int"}`, `"s"`},
		{"expectResult.w", "test.yml:8:4", "5", "(nothing)"},
	})
}

// Values whose relaxed forms are equal are rendered in canonical form.
func TestCanonicalWhereItMatters(t *testing.T) {
	got := New(nil).Collection("outcome[0].documents", source.Position{}, []*source.Value{yaml(t, `{_id: 1}`)},
		[]bson.Raw{raw(t, `{"_id":{"$numberLong":"1"}}`)})
	if len(got) != 1 || got[0].Want != `{"$numberInt":"1"}` || got[0].Got != `{"$numberLong":"1"}` {
		t.Errorf("got%s", show(got))
	}
}

// A difference is in Extended JSON. It does not mark values that an operator accepts, or extra keys that are allowed.
func TestDiff(t *testing.T) {
	transcriptOf := func(t *testing.T, in string) string {
		expected, actual, _ := strings.Cut(in, " against ")
		shape := operations.Value
		for word, s := range map[string]operations.Shape{" as a root document": operations.RootDocument, " as root documents": operations.RootDocuments} {
			if before, is := strings.CutSuffix(actual, word); is {
				actual, shape = before, s
			}
		}
		var all []string
		for _, m := range New(nil).Value("", yaml(t, expected), seen(t, actual), shape) {
			all = append(all, strings.TrimSpace(m.Path+" "+m.Message), m.Diff)
		}
		return strings.Join(all, "\n")
	}
	testkit.Transcript(t, "testdata/diffs.txt", transcriptOf)
}

// A long equal value is short in a difference. A transcript cannot check this, because an ellipsis matches any text.
func TestDiffIsShort(t *testing.T) {
	long := node{text: strings.Repeat("a", equalWidth+1)}
	for want, n := range map[string]node{"  …": long, "  […]": {brackets: "[]", children: []node{long}}} {
		var d difference
		d.compare("", "", n, n)
		testkit.Equal(t, "an equal value", strings.Join(d, "\n"), want)
	}
}

// The first mismatch of a list has its rows.
func TestLists(t *testing.T) {
	testkit.Transcript(t, "testdata/lists.txt", func(t *testing.T, in string) string {
		client, got, _ := strings.Cut(in, " against ")
		var events []result.Event
		for name := range strings.FieldsSeq(strings.TrimSuffix(got, "nothing")) {
			name, times, _ := strings.Cut(name, "*")
			n, _ := strconv.Atoi(times)
			for range max(1, n) {
				events = append(events, result.Event{Type: result.CommandStarted, CommandName: name, DatabaseName: "db"})
			}
		}
		var out strings.Builder
		for _, m := range New(nil).Events("e", yaml(t, client), events) {
			if m.List != nil {
				fmt.Fprintf(&out, "%s\n", m.List.Name)
				for _, r := range m.List.Rows {
					fmt.Fprintf(&out, "%t | %s | %s\n", r.Differs, r.Want, r.Got)
				}
			}
		}
		return out.String()
	})
}
