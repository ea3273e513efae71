package enginekit

import (
	"encoding/hex"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// Arguments are the arguments of an operation. Methods return the zero value for an
// argument that is absent or has the wrong type.
type Arguments struct{ Given bson.Raw }

// NewArguments returns the arguments in a document. The document may be nil.
func NewArguments(doc bson.Raw) Arguments {
	if doc == nil {
		doc = bson.Raw{5, 0, 0, 0, 0}
	}
	return Arguments{doc}
}

// Has reports whether an argument is present.
func (a Arguments) Has(name string) bool {
	_, err := a.Given.LookupErr(name)
	return err == nil
}

// Arg returns the value of an argument.
func (a Arguments) Arg(name string) bson.RawValue { return a.Given.Lookup(name) }

// Text returns a string argument.
func (a Arguments) Text(name string) string {
	s, _ := a.Arg(name).StringValueOK()
	return s
}

// Number returns an integer argument.
func (a Arguments) Number(name string) int64 {
	n, _ := Integer(a.Arg(name))
	return n
}

// Flag returns a boolean argument.
func (a Arguments) Flag(name string) bool {
	b, _ := a.Arg(name).BooleanOK()
	return b
}

// Documents returns an argument that is an array of documents.
func (a Arguments) Documents(name string) ([]bson.Raw, *result.Error) {
	array, ok := a.Arg(name).ArrayOK()
	if !ok {
		return nil, Argument("%s is not an array", name)
	}
	values, err := array.Values()
	if err != nil {
		return nil, Argument("%s: %v", name, err)
	}
	out := make([]bson.Raw, len(values))
	for i, v := range values {
		if out[i], ok = v.DocumentOK(); !ok {
			return nil, Argument("%s[%d] is not a document", name, i)
		}
	}
	return out, nil
}

// Model is a write model of a bulk write: {insertOne: {…}}.
type Model struct {
	Kind string
	Args bson.Raw
}

// Models returns an argument that is an array of write models.
func (a Arguments) Models(name string) ([]Model, *result.Error) {
	documents, err := a.Documents(name)
	models := make([]Model, len(documents))
	for i, d := range documents {
		elements, _ := d.Elements()
		if len(elements) != 1 {
			return nil, Argument("%s[%d] is not a document with one field", name, i)
		}
		args, ok := elements[0].Value().DocumentOK()
		if !ok {
			return nil, Argument("%s[%d].%s is not a document", name, i, elements[0].Key())
		}
		models[i] = Model{elements[0].Key(), args}
	}
	return models, err
}

// Source returns the data of an upload, the argument source: {$$hexBytes: …}.
func (a Arguments) Source() ([]byte, *result.Error) {
	doc, _ := a.Arg("source").DocumentOK()
	text, ok := doc.Lookup("$$hexBytes").StringValueOK()
	if !ok {
		return nil, Argument("source is not a {$$hexBytes: string}")
	}
	data, err := hex.DecodeString(text)
	if err != nil {
		return nil, Argument("source: %v", err)
	}
	return data, nil
}
