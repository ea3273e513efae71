package counter

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/wire"
)

// Fault is what happens to a write.
type Fault string

// The faults.
const (
	LostRequest  Fault = "lost-request"  // the connection breaks before the server has read it
	LostReply    Fault = "lost-reply"    // it breaks after the server has executed it
	Failover     Fault = "failover"      // either, and the set has no primary for a moment
	Outage       Fault = "outage"        // either, and nothing is reachable until the application gives up
	CommandError Fault = "command-error" // the server refuses it, again and again
)

// Faults lists the faults.
func Faults() []Fault { return []Fault{LostRequest, LostReply, Failover, Outage, CommandError} }

// lasts reports whether trying again cannot help.
func (f Fault) lasts() bool { return f == Outage || f == CommandError }

// election is how long a failover leaves a set without a primary.
const election = 100 * time.Millisecond

// strike says where a fault strikes: at a command, after skipping some of them. executed
// decides for faults that leave it open.
type strike struct {
	command  string
	skip     int
	executed bool
}

// proxy stands between one client and a server.
type proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	fault  Fault // "" once it has struck, or is over
	strike strike
	struck bool
	down   bool // every connection ends at once
	writes int
}

func listen(server string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, server: server, open: map[net.Conn]bool{}}
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(client) })
		}
	})
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// arm makes a fault strike; disarm ends it, and reports how many writes have come.
func (p *proxy) arm(f Fault, at strike) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.strike, p.struck, p.writes = f, at, false, 0
}

func (p *proxy) disarm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.down = "", false
	return p.writes
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	p.hangUp()
	p.mu.Unlock()
	p.running.Wait()
}

// hangUp closes all connections.
func (p *proxy) hangUp() {
	for c := range p.open {
		_ = c.Close()
	}
}

// keep notes a connection, unless it has to end at once.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.down {
		_ = c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close()
}

// serve hands commands on, and replies back: a client sends no command before the reply
// to the one before has come, but for unacknowledged ones, which no strategy sends.
func (p *proxy) serve(client net.Conn) {
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
		does := p.judge(h, body)
		if does == refuse {
			if _, err := client.Write(refusal(h.RequestID)); err != nil {
				return
			}
			continue
		}
		if does == dropRequest || write(server, h, body) != nil {
			return
		}
		for more := true; more; { // a server streams hello
			h, reply, err := wire.ReadMessage(server)
			if err != nil || does == dropReply {
				p.after(does)
				return
			}
			if write(client, h, reply) != nil {
				return
			}
			more = h.OpCode == wire.OpMsg && len(reply) >= 4 && binary.LittleEndian.Uint32(reply)&uint32(wire.MoreToCome) != 0
		}
	}
}

// struck are the commands that a fault may strike.
var struck = []string{"find", "insert", "update", "delete", "commitTransaction"}

// deed is what a proxy does with a command.
type deed uint8

const (
	pass deed = iota
	dropRequest
	dropReply
	refuse
)

// judge decides what happens to a command.
func (p *proxy) judge(h wire.Header, body []byte) deed {
	m, err := wire.ParseMsg(h, body)
	if h.OpCode != wire.OpMsg || err != nil {
		return pass
	}
	first, err := m.Body.IndexErr(0)
	if err != nil || !slices.Contains(struck, first.Key()) {
		return pass
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	switch {
	case p.fault == "" || p.struck && p.fault != CommandError || first.Key() != p.strike.command && p.fault != CommandError:
		return pass
	case p.strike.skip > 0:
		p.strike.skip--
		return pass
	}
	p.struck = true
	switch p.fault {
	case CommandError:
		return refuse
	case LostReply:
		return dropReply
	case LostRequest:
		return dropRequest
	}
	if p.strike.executed {
		return dropReply // the others end when the server has replied
	}
	p.vanish()
	return dropRequest
}

// after ends the other connections once a write was executed whose reply is lost.
func (p *proxy) after(does deed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if does == dropReply && (p.fault == Failover || p.fault == Outage) {
		p.vanish()
	}
}

// vanish ends all connections, new ones as well: for a moment, or until the fault is over.
func (p *proxy) vanish() {
	p.down = true
	p.hangUp()
	if p.fault == Failover {
		p.running.Go(func() {
			time.Sleep(election)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.down = false
		})
	}
}

// write writes a message as it was read.
func write(to io.Writer, h wire.Header, body []byte) error {
	var out []byte
	for _, n := range []int32{int32(wire.HeaderSize + len(body)), h.RequestID, h.ResponseTo, int32(h.OpCode)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	_, err := to.Write(append(out, body...))
	return err
}

// refusal is the reply of a server that does not let the application write.
func refusal(to int32) []byte {
	doc, _ := bson.Marshal(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 13}, {Key: "codeName", Value: "Unauthorized"}, {Key: "errmsg", Value: "not authorized"}})
	return wire.AppendMsg(nil, 0, to, 0, doc)
}
