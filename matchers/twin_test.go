package matchers

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/audit"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// The naive matcher implements the pseudo-code of "Evaluating Matches" on Go
// values with exact numbers, independently of the matcher. It panics with
// naiveFault for operators that it does not implement, and for malformed operators. Package specs rejects the latter.
type (
	naiveFault string
	missing    struct{} // a missing value
)

func naive(expected, actual any, root, rootItems, element bool) bool {
	switch want := expected.(type) {
	case bson.D:
		if len(want) == 1 && strings.HasPrefix(want[0].Key, "$$") {
			return naiveOperator(want[0].Key, want[0].Value, actual, root, rootItems, element)
		}
		naiveCheck(want)
		a, ok := actual.(bson.D)
		got := map[string]any{}
		for _, e := range a {
			if _, twice := got[e.Key]; twice {
				return false
			}
			got[e.Key] = e.Value
		}
		for _, e := range want {
			v, exists := got[e.Key]
			if !exists {
				v = missing{}
			}
			delete(got, e.Key)
			ok = naive(e.Value, v, false, false, false) && ok
		}
		return ok && (root || len(got) == 0)
	case bson.A:
		naiveCheck(want)
		a, ok := actual.(bson.A)
		if !ok || len(a) != len(want) {
			return false
		}
		for i := range want {
			ok = naive(want[i], a[i], rootItems, false, true) && ok
		}
		return ok
	}
	if x, nan, is := naiveNumber(expected); is {
		y, otherNaN, other := naiveNumber(actual)
		return other && nan == otherNaN && (nan || x.Cmp(y) == 0)
	}
	return fmt.Sprintf("%T %v", expected, expected) == fmt.Sprintf("%T %v", actual, actual)
}

// naiveCheck checks a value for malformed operators.
func naiveCheck(v any) {
	switch v := v.(type) {
	case bson.D:
		if len(v) == 1 && strings.HasPrefix(v[0].Key, "$$") {
			naiveOperator(v[0].Key, v[0].Value, missing{}, false, false, false)
			return
		}
		seen := map[string]bool{}
		for _, e := range v {
			if seen[e.Key] {
				panic(naiveFault("duplicate"))
			}
			seen[e.Key] = true
			naiveCheck(e.Value)
		}
	case bson.A:
		for _, item := range v {
			if d, ok := item.(bson.D); ok && len(d) == 1 && (d[0].Key == "$$exists" || d[0].Key == "$$unsetOrMatches") {
				panic(naiveFault("element"))
			}
			naiveCheck(item)
		}
	}
}

func naiveOperator(name string, argument, actual any, root, rootItems, element bool) bool {
	_, absent := actual.(missing)
	switch name {
	case "$$exists":
		want, ok := argument.(bool)
		if !ok || element {
			panic(naiveFault(name))
		}
		return want != absent
	case "$$unsetOrMatches":
		if element {
			panic(naiveFault(name))
		}
		naiveCheck(argument)
		return absent || naive(argument, actual, root, rootItems, false)
	case "$$lte":
		y, yNaN, ok := naiveNumber(argument)
		if !ok {
			panic(naiveFault(name))
		}
		x, xNaN, ok := naiveNumber(actual)
		return ok && !xNaN && !yNaN && x.Cmp(y) <= 0
	case "$$matchAsRoot":
		if _, ok := argument.(bson.D); !ok {
			panic(naiveFault(name))
		}
		naiveCheck(argument)
		_, ok := actual.(bson.D)
		return ok && naive(argument, actual, true, false, false)
	}
	panic(naiveFault(name))
}

// naiveNumber returns a number without rounding.
func naiveNumber(v any) (x *big.Float, nan, ok bool) {
	x = new(big.Float).SetPrec(64)
	switch v := v.(type) {
	case int32:
		return x.SetInt64(int64(v)), false, true
	case int64:
		return x.SetInt64(v), false, true
	case float64:
		if math.IsNaN(v) {
			return nil, true, true
		}
		return x.SetFloat64(v), false, true
	}
	return nil, false, false
}

