package value

import (
	"crypto/rand"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// RawTypeName returns the type of a value as the server's messages name it.
func RawTypeName(raw bson.RawValue) string {
	return TypeName(FromRaw(raw))
}

// Elements returns the elements of an array in a validated document; nil if the value is not an array.
func Elements(v bson.RawValue) []bson.RawValue {
	list, _ := v.ArrayOK()
	items, _ := list.Values() // a validated document cannot cause an error
	return items
}

// Documents returns the documents in an array: nil for an element of another type.
func Documents(list bson.RawValue) (docs []bson.Raw) {
	for _, v := range Elements(list) {
		doc, _ := v.DocumentOK()
		docs = append(docs, doc)
	}
	return docs
}

// Has reports whether a document has a value at a path.
func Has(document bson.Raw, path ...string) bool {
	_, err := document.LookupErr(path...)
	return err == nil
}

// TextAt returns the string at a path, "" if the document has none there.
func TextAt(document bson.Raw, path ...string) string {
	text, _ := document.Lookup(path...).StringValueOK()
	return text
}

// FlagAt returns the boolean at a path, false if the document has none there.
func FlagAt(document bson.Raw, path ...string) bool {
	flag, _ := document.Lookup(path...).BooleanOK()
	return flag
}

// IntAt returns the number at a path as an integer, 0 if the document has none there.
func IntAt(document bson.Raw, path ...string) int64 {
	n, _ := document.Lookup(path...).AsInt64OK()
	return n
}

// DocAt returns the document at a path, nil if the document has none there.
func DocAt(document bson.Raw, path ...string) bson.Raw {
	doc, _ := document.Lookup(path...).DocumentOK()
	return doc
}

// Pick returns the named fields that a document has, in the order of the names.
func Pick(document bson.Raw, names ...string) (out bson.D) {
	for _, name := range names {
		if v, err := document.LookupErr(name); err == nil {
			out = Append(out, name, FromRaw(v))
		}
	}
	return out
}

// Strings returns the strings in an array; nil if the value is not an array.
func Strings(v bson.RawValue) []string {
	if v.Type != bson.TypeArray {
		return nil
	}
	out := []string{}
	for _, item := range Elements(v) {
		if s, ok := item.StringValueOK(); ok {
			out = append(out, s)
		}
	}
	return out
}

// NewUUID returns a random UUID of version 4.
func NewUUID() bson.Binary {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b}
}
