package process

import (
	"net"
	"sync"
)

// connections are those that their owner breaks when it ends. The zero value is
// ready for use; the methods may be called concurrently.
type connections struct {
	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

// add takes connections in. After close it closes them and returns false.
func (c *connections) add(list ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range list {
		if c.closed {
			_ = nc.Close()
			continue
		}
		if c.open == nil {
			c.open = map[net.Conn]struct{}{}
		}
		c.open[nc] = struct{}{}
	}
	return !c.closed
}

// remove forgets connections, which stay open.
func (c *connections) remove(list ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range list {
		delete(c.open, nc)
	}
}

// close closes all connections.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for nc := range c.open {
		_ = nc.Close()
	}
}
