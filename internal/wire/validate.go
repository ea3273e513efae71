package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// maxDepth is the maximum nesting depth of documents, including the outermost one, as on the server.
const maxDepth = 200

// validate checks the document at the start of b and returns its length. Errors are the server's: they contain the
// path of the invalid element, and the _id of the document if it precedes the element.
func validate(b []byte) (int, error) {
	var v validator
	if len(b) < 5 {
		return 0, v.fault("BSON data has to be at least 5 bytes")
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	switch {
	case n < 5:
		return 0, v.fault("BSON data has to be at least 5 bytes")
	case n > len(b):
		return 0, v.fault("Incorrect BSON length")
	case n > MaxInternal:
		return 0, refuse(codes.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)",
			n, n, MaxInternal)
	}
	return n, v.document(b[:n])
}

type validator struct {
	path [][]byte       // names of the elements around the current position
	id   bsoncore.Value // the _id of the outermost document
}

// document checks a document whose length is valid.
func (v *validator) document(doc []byte) error {
	if doc[len(doc)-1] != 0 {
		return v.fault("BSON object not terminated with EOO")
	}
	for rest := doc[4 : len(doc)-1]; len(rest) > 0; {
		kind := bsoncore.Type(rest[0])
		name, after, found := bytes.Cut(rest[1:], []byte{0})
		if kind == 0 || !found {
			return v.fault("BSON object not terminated with EOO")
		}
		v.path = append(v.path, name)
		if kind.String() == "invalid" {
			return v.fault(fmt.Sprintf("Unrecognized BSON type %d", int8(kind)))
		}
		element, after, err := v.read(after, kind)
		if err != nil {
			return err
		}
		if len(v.path) == 1 && string(name) == "_id" && v.id.Data == nil {
			v.id = element
		}
		v.path = v.path[:len(v.path)-1]
		rest = after
	}
	return nil
}

// read reads and checks the value at the start of b, and returns the bytes after it.
func (v *validator) read(b []byte, kind bsoncore.Type) (element bsoncore.Value, after []byte, err error) {
	element, after, ok := bsoncore.ReadValue(b, kind)
	if !ok {
		return element, nil, v.fault("Incorrect BSON length")
	}
	data := element.Data
	switch kind {
	case bsoncore.TypeBoolean:
		if data[0] > 1 {
			err = v.fault("BSON bool is neither false nor true")
		}
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		err = v.text(data)
	case bsoncore.TypeDBPointer:
		err = v.text(data[:len(data)-12])
	case bsoncore.TypeBinary:
		// Subtype 2 contains its length a second time. The server does not check it, but later readers would fail.
		if inner, _, ok := bsoncore.ReadLength(data[5:]); data[4] == bson.TypeBinaryBinaryOld &&
			(!ok || int(inner) != len(data)-9) {
			err = v.fault("Incorrect BSON length")
		}
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		err = v.nested(data)
	case bsoncore.TypeCodeWithScope:
		err = v.scoped(data)
	}
	return element, after, err
}

func (v *validator) scoped(data []byte) error {
	if len(data) < 4 {
		return v.fault("Incorrect BSON length")
	}
	_, after, err := v.read(data[4:], bsoncore.TypeString)
	if err == nil {
		_, after, err = v.read(after, bsoncore.TypeEmbeddedDocument)
	}
	if err == nil && len(after) > 0 {
		err = v.fault("Incorrect BSON length")
	}
	return err
}

func (v *validator) text(data []byte) error {
	if len(data) < 5 || data[len(data)-1] != 0 {
		return v.fault("Not null terminated string")
	}
	return nil
}

func (v *validator) nested(doc []byte) error {
	switch {
	case len(v.path) > maxDepth:
		return v.refuse(codes.Overflow, "BSONObj exceeds maximum nested object depth")
	case len(doc) < 5:
		return v.fault("Nested BSON object has to be at least 5 bytes")
	}
	return v.document(doc)
}

func (v *validator) fault(what string) error { return v.refuse(codes.InvalidBSON, what) }

func (v *validator) refuse(code int32, what string) error {
	e := &Error{Code: code, What: what, Path: "?"}
	if len(v.path) > 0 {
		e.Path = string(bytes.Join(v.path, []byte(".")))
	}
	if v.id.Data != nil {
		e.ID = bson.RawValue{Type: bson.Type(v.id.Type), Value: v.id.Data}
	}
	return e
}
