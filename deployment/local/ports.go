package local

import (
	"fmt"
	"net"
	"sync"
)

// Ports finds free ports. The system is asked for them, but one that it gives
// is free for anybody until a server listens on it: a cluster that finds its
// port taken starts anew with others. What Ports gave once it does not give
// again, so that clusters that share it do not meet. It may be used
// concurrently; the zero value is ready.
type Ports struct {
	listen func() (net.Listener, error) // nil: of the system

	mu    sync.Mutex
	given map[int]bool
}

// portTries bounds the search for a port that was not given yet.
const portTries = 1_000

// Next gives a free port of the loopback interface.
func (p *Ports) Next() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		p.given = make(map[int]bool)
	}
	listen := p.listen
	if listen == nil {
		listen = func() (net.Listener, error) { return net.Listen("tcp", net.JoinHostPort(address, "0")) }
	}
	for range portTries {
		l, err := listen()
		if err != nil {
			return 0, fmt.Errorf("there is no free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if !p.given[port] {
			p.given[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("there is no free port but those that were in use before")
}

// free gives ports back, once nothing of ours listens on them any more.
func (p *Ports) free(ports ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range ports {
		delete(p.given, port)
	}
}
