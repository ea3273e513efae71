package wire

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

const replyAwaitCapable = 1 << 3 // flag of every OP_REPLY

// ParseQuery parses an OP_QUERY. It returns the namespace, database.$cmd for a command, and the command. The result
// shares body's memory.
func ParseQuery(body []byte) (namespace string, doc bson.Raw, err error) {
	r := reader{rest: body}
	r.int32() // flags
	namespace = r.cstring()
	_, _ = r.int32(), r.int32() // skip and limit
	if r.bad {
		return "", nil, errors.New("truncated OP_QUERY")
	}
	doc, err = document(&r)
	return namespace, doc, err
}

// AppendReply appends a complete OP_REPLY with the reply to a command.
func AppendReply(dst []byte, requestID, responseTo int32, doc bson.Raw) []byte {
	start, dst := wiremessage.AppendHeaderStart(dst, requestID, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, replyAwaitCapable)
	dst = binary.LittleEndian.AppendUint64(dst, 0) // cursor
	dst = binary.LittleEndian.AppendUint32(dst, 0) // startingFrom
	dst = binary.LittleEndian.AppendUint32(dst, 1) // documents
	return finish(append(dst, doc...), start)
}
