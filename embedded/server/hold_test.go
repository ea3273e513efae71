//go:build unix

package server

import (
	"net"
	"testing"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A port that is held is nobody else's, and refuses connections.
func TestHold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	defer l.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	address := gone.Addr().String()
	testkit.Check(t, gone.Close())
	from := net.Dialer{LocalAddr: gone.Addr()} // takes the port, as a server does that gets any free one

	release := hold(address)
	if c, err := from.Dial("tcp", l.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("another socket got the port")
	}
	if c, err := net.Dial("tcp", address); err == nil {
		_ = c.Close()
		t.Error("somebody listens on the port")
	}
	release()
	c, err := from.Dial("tcp", l.Addr().String())
	testkit.Check(t, err)
	testkit.Check(t, c.Close())
}

// A cluster holds the port of a server that was killed, unless another process serves it.
func TestKilledServerHoldsItsPort(t *testing.T) {
	profile, err := ProfileNamed("8.0")
	testkit.Check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	for _, row := range []struct {
		reason   string
		listener net.Listener
	}{{"a server on its own port", l}, {"a server behind another process", nil}} {
		c := NewCluster(Config{Kind: Sharded, Profile: profile, Backend: data.New(data.Options{Sharded: true})})
		s, err := c.Join(l.Addr().String(), Process{Listener: row.listener})
		testkit.Check(t, err)
		testkit.Check(t, c.Kill(s))
		testkit.Equal(t, row.reason, s.release != nil, row.listener != nil)
		testkit.Check(t, c.Close())
		testkit.Equal(t, row.reason+", after the end", s.release == nil, true)
	}
}
