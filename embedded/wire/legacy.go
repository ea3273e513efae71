package wire

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Bits of an OP_QUERY and of an OP_REPLY.
const (
	QuerySecondaryOk  int32 = 1 << 2
	ReplyAwaitCapable int32 = 1 << 3
)

// Query is an OP_QUERY with a command.
type Query struct {
	Flags      int32
	Collection string // database.$cmd
	Query      bson.Raw
}

var errLegacy = errors.New("a legacy message cut short")

// ParseQuery takes an OP_QUERY apart. The result shares body's memory.
func ParseQuery(body []byte) (Query, error) {
	r := reader{rest: body}
	q := Query{Flags: r.int32(), Collection: r.cstring()}
	_, _ = r.int32(), r.int32() // how many to skip, and to return
	if r.bad {
		return q, errLegacy
	}
	var err error
	q.Query, err = document(&r)
	return q, err
}

// AppendReply appends a whole OP_REPLY with the reply to a command.
func AppendReply(dst []byte, requestID, responseTo int32, doc bson.Raw) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(ReplyAwaitCapable))
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
func AppendQuery(dst []byte, requestID int32, q Query) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, 0, OpQuery)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(q.Flags))
	dst = append(append(dst, q.Collection...), 0)
	dst = binary.LittleEndian.AppendUint32(dst, 0)          // to skip
	dst = binary.LittleEndian.AppendUint32(dst, ^uint32(0)) // to return: -1
	dst = append(dst, q.Query...)
	finish(dst[start:])
	return dst
}
