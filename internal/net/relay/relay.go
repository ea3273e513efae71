// Package relay accepts connections and forwards them to a server, for load balancers and proxies.
package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// acceptPause follows a temporary error, such as too many open files.
const acceptPause = 10 * time.Millisecond

// Accept calls serve with each connection in turn until the listener is closed. It retries after other errors.
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

// Copy copies in both directions until the server closes its end, then closes both connections. When the client
// closes its end, Copy half-closes a server connection that supports it, so that the server can still execute and
// answer what was sent before. To stop earlier, close the connections.
func Copy(client, server net.Conn) {
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

// ReadAhead is a connection from which In has already buffered bytes. It cannot be half-closed.
type ReadAhead struct {
	net.Conn
	In *bufio.Reader
}

// Read returns the buffered bytes first.
func (r *ReadAhead) Read(b []byte) (int, error) {
	if r.In.Buffered() > 0 {
		return r.In.Read(b)
	}
	return r.Conn.Read(b)
}
