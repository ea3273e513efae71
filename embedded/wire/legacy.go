package wire

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Bits of an OP_QUERY and of an OP_REPLY.
const (
	QuerySecondaryOk  int32 = 1 << 2
	QueryExhaust      int32 = 1 << 6
	ReplyCursorLost   int32 = 1 << 0
	ReplyQueryFailure int32 = 1 << 1
	ReplyAwaitCapable int32 = 1 << 3
)

// Query is an OP_QUERY: a command if Collection ends in ".$cmd", a find
// otherwise.
type Query struct {
	Flags      int32
	Collection string // database.collection
	Skip       int32
	Return     int32
	Query      bson.Raw
	Fields     bson.Raw // nil if there are none
}

var errLegacy = errors.New("a legacy message cut short")

// ParseQuery takes an OP_QUERY apart. The result shares body's memory.
func ParseQuery(body []byte) (Query, error) {
	r := reader{rest: body}
	q := Query{Flags: r.int32(), Collection: r.cstring(), Skip: r.int32(), Return: r.int32()}
	if r.bad {
		return q, errLegacy
	}
	var err error
	if q.Query, err = document(&r); err != nil {
		return q, err
	}
	if len(r.rest) > 0 {
		q.Fields, err = document(&r)
	}
	return q, err
}

// Insert is an OP_INSERT.
type Insert struct {
	ContinueOnError bool
	Collection      string
	Documents       []bson.Raw
}

// ParseInsert takes an OP_INSERT apart. The result shares body's memory.
func ParseInsert(body []byte) (Insert, error) {
	r := reader{rest: body}
	in := Insert{ContinueOnError: r.int32()&1 != 0, Collection: r.cstring()}
	if r.bad {
		return in, errLegacy
	}
	for len(r.rest) > 0 {
		doc, err := document(&r)
		if err != nil {
			return in, err
		}
		in.Documents = append(in.Documents, doc)
	}
	return in, nil
}

// AppendReply appends a whole OP_REPLY.
func AppendReply(dst []byte, requestID, responseTo, flags int32, cursor int64, docs ...bson.Raw) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(flags))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(cursor))
	dst = binary.LittleEndian.AppendUint32(dst, 0) // startingFrom
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(docs)))
	for _, d := range docs {
		dst = append(dst, d...)
	}
	finish(dst[start:])
	return dst
}

// Reply is an OP_REPLY, for those who play the client.
type Reply struct {
	Flags     int32
	CursorID  int64
	Documents []bson.Raw
}

// ParseReply takes an OP_REPLY apart. The result shares body's memory.
func ParseReply(body []byte) (Reply, error) {
	r := reader{rest: body}
	p := Reply{Flags: r.int32(), CursorID: r.int64()}
	r.int32()
	n := r.int32()
	for i := int32(0); i < n && !r.bad; i++ {
		doc, err := document(&r)
		if err != nil {
			return p, err
		}
		p.Documents = append(p.Documents, doc)
	}
	if r.bad {
		return p, errLegacy
	}
	return p, nil
}

// AppendQuery appends a whole OP_QUERY, for those who play the client.
func AppendQuery(dst []byte, requestID int32, q Query) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, 0, OpQuery)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(q.Flags))
	dst = append(append(dst, q.Collection...), 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(q.Skip))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(q.Return))
	dst = append(append(dst, q.Query...), q.Fields...)
	finish(dst[start:])
	return dst
}
