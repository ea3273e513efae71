package matchers

import (
	"slices"

	"github.com/unified-test-runner/utr/source"
)

// The arguments of fields, whose types the schema gives. A value of another
// type is a fault.

func (k *compiler) bool(v *source.Value) bool {
	if v.Kind != source.Bool {
		k.faultOf(v, "want true or false")
	}
	return v.Bool
}

func (k *compiler) string(v *source.Value) string {
	if v.Kind != source.String {
		k.faultOf(v, "want a string")
	}
	return v.String
}

// int takes an integer, in plain JSON or in a wrapper of Extended JSON, or a
// whole double.
func (k *compiler) int(v *source.Value) number {
	n := k.value(v, inner)
	if n == nil {
		return number{}
	}
	t, ok := n.test.(numeric)
	if !ok || t.want.isFloat && !t.want.whole() {
		k.faultOf(v, "want an integer")
	}
	return t.want
}

// list calls read for each item of an array.
func (k *compiler) list(v *source.Value, read func(*source.Value)) {
	if v.Kind != source.Array {
		k.faultOf(v, "want an array")
	}
	for i, item := range v.Items {
		k.path.index(i)
		read(item)
		k.path.pop()
	}
}

// document compiles a value that must be a document, or an operator.
func (k *compiler) document(v *source.Value) *node {
	if v.Kind != source.Document {
		return k.faultOf(v, "want a document")
	}
	return k.value(v, atTop)
}

// each calls read for each key of a document; the keys must be among known.
func (k *compiler) each(v *source.Value, known []string, read func(source.Field)) {
	if v == nil || v.Kind != source.Document {
		at, got := source.Position{}, nothing
		if v != nil {
			at, got = v.Position, text(v)
		}
		k.fault(at, got, "want a document")
		return
	}
	for _, f := range v.Fields {
		k.path.key(f.Key)
		if slices.Contains(known, f.Key) {
			read(f)
		} else {
			k.fault(f.KeyPosition, f.Key, "unknown field %q", f.Key)
		}
		k.path.pop()
	}
}
