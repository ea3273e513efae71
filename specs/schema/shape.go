package schema

import (
	"regexp"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// A shape is what a value must look like. The annotated source is made of
// shapes; each kind of shape knows its JSON schema at a version (derive.go)
// and how to explain what is wrong with a value (explain.go). The two
// are written apart; the tests compare their verdicts, asking gojsonschema for
// that of the JSON schema.
type shape interface {
	// schema gives the JSON schema at the derivation's version.
	schema(d *derivation) any
	// explain reports every problem of a value.
	explain(w walk, v *source.Value)
}

// anything is the shape of a value that the schema does not look into.
type anything struct{}

// forbidden is the shape that no value has. The text says why.
type forbidden string

type scalar source.Kind

const (
	boolean = scalar(source.Bool)
	integer = scalar(source.Int)
	text    = scalar(source.String)
)

// always is the shape of a boolean that must be true; the text says why.
type always string

type version struct{}

// isVersion is the form that the schema gives a Version String.
var isVersion = regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,2}$`)

// reference is the shape of a definition, by name.
type reference string

// enumeration is the shape of a string out of a list.
type enumeration []term

type term struct {
	value string
	from  int // minor version that brought it
}

// unlisted is the minor version of values that the format's text has and its
// schemas have not: files may not use them but where no schema looks (see
// [Nested]).
const unlisted = newest + 1

func oneOf(values ...string) enumeration { return enumeration(nil).since(0, values...) }

// since adds values that a minor version brought.
func (e enumeration) since(minor int, values ...string) enumeration {
	for _, value := range values {
		e = append(e, term{value, minor})
	}
	return e
}

// upTo gives the values that a minor version has.
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

// either is the shape of a value that has one of several shapes, of which no
// two have the same JSON type.
type either []alternative

type alternative struct {
	shape shape
	from  int
}

// kindOf gives the JSON type of what an alternative or a dependent value is.
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
	title     string // completes "… has no key x": "a test"
	fields    []field
	others    shape // of keys that are not in fields; nil if others are not allowed
	least     int   // keys
	most      int   // keys; 0: any number
	apart     [][2]string
	depending *dependency
	// deep says that it is any document to the JSON schemas: only [Nested] looks
	// into it.
	deep bool
}

type field struct {
	name       string
	shape      shape
	mandatory  bool
	from       int // minor version that brought it
	labelled   int // minor version from which name:label is a key too; 0: never
	deprecated int // minor version that deprecated it; 0: none
}

// dependency gives a key a shape that depends on the value of a sibling, an
// enumeration.
type dependency struct {
	key, sibling string
	absent       string // counts as the sibling's value if there is none
	shapes       map[string]shape
	otherwise    shape // for values that shapes lacks; nil for any
	deep         bool  // as in object
}

func objectOf(title string, keys ...field) object { return object{title: title, fields: keys} }

// nonEmpty is the shape of an object with at least one key.
func nonEmpty(title string, keys ...field) object {
	return object{title: title, fields: keys, least: 1}
}

// choiceOf is the shape of an object with exactly one of the keys.
func choiceOf(title string, keys ...field) object {
	return object{title: title, fields: keys, least: 1, most: 1}
}

// document is the shape of an object with any keys.
func document() object { return objectOf("").with(anything{}) }

// documentOf is document to the JSON schemas, and to [Nested] an object.
func documentOf(title string, keys ...field) object {
	return object{title: title, fields: keys, deep: true}
}

// with allows other keys, with values of a shape.
func (o object) with(others shape) object { o.others = others; return o }

// notBoth says that a key excludes each of the others.
func (o object) notBoth(a string, others ...string) object {
	for _, b := range others {
		o.apart = append(o.apart, [2]string{a, b})
	}
	return o
}

// dependsOn gives a key the shape that the value of a sibling chooses.
func (o object) dependsOn(d dependency) object { o.depending = &d; return o }

func key(name string, s shape) field { return field{name: name, shape: s} }

// keys are keys with any value.
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

// label is what a labelled key has after its name.
const label = `:[a-zA-Z0-9_]+`

var isLabel = regexp.MustCompile(`^` + label + `$`)

// find gives the field that a key names, and the minor version from which it
// may be written like that.
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
