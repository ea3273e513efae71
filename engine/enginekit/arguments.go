package enginekit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Arguments are those of an operation, as the format writes them. An argument
// that is absent, or has another type than a method reads, is a zero value.
type Arguments struct{ Given bson.Raw }

// NewArguments makes arguments of a document, which may be nil.
func NewArguments(doc bson.Raw) Arguments {
	if doc == nil {
		doc = bson.Raw{5, 0, 0, 0, 0}
	}
	return Arguments{doc}
}

// Others finds the first argument that an engine does not accept, "" if there
// is none.
func (a Arguments) Others(accepts func(name string) bool) (string, error) {
	elements, err := a.Given.Elements()
	i := slices.IndexFunc(elements, func(e bson.RawElement) bool { return !accepts(e.Key()) })
	if err != nil || i < 0 {
		return "", err
	}
	return elements[i].Key(), nil
}

// Has reports whether an argument is there.
func (a Arguments) Has(name string) bool {
	_, err := a.Given.LookupErr(name)
	return err == nil
}

// Arg is the value of an argument.
func (a Arguments) Arg(name string) bson.RawValue { return a.Given.Lookup(name) }

// Text is a string.
func (a Arguments) Text(name string) string {
	s, _ := a.Arg(name).StringValueOK()
	return s
}

// Number is a whole number.
func (a Arguments) Number(name string) int64 {
	n, _ := Integer(a.Arg(name))
	return n
}

// Flag is a boolean.
func (a Arguments) Flag(name string) bool {
	b, _ := a.Arg(name).BooleanOK()
	return b
}

// Source reads {$$hexBytes: …}, which uploads have.
func (a Arguments) Source() ([]byte, error) {
	doc, _ := a.Arg("source").DocumentOK()
	text, ok := doc.Lookup("$$hexBytes").StringValueOK()
	if !ok {
		return nil, errors.New("source is not a {$$hexBytes: string}")
	}
	data, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return data, nil
}
