package proxy

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// message is a message with one document.
type message struct {
	wire.Header
	wire.Msg // of an OP_QUERY or OP_REPLY only the body
}

// request is a command of a client.
type request struct {
	message
	name, db string
}

// namespace returns the namespace of the command, as fail points see it.
func (r *request) namespace() string {
	if r.OpCode == wire.OpQuery {
		return r.db
	}
	return server.NamespaceOf(r.Body)
}

// parse finds the command in a message. The server refuses a message that is not valid.
func parse(text []byte) (r request, ok bool) {
	m, body, ok := split(text)
	switch r.message = m; m.OpCode {
	case wire.OpMsg:
		r.db = value.TextAt(r.Body, "$db")
	case wire.OpQuery:
		var namespace string
		namespace, r.Body, _ = wire.ParseQuery(body) // without a body, it has no command
		r.db, ok = strings.CutSuffix(namespace, ".$cmd")
	}
	if !ok {
		return r, false
	}
	first, err := r.Body.IndexErr(0)
	if err != nil {
		return r, false
	}
	r.name = first.Key()
	return r, true
}

// compose returns the reply to a request. Clients do not read its own id.
func (r *request) compose(doc bson.Raw) []byte {
	if r.OpCode == wire.OpQuery {
		return wire.AppendReply(nil, 0, r.RequestID, doc)
	}
	return wire.AppendMsg(nil, 0, r.RequestID, r.Flags&wire.ChecksumPresent, doc)
}

func succeeded(reply bson.Raw) bool { return value.IntAt(reply, "ok") == 1 }

const replyHead = 4 + 8 + 4 + 4 // bytes before the documents of an OP_REPLY

func parseReply(text []byte) (r message, ok bool) {
	r, body, ok := split(text)
	if r.OpCode == wire.OpReply && len(body) > replyHead {
		r.Body = bson.Raw(body[replyHead:])
		ok = r.Body.Validate() == nil
	}
	return r, ok
}

// split reads a message, of an OP_MSG also the content. It reports whether this is valid.
func split(text []byte) (m message, body []byte, ok bool) {
	h, body, err := wire.Split(text)
	if m.Header = h; err == nil && h.OpCode == wire.OpMsg {
		m.Msg, err = wire.ParseMsg(h, body)
		ok = err == nil
	}
	return m, body, ok
}

// bytes returns a reply with the present body.
func (r *message) bytes() []byte {
	if r.OpCode == wire.OpReply {
		return wire.AppendReply(nil, r.RequestID, r.ResponseTo, r.Body)
	}
	return wire.AppendMsg(nil, r.RequestID, r.ResponseTo, r.Flags&(wire.ChecksumPresent|wire.MoreToCome), r.Body)
}
