// Package source reads YAML, JSON and Extended JSON files into values that keep their positions, so that messages of
// the loader, the schema validation and the matchers can name file, line and column. It is independent of the
// Unified Test Format.
package source

import (
	"slices"

	"github.com/unified-test-runner/utr/result"
)

// Position is a position in a file. Column counts characters, not bytes.
type Position = result.Position

// Kind is the kind of a Value and selects the field that holds it.
type Kind uint8

// The kinds of a Value: the kinds of JSON, with integers and floating-point numbers kept apart as Extended JSON does.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	Array
	Document
)

// String returns the JSON Schema name of the kind ("integer", "object", …).
func (k Kind) String() string {
	return [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}[k]
}

// Value is one node of a file, before Extended JSON is interpreted. Loaded values are immutable and may be read
// concurrently. A YAML alias has its own position; values inside an aliased collection keep their original positions.
type Value struct {
	Position Position
	Kind     Kind

	Bool   bool
	Int    int64
	Float  float64
	String string
	Items  []*Value // Kind Array
	Fields []Field  // Kind Document, in file order, keys unique

	written string // the text of a number or a truth value in the file, such as 8.10 or 0x1F
}

// Field is one key of a document with its value.
type Field struct {
	Key         string
	KeyPosition Position
	Value       *Value
	written     string // the text of the key in the file, without quotes
}

// Get returns the value of a key, or nil if v is nil, not a document or lacks the key.
func (v *Value) Get(key string) *Value {
	if f := v.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// Text returns a string value, or "" if v is nil or not a string.
func (v *Value) Text() string {
	if v == nil {
		return ""
	}
	return v.String
}

// IsTrue reports whether a Value is the boolean true.
func (v *Value) IsTrue() bool { return v != nil && v.Bool }

// With returns a copy of a document with a key set to a value. A new key is appended; a nil value removes the key.
func (v *Value) With(key string, value *Value) *Value {
	out := *v
	out.Fields = slices.Clone(v.Fields)
	i := slices.IndexFunc(out.Fields, func(f Field) bool { return f.Key == key })
	switch {
	case value == nil:
		out.Fields = slices.DeleteFunc(out.Fields, func(f Field) bool { return f.Key == key })
	case i < 0:
		out.Fields = append(out.Fields, Field{Key: key, KeyPosition: value.Position, Value: value})
	default:
		out.Fields[i].Value = value
	}
	return &out
}

// AsWritten returns a copy of a loaded value in which numbers, truth values and keys are the strings that the file has,
// for formats whose scalars are all texts: there, 8.10 is a version.
func (v *Value) AsWritten() *Value {
	out := *v
	if v.written != "" {
		out = Value{Position: v.Position, Kind: String, String: v.written}
	}
	out.Items, out.Fields = slices.Clone(v.Items), slices.Clone(v.Fields)
	for i, item := range out.Items {
		out.Items[i] = item.AsWritten()
	}
	for i, f := range out.Fields {
		out.Fields[i].Key, out.Fields[i].Value = f.written, f.Value.AsWritten()
	}
	return &out
}

// Elements returns the items of an array, or nil if v is nil or not an array.
func (v *Value) Elements() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// Field returns the field of a key, or nil like Get.
func (v *Value) Field(key string) *Field {
	if v == nil {
		return nil
	}
	for i := range v.Fields {
		if v.Fields[i].Key == key {
			return &v.Fields[i]
		}
	}
	return nil
}
