// Package interpose stands between clients and one server. It forwards messages, and its caller decides what
// happens to each command and its reply. It reads no encrypted and no compressed messages.
package interpose

import (
	"encoding/binary"
	"io"
	"net"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/relay"
)

// Deed is what happens to a command.
type Deed uint8

// The deeds.
const (
	Forward     Deed = iota
	DropRequest      // the connection ends before the server has read the command
	DropReply        // the connection ends after the server has executed it
	Refuse           // the server does not read it; the client gets an error that is not retryable
)

// Hooks are called for every command, by several connections at once. Both may be nil.
type Hooks struct {
	// Command decides about a command by its name.
	Command func(name string) Deed
	// Replied is called when the server has replied, before the client gets the reply, and when the connection
	// to the server ends instead.
	Replied func(name string, deed Deed)
}

// Proxy forwards connections to a server. All methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	server   string
	hooks    Hooks
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	down   bool
}

// Listen forwards connections to a server, host:port, from a port of the loopback
// interface.
func Listen(server string, hooks Hooks) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, server: server, hooks: hooks, open: map[net.Conn]bool{}}
	p.running.Go(func() { relay.Accept(l, func(client net.Conn) { p.running.Go(func() { p.serve(client) }) }) })
	return p, nil
}

// Address is host:port, to which clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends all connections, and waits until they have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	p.hangUp()
	p.mu.Unlock()
	p.running.Wait()
}

// Vanish ends all connections, and new ones at once, until Return.
func (p *Proxy) Vanish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	p.hangUp()
}

// Return accepts connections again.
func (p *Proxy) Return() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *Proxy) hangUp() {
	for c := range p.open {
		_ = c.Close()
	}
}

// keep notes a connection, unless it has to end at once.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.down {
		_ = c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close()
}

// serve hands commands on, and replies back: a client sends no command before the reply to the one before has
// come. Unacknowledged commands have no reply, and are not supported.
func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.server)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	for {
		h, body, err := wire.ReadMessage(client)
		if err != nil {
			return
		}
		name, deed := command(h, body), Forward
		if name != "" && p.hooks.Command != nil {
			deed = p.hooks.Command(name)
		}
		if deed == Refuse {
			if _, err := client.Write(refusal(h.RequestID)); err != nil {
				return
			}
			continue
		}
		if deed == DropRequest || write(server, h, body) != nil || !p.back(name, deed, server, client) {
			return
		}
	}
}

// back hands the reply to a command back, or all of them where the server streams. It
// reports whether the connection goes on.
func (p *Proxy) back(name string, deed Deed, server, client net.Conn) bool {
	for more := true; more; {
		h, body, err := wire.ReadMessage(server)
		if name != "" && p.hooks.Replied != nil {
			p.hooks.Replied(name, deed)
		}
		if err != nil || deed == DropReply || write(client, h, body) != nil {
			return false
		}
		more = h.OpCode == wire.OpMsg && len(body) >= 4 && binary.LittleEndian.Uint32(body)&uint32(wire.MoreToCome) != 0
	}
	return true
}

// command returns the name of a command, or "" for a message that is not a command.
func command(h wire.Header, body []byte) string {
	if h.OpCode != wire.OpMsg {
		return ""
	}
	m, err := wire.ParseMsg(h, body)
	if err != nil {
		return ""
	}
	first, err := m.Body.IndexErr(0)
	if err != nil {
		return ""
	}
	return first.Key()
}

// write writes a message as it was read.
func write(to io.Writer, h wire.Header, body []byte) error {
	_, err := to.Write(wire.AppendMessage(nil, h, body))
	return err
}

// refusal is the reply of a server that does not let the client do something.
func refusal(to int32) []byte {
	doc, _ := bson.Marshal(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 13}, {Key: "codeName", Value: "Unauthorized"}, {Key: "errmsg", Value: "not authorized"}})
	return wire.AppendMsg(nil, 0, to, 0, doc)
}