// judge runs both matchers. ok is false for input that one of them rejects.
func judge(expected, actual string, shape operations.Shape) (got, want, ok bool) {
	var x, a bson.D
	var raw bson.Raw
	v, err := source.ParseJSON("fuzz", []byte(expected))
	if err != nil || bson.UnmarshalExtJSON([]byte(`{"v":`+expected+`}`), false, &x) != nil || len(x) != 1 ||
		bson.UnmarshalExtJSON([]byte(`{"v":`+actual+`}`), false, &raw) != nil || bson.Unmarshal(raw, &a) != nil ||
		len(a) != 1 {
		return false, false, false
	}
	defer func() {
		if r := recover(); r != nil {
			_ = r.(naiveFault)
			ok = false
		}
	}()
	got, ok = len(New(nil).Value("", v, raw.Lookup("v"), shape)) == 0, true
	naiveCheck(x[0].Value)
	return got, naive(x[0].Value, a[0].Value, shape == operations.RootDocument, shape == operations.RootDocuments, false), ok
}

// foreign contains forms of Extended JSON that package bson accepts and this project rejects, or vice versa.
var foreign = []string{`\u`, `$regex`, `$options`, `$date`, `$type`, `$binary`, `$uuid`, `$code`, `$scope`,
	`$undefined`, `$dbPointer`,
	`$minKey`, `$maxKey`, `$oid`, `$number`, `$symbol`, `$timestamp`, `$ref`, `$regularExpression`}

// seeds calls f for the cases of testdata/values.txt with an actual value.
func seeds(t testing.TB, f func(c testkit.Case, expected *source.Value, actual string, shape operations.Shape)) {
	t.Helper()
	for _, c := range testkit.Cases(t, "testdata/values.txt") {
		expected, actual, _ := strings.Cut(c.In, " against ")
		if actual, shape := valueCase(actual); actual != "" && actual != "nothing" {
			f(c, yaml(t, expected), actual, shape)
		}
	}
}

func FuzzValue(f *testing.F) {
	seeds(f, func(_ testkit.Case, expected *source.Value, actual string, shape operations.Shape) {
		f.Add(expected.JSON(), actual, uint8(shape))
	})
	f.Fuzz(func(t *testing.T, expected, actual string, shape uint8) {
		got, want, ok := judge(expected, actual, operations.Shape(shape%4))
		if ok && got != want && json.Valid([]byte(expected)) &&
			!slices.ContainsFunc(foreign, func(s string) bool {
				return strings.Contains(strings.ReplaceAll(expected, "$$type",
					""), s)
			}) {
			t.Errorf("%s against %s, shape %d: the result is %v, want %v", expected, actual, shape%4, got, want)
		}
	})
}

// Malformed BSON neither matches nor causes a panic.
func FuzzActual(f *testing.F) {
	seeds(f, func(_ testkit.Case, _ *source.Value, actual string, _ operations.Shape) {
		f.Add([]byte(document(seen(f, actual).Value).Value))
	})
	v := yaml(f, `{v: {x: [1, {a: {$$type: string}}, {$code: f, $scope: {x: 1}}], y: {$regularExpression: {pattern: a, options: i}}}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := New(nil).Value("", v, document(data), operations.RootDocument); bson.Raw(data).Validate() != nil && len(got) == 0 {
			t.Errorf("%x matches", data)
		}
	})
}

// Changed expectations do not match. Arguments of operators that accept several
// values are not changed.
func TestMutantsFail(t *testing.T) {
	n := 0
	seeds(t, func(c testkit.Case, expected *source.Value, actual string, shape operations.Shape) {
		if c.Want != matches || actual == `{}` {
			return // too little to differ from a changed argument
		}
		all, _ := audit.Mutants(yaml(t, `{tests: [{operations: [{object: c, expectResult: `+expected.JSON()+`}]}]}`))
		for _, m := range all {
			if strings.HasSuffix(m.Change, ".5") && len(expected.JSON()) > 15 {
				continue // the change is lost in rounding
			}
			n++
			mutant := m.Root.Get("tests").Items[0].Get("operations").Items[0].Get("expectResult")
			if len(New(testEntities{}).Value("", mutant, seen(t, actual), shape)) == 0 {
				t.Errorf("%s: %s: %s passes", c.In, m.Path, m.Change)
			}
		}
	})
	if n < 70 {
		t.Errorf("only %d mutants", n)
	}
}
