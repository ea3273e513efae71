package local

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/unified-test-runner/utr/internal/relay"
)

// Balancer hands connections to mongoses in turn, as a TCP load balancer does:
// each connection begins with a header of the PROXY protocol, version 1, that
// says who it comes from. A mongos takes that as the sign that it is load
// balanced.
type Balancer struct {
	listener net.Listener
	targets  []string
	next     atomic.Uint64
	all      sync.WaitGroup
	open     context.Context // until it is closed
	close    context.CancelFunc
}

// NewBalancer listens on a free port of the loopback interface. Targets are the
// mongoses' ports for load balancers, as host:port.
func NewBalancer(targets []string) (*Balancer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("the load balancer: %w", err)
	}
	b := &Balancer{listener: l, targets: targets}
	b.open, b.close = context.WithCancel(context.Background())
	b.all.Go(func() {
		relay.Accept(l, func(client net.Conn) { b.all.Go(func() { b.serve(client) }) })
	})
	return b, nil
}

// Balancers are those of a cluster: one in front of all its mongoses, and one in
// front of the first alone.
type Balancers struct{ All, First *Balancer }

// NewBalancers starts the balancers in front of some mongoses.
func NewBalancers(targets []string) (*Balancers, error) {
	all, err := NewBalancer(targets)
	if err != nil {
		return nil, err
	}
	first, err := NewBalancer(targets[:1])
	if err != nil {
		all.Close()
		return nil, err
	}
	return &Balancers{all, first}, nil
}

// Close closes both.
func (b *Balancers) Close() {
	b.All.Close()
	b.First.Close()
}

// Address is where it listens, as host:port.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// own has a connection closed when the balancer is, or when the caller does so.
func (b *Balancer) own(c net.Conn) (closing func()) {
	stop := context.AfterFunc(b.open, func() { _ = c.Close() })
	return func() { stop(); _ = c.Close() }
}

// serve connects a client with the mongos whose turn it is, or with the next
// one that takes it.
func (b *Balancer) serve(client net.Conn) {
	defer b.own(client)()
	turn := b.next.Add(1) - 1
	for i := range uint64(len(b.targets)) {
		server, err := net.DialTimeout("tcp", b.targets[(turn+i)%uint64(len(b.targets))], commandLimit)
		if err != nil {
			continue
		}
		defer b.own(server)()
		if _, err := io.WriteString(server, proxyHeader(client.RemoteAddr(), client.LocalAddr())); err == nil {
			relay.Pass(client, server)
		}
		return
	}
}

// proxyHeader is the first line of a connection ("The PROXY protocol", 2.1).
func proxyHeader(from, to net.Addr) string {
	f, okFrom := from.(*net.TCPAddr)
	t, okTo := to.(*net.TCPAddr)
	if !okFrom || !okTo || f.IP.To4() == nil || t.IP.To4() == nil {
		return "PROXY UNKNOWN\r\n"
	}
	return fmt.Sprintf("PROXY TCP4 %s %s %d %d\r\n", f.IP, t.IP, f.Port, t.Port)
}

// Close breaks all connections and waits until nothing is left.
func (b *Balancer) Close() {
	_ = b.listener.Close()
	b.close()
	b.all.Wait()
}
