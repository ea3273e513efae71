// Package interpose is a proxy between clients and one server. It forwards messages, and its caller decides what
// happens to each command and its reply. It does not support encrypted or compressed messages.
package interpose

import (
	"encoding/binary"
	"io"
	"net"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Action is what the proxy does with a command.
type Action uint8

// The actions of a proxy.
const (
	Forward     Action = iota
	DropRequest        // the connection is closed before the server reads the command
	DropReply          // the connection is closed after the server has executed the command
	Refuse             // the server does not receive it; the client gets an error that is not retryable
	StepDown           // the server does not receive it; the client gets the error of a former primary
)

// Hooks are called for every command, concurrently for different connections. Both may be nil.
type Hooks struct {
	// Command decides about a command by its name.
	Command func(name string) Action
	// Replied is called after the server has replied and before the client gets the reply. If the connection to the
	// server is closed instead, it is called then.
	Replied func(name string, action Action)
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

// Listen forwards connections from a port of the loopback interface to a server, host:port.
func Listen(server string, hooks Hooks) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, server: server, hooks: hooks, open: map[net.Conn]bool{}}
	p.running.Go(func() { relay.Accept(l, func(client net.Conn) { p.running.Go(func() { p.serve(client) }) }) })
	return p, nil
}

// Address returns the host:port that clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close closes all connections and waits until their goroutines have returned.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	p.closeAll()
	p.mu.Unlock()
	p.running.Wait()
}

// Vanish closes all connections. Until Return, it also closes new ones immediately.
func (p *Proxy) Vanish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	p.closeAll()
}

// Return accepts connections again.
func (p *Proxy) Return() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *Proxy) closeAll() {
	for c := range p.open {
		_ = c.Close()
	}
}

// track adds a connection to those that Close and Vanish close. It returns false if the proxy is already closed
// or down.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.down {
		_ = c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) untrack(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close()
}

// serve forwards commands and replies one at a time: a client sends a command only after the reply to the previous one.
// Unacknowledged commands have no reply and are not supported.
func (p *Proxy) serve(client net.Conn) {
	if !p.track(client) {
		return
	}
	defer p.untrack(client)
	server, err := net.Dial("tcp", p.server)
	if err != nil || !p.track(server) {
		return
	}
	defer p.untrack(server)
	for {
		h, body, err := wire.ReadMessage(client)
		if err != nil {
			return
		}
		name, action := command(h, body), Forward
		if name != "" && p.hooks.Command != nil {
			action = p.hooks.Command(name)
		}
		if refusal := refusals()[action]; refusal != nil {
			doc, err := bson.Marshal(refusal)
			if err != nil || write(client, wire.AppendMsg(nil, 0, h.RequestID, 0, doc)) != nil {
				return
			}
			continue
		}
		if action == DropRequest || write(server, wire.AppendMessage(nil, h, body)) != nil ||
			!p.reply(h.RequestID, name, action, server, client) {
			return
		}
	}
}

// reply forwards the reply to a command, or all replies if the server streams. It reports whether the connection
// stays open. After a reply to another message, it is closed.
func (p *Proxy) reply(last int32, name string, action Action, server, client net.Conn) bool {
	for more := true; more; {
		h, body, err := wire.ReadMessage(server)
		if name != "" && p.hooks.Replied != nil {
			p.hooks.Replied(name, action)
		}
		if err != nil || h.ResponseTo != last || action == DropReply ||
			write(client, wire.AppendMessage(nil, h, body)) != nil {
			return false
		}
		more = h.OpCode == wire.OpMsg && len(body) >= 4 && binary.LittleEndian.Uint32(body)&uint32(wire.MoreToCome) != 0
		last = h.RequestID
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

func write(to io.Writer, message []byte) error {
	_, err := to.Write(message)
	return err
}

// refusals are the replies to commands that the server does not receive. A former primary labels its errors for drivers
// that retry writes; others ignore the label.
func refusals() map[Action]bson.D {
	return map[Action]bson.D{
		Refuse: {{Key: "ok", Value: 0.0}, {Key: "code", Value: codes.Unauthorized}, {Key: "codeName", Value: "Unauthorized"},
			{Key: "errmsg", Value: "not authorized"}},
		StepDown: {{Key: "ok", Value: 0.0}, {Key: "code", Value: codes.NotWritablePrimary}, {Key: "codeName", Value: "NotWritablePrimary"},
			{Key: "errmsg", Value: "not primary"},
			{Key: "errorLabels", Value: bson.A{codes.RetryableWriteError}}},
	}
}
