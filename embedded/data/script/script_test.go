package script

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

var functions = []struct {
	reason, source string
	args           []any
	want           any
}{
	{"the reduce function of the official suite", `function sum(key, values) { return values.reduce((acc, x) => acc + x); }`, []any{int32(0), bson.A{int32(1), int32(2)}}, 3.0},
	{"an initial value", `function(k, v) { return v.reduce((a, x) => a + x, 10) }`, []any{nil, bson.A{int32(1)}}, 11.0},
	{"strings are joined", `(a, b) => a + "-" + b`, []any{"x", int32(1)}, "x-1"},
	{"local variables and forEach", `function(k, v) { var n = 0; v.forEach(function(x) { n += x.n; }); return {n: n}; }`, []any{nil, bson.A{bson.D{{Key: "n", Value: int32(2)}}, bson.D{{Key: "n", Value: int32(3)}}}}, bson.D{{Key: "n", Value: 5.0}}},
	{"conditions", `x => { if (x > 1 && x !== 3) { return "a" } else return "b" }`, []any{int32(2)}, "a"},
	{"the conditional operator", `x => x ? 1 : 2`, []any{int32(0)}, 2.0},
	{"precedence", `() => 1 + 2 * 3 - -4`, nil, 11.0},
	{"a number is not its text", `() => 1 === "1"`, nil, false},
	{"nothing equals null loosely", `x => x == null`, nil, true},
	{"map, filter and length", `v => v.map(x => x * 2).filter(x => x > 2).length`, []any{bson.A{int32(1), int32(2)}}, 1.0},
	{"comments", "/* a */ x => x // b", []any{"y"}, "y"},
	{"this", `function() { return this.x + 1 }`, nil, 42.0},
}

var this42 = bson.D{{Key: "x", Value: int32(41)}}

func TestFunctions(t *testing.T) {
	for _, row := range functions {
		f, err := Parse(row.source)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		got, err := f.Call(this42, nil, row.args...)
		if err != nil || value.Key(got) != value.Key(row.want) {
			t.Errorf("%s: got %v, %v", row.reason, got, err)
		}
	}
}

func TestBuiltin(t *testing.T) {
	f, err := Parse(`function inc() { return emit(0, this.x + 1) }`)
	testkit.Check(t, err)
	var got []any
	emit := Builtin(func(args []any) (any, error) { got = args; return nil, nil })
	_, err = f.Call(this42, map[string]any{"emit": emit})
	testkit.Check(t, err)
	if len(got) != 2 || got[0] != 0.0 || got[1] != 42.0 {
		t.Errorf("emitted %v", got)
	}
}

func TestRefusals(t *testing.T) {
	for reason, source := range map[string]string{
		"a loop":                 `function() { for (;;) {} }`,
		"not a function":         `1`,
		"an exception":           `function() { throw 1 }`,
		"a constructor":          `() => new Date()`,
		"a regular expression":   `x => /a/`,
		"a word of the language": `() => class`,
		"no end":                 `function() { return 1`,
		"a template":             "x => `a`",
	} {
		if _, err := Parse(source); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	for reason, source := range map[string]string{
		"an unknown variable": `() => nosuch`,
		"an unknown method":   `() => [].sort()`,
		"a call of a number":  `() => (1)()`,
		"a field of nothing":  `x => x.y.z`,
	} {
		f, err := Parse(source)
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		if v, err := f.Call(nil, nil); err == nil {
			t.Errorf("%s: gave %v", reason, v)
		}
	}
}

func TestEndlessRecursionEnds(t *testing.T) {
	f, err := Parse(`function() { var f = null; f = () => f(); return f() }`)
	testkit.Check(t, err)
	if _, err := f.Call(nil, nil); !errors.Is(err, ErrBudget) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, row := range functions {
		f.Add(row.source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if fn, err := Parse(source); err == nil {
			_, _ = fn.Call(this42, nil, bson.A{int32(1), "x"}, bson.D{})
		}
	})
}
