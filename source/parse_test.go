package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// show renders a value for comparison, with types told apart.
func show(v *Value) string {
	var parts []string
	for _, i := range v.Items {
		parts = append(parts, show(i))
	}
	for _, f := range v.Fields {
		parts = append(parts, f.Key+":"+show(f.Value))
	}
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return fmt.Sprint(v.Bool)
	case Int:
		return fmt.Sprint(v.Int)
	case Float:
		return v.floatText()
	case String:
		return fmt.Sprintf("%q", v.String)
	case Array:
		return "[" + strings.Join(parts, " ") + "]"
	default:
		return "{" + strings.Join(parts, " ") + "}"
	}
}

var yamlValues = []struct{ reason, in, want string }{
	{"core schema scalars", "[a, 1, -2, 1.5, true, null, ~, '1', \"2\"]", `["a" 1 -2 1.5 true null null "1" "2"]`},
	{"an empty value is null", "a:\nb: 1", `{a:null b:1}`},
	{"YAML 1.1 booleans are strings", "[yes, no, on, off, y]", `["yes" "no" "on" "off" "y"]`},
	{"timestamps stay strings", "[2024-01-01, 2024-01-01T00:00:00Z]", `["2024-01-01" "2024-01-01T00:00:00Z"]`},
	{"leading zeros are decimal", "[010, -07]", `[10 -7]`},
	{"octal and hexadecimal", "[0o17, 0x1F]", `[15 31]`},
	{"no underscores or sexagesimals", "[1_000, 1:30]", `["1_000" "1:30"]`},
	{"floats", "[1., .5, 1e3, 1.0, +1.5, -0.0]", `[1.0 0.5 1000.0 1.0 1.5 -0.0]`},
	{"64 bits keep every digit", "[9223372036854775807, -9223372036854775808]", `[9223372036854775807 -9223372036854775808]`},
	{"beyond 64 bits is a double", "[9223372036854775808]", `[9.223372036854776e+18]`},
	{"integer keys become strings", "{1: a, 0x10: b, true: c}", `{1:"a" 16:"b" true:"c"}`},
	{"anchors and aliases", "a: &x {b: 1}\nc: *x\nd: [*x]", `{a:{b:1} c:{b:1} d:[{b:1}]}`},
	{"an alias as a key", "a: &x k\n*x : 1", `{a:"k" k:1}`},
	{"an anchor may be set again", "[&a 1, *a, &a 2, *a]", `[1 1 2 2]`},
	{"merge: given keys win, wherever they stand", "x: &x {a: 1, b: 2}\ny: {a: 9, <<: *x}\nz: {<<: *x, b: 9}", `{x:{a:1 b:2} y:{a:9 b:2} z:{a:1 b:9}}`},
	{"merge: earlier of a list wins", "- &x {a: 1}\n- &y {a: 2, b: 3}\n- {<<: [*x, *y]}", `[{a:1} {a:2 b:3} {a:1 b:3}]`},
	{"merge of a merge", "- &x {a: 1}\n- &y {<<: *x, b: 2}\n- {<<: *y, c: 3}", `[{a:1} {a:1 b:2} {a:1 b:2 c:3}]`},
	{"a quoted << is a key", `{"<<": {a: 1}}`, `{<<:{a:1}}`},
	{"block scalars", "a: |\n  x\n  y\nb: >-\n  x\n  y", `{a:"x\ny\n" b:"x y"}`},
	{"multi-line flow", "a: {\n  b: [1,\n    2],\n  c: d\n}", `{a:{b:[1 2] c:"d"}}`},
	{"explicit tags", "[!!str 1, !!int \"2\", !!float 3, !!null '']", `["1" 2 3.0 null]`},
	{"document markers", "---\na: 1\n...\n", `{a:1}`},
	{"a byte order mark", "\ufeffa: 1", `{a:1}`},
	{"CRLF", "a: 1\r\nb: 2\r\n", `{a:1 b:2}`},
	{"dollar keys are ordinary", "{$$exists: true, $gt: 1}", `{$$exists:true $gt:1}`},
	{"a colon directly before a flow collection", "{ a: 'x:[', nested:[], d:{e: 1} } # y:[", `{a:"x:[" nested:[] d:{e:1}}`},
	{"odd characters in anchors", "- &aws:a/1 {k: '*aws:a/1'}\n- *aws:a/1 \n- a &b:c", `[{k:"*aws:a/1"} {k:"*aws:a/1"} "a &b:c"]`},
	{"anchors that differ in odd characters", "- &a:b 1\n- &a_b 2\n- *a:b\n- *a_b\n", `[1 2 1 2]`},
}

