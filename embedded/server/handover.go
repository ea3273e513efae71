package server

import (
	"bufio"
	"context"
	"net"
	"time"

	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/relay"
)

// Dial opens a connection to where a client is served from now on.
type Dial func(client net.Addr) (*net.TCPConn, error)

// HandOver has all clients of the server served elsewhere, from the next message
// of each on: they keep their connections. Those who wait for a change of the
// topology hear of it.
func (s *Server) HandOver(dial Dial) {
	s.elsewhere.Store(&dial)
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.changed()
}

// handOn serves the client elsewhere: the message that it has just sent, and all
// that follow.
func (k *conn) handOn(dial Dial, in *bufio.Reader, message []byte) {
	there, err := dial(k.socket.RemoteAddr())
	if err != nil {
		return
	}
	defer func() { _ = there.Close() }()
	// The end of this connection is that of the other.
	defer context.AfterFunc(k.ctx, func() { _ = there.Close() })()
	if k.greeting != nil && !introduce(there, k.greeting) {
		return
	}
	if _, err := there.Write(message); err != nil {
		return
	}
	relay.Pass(&relay.ReadAhead{Conn: k.socket, In: in}, there)
}

// introduction is how long it may take to say hello for a client.
const introduction = 10 * time.Second

// introduce says hello for a client, as it did itself here.
func introduce(there net.Conn, greeting []byte) bool {
	_ = there.SetDeadline(time.Now().Add(introduction))
	defer func() { _ = there.SetDeadline(time.Time{}) }()
	if _, err := there.Write(wire.AppendMsg(nil, 0, 0, 0, greeting)); err != nil {
		return false
	}
	_, _, err := wire.ReadMessage(there)
	return err == nil
}
