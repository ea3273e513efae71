//go:build unix

package server

import (
	"net"
	"testing"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A reserved port refuses connections and cannot be used by other sockets.
func TestReservePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	defer l.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	address := closed.Addr().String()
	testkit.Check(t, closed.Close())
	from := net.Dialer{LocalAddr: closed.Addr()} // uses the port

	release := ReservePort(address)
	if c, err := from.Dial("tcp", l.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("another socket can use the port")
	}
	if c, err := net.Dial("tcp", address); err == nil {
		_ = c.Close()
		t.Error("the port accepts connections")
	}
	release()
	c, err := from.Dial("tcp", l.Addr().String())
	testkit.Check(t, err)
	testkit.Check(t, c.Close())
}

// A cluster reserves the port of a killed server, unless the port belongs to another process.
func TestKillReservesPort(t *testing.T) {
	v, err := version.Named("8.0")
	testkit.Check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	for _, row := range []struct {
		reason   string
		listener net.Listener
	}{{"server with a listener", l}, {"server without a listener", nil}} {
		c := NewCluster(Config{Topology: Sharded, Version: v, Backend: commands.New(commands.Options{Sharded: true})})
		s, err := c.Join(l.Addr().String(), Process{Listener: row.listener})
		testkit.Check(t, err)
		testkit.Check(t, c.Kill(s))
		testkit.Equal(t, row.reason, s.release != nil, row.listener != nil)
		testkit.Check(t, c.Close())
		testkit.Equal(t, row.reason+", after Close", s.release == nil, true)
	}
}