var jsonValues = []struct{ reason, in, want string }{
	{"all kinds", `{"a": [1, -2.5, "x", true, null, {}]}`, `{a:[1 -2.5 "x" true null {}]}`},
	{"escapes and surrogates", `"\u00e9\ud83d\ude00\/\t"`, "\"é😀/\\t\""},
	{"a fraction makes a double", `[1.0, 1e2, 1]`, `[1.0 100.0 1]`},
	{"negative zero keeps its sign", `[-0]`, `[-0.0]`},
	{"large integers", `[9223372036854775807, 9223372036854775808]`, `[9223372036854775807 9.223372036854776e+18]`},
	{"tabs between tokens", "{\t\"a\"\t:\t1\t}", `{a:1}`},
	{"empty collections", `[{}, []]`, `[{} []]`},
}

// eitherValues are of files whose name does not say what they are.
var eitherValues = []struct{ reason, in, want string }{
	{"JSON escapes that YAML lacks", `{"a": "\ud83d\ude00"}`, `{a:"😀"}`},
	{"YAML", "a: 1", `{a:1}`},
	{"flow YAML that is not JSON", "{a: 1}", `{a:1}`},
}

func TestValues(t *testing.T) {
	for name, table := range map[string][]struct{ reason, in, want string }{"YAML": yamlValues, "JSON": jsonValues, "either": eitherValues} {
		for _, tt := range table {
			parse := map[string]func(string, []byte) (*Value, error){"YAML": ParseYAML, "JSON": ParseJSON, "either": Parse}[name]
			v, err := parse("f", []byte(tt.in))
			testkit.Check(t, err)
			testkit.Equal(t, tt.reason, show(v), tt.want)
		}
	}
}

func TestPositions(t *testing.T) {
	for _, tt := range []struct {
		reason, in string
		parse      func(string, []byte) (*Value, error)
		path       []string
		key, value string // line:column
	}{
		{"YAML counts characters, not bytes", "{é: 1, b: 2}", ParseYAML, []string{"b"}, "1:8", "1:11"},
		{"JSON counts characters, not bytes", `{"é": 1, "b": 2}`, ParseJSON, []string{"b"}, "1:10", "1:15"},
		{"YAML blocks", "a:\n  b: 1\n", ParseYAML, []string{"a", "b"}, "2:3", "2:6"},
		{"JSON over lines", "{\n  \"a\": {\n    \"b\": 1\n  }\n}", ParseJSON, []string{"a", "b"}, "3:5", "3:10"},
		{"a scalar alias has its own place", "a: &x 1\nb: *x", ParseYAML, []string{"b"}, "2:1", "2:4"},
		{"what is inside an aliased collection stays", "a: &x {c: 1}\nb: *x", ParseYAML, []string{"b", "c"}, "1:8", "1:11"},
		{"merged fields stay", "a: &x {c: 1}\nb: {<<: *x}", ParseYAML, []string{"b", "c"}, "1:8", "1:11"},
		{"a mended line counts as written", "{a:[], b:[], c: 1}", ParseYAML, []string{"c"}, "1:14", "1:17"},
		{"the value after a mended colon", "{a:[], b:[1]}", ParseYAML, []string{"b"}, "1:8", "1:10"},
	} {
		v, err := tt.parse("f", []byte(tt.in))
		testkit.Check(t, err)
		var field *Field
		for _, k := range tt.path {
			field = v.Field(k)
			v = field.Value
		}
		testkit.Equal(t, tt.reason, []any{field.KeyPosition, field.Value.Position}, []string{"f:" + tt.key, "f:" + tt.value})
	}
}

