package reference

import (
	"context"
	"encoding/binary"
	"net"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// withBackpressure gives the topology's hello or legacy hello, as OP_MSG or
// OP_QUERY, the field backpressure of the policy: a string, a bool, or none. The
// topology sends that of today; any message without the field stays as it is.
func withBackpressure(message []byte, value any) []byte {
	const name = "backpressure"
	at, ok := bodyOf(message)
	if !ok {
		return message
	}
	doc := bsoncore.Document(message[at:])
	first, err := doc.IndexErr(0)
	if err != nil || !slices.Contains([]string{"hello", "isMaster", "ismaster"}, first.Key()) {
		return message
	}
	if _, err := doc.LookupErr(name); err != nil {
		return message
	}
	elements, err := doc.Elements()
	if length, _, ok := bsoncore.ReadLength(doc); err != nil || !ok || int(length) != len(doc) || doc.Validate() != nil {
		return message
	}
	out := slices.Clone(message[:at+4])
	for _, e := range elements {
		if e.Key() != name {
			out = append(out, e...)
		}
	}
	switch v := value.(type) {
	case string:
		out = bsoncore.AppendStringElement(out, name, v)
	case bool:
		out = bsoncore.AppendBooleanElement(out, name, v)
	}
	out = append(out, 0)
	binary.LittleEndian.PutUint32(out[at:], uint32(len(out)-at))
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return out
}

// bodyOf finds where the command of a message begins. False for messages that
// a handshake never is: those with a checksum or a document sequence first.
func bodyOf(message []byte) (int, bool) {
	const header = 16
	if len(message) < header+5 || int(binary.LittleEndian.Uint32(message)) != len(message) {
		return 0, false
	}
	switch wiremessage.OpCode(binary.LittleEndian.Uint32(message[12:])) {
	case wiremessage.OpMsg:
		flags := wiremessage.MsgFlag(binary.LittleEndian.Uint32(message[header:]))
		return header + 5, message[header+4] == 0 && flags&wiremessage.ChecksumPresent == 0
	//lint:ignore SA1019 the first message of a connection may be one
	case wiremessage.OpQuery:
		end := slices.Index(message[header+4:], 0)
		at := header + 4 + end + 1 + 8 // the name, numberToSkip, numberToReturn
		return at, end >= 0 && at <= len(message)
	}
	return 0, false
}

// answered makes the pool tell a server that has answered hello with an error
// from one that has not answered. Only network errors get the labels
// SystemOverloadedError and RetryableError (Connection Monitoring and Pooling,
// "Connection Pool", backpressure-enabled); the topology labels both.
//
// It calls failed with the address of a server before the topology hears of a
// handshake's error.
func answered(failed func(address string)) func(...topology.ConnectionOption) []topology.ConnectionOption {
	return func(o ...topology.ConnectionOption) []topology.ConnectionOption {
		return append(o, topology.WithHandshaker(func(h topology.Handshaker) topology.Handshaker { return handshaker{h, failed} }))
	}
}

type handshaker struct {
	topology.Handshaker
	failed func(address string)
}

// GetHandshakeInformation sends hello.
func (h handshaker) GetHandshakeInformation(ctx context.Context, a address.Address, c *mnet.Connection) (mongo.HandshakeInformation, error) {
	info, err := h.Handshaker.GetHandshakeInformation(ctx, a, c)
	if err != nil {
		h.failed(a.String())
	}
	if err != nil && innermostCommand(err) != nil {
		err = refused{err}
	}
	return info, err
}

// FinishHandshake authenticates.
func (h handshaker) FinishHandshake(ctx context.Context, c *mnet.Connection) error {
	err := h.Handshaker.FinishHandshake(ctx, c)
	if err != nil {
		h.failed(c.Address().String())
	}
	return err
}

// refused is an error reply to hello. The topology takes it as it takes the
// alert of a peer that refuses a TLS handshake: it was answered, so that the
// server is not overloaded.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// As implements what errors.As asks for.
func (r refused) As(target any) bool {
	op, ok := target.(**net.OpError)
	if ok {
		*op = &net.OpError{Op: "remote error", Err: r.error}
	}
	return ok
}
