// Package relay takes connections and hands them on to a server behind, as load
// balancers and the processes in front of a host do.
package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// acceptPause is after an error that goes away, such as too many open files.
const acceptPause = 10 * time.Millisecond

// Accept gives serve the connections, one after the other, until the listener is
// closed. What keeps it from accepting one is waited out.
func Accept(listener net.Listener, serve func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			serve(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(acceptPause)
		}
	}
}

// Pass copies both ways until the server ends, then closes both connections. A
// client that ends is heard of at a server whose ends can be closed one by one:
// it executes what was sent before, answers, and ends then. Whoever wants to end
// it earlier closes the connections.
func Pass(client, server net.Conn) {
	both := func() { _, _ = client.Close(), server.Close() }
	var answers sync.WaitGroup
	answers.Go(func() {
		defer both()
		_, _ = io.Copy(client, server)
	})
	half, ok := server.(interface{ CloseWrite() error })
	if _, err := io.Copy(server, client); err != nil || !ok || half.CloseWrite() != nil {
		both()
	}
	answers.Wait()
}

// ReadAhead is a connection of which In has read ahead. Its ends cannot be closed
// one by one.
type ReadAhead struct {
	net.Conn
	In *bufio.Reader
}

// Read gives what In has read, then what the connection does.
func (r *ReadAhead) Read(b []byte) (int, error) {
	if r.In != nil && r.In.Buffered() > 0 {
		return r.In.Read(b)
	}
	r.In = nil
	return r.Conn.Read(b)
}
