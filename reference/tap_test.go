package reference

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/wire"
)

// tap is a dialer that records the messages of a client. It waits until the client is open, because the Go driver
// misses the description of a server that is discovered during Connect, and then considers all sessions expired.
type tap struct {
	t      *testing.T
	opened chan struct{}
	mu     sync.Mutex
	sent   []sent
}

func newTap(t *testing.T) *tap { return &tap{t: t, opened: make(chan struct{})} }

// sent is a message of a client, with document sequences as arrays in the body.
type sent struct {
	opcode    wire.OpCode
	flags     uint32
	body      bson.Raw
	sequences string // their names
}

func sentBy(h wire.Header, body []byte) (sent, error) {
	if h.OpCode == wire.OpQuery {
		_, query, err := wire.ParseQuery(body)
		return sent{h.OpCode, 0, query, ""}, err
	}
	m, err := wire.ParseMsg(h, body)
	var names []string
	for _, s := range m.Sequences {
		names = append(names, s.Name)
	}
	return sent{h.OpCode, uint32(m.Flags), m.Document(), strings.Join(names, "+")}, err
}

func (m sent) name() string { return m.body.Index(0).Key() }

// DialContext returns a connection that records its messages.
func (p *tap) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	select {
	case <-p.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return &tapped{c, p, nil}, err
}

type tapped struct {
	net.Conn
	tap   *tap
	begun []byte // an incomplete message
}

func (c *tapped) Write(b []byte) (int, error) {
	c.begun = append(c.begun, b...)
	for len(c.begun) >= 4 && len(c.begun) >= int(binary.LittleEndian.Uint32(c.begun)) {
		h, body, err := wire.ReadMessage(bytes.NewReader(c.begun))
		if err != nil {
			return 0, err
		}
		m, err := sentBy(h, body)
		if err != nil {
			return 0, err
		}
		c.tap.mu.Lock()
		c.tap.sent = append(c.tap.sent, m)
		c.tap.mu.Unlock()
		c.begun = c.begun[h.Length:]
	}
	return c.Conn.Write(b)
}

// take returns the messages since the last call, except messages of handshakes and monitors. It checks that monitors do
// not gossip.
func (p *tap) take() (out []sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent {
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
	p.sent = nil
	return out
}
