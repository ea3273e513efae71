package reference

import (
	"context"
	"errors"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// A socket is known as that of a monitor which streams from the first read
// after an awaitable hello. If it were known from the hello on, it could be
// closed before the monitor reads, which then sleeps for minHeartbeat.
func TestStreamsAreKnownFromTheirFirstRead(t *testing.T) {
	hello, far := hello(t), listen(t)

	type act int
	const (
		plain   act = iota // send a hello of another kind
		awaited            // send one that the server answers again and again
		read
		closed
	)
	for _, row := range []struct {
		reason string
		acts   []act
		known  bool
	}{
		{"nothing was sent", nil, false},
		{"a read without a hello", []act{read}, false},
		{"an ordinary hello is what every connection sends", []act{plain, read}, false},
		{"the hello alone does not stream", []act{awaited}, false},
		{"the read after it does", []act{awaited, read}, true},
		{"and the reads after that", []act{plain, read, awaited, read, read}, true},
		{"it is forgotten when it is closed", []act{awaited, read, closed}, false},
		{"and not known again by a late read", []act{awaited, closed, read}, false},
	} {
		s := newSockets()
		c, server := far.dial(s)
		for _, a := range row.acts {
			var err error
			switch a {
			case plain:
				_, err = c.Write(message(1, hello, 0))
			case awaited:
				_, err = c.Write(message(1, hello, wiremessage.ExhaustAllowed))
			case read:
				if _, err = server.Write([]byte{1}); err != nil {
					break
				}
				if _, err = c.Read(make([]byte, 1)); errors.Is(err, net.ErrClosed) {
					err = nil
				}
			case closed:
				err = c.Close()
			}
			if err != nil {
				t.Fatalf("%s: %v", row.reason, err)
			}
		}
		if known := s.monitors[far.address] != nil; known != row.known {
			t.Errorf("%s: known %t, want %t", row.reason, known, row.known)
		}
		_ = c.Close()
		_ = server.Close()
	}
}

// Connections of a pool wait for the first check of its server, if it has to
// have some.
func TestPoolsWaitForTheirServers(t *testing.T) {
	const address = "a:1"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		reason string
		before func(*sockets)
		ctx    context.Context
		want   error
	}{
		{"its server is known", func(s *sockets) { s.discover(address) }, t.Context(), nil},
		{"it may be empty", func(s *sockets) { s.patient = false }, t.Context(), nil},
		{"the time is over", func(s *sockets) { s.discover("b:1") }, ended, context.Canceled},
		{"the client is closed", func(s *sockets) { s.resting.close() }, t.Context(), net.ErrClosed},
		{"its server becomes known", func(s *sockets) { go s.discover(address) }, t.Context(), nil},
	} {
		s := newSockets()
		s.patient = true
		row.before(s)
		if err := s.discovered(row.ctx, address); err != row.want {
			t.Errorf("%s: got %v, want %v", row.reason, err, row.want)
		}
	}
}
