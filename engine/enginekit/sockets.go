package enginekit

import (
	"context"
	"net"
	"time"
)

// Sockets dials for one client of the Go driver, and lets an engine decide when
// the driver's monitors hear from their servers. docs/reference-engine.md
// ("Sockets") says why that is needed. Methods may be called concurrently;
// fields are set before the first dial.
type Sockets struct {
	// Dial connects to a server.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Patience is how long a stream is held at most, and how long Hold waits.
	Patience time.Duration
	// Sent replaces a message that is about to be sent; nil replaces none.
	Sent func(message []byte) []byte
	// Failed is called when a socket fails, before its user receives the error;
	// nil is not called.
	Failed func(k *Socket, err error)
	// Cancelled is called when a stream is closed while its monitor reads it; nil
	// is not called. The cause is nil if the driver has closed it.
	Cancelled func(address string, cause error)

	Shared  // guards what follows
	open    map[*Socket]bool
	streams map[string]*Socket // by address: those on which a monitor streams hello
	closed  map[string]bool    // addresses whose pool is closed
	shut    bool
	leaving int // sockets whose servers may still execute what they were sent
}

// NewSockets makes a dialer for a client.
func NewSockets(dial func(ctx context.Context, network, address string) (net.Conn, error), patience time.Duration) *Sockets {
	return &Sockets{Dial: dial, Patience: patience, open: map[*Socket]bool{},
		streams: map[string]*Socket{}, closed: map[string]bool{}}
}

// DialContext implements options.ContextDialer.
func (s *Sockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	k, err := s.Connect(ctx, network, address, false)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Connect dials a server; monitor is kept for Failed.
func (s *Sockets) Connect(ctx context.Context, network, address string, monitor bool) (*Socket, error) {
	c, err := s.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	k := &Socket{Conn: c, Address: address, Monitor: monitor, owner: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed[address] {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.open[k] = true
	return k, nil
}

// AwaitStream waits until the monitor of a server streams, for a limited time.
func (s *Sockets) AwaitStream(address string, limit time.Duration) {
	s.Await(context.Background(), limit, func() bool { return s.streams[address] != nil })
}

// Hold keeps what a server streams from its monitor until Release, for Patience
// at most. What the monitor has read before has taken effect when Hold returns:
// it waits until the monitor reads again.
func (s *Sockets) Hold(address string) {
	var k *Socket
	s.Update(func() {
		if k = s.streams[address]; k != nil {
			k.held, k.until = k.held+1, time.Now().Add(s.Patience)
		}
	})
	if k != nil {
		s.Await(context.Background(), s.Patience, func() bool { return k.reading || k.closed })
	}
}

// Release undoes one Hold. If fails is true, the stream ends first, with a cause
// that the monitor receives. Release reports whether it has ended one.
func (s *Sockets) Release(address string, cause error, fails bool) bool {
	s.mu.Lock()
	k := s.streams[address]
	ends := k != nil && fails && k.reading && !k.closed
	if ends {
		k.cause = cause
	}
	s.mu.Unlock()
	if ends {
		_ = k.Close()
	}
	s.Update(func() {
		if k != nil && k.held > 0 {
			k.held--
		}
	})
	return ends
}

// PoolClosed notes that the driver is closing everything that it has with a
// server, and now waits for the server's monitor, which may have missed that it
// is told to stop. Nothing is dialled any more.
func (s *Sockets) PoolClosed(address string) {
	var monitor *Socket
	s.Update(func() {
		s.closed[address] = true
		monitor = s.streams[address]
	})
	if monitor != nil {
		_ = monitor.Close()
	}
}

// Ended reports whether the pool of a server is closed. It is to be called in
// Update or Await.
func (s *Sockets) Ended(address string) bool { return s.closed[address] }

// Shut notes that the client is being closed, and that nothing which is sent
// from now on matters.
func (s *Sockets) Shut() { s.Update(func() { s.shut = true }) }

// IsShut reports whether Shut was called. It is to be called in Update or Await.
func (s *Sockets) IsShut() bool { return s.shut }

// Close disconnects a client. What is still open after a while is closed, if
// its pool is closed or the client is shut: the driver must not wait for a
// server that is silent. When Close returns, all that was sent is over, or
// Farewell has passed.
func (s *Sockets) Close(after time.Duration, disconnect func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		disconnect()
	}()
	for over := false; !over; after = min(after, 10*time.Millisecond) {
		select {
		case <-done:
			over = true
		case <-time.After(after):
			for _, k := range s.late() {
				_ = k.Close()
			}
		}
	}
	s.Await(context.Background(), 2*Farewell, func() bool { return s.leaving == 0 })
}

func (s *Sockets) late() []*Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []*Socket
	for k := range s.open {
		if s.shut || s.closed[k.Address] {
			late = append(late, k)
		}
	}
	return late
}
