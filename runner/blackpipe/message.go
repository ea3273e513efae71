package blackpipe

import (
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/unified-test-runner/utr/internal/wire"
)

// Message is a command from a client. A server with a script replies to it automatically.
type Message struct {
	// Name of the command: the key of its first field.
	Name string
	// Command is the complete command, with document sequences as arrays.
	Command bson.Raw
	// Unacknowledged is set if the client does not expect a reply.
	Unacknowledged bool

	conn   net.Conn
	id     int32
	opcode wire.OpCode
}

// Reply replies with a document, and adds ok: 1 if it has no ok. Nil is {ok: 1}. Unacknowledged commands get no reply.
// Reply fails if the document cannot be marshaled or the connection is closed.
func (m *Message) Reply(doc any) error {
	reply, err := m.reply(doc)
	if err == nil && !m.Unacknowledged {
		_, err = m.conn.Write(reply)
	}
	return err
}

// ReplyHalf sends the first half of a reply, and closes the connection.
func (m *Message) ReplyHalf(doc any) error {
	reply, err := m.reply(doc)
	if err == nil {
		_, err = m.conn.Write(reply[:len(reply)/2])
	}
	m.HangUp()
	return err
}

// HangUp closes the connection.
func (m *Message) HangUp() { _ = m.conn.Close() }

func (m *Message) reply(doc any) ([]byte, error) {
	if doc == nil {
		doc = bson.D{}
	}
	text, err := bson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if _, err := bson.Raw(text).LookupErr("ok"); err != nil {
		text = append(bsoncore.AppendDoubleElement(text[:len(text)-1], "ok", 1), 0)
		text = bsoncore.UpdateLength(text, 0, int32(len(text)))
	}
	if m.opcode == wire.OpQuery { // the first hello
		return wire.AppendReply(nil, 0, m.id, text), nil
	}
	return wire.AppendMsg(nil, 0, m.id, 0, text), nil
}
