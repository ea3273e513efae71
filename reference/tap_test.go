package reference

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/relay"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// tap notes every message that clients send, on connections that it dials or
// passes on.
type tap struct {
	t     *testing.T
	mu    sync.Mutex
	noted []sent
}

// sent is a message of a client.
type sent struct {
	opcode, flags uint32
	// body has the document sequences in it, as the arrays that they stand for
	// (OP_MSG, "Section Kind 1").
	body bson.Raw
}

func (m sent) name() string {
	e, err := m.body.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

// DialContext makes a connection on which each Write is one message.
func (p *tap) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return tapped{c, p}, err
}

type tapped struct {
	net.Conn
	tap *tap
}

func (c tapped) Write(b []byte) (int, error) {
	c.tap.note(b)
	return c.Conn.Write(b)
}

// listen gives an address for clients in other processes, which leads to a
// server's.
func (p *tap) listen(server string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		relay.Accept(l, func(client net.Conn) {
			behind, err := p.DialContext(p.t.Context(), "tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			running.Go(func() { _, _ = io.Copy(client, behind); _ = client.Close() })
			running.Go(func() {
				for m := make([]byte, 4); ; m = make([]byte, 4) {
					if _, err := io.ReadFull(client, m); err != nil {
						break
					}
					m = append(m, make([]byte, max(int(binary.LittleEndian.Uint32(m))-4, 0))...)
					if _, err := io.ReadFull(client, m[4:]); err != nil {
						break
					}
					if _, err := behind.Write(m); err != nil {
						break
					}
				}
				_ = behind.Close()
			})
		})
	})
	p.t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return l.Addr().String()
}

func (p *tap) note(m []byte) {
	out, rest := sent{opcode: binary.LittleEndian.Uint32(m[12:]), flags: binary.LittleEndian.Uint32(m[16:])}, m[20:]
	if out.opcode == query {
		out.body = bson.Raw(bytes.Clone(rest[bytes.IndexByte(rest, 0)+1+8:]))
	} else {
		var arrays bson.D
		for len(rest) > 4 { // a checksum may follow
			size := int(binary.LittleEndian.Uint32(rest[1:]))
			if rest[0] == 0 {
				out.body = bson.Raw(bytes.Clone(rest[1 : 1+size]))
			} else {
				arrays = append(arrays, sequence(rest[5:1+size]))
			}
			rest = rest[1+size:]
		}
		var whole bson.D
		if err := bson.Unmarshal(out.body, &whole); err != nil {
			p.t.Error(err)
		}
		out.body = raw(p.t, append(whole, arrays...))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noted = append(p.noted, out)
}

// sequence reads an identifier and the documents that follow it.
func sequence(b []byte) bson.E {
	name, rest, _ := bytes.Cut(b, []byte{0})
	var docs bson.A
	for len(rest) > 4 {
		size := binary.LittleEndian.Uint32(rest)
		docs = append(docs, bson.Raw(bytes.Clone(rest[:size])))
		rest = rest[size:]
	}
	return bson.E{Key: string(name), Value: docs}
}

// take gives what was noted since the last call, but for what establishes
// connections and monitors them; monitors must not gossip.
func (p *tap) take() (out []sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.noted {
		switch m.name() {
		case "hello", "isMaster", "ismaster":
			_, gossip := m.body.LookupErr("$clusterTime")
			if _, err := m.body.LookupErr("topologyVersion"); err == nil && gossip == nil {
				p.t.Errorf("a monitor gossips the cluster time: %v", m.body)
			}
		case "saslStart", "saslContinue":
		default:
			out = append(out, m)
		}
	}
	p.noted = nil
	return out
}
