// Package relay accepts connections and forwards them to a server, for load balancers and proxies.
package relay

import (
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