var refusals = []struct {
	reason, in string
	parse      func(string, []byte) (*Value, error)
	want       Reason
	at         string
	words      string
}{
	{"an empty file", "", ParseYAML, Malformed, "1:1", "empty"},
	{"just comments", "# nothing\n", ParseYAML, Malformed, "1:1", "empty"},
	{"malformed YAML", "a: 1\nb: [1, 2\nc: 3\n", ParseYAML, Malformed, "", "malformed YAML"},
	{"malformed in its only line", "  {a: ]", ParseYAML, Malformed, "1:3", "malformed YAML"},
	{"malformed beyond the last line, as carriage returns count", "a: 1\nb:\r\r\r ]", ParseYAML, Malformed, "2:1", "did not find expected"},
	{"tabs as indentation", "a:\n\tb: 1\n", ParseYAML, Malformed, "", "malformed YAML"},
	{"duplicate keys in YAML", "a: 1\nb: 2\na: 3\n", ParseYAML, DuplicateKey, "3:1", `"a"; it is first given in line 1`},
	{"duplicate keys in a flow mapping", "x: {a: 1, a: 2}", ParseYAML, DuplicateKey, "1:11", `"a"`},
	{"integer and string key are one", "{1: a, \"1\": b}", ParseYAML, DuplicateKey, "1:8", `"1"`},
	{"<< twice", "- &x {a: 1}\n- {<<: *x, <<: *x}", ParseYAML, DuplicateKey, "2:12", "<<"},
	{"duplicate keys in JSON", `{"a": 1, "a": 2}`, ParseJSON, DuplicateKey, "1:10", `"a"`},
	{"duplicate keys by escapes", `{"a": 1, "\u0061": 2}`, ParseJSON, DuplicateKey, "1:10", `"a"`},
	{"an alias without an anchor", "a: 1\nb: *nope\n", ParseYAML, Malformed, "2:4", "*nope has no anchor"},
	{"an alias cycle", "a: &x [1, *x]", ParseYAML, Cycle, "1:11", "inside of what it stands for"},
	{"an alias cycle by merge", "a: &x {<<: *x}", ParseYAML, Cycle, "1:12", "inside"},
	{"two documents", "a: 1\n---\nb: 2\n", ParseYAML, Unsupported, "2:1", "second YAML document"},
	{"merging a scalar", "{<<: 1}", ParseYAML, Unsupported, "1:6", "only documents"},
	{"merging a list with a scalar", "{<<: [{a: 1}, 2]}", ParseYAML, Unsupported, "1:15", "only documents"},
	{"a key that is a list", "? [a]\n: 1\n", ParseYAML, Unsupported, "1:3", "a key must be"},
	{"NaN", "a: .nan", ParseYAML, Unsupported, "1:4", "$numberDouble"},
	{"infinity", "a: -.inf", ParseYAML, Unsupported, "1:4", "$numberDouble"},
	{"an overflow in YAML", "a: 1e999", ParseYAML, Unsupported, "1:4", "out of range"},
	{"an overflow in JSON", `[1e999]`, ParseJSON, Unsupported, "1:2", "out of range"},
	{"an unknown tag", "a: !!binary aGVsbG8=", ParseYAML, Unsupported, "1:4", "tag"},
	{"an application's tag", "a: !ruby/object {b: 1}", ParseYAML, Unsupported, "1:4", "tag"},
	{"a tag that the value belies", "a: !!int x", ParseYAML, Malformed, "1:4", "!!int"},
	{"bytes that are not UTF-8", "a: \xff", ParseYAML, NotUTF8, "1:4", "0xFF"},
	{"bytes that are not UTF-8 in JSON", "[\"é\xc3\"]", ParseJSON, NotUTF8, "1:4", "0xC3"},
	{"trailing comma", `{"a": 1,}`, ParseJSON, Malformed, "1:9", "malformed JSON"},
	{"an incomplete JSON document", `{"a": [1`, ParseJSON, Malformed, "1:9", "not complete"},
	{"an empty JSON file", ``, ParseJSON, Malformed, "1:1", "not complete"},
	{"more after a JSON document", "{}\n{}", ParseJSON, Malformed, "2:1", "more after the end"},
	{"garbage after a JSON document", "{} x", ParseJSON, Malformed, "1:4", "more after the end"},
	{"single quotes in JSON", `{'a': 1}`, ParseJSON, Malformed, "1:2", "malformed JSON"},
	{"NaN in JSON", `[NaN]`, ParseJSON, Malformed, "1:2", "malformed JSON"},
	{"a bomb of aliases", levels(10, "[x]", "["+tenAliases+"]"), ParseYAML, TooMany, "", "aliases"},
	{"a bomb of merges", levels(8, "{x: [y]}", "{<<: ["+tenAliases+"]}"), ParseYAML, TooMany, "", "aliases"},
	{"nested too deep in YAML", strings.Repeat("[", 300) + strings.Repeat("]", 300), ParseYAML, TooDeep, "", "levels"},
	{"nested too deep in JSON", strings.Repeat("[", 300) + strings.Repeat("]", 300), ParseJSON, TooDeep, "1:201", "levels"},
	{"nested too deep by aliases", levels(150, "[[x]]", "[[*]]"), ParseYAML, TooDeep, "", "levels"},
}

