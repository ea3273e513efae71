package matchers

import (
	"testing"

	"github.com/unified-test-runner/utr/source"
)

// mutants calls f with every single change of a value: scalars changed, array
// elements dropped and added, keys renamed. What stands inside an operator
// that allows several values is left alone; inside the transparent ones the
// walk goes on.
func mutants(v *source.Value, f func(what string, mutant *source.Value)) {
	replace := func(change func(*source.Value)) *source.Value {
		c := *v
		c.Items = append([]*source.Value(nil), v.Items...)
		c.Fields = append([]source.Field(nil), v.Fields...)
		change(&c)
		return &c
	}
	switch v.Kind {
	case source.Bool:
		f("flipped", replace(func(c *source.Value) { c.Bool = !c.Bool }))
	case source.Int:
		f("n+1", replace(func(c *source.Value) { c.Int++ }))
		if half := float64(v.Int) + 0.5; half != float64(v.Int) { // not rounded away
			f("n+0.5", replace(func(c *source.Value) { c.Kind, c.Float = source.Float, half }))
		}
	case source.Float:
		f("n+0.5", replace(func(c *source.Value) { c.Float += 0.5 }))
	case source.String:
		f("string+x", replace(func(c *source.Value) { c.String += "x" }))
	case source.Null:
		f("null to false", replace(func(c *source.Value) { c.Kind = source.Bool }))
	case source.Array:
		for i, item := range v.Items {
			f("dropped element", replace(func(c *source.Value) { c.Items = append(c.Items[:i:i], c.Items[i+1:]...) }))
			mutants(item, func(what string, m *source.Value) {
				f(what, replace(func(c *source.Value) { c.Items[i] = m }))
			})
		}
		f("added element", replace(func(c *source.Value) { c.Items = append(c.Items, &source.Value{Kind: source.Int, Int: 1}) }))
	case source.Document:
		name, _ := operator(v)
		for i, field := range v.Fields {
			if name == "" {
				absent, _ := operator(field.Value)
				if absent != "$$unsetOrMatches" && !(absent == "$$exists" && !field.Value.Get(absent).Bool) {
					f("renamed key", replace(func(c *source.Value) { c.Fields[i].Key += "x" }))
				}
			}
			switch name {
			case "$$lte", "$$type", "$$matchesEntity", "$$sessionLsid":
				continue // several arguments hold of one value, or the argument is a name
			}
			mutants(field.Value, func(what string, m *source.Value) {
				f(what, replace(func(c *source.Value) { c.Fields[i].Value = m }))
			})
		}
	}
}

// A matcher that lets a changed expectation pass has a hole.
func TestMutantsFail(t *testing.T) {
	n := 0
	for _, row := range valueRows {
		if row.wrong != "" {
			continue
		}
		actual := seen(t, row.actual)
		if actual.Type == 0 {
			continue // nothing was seen that a changed argument could differ from
		}
		mutants(yaml(t, row.expected), func(what string, mutant *source.Value) {
			n++
			if len(New(testEntities{}).Value("", mutant, actual, row.shape)) == 0 && !harmless(row, what, mutant) {
				t.Errorf("%s: %s of %s passes as %s against %s", row.reason, what, row.expected, text(mutant), row.actual)
			}
		})
	}
	if n < 120 {
		t.Errorf("only %d mutants", n)
	}
	t.Logf("%d mutants", n)
}

// harmless are the rows in which a change is none.
func harmless(row valueRow, what string, mutant *source.Value) bool {
	switch {
	case row.actual == `{}` || row.reason == "unset": // the argument of an operator that nothing meets
		return true
	case row.reason == "exists false inside":
		return true
	case what == "renamed key" && row.expected == `{}`:
		return true
	}
	return false
}
