package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// show renders a value, with its types, for comparison.
func show(v *Value) string {
	var parts []string
	for _, i := range v.Items {
		parts = append(parts, show(i))
	}
	for _, f := range v.Fields {
		parts = append(parts, f.Key+":"+show(f.Value))
	}
	switch v.Kind {
	case String:
		return fmt.Sprintf("%q", v.String)
	case Array:
		return "[" + strings.Join(parts, " ") + "]"
	case Document:
		return "{" + strings.Join(parts, " ") + "}"
	}
	return v.JSON()
}

// readCase reads a case of testdata/read.txt: the format, which is yaml, json or
// either, and the file, with symbols for line breaks and invisible characters.
func readCase(in string) (parse func(string, []byte) (*Value, error), file []byte) {
	format, text, _ := strings.Cut(in, " ")
	text = strings.NewReplacer("⏎", "\n", "⇥", "\t", "␍", "\r", "<BOM>", "\ufeff").Replace(text)
	return map[string]func(string, []byte) (*Value, error){"yaml": ParseYAML, "json": ParseJSON, "either": Parse}[format],
		[]byte(text)
}

func Equal(a, b *Value) bool {
	_, _, differ := Difference(a, b)
	return !differ
}

func TestRead(t *testing.T) {
	testkit.PlayCases(t, "testdata/read.txt", func(t *testing.T, in string) string {
		parse, file := readCase(in)
		v, err := parse("f", file)
		if err == nil {
			return show(v)
		}
		_ = checkError(t, err)
		return "refused at " + strings.TrimPrefix(err.Error(), "f:")
	})
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
		{"the line breaks of YAML 1.1 are characters", "{\"\u0085\u2028\": 1, b: 2}", ParseYAML, []string{"b"},
			"1:11", "1:14"},
		{"quotes can have any character but control characters", "{'\uffff\x7f': 1, b: 2}", ParseYAML, []string{"b"},
			"1:11", "1:14"},
		{"YAML blocks", "a:\n  b: 1\n", ParseYAML, []string{"a", "b"}, "2:3", "2:6"},
		{"JSON over lines", "{\n  \"a\": {\n    \"b\": 1\n  }\n}", ParseJSON, []string{"a", "b"}, "3:5", "3:10"},
		{"a scalar alias has its own position", "a: &x 1\nb: *x", ParseYAML, []string{"b"}, "2:1", "2:4"},
		{"values in an aliased collection keep their positions", "a: &x {c: 1}\nb: *x", ParseYAML, []string{"b", "c"},
			"1:8", "1:11"},
		{"merged fields keep their positions", "a: &x {c: 1}\nb: {<<: *x}", ParseYAML, []string{"b", "c"}, "1:8", "1:11"},
	} {
		v, err := tt.parse("f", []byte(tt.in))
		testkit.Check(t, err)
		var field *Field
		for _, k := range tt.path {
			field = v.Field(k)
			v = field.Value
		}
		testkit.Equal(t, tt.reason, fmt.Sprint(field.KeyPosition, field.Value.Position), "f:"+tt.key+" f:"+tt.value)
	}
}

// refusals are those of files that testdata/read.txt cannot contain.
var refusals = []struct {
	reason, in string
	parse      func(string, []byte) (*Value, error)
	at         string
	message    string
}{
	{"an empty file", "", ParseYAML, "1:1", "empty"},
	{"bytes that are not UTF-8", "a: \xff", ParseYAML, "1:4", "0xFF"},
	{"bytes that are not UTF-8 in JSON", "[\"é\xc3\"]", ParseJSON, "1:4", "0xC3"},
	{"an empty JSON file", ``, ParseJSON, "1:1", "the file is empty"},
	{"a control character", "a: '\x01'", ParseYAML, "1:5", "must be escaped"},
	{"a character that is not printable, without quotes", "a: b\uffff", ParseYAML, "1:5", "must be escaped"},
	{"a character that is not printable, in a literal scalar", "a: |\n  b\x7f", ParseYAML, "2:4", "must be escaped"},
	{"a bomb of aliases", levels(10, "[x]", "["+tenAliases+"]"), ParseYAML, "", "aliases"},
	{"a bomb of merges", levels(8, "{x: [y]}", "{<<: ["+tenAliases+"]}"), ParseYAML, "", "aliases"},
	{"nested too deep in YAML", strings.Repeat("[", 300) + strings.Repeat("]", 300), ParseYAML, "", "levels"},
	{"nested too deep by anchors", strings.Repeat("&a\n", 300), ParseYAML, "", "levels"},
	{"nested too deep in JSON", strings.Repeat("[", 300) + strings.Repeat("]", 300), ParseJSON, "1:201", "levels"},
	{"nested too deep by aliases", levels(150, "[[x]]", "[[*]]"), ParseYAML, "", "levels"},
}

// levels returns a list of anchors. Each * in the template is an alias of the
// previous anchor.
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
		_, err := tt.parse("f", []byte(tt.in))
		e := checkError(t, err)
		if !strings.Contains(e.Message, tt.message) || tt.at != "" && e.Position.String() != "f:"+tt.at {
			t.Errorf("%s: got %v, want %s at %s", tt.reason, e, tt.message, tt.at)
		}
	}
}

func TestLimits(t *testing.T) {
	small := limits{bytes: 10, depth: 2, nodes: 4}
	for _, tt := range []struct {
		reason, in string
		want       string // in the message, "" if accepted
	}{
		{"within all limits", "[1, 2, 3]", ""},
		{"one byte too many", "[1, 2, 3]  ", "larger"},
		{"one node too many", "[1,2,3,4]", "values"},
		{"one level too deep", "[[[1]]]", "nested"},
	} {
		for name, nodes := range map[string]func(limits, string, []byte) (*node, error){"YAML": yamlNodes,
			"JSON": jsonNodes} {
			_, err := small.parse("f", []byte(tt.in), nodes)
			e := &Error{}
			if errors.As(err, &e); !strings.Contains(e.Message, tt.want) || (err != nil) != (tt.want != "") || err != nil &&
				(e.Position.Line < 1 || e.Position.Column < 1) {
				t.Errorf("%s: %s: %v", name, tt.reason, err)
			}
		}
	}
}

// Comparing equal documents takes a time proportional to their size, however deeply they are nested.
func TestEqualDeep(t *testing.T) {
	v := &Value{}
	for range 60 {
		v = &Value{Kind: Document, Fields: []Field{{Key: "a", Value: v}}}
	}
	_, _, differ := Difference(v, v)
	testkit.Equal(t, "differ", differ, false)
}

func TestEqual(t *testing.T) {
	testkit.PlayCases(t, "testdata/equal.txt", func(t *testing.T, in string) string {
		one, other, _ := strings.Cut(in, " ~ ")
		a, _ := ParseYAML("a", []byte(one))
		b, _ := ParseYAML("b", []byte(other))
		path, values, differ := Difference(a, b)
		if differ && values[0] == nil && values[1] == nil {
			t.Error("two missing values differ")
		}
		return testkit.Either(differ, "differ at "+path, "equal")
	})
}
