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
	if !ok {
		return nil, fmt.Errorf("%w: no flags", errMalformed)
	}
	if flags&wiremessage.ChecksumPresent != 0 {
		if len(rem) < 4 {
			return nil, fmt.Errorf("%w: no checksum", errMalformed)
		}
		rem = rem[:len(rem)-4]
	}
	var body bsoncore.Document
	for len(rem) > 0 {
		var kind wiremessage.SectionType
		if kind, rem, ok = wiremessage.ReadMsgSectionType(rem); !ok {
			return nil, fmt.Errorf("%w: no section", errMalformed)
		}
		switch kind {
		case wiremessage.SingleDocument:
			if body != nil {
				return nil, fmt.Errorf("%w: two bodies", errMalformed)
			}
			if body, rem, ok = wiremessage.ReadMsgSectionSingleDocument(rem); !ok {
				return nil, fmt.Errorf("%w: truncated body", errMalformed)
			}
		case wiremessage.DocumentSequence:
			if _, _, rem, ok = wiremessage.ReadMsgSectionDocumentSequence(rem); !ok {
				return nil, fmt.Errorf("%w: truncated sequence", errMalformed)
			}
		default:
			return nil, fmt.Errorf("%w: section kind %d", errMalformed, kind)
		}
	}
	if body == nil {
		return nil, fmt.Errorf("%w: no body", errMalformed)
	}
	raw := bson.Raw(body)
	if err := raw.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return raw, nil
}
