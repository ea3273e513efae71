package reference

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/internal/wire/godriver"
)

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
	g := limitHandshake(ctx, c, l.hello(ctx))
	info, err := h.Handshaker.GetHandshakeInformation(g.context(), a, c)
	g.limit = l
	if err != nil {
		h.sockets.failed(a.String(), l)
		if !h.sockets.labels || innermostCommand(err) != nil {
			err = godriver.Unlabel(err)
		}
	}
	return info, err
}

// FinishHandshake authenticates.
func (h handshaker) FinishHandshake(_ context.Context, c *mnet.Connection) error {
	g := c.ReadWriteCloser.(*timedConn)
	err := h.Handshaker.FinishHandshake(g.context(), c)
	if err != nil {
		h.sockets.failed(c.Address().String(), g.limit)
	}
	return err
}
