package process

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/internal/relay"
)

// backend serves the clients of a process.
type backend interface {
	// serve takes a client over, and closes its connection in the end.
	serve(nc net.Conn, balanced bool)
	// close breaks the connections of its clients, and waits for them.
	close()
}

// front is a process as its clients see it: the public ports, and whoever
// serves behind them, which changes as the process becomes a member of a set.
type front struct {
	o       *Options
	env     Environment
	id      string
	journal *journal
	tls     *tls.Config
	// ctx ends with the process. ending has the exit code.
	ctx    context.Context
	cancel context.CancelFunc
	ending chan int
	work   sync.WaitGroup

	initiating, joining sync.Mutex // each one at a time

	mu      sync.Mutex
	closed  bool
	state   string
	behind  backend
	past    []*ghost              // whose clients have been handed over
	change  chan struct{}         // closed when behind becomes another
	opening map[net.Conn]struct{} // of whom we do not know yet what they want
}

func newFront(o *Options, env Environment, j *journal, config *tls.Config) *front {
	f := &front{o: o, env: env, id: secret(), journal: j, tls: config, state: standsBy, ending: make(chan int, 1), change: make(chan struct{}), opening: map[net.Conn]struct{}{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// end ends the process with an exit code. The first one counts.
func (f *front) end(code int) {
	select {
	case f.ending <- code:
	default:
	}
}

// close breaks everything off and waits.
func (f *front) close(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
	f.cancel()
	f.mu.Lock()
	f.closed = true
	behind, past := f.behind, f.past
	f.behind, f.past = nil, nil
	for nc := range f.opening {
		_ = nc.Close()
	}
	f.mu.Unlock()
	if behind != nil {
		behind.close()
	}
	for _, g := range past {
		g.close()
	}
	f.work.Wait()
}

// become changes who serves, and what the process is. Clients of a member that
// waited keep their connections; others of before lose them.
func (f *front) become(state string, b backend) {
	f.mu.Lock()
	old := f.behind
	if f.closed {
		old, b = b, nil
	}
	f.behind, f.state = b, state
	close(f.change)
	f.change = make(chan struct{})
	fw, forwards := b.(*forwarder)
	g, waited := old.(*ghost)
	handOver := forwards && waited
	if handOver {
		f.past = append(f.past, g)
	}
	f.mu.Unlock()
	switch {
	case handOver:
		g.server.HandOver(func(client net.Addr) (*net.TCPConn, error) { return fw.dial(client, false) })
	case old != nil:
		f.work.Go(old.close)
	}
	if forwards {
		f.work.Go(func() { f.attend(fw) })
	}
}

// accept takes clients until the listener is closed.
func (f *front) accept(l net.Listener, balanced bool) {
	relay.Accept(l, func(nc net.Conn) {
		f.work.Go(func() { f.open(nc, balanced) })
	})
}

// open finds out what has connected: another process, TLS, or a client.
func (f *front) open(nc net.Conn, balanced bool) {
	if !f.opened(nc, true) {
		_ = nc.Close()
		return
	}
	client, behind := f.identify(nc, balanced), backend(nil)
	if client != nil {
		behind = f.who()
	}
	if !f.opened(nc, false) || behind == nil {
		_ = nc.Close()
		return
	}
	behind.serve(client, balanced)
}

// who serves, as soon as somebody does; nil at the end.
func (f *front) who() backend {
	for {
		f.mu.Lock()
		behind, change := f.behind, f.change
		f.mu.Unlock()
		if behind != nil {
			return behind
		}
		select {
		case <-change:
		case <-f.ctx.Done():
			return nil
		}
	}
}

// opened notes a connection that is being opened, or no more. False: everything
// is closed.
func (f *front) opened(nc net.Conn, begins bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begins && !f.closed {
		f.opening[nc] = struct{}{}
	} else {
		delete(f.opening, nc)
	}
	return !f.closed
}

// handshake of TLS begins with this byte.
const handshake = 0x16

// identify gives the connection of a client as it is to be served, nil if it
// is none.
func (f *front) identify(nc net.Conn, balanced bool) net.Conn {
	in := bufio.NewReader(nc)
	client := &rewound{ReadAhead: relay.ReadAhead{Conn: nc, In: in}}
	if balanced {
		remote, err := proxied(in)
		if err != nil {
			return nil
		}
		client.remote = remote
	}
	begin, err := in.Peek(len(magic))
	switch {
	case err != nil:
		return nil
	case string(begin) == magic:
		if f.local(nc) {
			f.answer(nc, in)
		}
		return nil
	case begin[0] == handshake && f.tls != nil:
		secure := tls.Server(client, f.tls)
		if err := secure.HandshakeContext(f.ctx); err != nil {
			f.journal.info("NETWORK", 22988, "conn", "Error receiving request from client. Ending connection from remote", bson.D{
				{Key: "error", Value: bson.D{{Key: "code", Value: 141}, {Key: "codeName", Value: "SSLHandshakeFailed"}, {Key: "errmsg", Value: err.Error()}}},
				{Key: "remote", Value: nc.RemoteAddr().String()}})
			return nil
		}
		return secure
	case f.o.TLS.Mode == "require":
		f.journal.info("NETWORK", 22988, "conn", "Error receiving request from client. Ending connection from remote", bson.D{
			{Key: "error", Value: bson.D{{Key: "code", Value: 141}, {Key: "codeName", Value: "SSLHandshakeFailed"},
				{Key: "errmsg", Value: "The server is configured to only allow SSL connections"}}},
			{Key: "remote", Value: nc.RemoteAddr().String()}})
		return nil
	}
	return client
}

// local says whether the other end is on this machine.
func (f *front) local(nc net.Conn) bool {
	there, ok := nc.RemoteAddr().(*net.TCPAddr)
	here, ok2 := nc.LocalAddr().(*net.TCPAddr)
	return ok && ok2 && (there.IP.IsLoopback() || there.IP.Equal(here.IP))
}

// answer serves another process.
func (f *front) answer(nc net.Conn, in *bufio.Reader) {
	_ = nc.SetReadDeadline(time.Now().Add(answering))
	if _, err := in.Discard(len(magic)); err != nil {
		return
	}
	var q request
	if err := read(in, &q); err != nil {
		return
	}
	var a reply
	switch q.Kind {
	case askState:
		a = f.tell()
	case askInvite:
		if err := f.accede(q); err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = "there is no request " + q.Kind
	}
	_ = write(nc, a) // it hangs up if it did not hear
}

// tell says who the process is.
func (f *front) tell() reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := reply{ID: f.id, State: f.state, Set: f.o.ReplSet, ConfigServer: f.o.ConfigServer}
	if fw, ok := f.behind.(*forwarder); ok && f.state == serves {
		a.Host, a.Token = fw.host.Host, fw.host.Token
	}
	return a
}

// accede takes an invitation.
func (f *front) accede(q request) error {
	f.joining.Lock()
	defer f.joining.Unlock()
	switch {
	case f.tell().State != waits:
		return errors.New("the process is a member already, or none")
	case q.Set != f.o.ReplSet:
		return errors.New("the process belongs to replica set " + f.o.ReplSet)
	}
	fw, err := f.join(f.ctx, whereabouts{Host: q.Host, Token: q.Token}, q.Member)
	if err != nil {
		f.journal.fail("REPL", 0, "ReplCoord", "Cannot join the set", bson.D{{Key: "error", Value: err.Error()}})
		return err
	}
	f.journal.info("REPL", 21392, "ReplCoord", "New replica set config in use", bson.D{{Key: "config", Value: bson.D{{Key: "_id", Value: f.o.ReplSet}}}})
	f.become(serves, fw)
	return nil
}

// join takes the process's seat at a host.
func (f *front) join(ctx context.Context, w whereabouts, member string) (*forwarder, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	s, err := f.seat()
	if err != nil {
		return nil, err
	}
	control, in, _, err := dial(ctx, w.Host, request{Kind: askJoin, Token: w.Token, Member: member, Seat: s})
	if err != nil {
		return nil, err
	}
	if err := f.remember(w, member); err != nil {
		_ = control.Close()
		return nil, err
	}
	return &forwarder{host: w, member: member, control: control, in: in, conns: map[net.Conn]struct{}{}}, nil
}

// seat is what the process brings along.
func (f *front) seat() (*seat, error) {
	s := &seat{
		Router: f.o.Mongos, Access: f.o.AccessControl, Arguments: f.o.Arguments, PID: f.env.PID, LogPath: f.o.LogPath,
		Verbosity: f.o.Verbosity, SlowMS: f.o.SlowMS, StateFile: f.stateFile(),
	}
	var err error
	for _, d := range []struct {
		doc bson.D
		to  *[]byte
	}{{f.o.Parameters, &s.Parameters}, {f.o.Inert, &s.Inert}, {f.o.Parsed, &s.Options}} {
		if *d.to, err = bson.Marshal(append(bson.D{}, d.doc...)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// attend hears what becomes of the process at its host, until the host or the
// seat is gone.
func (f *front) attend(fw *forwarder) {
	_ = write(fw.control, request{Kind: saysServes}) // the loop hears if the host is gone
	for {
		var r reply
		if err := read(fw.in, &r); err != nil {
			break
		}
		switch {
		case r.Stop:
			f.end(exitClean)
		case r.Removed:
			f.forget()
			f.await()
			return
		}
	}
	f.mu.Lock()
	lost := f.behind == backend(fw) && !f.closed
	f.mu.Unlock()
	switch {
	case !lost:
	case f.o.Mongos:
		f.journal.fail("SHARDING", 0, "main", "The config servers are gone", nil)
		f.become(standsBy, nil)
		f.work.Go(f.route)
	default:
		f.journal.Log(server.Entry{Severity: "F", Component: "CONTROL", Context: "main", Message: "The host of the data is gone"})
		f.end(exitAbrupt)
	}
}

// await waits for replSetInitiate, or for an invitation.
func (f *front) await() {
	g, err := f.newGhost()
	if err != nil {
		f.journal.fail("REPL", 0, "main", "Cannot wait for a configuration", bson.D{{Key: "error", Value: err.Error()}})
		f.end(exitFailure)
		return
	}
	f.become(waits, g)
}

// ghost serves a process that waits for its replica set.
type ghost struct {
	cluster *server.Cluster
	server  *server.Server
}

func (f *front) newGhost() (*ghost, error) {
	c := server.NewCluster(server.Config{
		Kind: server.Uninitiated, Profile: f.o.Profile, SetName: f.o.ReplSet, Users: server.NewUsers(), AccessByPlace: true,
		Backend: data.New(data.Options{ReplicaSet: true}), Initiate: f.initiated,
	})
	s, err := c.Join(f.address(), server.Place{
		Parameters: f.o.Parameters, Inert: f.o.Inert, AccessControl: f.o.AccessControl,
		Arguments: f.o.Arguments, Options: f.o.Parsed, PID: f.env.PID, Journal: f.journal,
		Shutdown: func() { f.end(exitClean) },
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &ghost{c, s}, nil
}

func (g *ghost) serve(nc net.Conn, balanced bool) { g.server.Serve(nc) }
func (g *ghost) close()                           { _ = g.cluster.Close() } // it waits long enough

// forwarder hands clients over to a host.
type forwarder struct {
	host    whereabouts
	member  string
	control net.Conn
	in      *bufio.Reader // of control
	work    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// dial opens a connection to the host for a client.
func (f *forwarder) dial(client net.Addr, balanced bool) (*net.TCPConn, error) {
	nc, err := net.Dial("tcp", f.host.Host)
	if err != nil {
		return nil, err
	}
	host := nc.(*net.TCPConn) // as net.Dial says
	if _, err = io.WriteString(host, magic); err == nil {
		err = write(host, request{Kind: askForward, Token: f.host.Token, Member: f.member, Remote: client.String(), Balanced: balanced})
	}
	if err != nil {
		_ = host.Close()
		return nil, err
	}
	return host, nil
}

func (f *forwarder) serve(client net.Conn, balanced bool) {
	host, err := f.dial(client.RemoteAddr(), balanced)
	if err != nil {
		_ = client.Close()
		return
	}
	if !f.hold(client, host) {
		_, _ = host.Close(), client.Close()
		return
	}
	defer f.release(client, host)
	relay.Pass(client, host)
}

// hold has the two ends closed with the forwarder, and waited for. False: it is
// closed already.
func (f *forwarder) hold(ends ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.work.Add(1)
	for _, nc := range ends {
		f.conns[nc] = struct{}{}
	}
	return true
}

func (f *forwarder) release(ends ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work.Done()
	for _, nc := range ends {
		delete(f.conns, nc)
	}
}

func (f *forwarder) close() {
	_ = f.control.Close()
	f.mu.Lock()
	f.closed = true
	for nc := range f.conns {
		_ = nc.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}

// address is what the process calls itself where nobody has named it.
func (f *front) address() string {
	host := f.o.Bind[0]
	switch host {
	case "0.0.0.0", "::", "localhost":
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(f.o.Port))
}
