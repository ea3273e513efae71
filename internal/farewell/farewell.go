// Package farewell closes the connections of a client such that a command which
// has no reply, as that of an unacknowledged write, is over when the client is
// closed. Closed like any other, the server may come to read it only when the
// next test has made its initial data.
package farewell

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Limit bounds how long a server may take to execute what has no reply.
const Limit = time.Second

// Group are the connections of one client. The zero value will do. Its methods
// may be called concurrently, but for Wait.
type Group struct{ leaving sync.WaitGroup }

// Wait waits until all servers have read what they were sent, or for Limit. No
// connection is closed any more.
func (g *Group) Wait() { g.leaving.Wait() }

// Line is what one connection remembers. The zero value is that of a new one.
// Its methods may be called concurrently.
type Line struct {
	mu     sync.Mutex
	silent bool // the last message has no reply
	left   bool // Close was called
}

// Wrote hears of a message that was sent: a whole one, not encrypted.
func (l *Line) Wrote(message []byte) {
	silent := silent(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = silent
}

// Close closes the connection. After a message that has no reply it only stops
// sending, and goes on in the background: servers read and execute all that was
// sent before they see the end and close their side. It may be called more than
// once.
func (l *Line) Close(c net.Conn, g *Group) error {
	l.mu.Lock()
	silent, again := l.silent, l.left
	l.left = true
	l.mu.Unlock()
	half, ok := c.(interface{ CloseWrite() error })
	switch {
	case silent && again:
		return nil
	case !silent || !ok:
		return c.Close()
	}
	if err := half.CloseWrite(); err != nil {
		return errors.Join(err, c.Close())
	}
	g.leaving.Go(func() {
		if c.SetReadDeadline(time.Now().Add(Limit)) == nil {
			_, _ = io.Copy(io.Discard, c) // its end is what matters
		}
		_ = c.Close()
	})
	return nil
}

// silent tells that a message is an OP_MSG with moreToCome, compressed or not.
func silent(message []byte) bool {
	_, _, _, opcode, rest, ok := wiremessage.ReadHeader(message)
	if ok && opcode == wiremessage.OpCompressed {
		opcode, rest, ok = unpack(rest)
	}
	if !ok || opcode != wiremessage.OpMsg {
		return false
	}
	flags, _, ok := wiremessage.ReadMsgFlags(rest)
	return ok && flags&wiremessage.MoreToCome != 0
}

// unpack gives the message in an OP_COMPRESSED.
func unpack(packed []byte) (opcode wiremessage.OpCode, body []byte, ok bool) {
	if opcode, packed, ok = wiremessage.ReadCompressedOriginalOpCode(packed); !ok {
		return 0, nil, false
	}
	size, packed, ok := wiremessage.ReadCompressedUncompressedSize(packed)
	if !ok {
		return 0, nil, false
	}
	compressor, packed, ok := wiremessage.ReadCompressedCompressorID(packed)
	if !ok {
		return 0, nil, false
	}
	body, err := driver.DecompressPayload(packed, driver.CompressionOpts{Compressor: compressor, UncompressedSize: size})
	return opcode, body, err == nil
}
