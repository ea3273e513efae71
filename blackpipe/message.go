package blackpipe

import (
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/wire"
)

// Message is a command that a client has sent, and waits for an answer.
type Message struct {
	// Name is that of the command: the key of its first field.
	Name string
	// Command is the whole command. Document sequences are arrays in it.
	Command bson.Raw
	// Unacknowledged reports whether the client reads no reply.
	Unacknowledged bool

	conn   net.Conn
	id     int32
	opcode wire.OpCode
}

// Reply answers with a document, to which ok: 1 is added if it has no ok. Nil is {ok: 1}. An
// unacknowledged command gets no reply. The error says that the document is not one, or
// that the connection is gone.
func (m *Message) Reply(doc any) error {
	answer, err := m.answer(doc)
	if err == nil && !m.Unacknowledged {
		_, err = m.conn.Write(answer)
	}
	return err
}

// ReplyHalf sends the first half of a reply, and hangs up.
func (m *Message) ReplyHalf(doc any) error {
	answer, err := m.answer(doc)
	if err == nil {
		_, err = m.conn.Write(answer[:len(answer)/2])
	}
	m.HangUp()
	return err
}

// HangUp closes the connection.
func (m *Message) HangUp() { _ = m.conn.Close() }

// answer is the message of a reply.
func (m *Message) answer(doc any) ([]byte, error) {
	if doc == nil {
		doc = bson.D{}
	}
	text, err := bson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if _, err := bson.Raw(text).LookupErr("ok"); err != nil {
		var fields bson.D
		if err := bson.Unmarshal(text, &fields); err != nil {
			return nil, err
		}
		if text, err = bson.Marshal(append(fields, bson.E{Key: "ok", Value: 1.0})); err != nil {
			return nil, err
		}
	}
	if m.opcode == wire.OpQuery { // the first hello
		return wire.AppendReply(nil, 0, m.id, text), nil
	}
	return wire.AppendMsg(nil, 0, m.id, 0, text), nil
}
