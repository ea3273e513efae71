package local

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// backend is a server behind a balancer: it says its name and what the first
// line of each connection was, and then sends back what it gets.
func backend(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				header, _ := in.ReadString('\n')
				_, _ = fmt.Fprintf(conn, "%s %q\n", name, header)
				_, _ = io.Copy(conn, in)
			}()
		}
	}()
	return l.Addr().String()
}

// client connects, and gives the line that the backend says.
func client(t *testing.T, b *balancer) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", b.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return conn, err.Error()
	}
	return conn, strings.TrimSpace(line)
}

func TestBalancer(t *testing.T) {
	dead, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	b, err := newBalancer([]string{backend(t, "one"), dead.Addr().String(), backend(t, "two")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	var names []string
	for range 4 {
		conn, line := client(t, b)
		name, header, _ := strings.Cut(line, " ")
		names = append(names, name)
		here := conn.LocalAddr().(*net.TCPAddr).Port
		there := conn.RemoteAddr().(*net.TCPAddr).Port
		if want := fmt.Sprintf("%q", fmt.Sprintf("PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\n", here, there)); header != want {
			t.Errorf("the header is %s, want %s", header, want)
		}
	}
	// The second connection is for the one that is dead: the next one takes it.
	if got := strings.Join(names, " "); got != "one two two one" {
		t.Errorf("connections went to %s", got)
	}
}

// What is sent comes through both ways, until the balancer is closed: that
// breaks connections, and takes no new ones.
func TestBalancerPassesAndCloses(t *testing.T) {
	b, err := newBalancer([]string{backend(t, "one")})
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := client(t, b)
	text := strings.Repeat("x", 1<<16) + "\n"
	go func() { _, _ = io.WriteString(conn, text) }()
	if got, err := bufio.NewReader(conn).ReadString('\n'); got != text {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	b.close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlives the balancer")
	}
	if late, err := net.Dial("tcp", b.address()); err == nil {
		_ = late.Close()
		t.Error("a closed balancer takes connections")
	}
}

// A client that ends is still answered: the server executes what was sent before.
func TestBalancerPassesEnds(t *testing.T) {
	b, err := newBalancer([]string{backend(t, "one")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	conn, _ := client(t, b)
	text := strings.Repeat("x", 1<<16) + "\n"
	go func() {
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	if got, err := io.ReadAll(conn); string(got) != text || err != nil {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// Where no server is left, the client is hung up on.
func TestBalancerWithoutServers(t *testing.T) {
	dead, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	b, err := newBalancer([]string{dead.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if _, line := client(t, b); !strings.Contains(line, "EOF") && !strings.Contains(line, "reset") {
		t.Errorf("got %q", line)
	}
}

func TestProxyHeader(t *testing.T) {
	v4 := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	v6 := &net.TCPAddr{IP: net.IPv6loopback, Port: 8}
	for _, row := range []struct {
		reason   string
		from, to net.Addr
		want     string
	}{
		{"both known", v4, v4, "PROXY TCP4 127.0.0.1 127.0.0.1 7 7\r\n"},
		{"another family", v6, v4, "PROXY UNKNOWN\r\n"},
		{"no address of TCP", &net.UnixAddr{}, v4, "PROXY UNKNOWN\r\n"},
	} {
		if got := proxyHeader(row.from, row.to); got != row.want {
			t.Errorf("%s: got %q", row.reason, got)
		}
	}
}
