//go:build unix

package server

import (
	"cmp"
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

// A cluster holds the port of a server that was killed, unless clients found it elsewhere:
// then another process serves that port, and may come again.
func TestKilledServerHoldsItsPort(t *testing.T) {
	profile, err := ProfileNamed("8.0")
	testkit.Check(t, err)
	for _, row := range []struct {
		reason, address string // "" is that of the listener
		held            bool
	}{
		{"a server on its own port", "", true},
		{"a server behind another process", "127.0.0.1:1", false},
	} {
		c := NewCluster(Config{Kind: Sharded, Profile: profile, Backend: data.New(data.Options{Sharded: true})})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Check(t, err)
		s, err := c.Join(cmp.Or(row.address, l.Addr().String()), Process{Listener: l})
		testkit.Check(t, err)
		testkit.Check(t, c.Kill(s))
		testkit.Equal(t, row.reason, s.release != nil, row.held)
		testkit.Check(t, c.Close())
		testkit.Equal(t, row.reason+", after the end", s.release == nil, true)
	}
}
