package clients

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// compressorNames are the numbers of the compressors in OP_COMPRESSED
// (specification "Wire Compression in Drivers").
var compressorNames = map[uint8]string{1: "snappy", 2: "zlib", 3: "zstd"}

// spy stands between clients and a server, and notes the compressors of the
// messages.
type spy struct {
	listener net.Listener
	server   string
	mu       sync.Mutex
	asked    []uint8
	answered []uint8
	conns    []net.Conn
	running  sync.WaitGroup
}

func listen(t *testing.T, server string) *spy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{listener: l, server: server}
	s.running.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *spy) address() string { return s.listener.Addr().String() }

func (s *spy) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *spy) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", s.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		s.mu.Lock()
		s.conns = append(s.conns, client, server)
		s.mu.Unlock()
		s.running.Go(func() { s.pass(server, client, &s.asked) })
		s.running.Go(func() { s.pass(client, server, &s.answered) })
	}
}

// pass hands messages on until one side closes.
func (s *spy) pass(to, from net.Conn, notes *[]uint8) {
	defer func() { _, _ = to.Close(), from.Close() }()
	const header, opCompressed, compressor = 16, 2012, 24
	for {
		message := make([]byte, header)
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		length := int(binary.LittleEndian.Uint32(message))
		message = append(message, make([]byte, max(length-header, 0))...)
		if _, err := io.ReadFull(from, message[header:]); err != nil {
			return
		}
		if binary.LittleEndian.Uint32(message[12:]) == opCompressed && length > compressor {
			s.mu.Lock()
			*notes = append(*notes, message[compressor])
			s.mu.Unlock()
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}

// compressors are those of the messages so far, to the server and from it.
func (s *spy) compressors() (asked, answered []uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]uint8(nil), s.asked...), append([]uint8(nil), s.answered...)
}
