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

// ParseReply gives the flags and the document of an OP_REPLY, for those who play the
// client. The result shares body's memory.
func ParseReply(body []byte) (flags int32, doc bson.Raw, err error) {
	r := reader{rest: body}
	flags = r.int32()
	for range 4 { // cursor, startingFrom, and the number of documents
		r.int32()
	}
	if r.bad {
		return flags, nil, errLegacy
	}
	doc, err = document(&r)
	return flags, doc, err
}

// AppendQuery appends a whole OP_QUERY, for those who play the client.
func AppendQuery(dst []byte, requestID int32, namespace string, doc bson.Raw) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, 0, OpQuery)
	dst = binary.LittleEndian.AppendUint32(dst, 0) // flags
	dst = append(append(dst, namespace...), 0)
	dst = binary.LittleEndian.AppendUint32(dst, 0)          // to skip
	dst = binary.LittleEndian.AppendUint32(dst, ^uint32(0)) // to return: -1
	dst = append(dst, doc...)
	finish(dst[start:])
	return dst
}
