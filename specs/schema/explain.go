package schema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// A walk goes along the annotated source and a file at once, and collects
// what does not fit.
type walk struct {
	declared int // minor version that the file declares
	granted  int // the later one that something around this place needs
	place    *place
	problems *[]Problem
}

// A place is a step down from another: a key of an object, or an element of an
// array.
type place struct {
	above *place
	key   string
	index int // -1 for a key
}

// explain gives all problems of a file at a minor version, in its order.
func explain(minor int, root *source.Value) []Problem {
	if root == nil {
		root = &source.Value{}
	}
	w := walk{declared: minor, granted: minor, problems: new([]Problem)}
	suite.explain(w, root)
	slices.SortStableFunc(*w.problems, func(a, b Problem) int {
		return a.Position.Compare(b.Position)
	})
	return *w.problems
}

func (w walk) at(p source.Position, format string, args ...any) {
	path := ""
	for at := w.place; at != nil; at = at.above {
		if at.index < 0 {
			path = step(at.key) + path
		} else {
			path = "[" + strconv.Itoa(at.index) + "]" + path
		}
	}
	*w.problems = append(*w.problems, Problem{Position: p, Path: strings.TrimPrefix(path, "."), Message: fmt.Sprintf(format, args...)})
}

func (w walk) wrong(v *source.Value, expected string, hint ...string) {
	w.at(v.Position, "must be %s, is %s%s", expected, describe(v), strings.Join(hint, ""))
}

// since reports, if something is later than the file's version, what it needs,
// unless something around it needs as much. What is inside is then explained
// as of the later version, by the walk that it returns.
func (w walk) since(from int, p source.Position, what string) walk {
	if from <= w.granted {
		return w
	}
	w.at(p, "%s needs schemaVersion %s, this file declares %s", what, versionString(from), versionString(w.declared))
	(*w.problems)[len(*w.problems)-1].needs = from
	w.granted = from
	return w
}

func (w walk) key(name string) walk { w.place = &place{w.place, name, -1}; return w }
func (w walk) index(i int) walk     { w.place = &place{w.place, "", i}; return w }

func (anything) explain(walk, *source.Value) {}

func (f forbidden) explain(w walk, v *source.Value) {
	w.at(v.Position, "is not allowed here: %s", string(f))
}

func (s scalar) explain(w walk, v *source.Value) {
	if !s.accepts(v) {
		w.wrong(v, s.noun(), s.hint(v))
	}
}

// deep reports whether the walk goes where the JSON schemas do not look.
func (w walk) deep() bool { return w.granted == unlisted }

// lists reports whether there is a value where the walk is, be it at a later
// version.
func (w walk) lists(t term) bool { return t.from != unlisted || w.deep() }

// hint says how to write what YAML reads as something else.
func (s scalar) hint(v *source.Value) string {
	isNumber := v.Kind == source.Int || v.Kind == source.Float
	switch {
	case s == text && (isNumber || v.Kind == source.Bool):
		return " (in quotes it would be a string)"
	case v.Kind == source.String && s == boolean && (v.String == "true" || v.String == "false"),
		v.Kind == source.String && s == integer && isDigits(v.String):
		return " (without quotes it would be " + s.noun() + ")"
	default:
		return ""
	}
}

