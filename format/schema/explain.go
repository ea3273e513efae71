package schema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
)

// A walk compares a file with the annotated source, and collects problems.
type walk struct {
	declared int // minor version that the file declares, or undeclared
	granted  int // the later of declared and what an enclosing key or value requires
	path     path
	problems *[]Problem
}

// undeclared is the declared version when computing the lowest version.
const undeclared = -1

func explain(w walk, root *source.Value) []Problem {
	w.problems = new([]Problem)
	suite.explain(w, root)
	slices.SortStableFunc(*w.problems, func(a, b Problem) int { return a.Position.Compare(b.Position) })
	return *w.problems
}

func (w walk) at(p source.Position, format string, args ...any) {
	*w.problems = append(*w.problems, Problem{Position: p, Path: w.path.String(), Message: fmt.Sprintf(format, args...)})
}

func (w walk) wrong(v *source.Value, expected string, hint ...string) {
	w.at(v.Position, "must be %s, not %s%s", expected, describe(v), strings.Join(hint, ""))
}

// since reports a key or value that requires a later version than the file declares, unless an enclosing
// one requires it, too. The returned walk explains what is inside at the later version.
func (w walk) since(from int, p source.Position, what string) walk {
	if from <= w.granted {
		return w
	}
	declares := ""
	if w.declared != undeclared {
		declares = "; this file declares " + versionString(w.declared)
	}
	w.at(p, "%s requires schemaVersion %s%s", what, versionString(from), declares)
	(*w.problems)[len(*w.problems)-1].needs = from
	w.granted = from
	return w
}

// below descends a step. Walks of siblings share the memory of their paths, because one ends before the next begins.
func (w walk) below(s step) walk { w.path = append(w.path, s); return w }

// deep reports whether the walk checks what the JSON schemas do not (see [Nested]).
func (w walk) deep() bool { return w.granted == unlisted }

func (anything) explain(walk, *source.Value) {}

func (f forbidden) explain(w walk, v *source.Value) {
	w.at(v.Position, "is not allowed here: %s", string(f))
}

func (s scalar) explain(w walk, v *source.Value) {
	if v.Kind != source.Kind(s) && (s != integer || !isInteger(v)) {
		w.wrong(v, withArticle(source.Kind(s)), s.hint(v))
	}
}

// isInteger reports whether JSON Schema considers a value an integer: a number without a fraction.
func isInteger(v *source.Value) bool {
	return v.Kind == source.Int || v.Kind == source.Float && v.Float == math.Trunc(v.Float) && !math.IsInf(v.Float, 0)
}

// hint returns how to quote the value in YAML to get this type, or "".
func (s scalar) hint(v *source.Value) string {
	_, err := strconv.ParseInt(v.String, 10, 64)
	switch {
	case s == text && (v.Kind == source.Int || v.Kind == source.Float || v.Kind == source.Bool):
		return " (in quotes it would be a string)"
	case s == boolean && (v.String == "true" || v.String == "false"), s == integer && err == nil:
		return " (without quotes it would be " + withArticle(source.Kind(s)) + ")"
	}
	return ""
}

func (a always) explain(w walk, v *source.Value) {
	switch {
	case v.Kind != source.Bool:
		w.wrong(v, "true", boolean.hint(v))
	case !v.Bool:
		w.wrong(v, "true", ": "+string(a))
	}
}

func (version) explain(w walk, v *source.Value) {
	if v.Kind != source.String || !isVersion.MatchString(v.String) {
		w.wrong(v, `a version of two or three numbers, such as "4.2" or "4.2.1"`, text.hint(v))
	}
}

func (r reference) explain(w walk, v *source.Value) { format[string(r)].explain(w, v) }

