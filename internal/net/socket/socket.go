package socket

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// Socket is an unencrypted connection of the driver. Each Write must be one whole message. If a reply does not belong
// to the last message, Read returns a *replies.Error.
type Socket struct {
	net.Conn
	Address string
	Monitor bool
	Pooled  bool // a pool uses it; set by the dialer
	owner   *Dialer
	checked *replies.Conn // over Conn

	using sync.RWMutex // read-locked during Read and Write

	// Guarded by owner.
	awaitable bool // an awaitable hello was sent: the next read starts the stream
	streams   bool
	reading   bool
	owed      bool // the reply to the last message has not arrived
	closed    bool
	held      int       // calls of Hold without Release
	until     time.Time // when Hold expires
}

// closeLimit limits how long a closed socket waits for the server to close its side.
const closeLimit = time.Second

// Streams reports whether a monitor streams hello replies on the socket.
func (k *Socket) Streams() bool { return k.holds(&k.streams) }

// Closed reports whether the socket was closed.
func (k *Socket) Closed() bool { return k.holds(&k.closed) }

// holds reads a field that owner guards.
func (k *Socket) holds(field *bool) bool {
	k.owner.Lock()
	defer k.owner.Unlock()
	return *field
}

// Close closes the socket for its user. It may be called more than once.
// If a reply is outstanding, Close closes only the write side and returns. The socket then waits in the background
// until the server closes its side. A server executes everything that it received before the end of the connection.
// Without the wait, it might execute a command after the next test has inserted its initial data and set its fail
// points.
func (k *Socket) Close() error {
	d := k.owner
	half, halves := k.Conn.(interface{ CloseWrite() error })
	var wasClosed, leaves bool
	d.Update(func() {
		wasClosed, leaves = k.closed, k.owed && halves && !k.closed
		if leaves {
			d.leaving++
		}
		if k.streams && k.reading && !k.closed && d.Canceled != nil {
			d.Canceled(k.Address)
		}
		k.closed = true
		delete(d.open, k)
		if d.streams[k.Address] == k {
			delete(d.streams, k.Address)
		}
	})
	switch {
	case wasClosed:
		return nil
	case !leaves:
		return k.Conn.Close()
	}
	err := k.Conn.SetDeadline(time.Unix(1, 0)) // wakes readers and writers
	if err != nil {
		err = errors.Join(err, k.Conn.Close())
	}
	go k.leave(half.CloseWrite)
	return err
}

// leave closes the write side and waits until the server closes its side.
func (k *Socket) leave(closeWrite func() error) {
	k.using.Lock()
	defer k.using.Unlock()
	if closeWrite() == nil && k.Conn.SetReadDeadline(time.Now().Add(closeLimit)) == nil {
		_, _ = io.Copy(io.Discard, k.Conn)
	}
	_ = k.Conn.Close()
	k.owner.Update(func() { k.owner.leaving-- })
}

// use locks the socket for reading or writing, unless it is closed. The caller holds
// owner, so that leave waits for all users.
func (k *Socket) use() bool {
	if k.closed {
		return false
	}
	k.using.RLock()
	return true
}

// Write records an awaitable hello. Only monitors send it.
func (k *Socket) Write(message []byte) (int, error) {
	d := k.owner
	d.Lock()
	open := k.use()
	owed, exhausts := answered(message)
	k.owed, k.awaitable = owed, k.awaitable || exhausts
	d.Unlock()
	if !open {
		return 0, net.ErrClosed
	}
	out := message
	if d.Sent != nil {
		out = d.Sent(k, message)
	}
	n, err := k.checked.Write(out)
	k.using.RUnlock()
	if err != nil && d.Failed != nil {
		d.Failed(k, err)
	}
	if n == len(out) {
		n = len(message)
	}
	return min(n, len(message)), err
}

// Read delays what a monitor reads while its stream is held. Data that arrives after Close is discarded.
//
// The stream starts with the first read after the awaitable hello, not with the hello: a monitor whose connection is
// closed before it reads does not treat that as a network error, and sleeps for minHeartbeatFrequencyMS.
func (k *Socket) Read(b []byte) (int, error) {
	d := k.owner
	open := false
	d.Update(func() {
		if open = k.use(); !open {
			return
		}
		k.reading = true
		if k.awaitable && !k.streams {
			k.streams = true
			d.streams[k.Address] = k
		}
	})
	if !open {
		return 0, net.ErrClosed
	}
	n, err := k.checked.Read(b)
	k.using.RUnlock()
	if err == nil && k.Streams() {
		for !d.Await(context.Background(), d.HoldLimit, k.passes) {
			continue
		}
	}
	d.Update(func() {
		k.reading = false
		k.owed = k.owed && n == 0
		if k.closed || err == nil && k.streams && d.shut && k.held > 0 {
			n, err = 0, net.ErrClosed
		}
	})
	if err != nil && d.Failed != nil {
		d.Failed(k, err)
	}
	return n, err
}

// passes reports whether data may reach the monitor. If so, Hold waits until the
// monitor has processed it. The caller holds owner.
func (k *Socket) passes() bool {
	if !time.Now().Before(k.until) {
		k.held = 0
	}
	k.reading = k.held > 0 && !k.closed && !k.owner.shut
	return !k.reading
}

// SetDeadline, SetReadDeadline and SetWriteDeadline fail after Close, because leave sets its own deadline.
func (k *Socket) SetDeadline(t time.Time) error      { return k.set(k.Conn.SetDeadline, t) }
func (k *Socket) SetReadDeadline(t time.Time) error  { return k.set(k.Conn.SetReadDeadline, t) }
func (k *Socket) SetWriteDeadline(t time.Time) error { return k.set(k.Conn.SetWriteDeadline, t) }

func (k *Socket) set(deadline func(time.Time) error, t time.Time) error {
	k.owner.Lock()
	defer k.owner.Unlock()
	if k.closed {
		return net.ErrClosed
	}
	return deadline(t)
}

// answered reports whether Close must wait for the execution of a message, and whether the message is an awaitable
// hello. Close does not wait for awaitable hellos: they affect no other test.
func answered(message []byte) (owed, exhausts bool) {
	length, _, _, opcode, rest, ok := wiremessage.ReadHeader(message)
	whole := ok && int(length) == len(message)
	switch opcode {
	case wire.OpMsg:
		flags, _, ok := wiremessage.ReadMsgFlags(rest)
		exhausts = ok && flags&wiremessage.ExhaustAllowed != 0
		return whole && ok && !exhausts, exhausts
	case wire.OpCompressed, wire.OpQuery: // the first hello of a connection may be an OP_QUERY
		return whole, false
	}
	return false, false
}
