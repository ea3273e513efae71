package local

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Ports finds free ports. Until a server listens on a port, the system may give it to another process. The cluster is
// then started again with other ports. Next does not return a port twice, so that clusters that share a Ports do not
// conflict. Methods may be called concurrently; the zero value is ready to use.
type Ports struct {
	listen func() (net.Listener, error) // nil: listen on a free port
	given  sync.Map                     // ports
}

// portTries bounds the search for an unused port.
const portTries = 1_000

// Next returns a free port of the loopback interface.
func (p *Ports) Next() (int, error) {
	listen := p.listen
	if listen == nil {
		listen = func() (net.Listener, error) { return net.Listen("tcp", net.JoinHostPort(address, "0")) }
	}
	for range portTries {
		l, err := listen()
		if err != nil {
			return 0, fmt.Errorf("no free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if _, given := p.given.LoadOrStore(port, true); !given {
			return port, nil
		}
	}
	return 0, errors.New("no free port that was not used before")
}

// free makes ports available to Next again.
func (p *Ports) free(ports ...int) {
	for _, port := range ports {
		p.given.Delete(port)
	}
}
