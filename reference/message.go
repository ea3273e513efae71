package reference

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// message writes an OP_MSG with one body section.
func message(id int32, body bson.Raw, flags wiremessage.MsgFlag) []byte {
	i, wm := wiremessage.AppendHeaderStart(make([]byte, 0, len(body)+32), id, 0, wiremessage.OpMsg)
	wm = wiremessage.AppendMsgFlags(wm, flags)
	wm = wiremessage.AppendMsgSectionType(wm, wiremessage.SingleDocument)
	wm = append(wm, body...)
	return bsoncore.UpdateLength(wm, i, int32(len(wm)))
}

// send writes a message, compressed if that was agreed upon.
func send(ctx context.Context, conn *mnet.Connection, wm []byte, compress bool) error {
	if compress && conn.Compressor != nil {
		packed, err := conn.CompressWireMessage(wm, nil)
		if err != nil {
			return err
		}
		wm = packed
	}
	return conn.Write(ctx, wm)
}

// errMalformed is a reply that is no OP_MSG with one document.
var errMalformed = errors.New("malformed reply")

// receive reads a reply.
func receive(ctx context.Context, conn *mnet.Connection) (bson.Raw, error) {
	wm, err := conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return parse(wm)
}

func parse(wm []byte) (bson.Raw, error) {
	length, _, _, opcode, rem, ok := wiremessage.ReadHeader(wm)
	if !ok || int(length) != len(wm) {
		return nil, fmt.Errorf("%w: its length is wrong", errMalformed)
	}
	if opcode == wiremessage.OpCompressed {
		var size int32
		var compressor wiremessage.CompressorID
		if opcode, rem, ok = wiremessage.ReadCompressedOriginalOpCode(rem); ok {
			if size, rem, ok = wiremessage.ReadCompressedUncompressedSize(rem); ok {
				compressor, rem, ok = wiremessage.ReadCompressedCompressorID(rem)
			}
		}
		if !ok {
			return nil, fmt.Errorf("%w: truncated OP_COMPRESSED", errMalformed)
		}
		plain, err := mongo.DecompressPayload(rem, mongo.CompressionOpts{Compressor: compressor, UncompressedSize: size})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		rem = plain
	}
	if opcode != wiremessage.OpMsg {
		return nil, fmt.Errorf("%w: opcode %v", errMalformed, opcode)
	}
	flags, rem, ok := wiremessage.ReadMsgFlags(rem)
	if checksum := len(rem) - 4; ok && flags&wiremessage.ChecksumPresent != 0 {
		if ok = checksum >= 0; ok {
			rem = rem[:checksum]
		}
	}
	var bodies []bsoncore.Document
	for ok && len(rem) > 0 {
		var kind wiremessage.SectionType
		kind, rem, ok = wiremessage.ReadMsgSectionType(rem)
		switch {
		case ok && kind == wiremessage.SingleDocument:
			var body bsoncore.Document
			body, rem, ok = wiremessage.ReadMsgSectionSingleDocument(rem)
			bodies = append(bodies, body)
		case ok && kind == wiremessage.DocumentSequence:
			_, _, rem, ok = wiremessage.ReadMsgSectionDocumentSequence(rem)
		default:
			ok = false
		}
	}
	if !ok || len(bodies) != 1 {
		return nil, fmt.Errorf("%w: its sections are not one document and whole sequences", errMalformed)
	}
	raw := bson.Raw(bodies[0])
	if err := raw.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return raw, nil
}
