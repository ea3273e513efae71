// Package wire runs commands on servers without a handshake, each on a
// connection of its own, and knows what error codes mean. A client of the driver
// waits for heartbeats where a server is being set up, and does not get in where a
// fail point fails the handshake; servers do not insist on one, unless they
// require authentication.
package wire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Run runs a command on the server at host:port, with TLS if secure is not nil.
// What the server refuses is a mongo.CommandError.
func Run(ctx context.Context, address string, secure *tls.Config, database string, command bson.D) (bson.Raw, error) {
	reply, err := exchange(ctx, address, secure, slices.Concat(command, bson.D{{Key: "$db", Value: database}}))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err != nil {
		return nil, err
	}
	return reply, refusal(reply)
}

func exchange(ctx context.Context, address string, secure *tls.Config, command bson.D) (bson.Raw, error) {
	dial := new(net.Dialer).DialContext
	if secure != nil {
		dial = (&tls.Dialer{Config: secure}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	// The end of the context ends reads and writes.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body, err := bson.Marshal(command)
	if err != nil {
		return nil, err
	}
	start, message := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	message = wiremessage.AppendMsgFlags(message, 0)
	message = wiremessage.AppendMsgSectionType(message, wiremessage.SingleDocument)
	message = append(message, body...)
	if _, err := conn.Write(bsoncore.UpdateLength(message, start, int32(len(message)))); err != nil {
		return nil, err
	}
	return read(conn)
}

// Hello is what a server says of itself, in the words of isMaster, which all
// versions know.
type Hello struct {
	Msg       string
	SetName   string `bson:"setName"`
	Writable  bool   `bson:"ismaster"` // a primary, a standalone, or a mongos
	Secondary bool
	Arbiter   bool     `bson:"arbiterOnly"`
	Hosts     []string // of the members of its set, as are those that follow
	Passives  []string
	Arbiters  []string
}

// ReadHello reads what a command gave.
func ReadHello(reply bson.Raw, err error) (h Hello, _ error) {
	if err == nil {
		err = bson.Unmarshal(reply, &h)
	}
	return h, err
}

// Mongos reports whether the server is one.
func (h Hello) Mongos() bool { return h.Msg == "isdbgrid" }

// A reply has at most so many bytes. Header, flags and the kind of its section
// come first.
const (
	headLength = 16 + 4 + 1
	maxReply   = 48_000_000
)

// errReply means that bytes are not a reply.
var errReply = errors.New("what answers does not speak as a server does")

func read(r io.Reader) (bson.Raw, error) {
	var head [headLength]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	op := wiremessage.OpCode(binary.LittleEndian.Uint32(head[12:]))
	if op != wiremessage.OpMsg || head[headLength-1] != byte(wiremessage.SingleDocument) || size < headLength || size > maxReply {
		return nil, errReply
	}
	body := make(bson.Raw, size-headLength)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if body.Validate() != nil {
		return nil, errReply
	}
	return body, nil
}

// refusal is the error in a reply.
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

// passing are codes of errors that say nothing of the command: a server that is
// no primary or is going away, and a mongos that does not reach one (Retryable
// Reads, "Retryable Error"; Change Streams, "Resumable Error").
var passing = []int32{6, 7, 89, 91, 133, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}

// Passing reports whether a command that failed can be tried again as it was, if
// to do it twice is to do it once: the network was to blame, or a server for a
// while. So it is with writes that were done, if the wait for a majority ended
// so.
func Passing(err error) bool {
	return mongo.IsNetworkError(err) || slices.Contains(passing, CodeOf(err))
}

// CodeOf gives the server's code of an error, that of a write concern error if
// the command itself went well; 0 if it has none.
func CodeOf(err error) int32 {
	var refused mongo.CommandError
	var written mongo.WriteException
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case errors.As(err, &written) && len(written.WriteErrors) == 0 && written.WriteConcernError != nil:
		return int32(written.WriteConcernError.Code)
	}
	return 0
}
