package matchers

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/source"
)

// The naive twin: the pseudo-code of "Evaluating Matches" on Go values, with
// exact numbers, and no messages. It shares nothing with the matcher. Expected
// values are Extended JSON decoded by package bson. A fault is a panic of type
// naiveFault, and naiveUnknown an operator that the twin does not have.
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
	case bson.CodeWithScope:
		a, ok := actual.(bson.CodeWithScope)
		return ok && want.Code == a.Code && reflect.DeepEqual(plain(want.Scope), plain(a.Scope))
	case bson.Regex:
		a, ok := actual.(bson.Regex)
		sorted := func(s string) string { b := []byte(s); slices.Sort(b); return string(b) }
		return ok && want.Pattern == a.Pattern && sorted(want.Options) == sorted(a.Options)
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
		if _, decimal := argument.(bson.Decimal128); decimal {
			panic(naiveUnknown(name))
		}
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
	if _, known := operators[name]; known {
		panic(naiveUnknown(name))
	}
	panic(naiveFault(name))
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

// plain turns documents into maps, so that the order of keys is gone.
func plain(v any) any {
	switch v := v.(type) {
	case bson.D:
		m := map[string]any{}
		for _, e := range v {
			m[e.Key] = plain(e.Value)
		}
		return m
	case bson.A:
		a := []any{}
		for _, item := range v {
			a = append(a, plain(item))
		}
		return a
	default:
		return fmt.Sprintf("%T %v", v, v)
	}
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
		case nil, naiveFault:
		case naiveUnknown:
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

func seeds(f func(row valueRow, expected string)) {
	for _, row := range valueRows {
		if v, err := source.ParseYAML("seed", []byte(row.expected)); err == nil && row.actual != "" {
			f(row, text(v))
		}
	}
}

func FuzzValue(f *testing.F) {
	seeds(func(row valueRow, expected string) { f.Add(expected, row.actual, uint8(row.shape)) })
	f.Fuzz(func(t *testing.T, expected, actual string, shape uint8) {
		clever, naively, ok := judge(expected, actual, Shape(shape%3))
		if ok && clever != naively && json.Valid([]byte(expected)) &&
			!slices.ContainsFunc(foreign, func(s string) bool { return strings.Contains(strings.ReplaceAll(expected, "$$type", ""), s) }) {
			t.Errorf("%s against %s, shape %d: matcher says %v, twin says %v", expected, actual, shape%3, clever, naively)
		}
	})
}

// The twins agree on the table, wrappers included.
func TestNaiveTwin(t *testing.T) {
	compared := 0
	seeds(func(row valueRow, expected string) {
		if strings.Contains(expected, "$regex") || strings.Contains(expected, "$scope") {
			return // package bson reads them in another way
		}
		clever, naively, ok := judge(expected, row.actual, row.shape)
		if ok && clever != naively {
			t.Errorf("%s: %s against %s, shape %d: matcher says %v, twin says %v", row.reason, expected, row.actual, row.shape, clever, naively)
		}
		if ok {
			compared++
		}
	})
	if compared < 100 {
		t.Errorf("only %d rows compared", compared)
	}
}

// FuzzActual compares broken BSON with an expectation: no panic, and no match
// of what cannot be read.
func FuzzActual(f *testing.F) {
	seeds(func(row valueRow, _ string) { f.Add([]byte(document(seen(f, row.actual).Value).Value)) })
	v := yaml(f, `{v: {x: [1, {a: {$$type: string}}, {$code: f, $scope: {x: 1}}], y: {$regularExpression: {pattern: a, options: i}}}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := New(nil).Value("", v, document(data), RootDocument); bson.Raw(data).Validate() != nil && len(got) == 0 {
			t.Errorf("%x matches", data)
		}
	})
}

// mutants calls f with every single change of a value: scalars changed, array
// elements dropped and added, keys renamed. What stands inside an operator
// that allows several values is left alone.
func mutants(v *source.Value, f func(what string, mutant *source.Value)) {
	change := func(what string, change func(*source.Value)) {
		c := *v
		c.Items, c.Fields = slices.Clone(v.Items), slices.Clone(v.Fields)
		change(&c)
		f(what, &c)
	}
	switch v.Kind {
	case source.Bool:
		change("flipped", func(c *source.Value) { c.Bool = !c.Bool })
	case source.Int:
		change("n+1", func(c *source.Value) { c.Int++ })
		if half := float64(v.Int) + 0.5; half != float64(v.Int) { // not rounded away
			change("n+0.5", func(c *source.Value) { c.Kind, c.Float = source.Float, half })
		}
	case source.Float:
		change("n+0.5", func(c *source.Value) { c.Float += 0.5 })
	case source.String:
		change("string+x", func(c *source.Value) { c.String += "x" })
	case source.Null:
		change("null to false", func(c *source.Value) { c.Kind = source.Bool })
	case source.Array:
		for i, item := range v.Items {
			change("dropped element", func(c *source.Value) { c.Items = slices.Delete(c.Items, i, i+1) })
			mutants(item, func(what string, m *source.Value) { change(what, func(c *source.Value) { c.Items[i] = m }) })
		}
		change("added element", func(c *source.Value) { c.Items = append(c.Items, &source.Value{Kind: source.Int, Int: 1}) })
	case source.Document:
		name, _ := operator(v)
		for i, field := range v.Fields {
			absent, _ := operator(field.Value)
			if name == "" && absent != "$$unsetOrMatches" && !(absent == "$$exists" && !field.Value.Get(absent).Bool) {
				change("renamed key", func(c *source.Value) { c.Fields[i].Key += "x" })
			}
			if !slices.Contains([]string{"$$lte", "$$type", "$$matchesEntity", "$$sessionLsid"}, name) {
				mutants(field.Value, func(what string, m *source.Value) { change(what, func(c *source.Value) { c.Fields[i].Value = m }) })
			}
		}
	}
}

// A matcher that lets a changed expectation pass has a hole.
func TestMutantsFail(t *testing.T) {
	n := 0
	for _, row := range valueRows {
		if row.wrong != "" || row.actual == "" || row.actual == `{}` {
			continue // nothing was seen that a changed argument could differ from
		}
		mutants(yaml(t, row.expected), func(what string, mutant *source.Value) {
			n++
			if len(New(testEntities{}).Value("", mutant, seen(t, row.actual), row.shape)) == 0 {
				t.Errorf("%s: %s of %s passes as %s against %s", row.reason, what, row.expected, text(mutant), row.actual)
			}
		})
	}
	if n < 120 {
		t.Errorf("only %d mutants", n)
	}
}
