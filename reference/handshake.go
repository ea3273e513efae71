package reference

import (
	"bytes"
	"context"
	"net"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// rewriteHello sets fields of the topology's hello or legacy hello, an OP_MSG or OP_QUERY, and removes those whose
// value is nil. Messages without the field backpressure, which the topology always sends, are returned unchanged.
func rewriteHello(message []byte, fields ...bson.E) []byte {
	const name, header = "backpressure", 16
	_, _, _, opcode, _, ok := wiremessage.ReadHeader(message)
	at := header + 4 + 1 // flags, and the kind of the section
	//lint:ignore SA1019 the first message of a connection may be one
	if opcode == wiremessage.OpQuery {
		at = header + 4 + len("admin.$cmd\x00") + 4 + 4
	} else if opcode != wiremessage.OpMsg {
		return message
	}
	if !ok || len(message) < at || !bytes.Contains(message, []byte(name)) {
		return message
	}
	doc := bsoncore.Document(message[at:])
	elements, err := doc.Elements()
	if length, _, ok := bsoncore.ReadLength(doc); !ok || int(length) != len(doc) || err != nil || len(elements) == 0 {
		return message
	}
	named := func(name string) func(bsoncore.Element) bool {
		return func(e bsoncore.Element) bool { return e.Key() == name }
	}
	if !slices.ContainsFunc(elements, named(name)) ||
		!slices.Contains([]string{"hello", "isMaster", "ismaster"}, elements[0].Key()) {
		return message
	}
	for _, f := range fields {
		elements = slices.DeleteFunc(elements, named(f.Key))
	}
	out := slices.Clone(message[:at])
	start, out := bsoncore.AppendDocumentStart(out)
	for _, e := range elements {
		out = append(out, e...)
	}
	for _, f := range fields {
		if f.Value == nil {
			continue
		}
		kind, data, err := bson.MarshalValue(f.Value)
		if err != nil {
			return message
		}
		out = append(bsoncore.AppendHeader(out, bsoncore.Type(kind), f.Key), data...)
	}
	if out, err = bsoncore.AppendDocumentEnd(out, start); err != nil {
		return message
	}
	return bsoncore.UpdateLength(out, 0, int32(len(out)))
}

// handshaker limits the commands of a handshake, and distinguishes an error reply to hello from a network error. Only
// network errors have the labels SystemOverloadedError and RetryableError (Connection Monitoring and Pooling,
// "Connection Pool", backpressure-enabled), and only since retry.ConnectionLabels, but the topology adds them to both.
type handshaker struct {
	topology.Handshaker
	sockets *sockets
}

// GetHandshakeInformation sends hello.
func (h handshaker) GetHandshakeInformation(ctx context.Context, a address.Address,
	c *mnet.Connection) (xdriver.HandshakeInformation, error) {
	l := h.sockets.limit(a.String())
	g := greet(ctx, c, l.hello(ctx))
	info, err := h.Handshaker.GetHandshakeInformation(g.context(), a, c)
	g.limit = l
	if err != nil {
		h.sockets.failed(a.String(), l)
		if !h.sockets.labels || innermostCommand(err) != nil {
			err = unlabelled{err}
		}
	}
	return info, err
}

// FinishHandshake authenticates.
func (h handshaker) FinishHandshake(_ context.Context, c *mnet.Connection) error {
	g := c.ReadWriteCloser.(*greeting)
	err := h.Handshaker.FinishHandshake(g.context(), c)
	if err != nil {
		h.sockets.failed(c.Address().String(), g.limit)
	}
	return err
}

// unlabelled is an error that does not mean that the server is overloaded. To the topology it looks like a TLS alert of
// the peer.
type unlabelled struct{ error }

func (r unlabelled) Unwrap() error { return r.error }

// As implements the interface of errors.As.
func (r unlabelled) As(target any) bool {
	op, ok := target.(**net.OpError)
	if ok {
		*op = &net.OpError{Op: "remote error", Err: r.error}
	}
	return ok
}
