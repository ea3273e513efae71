package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// client is the other end of a connection: what it sends, and whether it is still
// there. While its command waits, nobody reads what it sends; so whoever waits has it
// watched, by a look at the next byte.
type client struct {
	in   *bufio.Reader
	gone atomic.Bool // a fail point has closed the connection: the client has not left

	ctx    context.Context // of the connection, and until the client leaves
	leaves context.CancelFunc

	mu     sync.Mutex
	looked chan struct{} // closed when there is something to read; nil if nobody looks
}

// grace is how long a command may still take whose client has said that it sends no more:
// that one may wait for the answer, or be gone.
const grace = time.Second

// attended is a context that ends when the client leaves. Whoever waits for its end has
// the client watched.
type attended struct {
	context.Context
	client *client
}

func (a attended) Done() <-chan struct{} {
	a.client.watch()
	return a.Context.Done()
}

// watch looks whether the client is there, in the background, until it sends something.
func (c *client) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked != nil {
		return
	}
	looked := make(chan struct{})
	c.looked = looked
	go func() {
		defer close(looked)
		_, err := c.in.Peek(1)
		switch {
		case err == nil, c.gone.Load():
		case errors.Is(err, io.EOF):
			time.AfterFunc(grace, c.leaves)
		default:
			c.leaves()
		}
	}()
}

// attend waits until nobody looks at what is to be read.
func (c *client) attend() {
	c.mu.Lock()
	looked := c.looked
	c.looked = nil
	c.mu.Unlock()
	if looked != nil {
		<-looked
	}
}
