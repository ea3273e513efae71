package reference_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// taps stand between clients and the servers of a deployment, and note every
// message that a client sends. Addresses in replies are replaced by those of
// the taps, which are as long, so that discovery leads clients to the taps.
type taps struct {
	t       *testing.T
	servers []string
	listen  []net.Listener

	mu      sync.Mutex
	conns   []net.Conn
	next    int
	noted   []message
	running sync.WaitGroup
}

// message is what a client sent.
type message struct {
	conn, server int
	opcode       uint32
	flags        uint32
	// body has the document sequences in it, as the arrays that they stand for
	// (OP_MSG, "Section Kind 1").
	body bson.Raw
}

func (m message) name() string {
	e, err := m.body.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

const (
	opQuery = 2004
	opMsg   = 2013
)

func tap(t *testing.T, servers []string) *taps {
	t.Helper()
	p := &taps{t: t, servers: servers}
	for i, s := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		for tries := 0; err == nil && len(l.Addr().String()) != len(s) && tries < 100; tries++ {
			_ = l.Close()
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			t.Fatal(err)
		}
		p.listen = append(p.listen, l)
		p.running.Go(func() { p.accept(i, l) })
	}
	t.Cleanup(p.close)
	return p
}

func (p *taps) close() {
	for _, l := range p.listen {
		_ = l.Close()
	}
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// uri leads a connection string to the taps.
func (p *taps) uri(s string) string {
	for i, server := range p.servers {
		s = strings.ReplaceAll(s, server, p.listen[i].Addr().String())
	}
	return s
}

func (p *taps) accept(i int, l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.servers[i])
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.next++
		conn := p.next
		p.mu.Unlock()
		p.running.Go(func() { p.pass(server, client, func(m []byte) []byte { p.note(conn, i, m); return m }) })
		p.running.Go(func() {
			p.pass(client, server, func(m []byte) []byte {
				for i, s := range p.servers {
					m = bytes.ReplaceAll(m, []byte(s), []byte(p.listen[i].Addr().String()))
				}
				return m
			})
		})
	}
}

func (p *taps) pass(to, from net.Conn, with func([]byte) []byte) {
	defer func() { _, _ = to.Close(), from.Close() }()
	for {
		m := make([]byte, 16)
		if _, err := io.ReadFull(from, m); err != nil {
			return
		}
		m = append(m, make([]byte, max(int(binary.LittleEndian.Uint32(m))-16, 0))...)
		if _, err := io.ReadFull(from, m[16:]); err != nil {
			return
		}
		if _, err := to.Write(with(m)); err != nil {
			return
		}
	}
}

func (p *taps) note(conn, server int, m []byte) {
	out := message{conn: conn, server: server, opcode: binary.LittleEndian.Uint32(m[12:])}
	rest := m[16:]
	switch out.opcode {
	case opQuery:
		out.flags = binary.LittleEndian.Uint32(rest)
		rest = rest[4:]
		rest = rest[bytes.IndexByte(rest, 0)+1+8:]
		out.body = bson.Raw(rest)
	case opMsg:
		out.flags = binary.LittleEndian.Uint32(rest)
		rest = rest[4:]
		var arrays bson.D
		for len(rest) > 4 { // a checksum may follow
			size := int(binary.LittleEndian.Uint32(rest[1:]))
			if rest[0] == 0 {
				out.body = bson.Raw(rest[1 : 1+size])
			} else {
				arrays = append(arrays, sequence(rest[5:1+size]))
			}
			rest = rest[1+size:]
		}
		if arrays != nil {
			var whole bson.D
			if err := bson.Unmarshal(out.body, &whole); err != nil {
				p.t.Error(err)
			}
			out.body = must(bson.Marshal(append(whole, arrays...)))
		}
	}
	p.mu.Lock()
	p.noted = append(p.noted, out)
	p.mu.Unlock()
}

// sequence reads an identifier and the documents that follow it.
func sequence(b []byte) bson.E {
	end := bytes.IndexByte(b, 0)
	var docs bson.A
	for rest := b[end+1:]; len(rest) > 4; {
		size := int(binary.LittleEndian.Uint32(rest))
		docs = append(docs, bson.Raw(rest[:size]))
		rest = rest[size:]
	}
	return bson.E{Key: string(b[:end]), Value: docs}
}

// take gives what was noted since the last call.
func (p *taps) take() []message {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.noted
	p.noted = nil
	return out
}
