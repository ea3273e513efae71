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

	"github.com/unified-test-runner/utr/internal/mutants"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
)

// The naive twin: the pseudo-code of "Evaluating Matches" on Go values, with
// exact numbers, and no messages. It shares nothing with the matcher. Expected
// values are Extended JSON decoded by package bson. A malformed operator is a
// panic of type naiveFault, which package specs keeps from the matcher, and
// naiveUnknown an operator that the twin does not have.
type (
	naiveFault   string
	naiveUnknown string
	missing      struct{} // a value that is not there
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
			v, there := got[e.Key]
			if !there {
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

// naiveCheck finds the faults below a value that may never be compared.
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
	panic(naiveUnknown(name))
}

// naiveNumber gives a number without rounding.
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

// judge asks both twins. ok is false for input that one of them cannot read.
func judge(expected, actual string, shape Shape) (clever, naively, ok bool) {
	var want, got bson.D
	var raw bson.Raw
	v, err := source.ParseJSON("fuzz", []byte(expected))
	if err != nil || bson.UnmarshalExtJSON([]byte(`{"v":`+expected+`}`), false, &want) != nil || len(want) != 1 ||
		bson.UnmarshalExtJSON([]byte(`{"v":`+actual+`}`), false, &raw) != nil || bson.Unmarshal(raw, &got) != nil || len(got) != 1 {
		return false, false, false
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case naiveFault, naiveUnknown:
			ok = false
		default:
			panic(r)
		}
	}()
	clever, ok = len(New(nil).Value("", v, raw.Lookup("v"), shape)) == 0, true
	naiveCheck(want[0].Value)
	naively = naive(want[0].Value, got[0].Value, shape == RootDocument, shape == RootDocuments, false)
	return clever, naively, ok
}

// foreign are the forms of Extended JSON that package bson reads and this
// project does not, or the reverse.
var foreign = []string{`\u`, `$regex`, `$options`, `$date`, `$type`, `$binary`, `$uuid`, `$code`, `$scope`, `$undefined`, `$dbPointer`,
	`$minKey`, `$maxKey`, `$oid`, `$number`, `$symbol`, `$timestamp`, `$ref`, `$regularExpression`}

// seeds gives the cases of testdata/values.txt in which something was seen.
func seeds(t testing.TB, f func(c testkit.Case, expected *source.Value, actual string, shape Shape)) {
	t.Helper()
	for _, c := range testkit.Cases(t, "testdata/values.txt") {
		expected, actual, _ := strings.Cut(c.In, " against ")
		if actual, shape := valueCase(actual); actual != "" && actual != "nothing" {
			f(c, yaml(t, expected), actual, shape)
		}
	}
}

func FuzzValue(f *testing.F) {
	seeds(f, func(_ testkit.Case, expected *source.Value, actual string, shape Shape) {
		f.Add(expected.JSON(), actual, uint8(shape))
	})
	f.Fuzz(func(t *testing.T, expected, actual string, shape uint8) {
		clever, naively, ok := judge(expected, actual, Shape(shape%4))
		if ok && clever != naively && json.Valid([]byte(expected)) &&
			!slices.ContainsFunc(foreign, func(s string) bool { return strings.Contains(strings.ReplaceAll(expected, "$$type", ""), s) }) {
			t.Errorf("%s against %s, shape %d: matcher says %v, twin says %v", expected, actual, shape%4, clever, naively)
		}
	})
}

// FuzzActual compares broken BSON with an expectation: no panic, and no match
// of what cannot be read.
func FuzzActual(f *testing.F) {
	seeds(f, func(_ testkit.Case, _ *source.Value, actual string, _ Shape) {
		f.Add([]byte(document(seen(f, actual).Value).Value))
	})
	v := yaml(f, `{v: {x: [1, {a: {$$type: string}}, {$code: f, $scope: {x: 1}}], y: {$regularExpression: {pattern: a, options: i}}}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := New(nil).Value("", v, document(data), RootDocument); bson.Raw(data).Validate() != nil && len(got) == 0 {
			t.Errorf("%x matches", data)
		}
	})
}

// A matcher that lets a changed expectation pass has a hole. What stands inside an
// operator that allows several values is not changed.
func TestMutantsFail(t *testing.T) {
	n := 0
	seeds(t, func(c testkit.Case, expected *source.Value, actual string, shape Shape) {
		if c.Want != matches || actual == `{}` {
			return // nothing was seen that a changed argument could differ from
		}
		all, _ := mutants.Of(yaml(t, `{tests: [{operations: [{object: c, expectResult: `+expected.JSON()+`}]}]}`))
		for _, m := range all {
			if strings.HasSuffix(m.Change, ".5") && len(expected.JSON()) > 15 {
				continue // the change is rounded away
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
