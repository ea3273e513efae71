package reference

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// waitLimit is how long a check-out waits for its connection.
type waitLimit struct {
	deadline time.Time     // zero: forever, without timeoutMS
	rtt      time.Duration // the minimum round-trip time of the server
}

// limit limits the commands of one handshake: by the time of the check-out that waits for the connection (Client Side
// Operations Timeout, "Server Selection"), by the client's timeoutMS, which starts again for each command of a
// connection that no check-out waits for (there, "Background Connection Pooling"), or by socketTimeoutMS.
type limit struct {
	waitLimit
	each    time.Duration // for each command without a deadline; 0: no limit
	maxTime bool          // send maxTimeMS
}

// limit returns the limit of a connection that a pool establishes now: the limit of the check-out that waits
// longest, since any of them may get the connection.
func (s *sockets) limit(address string) limit {
	waits, longest := false, waitLimit{}
	s.change(address, func(w *serverState) {
		if waits = len(w.waiting) > 0; waits {
			longest = *slices.MaxFunc(w.waiting, func(a, b *waitLimit) int {
				if a.deadline.IsZero() || b.deadline.IsZero() {
					return b.deadline.Compare(a.deadline)
				}
				return a.deadline.Compare(b.deadline)
			})
		}
	})
	switch {
	case waits && !longest.deadline.IsZero():
		return limit{waitLimit: longest, maxTime: true}
	case !waits && s.timeout != nil:
		return limit{each: *s.timeout, maxTime: true}
	}
	return limit{each: s.socketTimeout}
}

// hello returns the limit of the first command, given the context of the pool. The text says that connectTimeoutMS is
// for the establishment of connections that no check-out waits for, and timeoutMS for the commands of their handshakes.
// The suite command-execution needs a hello that takes longer than timeoutMS.
func (l limit) hello(pool context.Context) limit {
	if l.maxTime && l.deadline.IsZero() {
		at, _ := pool.Deadline()
		return limit{waitLimit: waitLimit{deadline: at}}
	}
	return l
}

// next returns the deadline of a command that is sent now, or zero.
func (l limit) next() time.Time {
	if l.deadline.IsZero() && l.each > 0 {
		return time.Now().Add(l.each)
	}
	return l.deadline
}

// settle delays the error of a handshake that has run out of time until the check-outs that have also run out of time
// have failed. Otherwise one of them might report the error of the handshake, and be retried.
func (s *sockets) settle(address string, l limit) {
	if !l.deadline.IsZero() && time.Until(l.deadline) <= l.rtt {
		s.Await(context.Background(), monitorTimeout, func() bool {
			return !slices.ContainsFunc(s.at(address).waiting, func(p *waitLimit) bool { return *p == l.waitLimit })
		})
	}
}

// timedConn is a connection during its handshake. Each command has the deadline of its limit, instead of the
// deadline of the pool, connectTimeoutMS.
type timedConn struct {
	mnet.ReadWriteCloser
	limit
	base context.Context // ends when the pool is closed
	due  time.Time       // deadline of the current command
}

// limitHandshake limits the commands of a handshake on c.
func limitHandshake(ctx context.Context, c *mnet.Connection, l limit) *timedConn {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	g := &timedConn{ReadWriteCloser: c.ReadWriteCloser, limit: l, base: base}
	c.ReadWriteCloser = g
	return g
}

// Write begins a command.
func (g *timedConn) Write(_ context.Context, message []byte) error {
	g.due = g.next()
	ctx, cancel := g.within()
	defer cancel()
	return g.ReadWriteCloser.Write(ctx, message)
}

// Read reads the reply.
func (g *timedConn) Read(context.Context) ([]byte, error) {
	ctx, cancel := g.within()
	defer cancel()
	return g.ReadWriteCloser.Read(ctx)
}

func (g *timedConn) within() (context.Context, context.CancelFunc) {
	if g.due.IsZero() {
		return g.base, func() {}
	}
	return context.WithDeadline(g.base, g.due)
}

// context returns the context of the handshake's commands. The Go driver derives maxTimeMS from its deadline.
func (g *timedConn) context() context.Context { return handshakeContext{g.base, g} }

type handshakeContext struct {
	context.Context
	g *timedConn
}

// Deadline implements context.Context.
func (c handshakeContext) Deadline() (time.Time, bool) {
	next := c.g.next()
	return next.Add(-c.g.rtt), c.g.maxTime && !next.IsZero()
}
