package schema

import (
	"regexp"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
)

// A shape is a set of valid values. The annotated source consists of shapes. Each shape has a JSON schema
// at each version (derive.go), which decides, and explains the problems of a value (explain.go). The two are
// independent; tests compare what explain finds with the verdicts.
type shape interface {
	// schema returns the JSON schema at the derivation's version.
	schema(d *derivation) any
	// explain reports every problem of a value.
	explain(w walk, v *source.Value)
}

// anything is the shape of every value.
type anything struct{}

// forbidden is the shape of no value. The text is the reason.
type forbidden string

type scalar source.Kind

const (
	boolean = scalar(source.Bool)
	integer = scalar(source.Int)
	text    = scalar(source.String)
)

// always is the shape of true. The text is the reason.
type always string

type version struct{}

var isVersion = regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,2}$`)

// reference is the shape of the named definition.
type reference string

// enumeration is the shape of a string in a list.
type enumeration []term

type term struct {
	value string
	from  int // minor version that introduced it
}

// unlisted is the minor version of values in the text of the format but not in its schemas. They are
// only valid where no schema applies (see [Nested]).
const unlisted = newest + 1

func oneOf(values ...string) enumeration { return enumeration(nil).since(0, values...) }

// since adds values that a minor version introduced.
func (e enumeration) since(minor int, values ...string) enumeration {
	for _, value := range values {
		e = append(e, term{value, minor})
	}
	return e
}

func (e enumeration) upTo(minor int) (values []string) {
	for _, t := range e {
		if t.from <= minor {
			values = append(values, t.value)
		}
	}
	return values
}

type list struct {
	of    shape
	least int // elements
}

func listOf(of shape) list { return list{of: of} }
func someOf(of shape) list { return list{of: of, least: 1} }

// either is the shape of a value with one of several shapes of different JSON types.
type either []alternative

type alternative struct {
	shape shape
	from  int
}

// kindOf returns the JSON type of an alternative or a dependent value.
func kindOf(s shape) source.Kind {
	switch s := s.(type) {
	case scalar:
		return source.Kind(s)
	case list:
		return source.Array
	case reference:
		return kindOf(format[string(s)])
	default:
		return source.Document
	}
}

type object struct {
	title     string // in messages, such as "a test"
	fields    []field
	others    shape // of keys that are not in fields; nil forbids them
	least     int   // minimum number of keys
	most      int   // maximum number of keys; 0 is unlimited
	apart     [][2]string
	depending *dependency
	deep      bool // only [Nested] checks the keys; the JSON schemas accept any document
}

type field struct {
	name       string
	shape      shape
	mandatory  bool
	from       int // minor version that introduced it
	labelled   int // minor version that introduced keys name:label, or 0
	deprecated int // minor version that deprecated it, or 0
}

// dependency is a key whose shape depends on the value of a sibling, an enumeration.
type dependency struct {
	key, sibling string
	absent       string // the value if the sibling is missing
	shapes       map[string]shape
	otherwise    shape // for values not in shapes; nil for anything
	deep         bool  // as in object
}

// objectOf is the shape of an object, nonEmpty of one with at least one key, choiceOf of one with exactly one
// of the keys, and documentOf of a deep one.
func objectOf(title string, keys ...field) object { return object{title: title, fields: keys} }
func nonEmpty(title string, keys ...field) object {
	return object{title: title, fields: keys, least: 1}
}
func choiceOf(title string, keys ...field) object {
	return object{title: title, fields: keys, least: 1, most: 1}
}
func documentOf(title string, keys ...field) object {
	return object{title: title, fields: keys, deep: true}
}
func document() object { return objectOf("").with(anything{}) }

// with allows other keys, with values of a shape.
func (o object) with(others shape) object { o.others = others; return o }

// notBoth makes a key and each of the others mutually exclusive.
func (o object) notBoth(a string, others ...string) object {
	for _, b := range others {
		o.apart = append(o.apart, [2]string{a, b})
	}
	return o
}

func (o object) dependsOn(d dependency) object { o.depending = &d; return o }

func key(name string, s shape) field { return field{name: name, shape: s} }

// keys returns fields with any value.
func keys(names ...string) (all []field) {
	for _, name := range names {
		all = append(all, key(name, anything{}))
	}
	return all
}

func (f field) required() field                 { f.mandatory = true; return f }
func (f field) since(minor int) field           { f.from = minor; return f }
func (f field) labelledSince(minor int) field   { f.labelled = minor; return f }
func (f field) deprecatedSince(minor int) field { f.deprecated = minor; return f }

// label is the pattern of what follows the name in a labelled key.
const label = `:[a-zA-Z0-9_]+`

var isLabel = regexp.MustCompile(`^` + label + `$`)

// find returns the field of a key, and the minor version that introduced this form of it.
func (o object) find(name string) (f field, from int, ok bool) {
	for _, f := range o.fields {
		rest, begins := strings.CutPrefix(name, f.name)
		switch {
		case begins && rest == "":
			return f, f.from, true
		case begins && f.labelled > 0 && isLabel.MatchString(rest):
			return f, max(f.from, f.labelled), true
		}
	}
	return field{}, 0, false
}
