package value

import (
	"crypto/rand"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// RawTypeName returns the type of a value as the server's messages name it.
func RawTypeName(raw bson.RawValue) string {
	v, _ := FromRaw(raw)
	return TypeName(v)
}

// Elements returns the elements of an array in a validated document; nil if the value is not an array.
func Elements(v bson.RawValue) []bson.RawValue {
	list, _ := v.ArrayOK()
	items, _ := list.Values() // a validated document cannot cause an error
	return items
}

// Has reports whether a document has a value at a path.
func Has(document bson.Raw, path ...string) bool {
	_, err := document.LookupErr(path...)
	return err == nil
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
