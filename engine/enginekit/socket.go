package enginekit

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Socket is a connection of the driver, on which each Write is one whole message,
// not encrypted.
type Socket struct {
	net.Conn
	Address string
	Monitor bool
	owner   *Sockets

	using sync.RWMutex // read-locked while somebody reads or writes

	// Guarded by mu of Sockets.
	asked   bool // an awaitable hello was sent: the next read begins to stream
	streams bool
	reading bool
	owed    bool // nothing has come since the last message
	closed  bool
	held    int       // Hold without Release
	until   time.Time // when it is not held any more
	cause   error     // what Read returns when Release has ended the stream
}

// Farewell bounds how long a server may take to execute what it was sent.
const Farewell = time.Second

// Streams reports whether a monitor reads the socket for state changes.
func (k *Socket) Streams() bool {
	k.owner.mu.Lock()
	defer k.owner.mu.Unlock()
	return k.streams
}

// Closed reports whether the socket was closed.
func (k *Socket) Closed() bool {
	k.owner.mu.Lock()
	defer k.owner.mu.Unlock()
	return k.closed
}

// Close closes the socket for its user, and forgets it. It may be called more than
// once.
//
// If the server owes it anything, the socket only stops sending, and goes on in the
// background: servers read and execute all that was sent before they see the end
// and close their side. Otherwise they might execute a command when the next test
// has made its initial data and set its fail points.
func (k *Socket) Close() error {
	s := k.owner
	half, halves := k.Conn.(halfCloser)
	var again, cancels, leaves bool
	var cause error
	s.Update(func() {
		again, cause = k.closed, k.cause
		cancels, leaves = k.streams && k.reading && !again, k.owed && halves && !again
		if leaves {
			s.leaving++
		}
		k.closed = true
		delete(s.open, k)
		if s.streams[k.Address] == k {
			delete(s.streams, k.Address)
		}
	})
	if cancels && s.Cancelled != nil {
		s.Cancelled(k.Address, cause)
	}
	switch {
	case again:
		return nil
	case !leaves:
		return k.Conn.Close()
	}
	err := k.Conn.SetDeadline(time.Unix(1, 0)) // wakes whoever reads or writes
	if err != nil {
		err = errors.Join(err, k.Conn.Close())
	}
	go k.leave(half)
	return err
}

// halfCloser is a connection whose ends can be closed one by one.
type halfCloser interface{ CloseWrite() error }

// leave ends what is sent, and waits for the server's end.
func (k *Socket) leave(half halfCloser) {
	k.using.Lock()
	defer k.using.Unlock()
	if half.CloseWrite() == nil && k.Conn.SetReadDeadline(time.Now().Add(Farewell)) == nil {
		_, _ = io.Copy(io.Discard, k.Conn) // its end is what matters
	}
	_ = k.Conn.Close()
	k.owner.Update(func() { k.owner.leaving-- })
}

// use notes that somebody reads or writes; false means that the socket is closed.
// The caller holds mu of Sockets, so that leave waits for all that use it.
func (k *Socket) use() bool {
	if k.closed {
		return false
	}
	k.using.RLock()
	return true
}

// Write looks for an awaitable hello: only monitors send it.
func (k *Socket) Write(message []byte) (int, error) {
	s := k.owner
	s.mu.Lock()
	open := k.use()
	owed, exhausts := answered(message)
	k.owed, k.asked = owed, k.asked || exhausts
	s.mu.Unlock()
	if !open {
		return 0, net.ErrClosed
	}
	out := message
	if s.Sent != nil {
		out = s.Sent(message)
	}
	n, err := k.Conn.Write(out)
	k.using.RUnlock()
	if err != nil && s.Failed != nil {
		s.Failed(k, err)
	}
	if n == len(out) {
		n = len(message)
	}
	return min(n, len(message)), err
}

// Read keeps what comes from a monitor while its stream is held. What comes
// after the socket was closed is discarded.
//
// The first read after the awaitable hello begins the stream, and not the hello
// itself: a monitor that finds its connection closed before it reads does not
// take that for a network error, and sleeps for minHeartbeatFrequencyMS.
func (k *Socket) Read(b []byte) (int, error) {
	s := k.owner
	open := false
	s.Update(func() {
		if open = k.use(); !open {
			return
		}
		k.reading = true
		if k.asked && !k.streams {
			k.streams = true
			s.streams[k.Address] = k
		}
	})
	if !open {
		return 0, net.ErrClosed
	}
	n, err := k.Conn.Read(b)
	k.using.RUnlock()
	if err == nil && k.Streams() {
		for !s.Await(context.Background(), s.Patience, k.passes) {
		}
	}
	var cause error
	s.Update(func() {
		k.reading = false
		k.owed = k.owed && n == 0
		if cause = k.cause; cause == nil && (k.closed || err == nil && k.streams && s.shut && k.held > 0) {
			cause = net.ErrClosed
		}
	})
	if cause != nil {
		n, err = 0, cause
	}
	if err != nil && s.Failed != nil {
		s.Failed(k, err)
	}
	return n, err
}

// passes reports whether what was read may reach the monitor. Hold then finds that
// the monitor is busy with it. The caller holds mu.
func (k *Socket) passes() bool {
	if !time.Now().Before(k.until) {
		k.held = 0
	}
	k.reading = k.held > 0 && !k.closed && !k.owner.shut
	return !k.reading
}

// SetDeadline sets no deadline of a socket that was closed: leave has its own.
func (k *Socket) SetDeadline(t time.Time) error { return k.set(k.Conn.SetDeadline, t) }

// SetReadDeadline does likewise.
func (k *Socket) SetReadDeadline(t time.Time) error { return k.set(k.Conn.SetReadDeadline, t) }

// SetWriteDeadline does likewise.
func (k *Socket) SetWriteDeadline(t time.Time) error { return k.set(k.Conn.SetWriteDeadline, t) }

func (k *Socket) set(deadline func(time.Time) error, t time.Time) error {
	k.owner.mu.Lock()
	defer k.owner.mu.Unlock()
	if k.closed {
		return net.ErrClosed
	}
	return deadline(t)
}

// answered reports whether the end of a message is worth waiting for, and whether
// it is an awaitable hello. That one is answered when the topology changes, which
// concerns nobody else. Encrypted messages cannot be read.
func answered(message []byte) (owed, exhausts bool) {
	length, _, _, opcode, rest, ok := wiremessage.ReadHeader(message)
	whole := ok && int(length) == len(message)
	switch opcode {
	case wiremessage.OpMsg:
		flags, _, ok := wiremessage.ReadMsgFlags(rest)
		exhausts = ok && flags&wiremessage.ExhaustAllowed != 0
		return whole && ok && !exhausts, exhausts
	case wiremessage.OpCompressed, opQuery:
		return whole, false
	}
	return false, false
}

// opQuery is the code of OP_QUERY, which the first hello of a connection may be.
const opQuery wiremessage.OpCode = 2004
