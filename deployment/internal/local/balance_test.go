package local

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// backend is a server behind a balancer. It sends its name and the first line of each connection, and then echoes.
func backend(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	testkit.Check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go relay.Accept(l, func(conn net.Conn) {
		go func() {
			defer func() { _ = conn.Close() }()
			in := bufio.NewReader(conn)
			header, _ := in.ReadString('\n')
			_, _ = fmt.Fprintf(conn, "%s %s", name, header)
			_, _ = io.Copy(conn, in)
		}()
	})
	return l.Addr().String()
}

const dead = "127.0.0.1:1" // nothing listens on this port

// connected connects, and returns the line that the backend sends.
func connected(t *testing.T, b *Balancers) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", b.All)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return conn, line
}

// Connections are assigned to servers in turn, begin with a header, and are relayed until the balancer is closed.
func TestBalancer(t *testing.T) {
	b, err := NewBalancers([]string{backend(t, "one"), dead, backend(t, "two")})
	testkit.Check(t, err)
	var conn net.Conn
	// The second connection would go to the server that does not listen. The next server gets it.
	for _, name := range strings.Fields("one two two one") {
		var line string
		conn, line = connected(t, b)
		here, there := conn.LocalAddr().(*net.TCPAddr).Port, conn.RemoteAddr().(*net.TCPAddr).Port
		testkit.Equal(t, "the header", line, fmt.Sprintf("%s PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\n", name, here, there))
	}
	text := strings.Repeat("x", 1<<16) + "\n"
	go func() { _, _ = io.WriteString(conn, text) }()
	if got, err := bufio.NewReader(conn).ReadString('\n'); got != text {
		t.Errorf("%d bytes were echoed, %v", len(got), err)
	}
	b.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlives the balancer")
	}
	if late, err := net.Dial("tcp", b.All); err == nil {
		t.Error("a closed balancer accepts connections", late.Close())
	}
	none, err := NewBalancers([]string{dead})
	testkit.Check(t, err)
	defer none.Close()
	_, line := connected(t, none)
	testkit.Equal(t, "without a server", line, "")
}

func TestProxyHeader(t *testing.T) {
	v4 := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	v6 := &net.TCPAddr{IP: net.IPv6loopback, Port: 8}
	testkit.Equal(t, "both known", proxyHeader(v4, v4), "PROXY TCP4 127.0.0.1 127.0.0.1 7 7\r\n")
	for _, ends := range [][2]net.Addr{{v6, v4}, {v4, v6}, {&net.UnixAddr{}, v4}} {
		testkit.Equal(t, "another family", proxyHeader(ends[0], ends[1]), "PROXY UNKNOWN\r\n")
	}
}
