package driver

import (
	"errors"
	"net"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
)

// How long a heartbeat is held back, and how long a failing socket waits for the
// monitor to be out of the way; and how long a server may take to be closed.
const (
	holding = 50 * time.Millisecond
	closing = 500 * time.Millisecond
)

// newSockets dials for a client. A heartbeat must not arrive in the middle of
// the driver's handling of a network error, so a monitor's stream is held for a
// moment when another socket to the same server fails. That changes when bytes
// arrive, never what they are.
func newSockets() *enginekit.Sockets {
	s := enginekit.NewSockets(new(net.Dialer).DialContext, holding)
	s.Failed = func(k *enginekit.Socket, err error) {
		var n net.Error
		if errors.Is(err, net.ErrClosed) || errors.As(err, &n) && n.Timeout() {
			return // by the driver itself, or not a failure of the server to the driver
		}
		if !k.Streams() && !k.Closed() {
			s.Hold(k.Address)
		}
	}
	return s
}
