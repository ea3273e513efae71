package proxy

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/wire"
)

// front is the proxy in front of one server or load balancer.
type front struct {
	proxy         *Proxy
	serverAddress string // host:port
	address       string // of the proxy

	asking sync.Mutex // guards own
	own    net.Conn   // for questions of the proxy; nil before the first

	mu       sync.Mutex
	listener net.Listener // closed while the server refuses connections
	about    about
	inside   map[string]bool // fail points that the server has
}

// about is what a server replies to hello.
type about struct {
	wire   int // maxWireVersion; 0 if unknown
	mongos bool
	member bool // of a replica set
	// name is the server's name in its replica set, so that fail points are the same by all its addresses, otherwise
	// its address. It is empty before the server has answered.
	name string
}

// role returns the role of the server. All members of a replica set have the same commands.
func (a about) role() commands.Role {
	switch {
	case a.mongos:
		return commands.Mongos
	case a.member:
		return commands.Secondary
	}
	return commands.Standalone
}

// accept serves clients until the proxy is closed.
func (f *front) accept() {
	for {
		f.mu.Lock()
		listener := f.listener
		f.mu.Unlock()
		relay.Accept(listener, func(client net.Conn) {
			f.proxy.work.Go(func() { f.serve(client) })
		})
		if !f.revive() {
			return
		}
	}
}

func (f *front) serve(client net.Conn) {
	defer f.owns(client)()
	if !f.proxy.Balanced && !f.known(f.proxy.ctx) {
		return
	}
	behind, err := f.dial(f.proxy.ctx)
	if err != nil {
		return
	}
	defer f.owns(behind)()
	if err := newConn(f, client, behind).run(); errors.Is(err, errLost) { // perhaps its process has ended
		if probe, err := f.dial(f.proxy.ctx); err == nil {
			_ = probe.Close()
		}
	}
}

// dial connects to the server. If it refuses the connection, so does the proxy from now on, and its fail points end,
// as fail points end with the process of a server.
func (f *front) dial(ctx context.Context) (net.Conn, error) {
	c, err := f.proxy.Dial(ctx, f.serverAddress)
	if errors.Is(err, syscall.ECONNREFUSED) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.listener.Close()
		f.proxy.forget(f.about.name)
	}
	return c, err
}

// reviveEvery is how often the proxy tries to connect to a server that refuses connections.
const reviveEvery = 20 * time.Millisecond

// revive waits until the server accepts connections again, and listens. It returns false when the proxy is closed.
func (f *front) revive() bool {
	for f.proxy.ctx.Err() == nil {
		release := server.ReservePort(f.address)
		for accepts := false; !accepts; {
			select {
			case <-f.proxy.ctx.Done():
				release()
				return false
			case <-time.After(reviveEvery):
			}
			c, err := f.proxy.Dial(f.proxy.ctx, f.serverAddress)
			if accepts = err == nil; accepts {
				_ = c.Close()
			}
		}
		release()
		if l, err := net.Listen("tcp", f.address); err == nil {
			f.mu.Lock()
			f.listener = l
			f.mu.Unlock()
			if f.proxy.ctx.Err() != nil { // close may have seen the old one
				_ = l.Close()
			}
			return true
		}
	}
	return false
}

// owns closes a connection when the proxy is closed or the returned function is called.
func (f *front) owns(c net.Conn) (closing func()) {
	stop := context.AfterFunc(f.proxy.ctx, func() { _ = c.Close() })
	return func() { stop(); _ = c.Close() }
}

func (f *front) close() {
	f.mu.Lock()
	_ = f.listener.Close()
	f.mu.Unlock()
	f.asking.Lock()
	defer f.asking.Unlock()
	if f.own != nil {
		_ = f.own.Close()
	}
}

// known sends hello unless a reply has described the server. It reports whether the server is known.
func (f *front) known(ctx context.Context) bool {
	if f.current().wire > 0 {
		return true
	}
	hello, err := f.hello(ctx)
	f.learn(hello)
	return err == nil
}

func (f *front) current() about {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.about
}

// learn records what a reply to hello says about the server.
func (f *front) learn(hello bson.Raw) {
	version, ok := hello.Lookup("maxWireVersion").AsInt64OK()
	if !ok {
		return
	}
	name := cmp.Or(value.TextAt(hello, "me"), f.serverAddress)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.about = about{int(version), value.TextAt(hello, "msg") == "isdbgrid", value.Has(hello, "setName"),
		cmp.Or(f.about.name, strings.ToLower(name))}
}

// ask sends a command on the proxy's own connection. It tries once more if that was closed. A server that does not
// answer makes the client wait, as it would without the proxy.
func (f *front) ask(ctx context.Context, question bson.D) (reply bson.Raw, err error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	for range 2 {
		fresh := f.own == nil
		if fresh {
			if f.own, err = f.dial(ctx); err != nil {
				f.own = nil
				return nil, err
			}
		}
		if reply, err = exchange(ctx, f.own, question); err == nil {
			return reply, nil
		}
		_ = f.own.Close()
		if f.own = nil; fresh {
			break
		}
	}
	return nil, err
}

// hello sends isMaster, because all versions have it.
func (f *front) hello(ctx context.Context) (bson.Raw, error) {
	return f.ask(ctx, value.AddIf(value.Doc("isMaster", 1), f.proxy.Balanced, "loadBalanced", true))
}

func exchange(ctx context.Context, behind net.Conn, question bson.D) (bson.Raw, error) {
	const id = 1
	stop := context.AfterFunc(ctx, func() { _ = behind.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	question = value.Append(question, "$db", "admin")
	if _, err := behind.Write(wire.AppendMsg(nil, id, 0, 0, value.Encode(question))); err != nil {
		return nil, err
	}
	h, body, err := wire.ReadMessage(behind)
	if err != nil {
		return nil, err
	}
	return wire.Response(id, h, body)
}

// baseBackoff returns the base backoff that errors of an overloaded server report (Client Backpressure, "Overload retry
// policy"), or 0.
func (f *front) baseBackoff(ctx context.Context) int64 {
	const name = "externalClientBaseBackoffMS"
	ask := f.ask
	if f.proxy.Ask != nil {
		ask = func(ctx context.Context, question bson.D) (bson.Raw, error) {
			return f.proxy.Ask(ctx, f.serverAddress, question)
		}
	}
	reply, _ := ask(ctx, value.Doc("getParameter", 1, name, 1))
	return value.IntAt(reply, name)
}

// times returns the topologyVersion of the server and the fields with which its replies end now.
func (f *front) times(ctx context.Context) (version bson.RawValue, times bson.D) {
	hello, err := f.hello(ctx)
	if err != nil {
		return version, nil
	}
	return hello.Lookup("topologyVersion"), value.Pick(hello, "$clusterTime", "operationTime")
}