// levels makes a list of anchors, each but the first with as many aliases to
// the one before as it has verbs.
func levels(n int, first, each string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- &a0 %s\n", first)
	for l := 1; l < n; l++ {
		fmt.Fprintf(&b, "- &a%d %s\n", l, strings.ReplaceAll(each, "*", fmt.Sprintf("*a%d", l-1)))
	}
	return b.String()
}

const tenAliases = "*, *, *, *, *, *, *, *, *, *"

func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		v, err := tt.parse("f", []byte(tt.in))
		var e *Error
		if !errors.As(err, &e) || e.Reason != tt.want || !strings.Contains(e.Message, tt.words) {
			t.Errorf("%s: got %v, %v", tt.reason, v, err)
			continue
		}
		if tt.at != "" && e.Position.String() != "f:"+tt.at || e.Position.Line < 1 || e.Position.Column < 1 {
			t.Errorf("%s: at %s, want %s", tt.reason, e.Position, tt.at)
		}
	}
}

func TestLimits(t *testing.T) {
	small := Limits{Bytes: 10, Depth: 2, Nodes: 4}
	for _, tt := range []struct {
		reason, in string
		want       Reason // "" if accepted
	}{
		{"just in", "[1, 2, 3]", ""},
		{"one byte more", "[1, 2, 3]  ", TooLarge},
		{"one node more", "[1,2,3,4]", TooMany},
		{"one level more", "[[[1]]]", TooDeep},
	} {
		for name, parse := range map[string]func(string, []byte) (*Value, error){"YAML": small.ParseYAML, "JSON": small.ParseJSON, "either": small.Parse} {
			_, err := parse("f", []byte(tt.in))
			e := &Error{}
			if errors.As(err, &e); e.Reason != tt.want || (err != nil) != (tt.want != "") || err != nil && (e.Position.Line < 1 || e.Position.Column < 1) {
				t.Errorf("%s: %s: %v", name, tt.reason, err)
			}
		}
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		reason, a, b string
		path         string // of the difference; "-" if equal
	}{
		{"same", "{a: [1, x]}", "{a: [1, x]}", "-"},
		{"order of keys", "{a: 1, b: 2}", "{b: 2, a: 1}", "-"},
		{"one number in two forms", "[1]", "[1.0]", "-"},
		{"a number and almost it", "[9007199254740993]", "[9007199254740992.0]", "[0]"},
		{"a number and its text", "{a: 1}", "{a: '1'}", "a"},
		{"order of items", "[1, 2]", "[2, 1]", "[0]"},
		{"a longer list", "{a: [1]}", "{a: [1, 2]}", "a[1]"},
		{"a shorter list", "{a: [1, 2]}", "{a: [1]}", "a[1]"},
		{"a key more", "{a: {}}", "{a: {b: 1}}", "a.b"},
		{"a key less", "{a: {b: null}}", "{a: {}}", "a.b"},
		{"deep", "{a: [{b: true}]}", "{a: [{b: false}]}", "a[0].b"},
		{"fractions", "[1.5]", "[1]", "[0]"},
		{"the least integer and its double", "[-9223372036854775808]", "[-9223372036854775808.0]", "-"},
		{"the least integer and the least double beyond the largest", "[-9223372036854775808]", "[9223372036854775808.0]", "[0]"},
		{"the least integer and a double below it", "[-9223372036854775808]", "[-9223372036854777856.0]", "[0]"},
	} {
		a, _ := ParseYAML("a", []byte(tt.a))
		b, _ := ParseYAML("b", []byte(tt.b))
		path, values, differ := Difference(a, b)
		if differ != (tt.path != "-") || differ && path != tt.path || Equal(a, b) == differ {
			t.Errorf("%s: %q, %v", tt.reason, path, differ)
		}
		if differ && values[0] == nil && values[1] == nil {
			t.Errorf("%s: no values", tt.reason)
		}
	}
}
