package godriver

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/wire"
)

// RewriteHello sets fields of the topology's hello or legacy hello, an OP_MSG or OP_QUERY, and removes those whose
// value is nil. The topology always sends the field backpressure: messages without it are returned unchanged.
func RewriteHello(message []byte, fields ...bson.E) []byte {
	const name, header = "backpressure", 16
	_, _, _, opcode, _, ok := wiremessage.ReadHeader(message)
	at := header + 4 + 1        // flags, and the kind of the section
	if opcode == wire.OpQuery { // the first message of a connection may be one
		at = header + 4 + len("admin.$cmd\x00") + 4 + 4
	} else if opcode != wire.OpMsg {
		return message
	}
	if !ok || len(message) < at || !bytes.Contains(message, []byte(name)) {
		return message
	}
	doc := bsoncore.Document(message[at:])
	elements, err := doc.Elements()
	if length, _, ok := bsoncore.ReadLength(doc); !ok || int(length) != len(doc) || err != nil || len(elements) == 0 {
		return message
	}
	named := func(name string) func(bsoncore.Element) bool {
		return func(e bsoncore.Element) bool { return e.Key() == name }
	}
	if !slices.ContainsFunc(elements, named(name)) || !wire.IsHello(elements[0].Key()) {
		return message
	}
	for _, f := range fields {
		elements = slices.DeleteFunc(elements, named(f.Key))
	}
	out := slices.Clone(message[:at])
	start, out := bsoncore.AppendDocumentStart(out)
	for _, e := range elements {
		out = append(out, e...)
	}
	for _, f := range fields {
		if f.Value == nil {
			continue
		}
		kind, data, err := bson.MarshalValue(f.Value)
		if err != nil {
			return message
		}
		out = append(bsoncore.AppendHeader(out, bsoncore.Type(kind), f.Key), data...)
	}
	if out, err = bsoncore.AppendDocumentEnd(out, start); err != nil {
		return message
	}
	return bsoncore.UpdateLength(out, 0, int32(len(out)))
}
