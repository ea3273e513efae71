// Package proxy is for utr only. It gives any MongoDB-compatible deployment the fail points of a test build: it stands
// in front of each server on a loopback address, answers configureFailPoint itself, and fails commands as the server
// would. The servers never receive a fail point, so nothing is left behind.
//
// Replies to hello name the proxy's addresses instead of the servers', so that drivers follow it to all members.
// Messages that no fail point affects are passed on unchanged. Compression is not offered. Clients connect without
// TLS.
//
// While a server refuses connections, so does the proxy.
//
// One difference from a server remains: fail points also affect a command that the server would refuse before it
// evaluates fail points, because of the command's fields.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/server"
)

// FailPoints returns the names of the fail points that a proxy has.
func FailPoints() []string { return append(slices.Clone(ofServer), failpoint.FailCommandSequence) }

// ofServer are the fail points of each server. failCommandSequence belongs to the deployment. Others take effect in the
// middle of a command: maxTimeNeverTimeOut, stopReplProducer.
var ofServer = []string{failpoint.FailCommand, failpoint.OnPrimaryTransactionalWrite,
	failpoint.FailGetMoreAfterCursorCheckout,
	failpoint.MaxTimeAlwaysTimeOut}

// Options describe the deployment.
type Options struct {
	// Dial connects to a server, with TLS if it requires that. The default is a plain connection.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Ask runs a command on the database admin of a server, as a user who may read its parameters. Servers with access
	// control require it. The default asks without authentication.
	Ask func(ctx context.Context, address string, command bson.D) (bson.Raw, error)
	// Balanced means that the servers are behind load balancers. Fail points then belong to the service that a
	// connection reaches.
	Balanced bool
	// Inside means that servers execute the fail points that take effect inside them. They must have test commands.
	Inside bool
}

// Proxy stands in front of the servers of a deployment. All methods may be called concurrently.
type Proxy struct {
	Options
	commands map[string]*commands.Row
	sequence *failpoint.Registry
	held     failpoint.Held
	sessions sessions
	streams  sync.Map // true by the ids of cursors of change streams
	numbers  numbers
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu         sync.Mutex
	fronts     map[string]*front              // by the server's address in lower case
	registries map[string]*failpoint.Registry // by about.name, or by the service behind a load balancer
}

// Start listens on a port of the loopback interface for each server, given as host:port. The caller must Close the
// proxy.
func Start(o Options, servers ...string) (*Proxy, error) {
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	p := &Proxy{Options: o, commands: server.Commands(commands.New(commands.Options{}).Rows()),
		fronts:     map[string]*front{},
		sequence:   failpoint.NewRegistry(rand.Float64, nil, failpoint.FailCommandSequence),
		registries: map[string]*failpoint.Registry{}, numbers: numbers{all: map[string]int64{}}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, s := range servers {
		if _, err := p.front(s); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// Address returns the address of the proxy in front of a server. A server that is not known yet gets one. It returns
// the server's own address if that is not possible.
func (p *Proxy) Address(server string) string {
	f, err := p.front(server)
	if err != nil {
		return server
	}
	return f.address
}

func (p *Proxy) front(server string) (*front, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := strings.ToLower(server)
	if f := p.fronts[key]; f != nil {
		return f, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the proxy in front of %s: %w", server, err)
	}
	if p.ctx.Err() != nil {
		return nil, errors.Join(fmt.Errorf("the proxy in front of %s: %w", server, net.ErrClosed), l.Close())
	}
	f := &front{proxy: p, serverAddress: server, address: l.Addr().String(), listener: l,
		inside: map[string]bool{}}
	p.fronts[key] = f
	p.work.Go(f.accept)
	return f, nil
}

// registry returns the fail points of a server or a service.
func (p *Proxy) registry(name string) *failpoint.Registry {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.registries[name]
	if r == nil {
		r = failpoint.NewRegistry(rand.Float64, p.sequence, ofServer...)
		p.registries[name] = r
	}
	return r
}

// forget ends the fail points of a server.
func (p *Proxy) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.registries, name)
}

// Close closes all connections and waits until their goroutines have returned.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	fronts := slices.Collect(maps.Values(p.fronts))
	p.mu.Unlock()
	for _, f := range fronts {
		f.close()
	}
	p.work.Wait()
}

// sessions are the ids of the sessions of commands.
type sessions struct {
	mu  sync.Mutex
	ids map[string]bson.RawValue
}

// Sessions returns the ids (lsid.id) of the sessions of all commands since the last call.
func (p *Proxy) Sessions() []bson.RawValue {
	s := &p.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Collect(maps.Values(s.ids))
	s.ids = map[string]bson.RawValue{} // from now on, they are recorded
	return ids
}

// see records the session of a command, once Sessions was called.
func (s *sessions) see(body bson.Raw) {
	id, err := body.LookupErr("lsid", "id")
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ids[string(id.Value)]; s.ids != nil && !known {
		id.Value = bytes.Clone(id.Value)
		s.ids[string(id.Value)] = id
	}
}
