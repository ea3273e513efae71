// Package socket dials for clients of the Go driver, and controls when their monitors receive heartbeats.
package socket

import (
	"context"
	"net"
	"time"

	"github.com/unified-test-runner/utr/internal/net/shared"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// Dialer dials for one client of the Go driver. With it an engine controls when the driver's monitors receive
// heartbeats; docs/driver/reference-engine.md ("Sockets") explains why. The fields must be set before the first dial.
// Methods may be called concurrently.
type Dialer struct {
	// Dial connects to a server.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HoldLimit limits how long a stream is held, and how long Hold waits.
	HoldLimit time.Duration
	// Sent replaces each message before it is sent. It may be nil.
	Sent func(k *Socket, message []byte) []byte
	// Failed is called when a socket fails, before its user receives the error. It may be nil.
	Failed func(k *Socket, err error)
	// Canceled is called in Update when a stream is closed while its monitor reads it. It may be nil.
	Canceled func(address string)

	shared.State // guards the fields below
	open         map[*Socket]bool
	streams      map[string]*Socket // by address: sockets on which a monitor streams hello replies
	closed       map[string]bool    // addresses whose pool is closed
	shut         bool
	leaving      int // closed sockets that wait for their server
}

// New returns a dialer.
func New(dial func(ctx context.Context, network, address string) (net.Conn, error),
	holdLimit time.Duration) *Dialer {
	return &Dialer{Dial: dial, HoldLimit: holdLimit, open: map[*Socket]bool{},
		streams: map[string]*Socket{}, closed: map[string]bool{}}
}

// DialContext implements options.ContextDialer.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	k, err := d.Connect(ctx, network, address, false)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Connect dials a server. monitor is kept in the Socket.
func (d *Dialer) Connect(ctx context.Context, network, address string, monitor bool) (*Socket, error) {
	c, err := d.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	k := &Socket{Conn: c, Address: address, Monitor: monitor, owner: d, checked: replies.Check(c)}
	d.Lock()
	defer d.Unlock()
	if d.closed[address] {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	d.open[k] = true
	return k, nil
}

// AwaitStream waits until the monitor of a server streams, or the time limit passes.
func (d *Dialer) AwaitStream(address string, limit time.Duration) {
	d.Await(context.Background(), limit, func() bool { return d.streams[address] != nil })
}

// Hold delays what a server streams to its monitor until Release, for at most
// HoldLimit. It first waits until the monitor has processed what it read before.
func (d *Dialer) Hold(address string) {
	var k *Socket
	d.Update(func() {
		if k = d.streams[address]; k != nil {
			k.held, k.until = k.held+1, time.Now().Add(d.HoldLimit)
		}
	})
	if k != nil {
		d.Await(context.Background(), d.HoldLimit, func() bool { return k.reading || k.closed })
	}
}

// Release undoes one Hold. If fails is true, it first closes the stream.
func (d *Dialer) Release(address string, fails bool) {
	d.Lock()
	k := d.streams[address]
	ends := k != nil && fails && k.reading && !k.closed
	d.Unlock()
	if ends {
		_ = k.Close()
	}
	d.Update(func() {
		if k != nil && k.held > 0 {
			k.held--
		}
	})
}

// PoolClosed must be called when the driver closes the pool of a server. The driver then waits for the server's
// monitor, which can miss the request to stop: PoolClosed closes its socket. Later dials to the server fail.
func (d *Dialer) PoolClosed(address string) {
	var monitor *Socket
	d.Update(func() {
		d.closed[address] = true
		monitor = d.streams[address]
	})
	if monitor != nil {
		_ = monitor.Close()
	}
}

// Ended reports whether the pool of a server is closed. It must be called in Update or Await.
func (d *Dialer) Ended(address string) bool { return d.closed[address] }

// Shut must be called when the client is being closed: later messages no longer matter.
func (d *Dialer) Shut() { d.Update(func() { d.shut = true }) }

// IsShut reports whether Shut was called. It must be called in Update or Await.
func (d *Dialer) IsShut() bool { return d.shut }

// Close disconnects a client. After some time, it closes open sockets whose pool is closed, or all if Shut was
// called, so that the driver does not wait for an unresponsive server. When Close returns, the servers have executed
// everything that they were sent, or closeLimit has passed.
func (d *Dialer) Close(after time.Duration, disconnect func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		disconnect()
	}()
	for finished := false; !finished; after = min(after, 10*time.Millisecond) {
		select {
		case <-done:
			finished = true
		case <-time.After(after):
			for _, k := range d.late() {
				_ = k.Close()
			}
		}
	}
	d.Await(context.Background(), 2*closeLimit, func() bool { return d.leaving == 0 })
}

func (d *Dialer) late() []*Socket {
	d.Lock()
	defer d.Unlock()
	var late []*Socket
	for k := range d.open {
		if d.shut || d.closed[k.Address] {
			late = append(late, k)
		}
	}
	return late
}
