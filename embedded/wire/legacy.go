package wire

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// replyAwaitCapable is a flag that every OP_REPLY has.
const replyAwaitCapable = 1 << 3

var errLegacy = errors.New("a legacy message cut short")

// ParseQuery takes an OP_QUERY apart: the namespace, which is database.$cmd for a
// command, and the command. The result shares body's memory.
func ParseQuery(body []byte) (namespace string, doc bson.Raw, err error) {
	r := reader{rest: body}
	r.int32() // flags
	namespace = r.cstring()
	_, _ = r.int32(), r.int32() // how many to skip, and to return
	if r.bad {
		return "", nil, errLegacy
	}
	doc, err = document(&r)
	return namespace, doc, err
}

// AppendReply appends a whole OP_REPLY with the reply to a command.
func AppendReply(dst []byte, requestID, responseTo int32, doc bson.Raw) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, replyAwaitCapable)
	dst = binary.LittleEndian.AppendUint64(dst, 0) // cursor
	dst = binary.LittleEndian.AppendUint32(dst, 0) // startingFrom
	dst = binary.LittleEndian.AppendUint32(dst, 1) // documents
	dst = append(dst, doc...)
	finish(dst[start:])
	return dst
}
