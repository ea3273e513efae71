package reference

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/replies"
)

// message returns an OP_MSG with one body section.
func message(id int32, body bson.Raw, flags wiremessage.MsgFlag) []byte {
	i, wm := wiremessage.AppendHeaderStart(make([]byte, 0, len(body)+32), id, 0, wiremessage.OpMsg)
	wm = wiremessage.AppendMsgFlags(wm, flags)
	wm = wiremessage.AppendMsgSectionType(wm, wiremessage.SingleDocument)
	wm = append(wm, body...)
	return bsoncore.UpdateLength(wm, i, int32(len(wm)))
}

// errMalformed means that a reply is not an OP_MSG with one document.
var errMalformed = errors.New("malformed reply")

// parse returns the body of the reply to a request: an OP_MSG, which may be compressed and may have a checksum.
func parse(request int32, wm []byte) (bson.Raw, error) {
	length, _, to, opcode, rem, ok := wiremessage.ReadHeader(wm)
	switch {
	case !ok || int(length) != len(wm):
		return nil, fmt.Errorf("%w: wrong length", errMalformed)
	case to != request:
		return nil, &replies.Error{ResponseTo: to, Last: request}
	}
	if opcode == wiremessage.OpCompressed {
		var packed xdriver.CompressionOpts
		opcode, rem, _ = wiremessage.ReadCompressedOriginalOpCode(rem)
		packed.UncompressedSize, rem, _ = wiremessage.ReadCompressedUncompressedSize(rem)
		packed.Compressor, rem, ok = wiremessage.ReadCompressedCompressorID(rem)
		if !ok {
			return nil, fmt.Errorf("%w: truncated OP_COMPRESSED", errMalformed)
		}
		plain, err := xdriver.DecompressPayload(rem, packed)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		rem = plain
	}
	if opcode != wiremessage.OpMsg {
		return nil, fmt.Errorf("%w: opcode %v", errMalformed, opcode)
	}
	flags, rem, _ := wiremessage.ReadMsgFlags(rem)
	kind, rem, _ := wiremessage.ReadMsgSectionType(rem)
	body, rem, ok := wiremessage.ReadMsgSectionSingleDocument(rem)
	checksum := 0
	if flags&wiremessage.ChecksumPresent != 0 {
		checksum = 4
	}
	if !ok || kind != wiremessage.SingleDocument || len(rem) != checksum {
		return nil, fmt.Errorf("%w: not one document", errMalformed)
	}
	raw := bson.Raw(body)
	if err := raw.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return raw, nil
}
