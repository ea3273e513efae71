package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// link is one connection to one server, for one command after the other. A
// driver's client would wait for heartbeats where a server that is being set up
// comes and goes; this one just connects anew. It is not for concurrent use.
type link struct {
	address string
	secure  *tls.Config // nil: no TLS
	conn    net.Conn    // nil: not connected, or not any more
	id      int32       // of the last message
}

// maxReply is the longest message that a server sends, in bytes.
const maxReply = 48_000_000

// run runs a command on the database admin. What the server refuses is a
// mongo.CommandError.
func (l *link) run(ctx context.Context, command bson.D) (bson.Raw, error) {
	reply, err := l.exchange(ctx, command)
	if err != nil {
		l.close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		return nil, err
	}
	return reply, refusal(reply)
}

// refusal is the error that a reply tells of.
func refusal(reply bson.Raw) error {
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok == 1 {
		return nil
	}
	var told struct {
		Code     int32
		CodeName string `bson:"codeName"`
		Errmsg   string
	}
	if err := bson.Unmarshal(reply, &told); err != nil {
		return fmt.Errorf("the reply cannot be read: %w", err)
	}
	if told.Code == 0 && told.Errmsg == "" {
		return errors.New("the server says neither that all is well nor what is wrong")
	}
	return mongo.CommandError{Code: told.Code, Name: told.CodeName, Message: told.Errmsg}
}

// exchange sends a message and reads the reply.
func (l *link) exchange(ctx context.Context, command bson.D) (bson.Raw, error) {
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	// The end of the context ends reads and writes.
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body, err := bson.Marshal(slices.Concat(command, bson.D{{Key: "$db", Value: "admin"}}))
	if err != nil {
		return nil, err
	}
	l.id++ // never 0, which no reply is to
	start, message := wiremessage.AppendHeaderStart(nil, l.id, 0, wiremessage.OpMsg)
	message = wiremessage.AppendMsgFlags(message, 0)
	message = wiremessage.AppendMsgSectionType(message, wiremessage.SingleDocument)
	message = append(message, body...)
	length := len(message)
	for i := range 4 {
		message[int(start)+i] = byte(length >> (8 * i))
	}
	if _, err := l.conn.Write(message); err != nil {
		return nil, err
	}
	return l.read()
}

func (l *link) connect(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	dialer := &net.Dialer{Timeout: commandLimit}
	var err error
	if l.secure == nil {
		l.conn, err = dialer.DialContext(ctx, "tcp", l.address)
		return err
	}
	conn, err := (&tls.Dialer{NetDialer: dialer, Config: l.secure}).DialContext(ctx, "tcp", l.address)
	if err == nil {
		l.conn = conn
	}
	return err
}

const headerLength = 16

// errReply tells of bytes that are no reply.
var errReply = errors.New("what answers does not speak as a server does")

func (l *link) read() (bson.Raw, error) {
	header := make([]byte, headerLength)
	if _, err := io.ReadFull(l.conn, header); err != nil {
		return nil, err
	}
	length, _, responseTo, opcode, _, ok := wiremessage.ReadHeader(header)
	if !ok || opcode != wiremessage.OpMsg || responseTo != l.id || length <= headerLength || length > maxReply {
		return nil, errReply
	}
	rest := make([]byte, length-headerLength)
	if _, err := io.ReadFull(l.conn, rest); err != nil {
		return nil, err
	}
	_, rest, ok = wiremessage.ReadMsgFlags(rest)
	if !ok {
		return nil, errReply
	}
	section, rest, ok := wiremessage.ReadMsgSectionType(rest)
	if !ok || section != wiremessage.SingleDocument {
		return nil, errReply
	}
	document, _, ok := wiremessage.ReadMsgSectionSingleDocument(rest)
	if !ok || bson.Raw(document).Validate() != nil {
		return nil, errReply
	}
	return bson.Raw(document), nil
}

func (l *link) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}
