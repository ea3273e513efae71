package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
)

// signature begins the second version of the PROXY protocol.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

// longestProxy is how long a line of the first version may be, in bytes.
const longestProxy = 107

var errProxy = errors.New("a malformed header of the PROXY protocol")

// proxied reads the header with which a load balancer says whose connection it
// hands on (the PROXY protocol of HAProxy, versions 1 and 2). Without one the
// client is who has connected: nil.
func proxied(in *bufio.Reader) (net.Addr, error) {
	first, err := in.Peek(4)
	switch {
	case err != nil:
		return nil, err
	case string(first) == "PROX":
		return proxyText(in)
	case string(first) == signature[:4]:
		return proxyBinary(in)
	}
	return nil, nil
}

func proxyText(in *bufio.Reader) (net.Addr, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(line)
	switch {
	case len(line) > longestProxy || len(f) < 2 || f[0] != "PROXY":
		return nil, errProxy
	case f[1] == "UNKNOWN":
		return nil, nil
	case len(f) != 6:
		return nil, errProxy
	}
	return told(net.JoinHostPort(f[2], f[4])), nil
}

func proxyBinary(in *bufio.Reader) (net.Addr, error) {
	head := make([]byte, len(signature)+4)
	if _, err := io.ReadFull(in, head); err != nil || string(head[:len(signature)]) != signature {
		return nil, errors.Join(err, errProxy)
	}
	rest := make([]byte, binary.BigEndian.Uint16(head[len(head)-2:]))
	if _, err := io.ReadFull(in, rest); err != nil {
		return nil, err
	}
	size, family := 0, head[len(head)-3]>>4
	switch family {
	case 1:
		size = 4
	case 2:
		size = 16
	default: // local, or a kind of address that clients do not have
		return nil, nil
	}
	if len(rest) < 2*size+4 {
		return nil, errProxy
	}
	ip, _ := netip.AddrFromSlice(rest[:size])
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, binary.BigEndian.Uint16(rest[2*size:]))), nil
}
