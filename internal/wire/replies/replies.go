// Package replies checks that each reply on a connection belongs to the last request. The Go driver does not check
// this: it treats a reply that arrives after a timeout as the reply to the next command.
package replies

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Error is the error of a reply that does not belong to the last message.
type Error struct{ ResponseTo, Last int32 }

func (e *Error) Error() string {
	return fmt.Sprintf("the reply is to message %d, the last message is %d", e.ResponseTo, e.Last)
}

// Conn is a connection whose reads fail forever after a reply that does not belong to the last message (OP_MSG,
// "moreToCome On Responses"; Connection Monitoring and Pooling, "Connection": Single Track). Each Write must be one
// whole message. A connection with other content, such as TLS, is not checked. Read may be concurrent with Write.
type Conn struct {
	net.Conn

	mu     sync.Mutex
	last   int32 // the last request, or the last reply if more replies follow it
	opaque bool  // not messages of the wire protocol
	start  [startLength]byte
	begun  int    // bytes of start
	rest   uint32 // bytes of the reply after start
	failed error
}

// startLength is the length of a header and the flags of an OP_MSG. All replies are longer.
const startLength = 16 + 4

// Check returns a connection with checked replies.
func Check(c net.Conn) *Conn { return &Conn{Conn: c} }

// Write implements net.Conn.
func (c *Conn) Write(message []byte) (int, error) {
	length, id, _, _, _, ok := wiremessage.ReadHeader(message)
	c.mu.Lock()
	c.last, c.opaque = id, c.opaque || !ok || int(length) != len(message)
	c.mu.Unlock()
	return c.Conn.Write(message)
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.received(b[:n]); c.failed != nil {
		return 0, c.failed
	}
	return n, err
}

// received checks the replies that begin in b.
func (c *Conn) received(b []byte) {
	for len(b) > 0 && !c.opaque && c.failed == nil {
		if skipped := min(int(c.rest), len(b)); skipped > 0 {
			c.rest, b = c.rest-uint32(skipped), b[skipped:]
			continue
		}
		n := copy(c.start[c.begun:], b)
		if c.begun, b = c.begun+n, b[n:]; c.begun < startLength {
			return
		}
		length, id, to, opcode, flags, _ := wiremessage.ReadHeader(c.start[:])
		if c.begun, c.rest = 0, uint32(max(length-startLength, 0)); to != c.last {
			c.failed = &Error{ResponseTo: to, Last: c.last}
		}
		if opcode == wiremessage.OpMsg && wiremessage.MsgFlag(binary.LittleEndian.Uint32(flags))&wiremessage.MoreToCome != 0 {
			c.last = id
		}
	}
}

// Own changes and returns the options of a client of ours: it checks replies and polls. The driver can miss an update
// of the topology while it subscribes. A client that streams heartbeats then waits up to 10 s for the next one. It may
// also wait that long when it disconnects.
func Own(o *options.ClientOptions) *options.ClientOptions {
	return o.SetDialer(Dialer{}).SetServerMonitoringMode(options.ServerMonitoringModePoll)
}

// Dialer is the dialer of our own clients. Their connections have checked replies.
type Dialer struct{}

// DialContext implements options.ContextDialer.
func (Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return Check(c), nil
}
