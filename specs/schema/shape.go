package schema

import (
	"regexp"

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
	// noun completes "must be …".
	noun() string
	// accepts reports whether a value is of the right JSON type, so that one
	// alternative of an either can be chosen by it.
	accepts(v *source.Value) bool
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

// always is the shape of a boolean that has one possible value; the text
// says why.
type always struct {
	value bool
	why   string
}

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

func (e enumeration) find(value string) (term, bool) {
	for _, t := range e {
		if t.value == value {
			return t, true
		}
	}
	return term{}, false
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

type object struct {
	title     string // completes "… has no key x": "a test"
	fields    []field
	others    shape // of keys that are not in fields; nil if others are not allowed
	least     int   // keys
	most      int   // keys; 0: any number
	apart     [][2]string
	depending *dependency
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
	// deep keeps it out of the JSON schemas: only [Nested] looks there.
	deep bool
}

// part is what an object is put together from.
type part interface{ join(*object) }

func objectOf(title string, parts ...part) object {
	o := object{title: title}
	for _, p := range parts {
		p.join(&o)
	}
	return o
}

func key(name string, s shape) field { return field{name: name, shape: s} }

// keys are keys with any value.
func keys(names ...string) part {
	return joining(func(o *object) {
		for _, name := range names {
			key(name, anything{}).join(o)
		}
	})
}

func (f field) join(o *object) { o.fields = append(o.fields, f) }

func (f field) required() field                 { f.mandatory = true; return f }
func (f field) since(minor int) field           { f.from = minor; return f }
func (f field) labelledSince(minor int) field   { f.labelled = minor; return f }
func (f field) deprecatedSince(minor int) field { f.deprecated = minor; return f }

type joining func(*object)

func (j joining) join(o *object) { j(o) }

func someKey() part { return joining(func(o *object) { o.least = 1 }) }
func oneKey() part  { return joining(func(o *object) { o.least, o.most = 1, 1 }) }

func andOthers(s shape) part { return joining(func(o *object) { o.others = s }) }

// notBoth says that a key excludes each of the others.
func notBoth(a string, others ...string) part {
	return joining(func(o *object) {
		for _, b := range others {
			o.apart = append(o.apart, [2]string{a, b})
		}
	})
}

// dependsOn gives a key, listed before, the shape that the value of a sibling
// chooses.
func dependsOn(d dependency) part { return joining(func(o *object) { o.depending = &d }) }

// document is the shape of an object with any keys.
func document() object { return objectOf("", andOthers(anything{})) }

// within is the shape of an object that is any document to the JSON schemas,
// and to [Nested] the object inside.
type within struct {
	object
	inside object
}

func documentOf(title string, parts ...part) within {
	return within{document(), objectOf(title, parts...)}
}

// find gives the field that a key names, and the minor version from which it
// may be written like that.
func (o object) find(name string) (f field, from int, ok bool) {
	for _, f := range o.fields {
		if f.name == name {
			return f, f.from, true
		}
		if f.labelled > 0 && isLabelled(f.name, name) {
			return f, max(f.from, f.labelled), true
		}
	}
	return field{}, 0, false
}
