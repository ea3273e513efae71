package clients

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// compressorNames are compressors by id (specification "Wire Compression in Drivers").
var compressorNames = map[uint8]string{1: "snappy", 2: "zlib", 3: "zstd"}

// spy is a proxy that records messages.
type spy struct {
	address string
	mu      sync.Mutex
	passed  [2][]*tap // to the server, from the server
}

// tap is a connection that records what is written to it.
type tap struct {
	net.Conn
	spy     *spy
	written []byte
}

func (t *tap) Write(p []byte) (int, error) {
	t.spy.mu.Lock()
	t.written = append(t.written, p...)
	t.spy.mu.Unlock()
	return t.Conn.Write(p)
}

func listen(t *testing.T, server string) *spy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	s := &spy{address: l.Addr().String()}
	go relay.Accept(l, func(client net.Conn) {
		server, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		to, from := &tap{Conn: server, spy: s}, &tap{Conn: client, spy: s}
		s.mu.Lock()
		s.passed[0], s.passed[1] = append(s.passed[0], to), append(s.passed[1], from)
		s.mu.Unlock()
		go relay.Copy(from, to)
	})
	return s
}

// saw reports whether a message in a direction was compressed with a compressor.
func (s *spy) saw(direction int, compressor uint8) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	const header, opCompressed, at = 16, 2012, 24
	for _, t := range s.passed[direction] {
		for rest := t.written; len(rest) > at; rest = rest[min(len(rest),
			max(header, int(binary.LittleEndian.Uint32(rest)))):] {
			if binary.LittleEndian.Uint32(rest[12:]) == opCompressed && rest[at] == compressor {
				return true
			}
		}
	}
	return false
}
