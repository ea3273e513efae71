// Package farewell closes the connections of a client such that every command
// that was sent is over when the client is closed: an unacknowledged write, and
// one whose reply nobody waits for any more. Closed like any other, the server
// may come to read or to execute it only when the next test has made its initial
// data and set its fail points.
package farewell

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Limit bounds how long a server may take to execute what it was sent.
const Limit = time.Second

// Group are the connections of one client. The zero value will do. Its methods
// may be called concurrently.
type Group struct {
	mu      sync.Mutex
	leaving int
	over    chan struct{} // closed when nobody is leaving any more, nil if nobody waits
}

// Wait waits until all servers are done with what they were sent on connections
// that have been closed, each for Limit at most.
func (g *Group) Wait() {
	g.mu.Lock()
	if g.leaving == 0 {
		g.mu.Unlock()
		return
	}
	if g.over == nil {
		g.over = make(chan struct{})
	}
	over := g.over
	g.mu.Unlock()
	<-over
}

// add counts connections that are leaving.
func (g *Group) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving += n; g.leaving == 0 && g.over != nil {
		close(g.over)
		g.over = nil
	}
}

// Conn gives a connection on which each Write is one whole message of the wire
// protocol, not encrypted, and whose Close lets the server finish.
func (g *Group) Conn(c net.Conn) net.Conn {
	k := &conn{Conn: c, group: g}
	k.quiet.L = &k.mu
	return k
}

// conn is a connection that knows whether its server owes it anything.
type conn struct {
	net.Conn
	group *Group

	mu    sync.Mutex
	quiet sync.Cond // nobody is busy
	owed  bool      // nothing has come since the last message
	busy  int       // who reads or writes
	left  bool      // Close was called
}

// Write sends a message.
func (k *conn) Write(message []byte) (int, error) {
	k.mu.Lock()
	if k.left {
		k.mu.Unlock()
		return 0, net.ErrClosed
	}
	k.owed = awaited(message)
	k.busy++
	k.mu.Unlock()
	n, err := k.Conn.Write(message)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done()
	return n, err
}

// done says that somebody is no longer busy. The caller holds mu.
func (k *conn) done() {
	if k.busy--; k.busy == 0 {
		k.quiet.Broadcast()
	}
}

// Read reads. What comes when the connection was closed is nobody's.
func (k *conn) Read(b []byte) (int, error) {
	k.mu.Lock()
	if k.left {
		k.mu.Unlock()
		return 0, net.ErrClosed
	}
	k.busy++
	k.mu.Unlock()
	n, err := k.Conn.Read(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done()
	if k.left {
		return 0, net.ErrClosed
	}
	k.owed = k.owed && n == 0
	return n, err
}

// Close closes the connection for its user. If the server owes it anything, it
// only stops sending, and goes on in the background: servers read and execute
// all that was sent before they see the end and close their side. It may be
// called more than once.
func (k *conn) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	again := k.left
	k.left = true
	half, ok := k.Conn.(halfCloser)
	switch {
	case again:
		return nil
	case !k.owed || !ok:
		return k.Conn.Close()
	}
	if err := k.Conn.SetDeadline(time.Unix(1, 0)); err != nil { // whoever is busy hears of it
		return errors.Join(err, k.Conn.Close())
	}
	k.group.add(1)
	go k.leave(half)
	return nil
}

// halfCloser is a connection whose ends can be closed one by one.
type halfCloser interface{ CloseWrite() error }

// leave says that nothing more comes, and waits for the server's end.
func (k *conn) leave(half halfCloser) {
	defer k.group.add(-1)
	k.mu.Lock()
	for k.busy > 0 {
		k.quiet.Wait()
	}
	k.mu.Unlock()
	if half.CloseWrite() == nil && k.Conn.SetReadDeadline(time.Now().Add(Limit)) == nil {
		_, _ = io.Copy(io.Discard, k.Conn) // its end is what matters
	}
	_ = k.Conn.Close()
}

// SetDeadline sets no deadline of a connection that was closed.
func (k *conn) SetDeadline(t time.Time) error { return k.set(k.Conn.SetDeadline, t) }

// SetReadDeadline does likewise.
func (k *conn) SetReadDeadline(t time.Time) error { return k.set(k.Conn.SetReadDeadline, t) }

// SetWriteDeadline does likewise.
func (k *conn) SetWriteDeadline(t time.Time) error { return k.set(k.Conn.SetWriteDeadline, t) }

func (k *conn) set(deadline func(time.Time) error, t time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left {
		return net.ErrClosed
	}
	return deadline(t)
}

// awaited reports whether the end of a message is worth waiting for. That of an
// awaitable hello comes when the topology changes, and concerns nobody else. Of
// what is encrypted nothing can be told.
func awaited(message []byte) bool {
	length, _, _, opcode, rest, ok := wiremessage.ReadHeader(message)
	if !ok || int(length) != len(message) {
		return false
	}
	switch opcode {
	case wiremessage.OpMsg:
		flags, _, ok := wiremessage.ReadMsgFlags(rest)
		return ok && flags&wiremessage.ExhaustAllowed == 0
	case wiremessage.OpCompressed, opQuery:
		return true
	}
	return false
}

// opQuery is the code of OP_QUERY, which the first hello of a connection may be.
const opQuery wiremessage.OpCode = 2004
