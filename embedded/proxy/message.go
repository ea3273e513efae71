package proxy

import (
	"encoding/binary"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/internal/wire"
)

// request is a command of a client.
type request struct {
	wire.Header
	message []byte
	flags   wire.Flags
	body    bson.Raw // without document sequences
	name    string
	db      string
}

// namespace returns the namespace of the command, as fail points see it.
func (r *request) namespace() string {
	if r.OpCode == wire.OpQuery {
		return r.db
	}
	return server.NamespaceOf(r.body)
}

// parse finds the command in a message. It validates nothing: the server does.
func parse(message []byte) (r request, ok bool) {
	h, body, err := wire.Split(message)
	if err != nil {
		return r, false
	}
	r.Header, r.message = h, message
	switch h.OpCode {
	case wire.OpMsg:
		r.flags, r.body, ok = bodyOf(body)
		r.db, _ = r.body.Lookup("$db").StringValueOK()
	case wire.OpQuery:
		var namespace string
		namespace, r.body, _ = wire.ParseQuery(body) // without a body, it has no command
		r.db, ok = strings.CutSuffix(namespace, ".$cmd")
	}
	if !ok {
		return r, false
	}
	first, err := r.body.IndexErr(0)
	if err != nil {
		return r, false
	}
	r.name = first.Key()
	return r, true
}

// bodyOf returns the section of kind 0 of an OP_MSG.
func bodyOf(b []byte) (flags wire.Flags, doc bson.Raw, ok bool) {
	const flagBytes, kindBytes = 4, 1
	if len(b) < flagBytes {
		return
	}
	flags = wire.Flags(binary.LittleEndian.Uint32(b))
	for b = b[flagBytes:]; len(b) > kindBytes+4; {
		kind, size := b[0], int(int32(binary.LittleEndian.Uint32(b[kindBytes:])))
		if size < 4 || size > len(b)-kindBytes {
			return flags, nil, false
		}
		if kind == 0 {
			return flags, bson.Raw(b[kindBytes : kindBytes+size]), size > 4
		}
		b = b[kindBytes+size:]
	}
	return flags, nil, false
}

// compose returns the reply to a request. Clients do not read its own id.
func (r *request) compose(doc bson.Raw) []byte {
	if r.OpCode == wire.OpQuery {
		return wire.AppendReply(nil, 0, r.RequestID, doc)
	}
	return wire.AppendMsg(nil, 0, r.RequestID, r.flags&wire.ChecksumPresent, doc)
}

// reply is a message of the server with one document.
type reply struct {
	wire.Header
	flags wire.Flags
	doc   bson.Raw
}

func succeeded(reply bson.Raw) bool {
	ok, _ := reply.Lookup("ok").AsInt64OK()
	return ok == 1
}

const replyHead = 4 + 8 + 4 + 4 // bytes before the documents of an OP_REPLY

func parseReply(message []byte) (r reply, ok bool) {
	h, body, err := wire.Split(message)
	if err != nil {
		return r, false
	}
	r.Header = h
	switch {
	case h.OpCode == wire.OpMsg:
		r.flags, r.doc, ok = bodyOf(body)
	case h.OpCode == wire.OpReply && len(body) > replyHead:
		r.doc, ok = bson.Raw(body[replyHead:]), true
	}
	return r, ok && r.doc.Validate() == nil
}

// with returns the message with another document.
func (r *reply) with(doc bson.Raw) []byte {
	if r.OpCode == wire.OpReply {
		return wire.AppendReply(nil, r.RequestID, r.ResponseTo, doc)
	}
	return wire.AppendMsg(nil, r.RequestID, r.ResponseTo, r.flags&(wire.ChecksumPresent|wire.MoreToCome), doc)
}
