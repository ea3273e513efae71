// Package source holds values of suite files together with the place that
// each was read from. It knows nothing about the Unified Test Format: it is
// the ground that loading, schema validation and matching stand on, so that
// every later message can carry file, line and column.
package source

import (
	"cmp"
	"fmt"
	"slices"
)

// Position is a place in a file. Line and Column count from 1; Column counts
// characters, not bytes. The zero Position means "no place known".
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// IsZero reports whether no place is known.
func (p Position) IsZero() bool { return p == Position{} }

// Compare gives -1, 0 or 1 as a place is before another in a file, there, or
// after it.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Line, o.Line), cmp.Compare(p.Column, o.Column))
}

// String gives file:line:column, or as much of it as is known.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Kind says which of a Value's fields is in use.
type Kind uint8

// The kinds of a Value, as JSON has them. Numbers keep the difference that
// Extended JSON makes between integers and floating point.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	Array
	Document
)

// String names the kind as JSON Schema does ("integer", "object", …).
func (k Kind) String() string {
	return [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}[k]
}

// Value is one node of a file, before Extended JSON is interpreted. Values
// are immutable once loaded and may be read by many goroutines. A YAML alias
// of a scalar has the position of the alias; what is inside an aliased
// collection keeps the position where it was written.
type Value struct {
	Position Position
	Kind     Kind

	Bool   bool
	Int    int64
	Float  float64
	String string
	Items  []*Value // Kind Array
	Fields []Field  // Kind Document, in file order, keys unique
}

// Field is one key of a document with its value.
type Field struct {
	Key         string
	KeyPosition Position
	Value       *Value
}

// Get gives the value of a key, or nil. A nil Value, and one that is
// not a document, has no keys.
func (v *Value) Get(key string) *Value {
	if f := v.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// Text gives a string, "" for any other Value and a nil one.
func (v *Value) Text() string {
	if v == nil {
		return ""
	}
	return v.String
}

// IsTrue reports whether a Value is the boolean true.
func (v *Value) IsTrue() bool { return v != nil && v.Bool }

// With gives a copy of a document whose key has another value, at the end if
// the key is new. A nil value removes the key.
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

// Elements gives the items of an array. Any other Value, and a nil one, has
// none.
func (v *Value) Elements() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// Field gives the field of a key, or nil.
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