func isDigits(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

func (a always) explain(w walk, v *source.Value) {
	switch {
	case !a.accepts(v):
		w.wrong(v, a.noun(), boolean.hint(v))
	case v.Bool != a.value:
		w.wrong(v, a.noun(), ": "+a.why)
	}
}

func (version) explain(w walk, v *source.Value) {
	if v.Kind != source.String {
		w.wrong(v, version{}.noun(), text.hint(v))
	} else if !isVersion.MatchString(v.String) {
		w.wrong(v, version{}.noun())
	}
}

func (r reference) explain(w walk, v *source.Value) { format[string(r)].explain(w, v) }

func (e enumeration) explain(w walk, v *source.Value) {
	if v.Kind != source.String {
		w.wrong(v, "a string", text.hint(v))
		return
	}
	if t, ok := e.find(v.String); ok && w.lists(t) {
		w.since(t.from, v.Position, strconv.Quote(t.value))
		return
	}
	var values, known []string
	for _, t := range e {
		if w.lists(t) {
			known = append(known, t.value)
		}
		if t.from <= w.granted {
			values = append(values, t.value)
		}
	}
	if hint := didYouMean(v.String, known); hint != "" {
		w.at(v.Position, "unknown value %s%s", strconv.Quote(shorten(v.String)), hint)
		return
	}
	w.wrong(v, "one of "+quoteAll(values))
}

func (l list) explain(w walk, v *source.Value) {
	if v.Kind != source.Array {
		w.wrong(v, l.noun())
		return
	}
	if len(v.Items) < l.least {
		w.at(v.Position, "must have at least one element")
	}
	for i, item := range v.Items {
		l.of.explain(w.index(i), item)
	}
}

func (e either) explain(w walk, v *source.Value) {
	for _, a := range e {
		if s := resolve(a.shape); s.accepts(v) {
			s.explain(w.since(a.from, v.Position, s.noun()+" here"), v)
			return
		}
	}
	var nouns []string
	for _, a := range e {
		if a.from <= w.granted {
			nouns = append(nouns, resolve(a.shape).noun())
		}
	}
	w.wrong(v, strings.Join(nouns, " or "))
}

// resolve follows a reference to its shape.
func resolve(s shape) shape {
	for {
		r, ok := s.(reference)
		if !ok {
			return s
		}
		s = format[string(r)]
	}
}

func (o object) explain(w walk, v *source.Value) {
	if v.Kind != source.Document {
		w.wrong(v, o.noun())
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
			w.at(later.KeyPosition, "%s and %s exclude each other", strconv.Quote(a.Key), strconv.Quote(b.Key))
		}
	}
	for i := range v.Fields {
		o.explainField(w, v, &v.Fields[i])
	}
}

func (o object) explainCount(w walk, v *source.Value) {
	switch n := len(v.Fields); {
	case n < o.least && o.most == 1:
		w.at(v.Position, "%s must have exactly one key, has none%s", o.subject(), o.choices(w.granted))
	case n < o.least:
		w.at(v.Position, "%s must have at least one key%s", o.subject(), o.choices(w.granted))
	case o.most > 0 && n > o.most:
		var keys []string
		for _, f := range v.Fields {
			keys = append(keys, f.Key)
		}
		w.at(v.Fields[o.most].KeyPosition, "%s must have exactly one key, has %d: %s", o.subject(), n, quoteAll(keys))
	}
}

func (o object) explainField(w walk, v *source.Value, f *source.Field) {
	w = w.key(f.Key)
	known, from, ok := o.find(f.Key)
	switch {
	case ok:
		w = w.since(from, f.KeyPosition, strconv.Quote(f.Key))
		known.shape.explain(w, f.Value)
		if o.depending != nil && o.depending.key == f.Key {
			o.explainDependent(w, v, f.Value)
		}
	case o.others != nil:
		o.others.explain(w, f.Value)
	default:
		w.at(f.KeyPosition, "unknown key in %s%s", o.subject(), o.instead(w, f.Key))
	}
}

// explainDependent explains a value by the shape that its sibling chooses. A
// sibling that chooses none is a problem of its own.
func (o object) explainDependent(w walk, v, dependent *source.Value) {
	if o.depending.deep && !w.deep() {
		return
	}
	chosen := o.depending.absent
	if sibling := v.Get(o.depending.sibling); sibling != nil {
		if sibling.Kind != source.String {
			return
		}
		chosen = sibling.String
	}
	s, found := o.depending.shapes[chosen]
	if !found {
		s = o.depending.otherwise
	}
	if s != nil && s.accepts(dependent) {
		s.explain(w, dependent)
	}
}

func (i within) explain(w walk, v *source.Value) {
	if w.deep() {
		i.inside.explain(w, v)
	} else {
		i.object.explain(w, v)
	}
}

// A value of either alternative is known by its JSON type.
func (anything) accepts(*source.Value) bool  { return true }
func (forbidden) accepts(*source.Value) bool { return false }
func (s scalar) accepts(v *source.Value) bool {
	return v.Kind == source.Kind(s) || s == integer && isInteger(v)
}
func (always) accepts(v *source.Value) bool      { return v.Kind == source.Bool }
func (version) accepts(v *source.Value) bool     { return v.Kind == source.String }
func (reference) accepts(*source.Value) bool     { return false }
func (enumeration) accepts(v *source.Value) bool { return v.Kind == source.String }
func (list) accepts(v *source.Value) bool        { return v.Kind == source.Array }
func (object) accepts(v *source.Value) bool      { return v.Kind == source.Document }
func (either) accepts(*source.Value) bool        { return false }

// isInteger reports whether a value is what JSON Schema calls an integer: a
// number without a fraction, however it is written.
func isInteger(v *source.Value) bool {
	return v.Kind == source.Int || v.Kind == source.Float && v.Float == math.Trunc(v.Float) && !math.IsInf(v.Float, 0)
}
