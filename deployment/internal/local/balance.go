package local

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/unified-test-runner/utr/internal/net/relay"
)

// Balancers are TCP load balancers that assign connections to mongoses in turn. Each connection begins with a header of
// the PROXY protocol, version 1. It contains the client's address, and makes the mongos treat the connection as load
// balanced.
type Balancers struct {
	// All is the host:port of the balancer for all mongoses, First of the balancer for the first mongos alone.
	All, First string

	work  sync.WaitGroup
	open  context.Context // canceled by Close
	close context.CancelFunc
}

// NewBalancers listens on free ports of the loopback interface. targets are the mongoses' load balancer ports, as
// host:port.
func NewBalancers(targets []string) (*Balancers, error) {
	b := new(Balancers)
	b.open, b.close = context.WithCancel(context.Background())
	var err error
	if b.All, err = b.listen(targets); err == nil {
		b.First, err = b.listen(targets[:1])
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("the load balancer: %w", err)
	}
	return b, nil
}

// listen starts a balancer and returns its address.
func (b *Balancers) listen(targets []string) (at string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	b.own(l)
	b.work.Go(func() {
		turn := 0
		relay.Accept(l, func(client net.Conn) {
			first := turn % len(targets)
			turn++
			b.work.Go(func() { b.serve(client, targets, first) })
		})
	})
	return l.Addr().String(), nil
}

// own closes a listener or connection when the balancers are closed or the returned function is called.
func (b *Balancers) own(c io.Closer) (closing func()) {
	stop := context.AfterFunc(b.open, func() { _ = c.Close() })
	return func() { stop(); _ = c.Close() }
}

// serve connects a client to the next mongos that is reachable.
func (b *Balancers) serve(client net.Conn, targets []string, first int) {
	defer b.own(client)()
	for i := range targets {
		server, err := net.DialTimeout("tcp", targets[(first+i)%len(targets)], commandLimit)
		if err != nil {
			continue
		}
		defer b.own(server)()
		if _, err := io.WriteString(server, proxyHeader(client.RemoteAddr(), client.LocalAddr())); err == nil {
			relay.Copy(client, server)
		}
		return
	}
}

// proxyHeader returns the first line of a connection (PROXY protocol, section 2.1).
func proxyHeader(from, to net.Addr) string {
	f, okFrom := from.(*net.TCPAddr)
	t, okTo := to.(*net.TCPAddr)
	if !okFrom || !okTo || f.IP.To4() == nil || t.IP.To4() == nil {
		return "PROXY UNKNOWN\r\n"
	}
	return fmt.Sprintf("PROXY TCP4 %s %s %d %d\r\n", f.IP, t.IP, f.Port, t.Port)
}

// Close closes all connections and waits until their goroutines have returned.
func (b *Balancers) Close() {
	b.close()
	b.work.Wait()
}