func (e enumeration) explain(w walk, v *source.Value) {
	if v.Kind != source.String {
		text.explain(w, v)
		return
	}
	i := slices.IndexFunc(e, func(t term) bool { return t.value == v.String })
	hint := didYouMean(v.String, e.upTo(unlisted))
	switch {
	case i >= 0 && e[i].from == unlisted && !w.deep():
		w.at(v.Position, "the text of the format lists %s, but no JSON schema up to %s does; it is only possible in an "+
			"entity of the operation createEntities", strconv.Quote(v.String), Newest)
	case i >= 0:
		w.since(e[i].from, v.Position, strconv.Quote(v.String))
	case hint != "":
		w.at(v.Position, "unknown value %s%s", strconv.Quote(shorten(v.String)), hint)
	default:
		w.wrong(v, "one of "+quoteAll(e.upTo(w.granted)))
	}
}

func (l list) explain(w walk, v *source.Value) {
	if v.Kind != source.Array {
		w.wrong(v, "an array")
		return
	}
	if len(v.Items) < l.least {
		w.at(v.Position, "must have at least one element")
	}
	for i, item := range v.Items {
		l.of.explain(w.below(step{index: i}), item)
	}
}

func (e either) explain(w walk, v *source.Value) {
	var nouns []string
	for _, a := range e {
		noun := withArticle(kindOf(a.shape))
		if kindOf(a.shape) == v.Kind {
			a.shape.explain(w.since(a.from, v.Position, noun+" here"), v)
			return
		}
		if a.from <= w.granted {
			nouns = append(nouns, noun)
		}
	}
	w.wrong(v, strings.Join(nouns, " or "))
}

func (o object) explain(w walk, v *source.Value) {
	if v.Kind != source.Document {
		w.wrong(v, "an object")
		return
	}
	if o.deep && !w.deep() {
		return
	}
	o.explainCount(w, v)
	for _, f := range o.fields {
		if f.mandatory && v.Get(f.name) == nil {
			w.at(v.Position, "%s must have the key %s", o.subject(), strconv.Quote(f.name))
		}
	}
	for _, pair := range o.apart {
		a, b := v.Field(pair[0]), v.Field(pair[1])
		if a != nil && b != nil {
			later := a
			if b.KeyPosition.Compare(a.KeyPosition) > 0 {
				later = b
			}
			w.at(later.KeyPosition, "%s and %s are mutually exclusive", strconv.Quote(a.Key), strconv.Quote(b.Key))
		}
	}
	for i := range v.Fields {
		o.explainField(w, v, &v.Fields[i])
	}
}

func (o object) explainCount(w walk, v *source.Value) {
	switch n := len(v.Fields); {
	case n < o.least && o.most == 1:
		w.at(v.Position, "%s must have exactly one key, but has none%s", o.subject(), o.choices(w.granted))
	case n < o.least:
		w.at(v.Position, "%s must have at least one key%s", o.subject(), o.choices(w.granted))
	case o.most > 0 && n > o.most:
		var keys []string
		for _, f := range v.Fields {
			keys = append(keys, f.Key)
		}
		w.at(v.Fields[o.most].KeyPosition, "%s must have exactly one key, but has %d: %s", o.subject(), n, quoteAll(keys))
	}
}

func (o object) explainField(w walk, v *source.Value, f *source.Field) {
	w = w.below(step{isKey: true, key: f.Key})
	known, from, ok := o.find(f.Key)
	switch {
	case ok:
		w = w.since(from, f.KeyPosition, strconv.Quote(f.Key))
		known.shape.explain(w, f.Value)
		if o.depending != nil && o.depending.key == f.Key {
			o.depending.explain(w, v, f.Value)
		}
	case o.others != nil:
		o.others.explain(w, f.Value)
	default:
		w.at(f.KeyPosition, "unknown key in %s%s", o.subject(), o.suggest(w, f.Key))
	}
}

// explain explains a value by the shape that its sibling selects. An invalid sibling is reported separately.
func (d dependency) explain(w walk, v, dependent *source.Value) {
	if d.deep && !w.deep() {
		return
	}
	chosen := d.absent
	if sibling := v.Get(d.sibling); sibling != nil {
		if sibling.Kind != source.String {
			return
		}
		chosen = sibling.String
	}
	s, found := d.shapes[chosen]
	if !found {
		s = d.otherwise
	}
	if s != nil && kindOf(s) == dependent.Kind {
		s.explain(w, dependent)
	}
}
