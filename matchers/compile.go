package matchers

import (
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// node is one checked expectation: what must hold of one value, and where the
// file says so.
type node struct {
	test   test
	at     source.Position
	source *source.Value // nil for the insides of entities
	value  bson.RawValue // of scalars, and of what comes from entities
}

// test decides about one value that is there.
type test interface {
	match(c *comparison, n *node, actual bson.RawValue, shape Shape)
}

func (n *node) mayBeMissing() bool {
	_, ok := n.test.(optional)
	return ok
}

// place is what surrounds an expected value: some operators depend on it.
type place uint8

const (
	atTop   place = iota // the whole expected value
	atKey                // the value of a key
	inArray              // an array element
	inner                // the argument of an operator
)

// compiler turns expected values into nodes and collects their faults: what
// makes the expectation fail whatever was seen.
type compiler struct {
	entities Entities
	path     path
	faults   []result.Mismatch
	// exact leaves out special operators and flexible numerics.
	exact bool
}

// fault notes one. The nil node that it returns is never compared.
func (k *compiler) fault(at source.Position, want, format string, args ...any) *node {
	k.faults = append(k.faults, result.Mismatch{
		Path: k.path.String(), Position: at, Message: fmt.Sprintf(format, args...), Want: want,
	})
	return nil
}

func (k *compiler) faultOf(v *source.Value, format string, args ...any) *node {
	return k.fault(v.Position, v.JSON(), format, args...)
}

func (k *compiler) value(v *source.Value, where place) *node {
	if v == nil {
		return k.fault(source.Position{}, "", "there is no expected value")
	}
	// A special operator is a document whose first and only key starts with $$.
	if v.Kind == source.Document && len(v.Fields) == 1 && strings.HasPrefix(v.Fields[0].Key, "$$") && !k.exact {
		return k.operator(v, v.Fields[0].Key, v.Fields[0].Value, where)
	}
	scalar, ok, err := v.Scalar()
	var malformed *source.Error
	switch {
	case errors.As(err, &malformed):
		return k.fault(malformed.Position, v.JSON(), "malformed Extended JSON: %s", malformed.Message)
	case err != nil:
		return k.faultOf(v, "malformed Extended JSON: %v", err)
	case ok:
		return k.scalar(v.Position, v, scalar)
	case v.Kind == source.Array:
		items := make([]*node, len(v.Items))
		for i, item := range v.Items {
			k.path.atIndex(i, func() { items[i] = k.value(item, inArray) })
		}
		return &node{test: array{items}, at: v.Position, source: v}
	default:
		d := newDocument(len(v.Fields))
		for _, f := range v.Fields {
			k.path.key(f.Key)
			if d.add(f.Key, k.value(f.Value, atKey)) {
				k.faultOf(v, "the expected document has the key %q twice", f.Key)
			}
			k.path.pop()
		}
		return &node{test: d, at: v.Position, source: v}
	}
}

func (k *compiler) scalar(at source.Position, v *source.Value, rv bson.RawValue) *node {
	n := &node{at: at, source: v, value: rv}
	if x, ok := numberOf(rv); ok && !k.exact {
		n.test = numeric{x}
	} else {
		n.test = scalar{rv}
	}
	return n
}

// data compiles a BSON value, in which $$ keys are not operators.
func (k *compiler) data(at source.Position, rv bson.RawValue) *node {
	if rv.Type != bson.TypeEmbeddedDocument && rv.Type != bson.TypeArray {
		return k.scalar(at, nil, rv)
	}
	list, err := elements(rv.Value)
	if err != nil {
		return k.fault(at, "", "the expected value is %v", err)
	}
	n := &node{at: at, value: rv}
	if rv.Type == bson.TypeArray {
		items := make([]*node, len(list))
		for i, e := range list {
			items[i] = k.data(at, e.value)
		}
		n.test = array{items}
		return n
	}
	d := newDocument(len(list))
	for _, e := range list {
		if d.add(e.key, k.data(at, e.value)) {
			return k.fault(at, "", "the expected value has the key %q twice", e.key)
		}
	}
	n.test = d
	return n
}

func (k *compiler) operator(v *source.Value, name string, argument *source.Value, where place) *node {
	read, known := operators[name]
	if !known {
		return k.faultOf(v, "%s is not a special operator", name)
	}
	k.path.key(name)
	defer k.path.pop()
	faults := len(k.faults)
	t := read(k, argument, where)
	if len(k.faults) > faults {
		return nil
	}
	return &node{test: t, at: v.Position, source: v}
}

// The arguments of fields, whose types the schema gives. A value of another
// type is a fault.

func (k *compiler) bool(v *source.Value) bool {
	k.demand(v, source.Bool, "expected true or false")
	return v.Bool
}

func (k *compiler) string(v *source.Value) string {
	k.demand(v, source.String, "expected a string")
	return v.String
}

func (k *compiler) demand(v *source.Value, kind source.Kind, otherwise string) bool {
	if v.Kind != kind {
		k.faultOf(v, "%s", otherwise)
	}
	return v.Kind == kind
}

// int takes an integer, in plain JSON or in a wrapper of Extended JSON, or a
// whole double.
func (k *compiler) int(v *source.Value) number {
	n := k.value(v, inner)
	if n == nil {
		return number{}
	}
	t, ok := n.test.(numeric)
	if !ok || t.want.Float == nil || !t.want.IsInt() {
		k.faultOf(v, "expected an integer")
	}
	return t.want
}

func (k *compiler) list(v *source.Value, read func(*source.Value)) {
	k.demand(v, source.Array, "expected an array")
	for i, item := range v.Items {
		k.path.atIndex(i, func() { read(item) })
	}
}

// document compiles a value that must be a document, or an operator.
func (k *compiler) document(v *source.Value) *node {
	if !k.demand(v, source.Document, "expected a document") {
		return nil
	}
	return k.value(v, atTop)
}

// each calls read for each key of a document. read reports whether it knows
// the key.
func (k *compiler) each(v *source.Value, read func(source.Field) (known bool)) {
	k.demand(v, source.Document, "expected a document")
	for _, f := range v.Fields {
		k.path.key(f.Key)
		if !read(f) {
			k.fault(f.KeyPosition, f.Key, "unknown field %q", f.Key)
		}
		k.path.pop()
	}
}
