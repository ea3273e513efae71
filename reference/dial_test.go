package reference

import (
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// far is the other side of sockets: it says what a test has it say.
type far struct {
	t       *testing.T
	accepts net.Listener
	address string
}

// listen makes a far side, which is gone when the test ends.
func listen(t *testing.T) far {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return far{t, l, l.Addr().String()}
}

// dial gives both ends of a new connection.
func (f far) dial(s *sockets) (*socket, net.Conn) {
	f.t.Helper()
	near, err := s.DialContext(f.t.Context(), "tcp", f.address)
	if err != nil {
		f.t.Fatal(err)
	}
	server, err := f.accepts.Accept()
	if err != nil {
		f.t.Fatal(err)
	}
	return near.(*socket), server
}

// hello is the command of a monitor.
func hello(t *testing.T) bson.Raw {
	t.Helper()
	command, err := bson.Marshal(bson.D{{Key: "hello", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return command
}
