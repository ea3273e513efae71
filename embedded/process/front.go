package process

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/internal/relay"
)

// front is a process as its clients see it: the public ports, and who serves them
// behind, which changes as the process becomes a member of a set.
type front struct {
	o   *Options
	env Environment
	id  string
	log *logFile
	tls *tls.Config
	// ctx ends with the process. ending has the exit code.
	ctx    context.Context
	cancel context.CancelFunc
	ending chan int
	work   sync.WaitGroup

	joining sync.Mutex // a host, one at a time
	waiting *server.Server
	cluster *server.Cluster // of waiting; nil if the process never waited

	mu    sync.Mutex
	state string
	host  whereabouts
	// serve serves a client, and closes its connection in the end. It may return
	// earlier. Nil while nobody can.
	serve func(nc net.Conn, balanced bool)
	ready chan struct{} // closed when somebody can
}

func newFront(o *Options, env Environment, log *logFile, config *tls.Config) *front {
	f := &front{o: o, env: env, id: rand.Text(), log: log, tls: config, state: stateOther, ending: make(chan int, 1), ready: make(chan struct{})}
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
	if f.cluster != nil {
		_ = f.cluster.Close() // it waits long enough
	}
	f.work.Wait()
}

// become changes what the process is, and who serves its clients from now on.
func (f *front) become(state string, host whereabouts, serve func(net.Conn, bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serve == nil {
		close(f.ready)
	}
	f.state, f.host, f.serve = state, host, serve
}

// wait makes the process one that waits for its replica set.
func (f *front) wait() (err error) {
	f.cluster = server.NewCluster(server.Config{
		Kind: server.Uninitiated, Profile: f.o.Profile, SetName: f.o.ReplSet,
		Backend: data.New(data.Options{ReplicaSet: true}), Initiate: f.initiate,
	})
	f.waiting, err = f.cluster.Join(f.address(), server.Process{
		Parameters: parameters(f.o.Parameters), AnyParameter: true, AccessControl: f.o.AccessControl, Arguments: f.o.Arguments, PID: f.env.PID,
		Shutdown: func() { f.end(exitClean) },
	})
	if err == nil {
		f.become(stateWaiting, whereabouts{}, f.waiting.Serve)
	}
	return err
}

func (f *front) accept(l net.Listener, balanced bool) {
	relay.Accept(l, func(nc net.Conn) {
		f.work.Go(func() { f.open(nc, balanced) })
	})
}

// open finds out what has connected: another process, TLS, or a client.
func (f *front) open(nc net.Conn, balanced bool) {
	stop := breaks(f.ctx, nc)
	client, err := f.identify(nc, balanced)
	if client != nil {
		select {
		case <-f.ready:
		case <-f.ctx.Done():
			client = nil
		}
	}
	stop()
	if err != nil {
		f.log.add("Error receiving request from client", attributes{"remote": nc.RemoteAddr().String(), "error": err.Error()})
	}
	if client == nil {
		_ = nc.Close()
		return
	}
	f.mu.Lock()
	serve := f.serve
	f.mu.Unlock()
	serve(client, balanced)
}

// tlsHandshake is the first byte of a TLS handshake.
const tlsHandshake = 0x16

// identify returns the connection of a client as it is to be served, nil if it
// is not that of a client.
func (f *front) identify(nc net.Conn, balanced bool) (net.Conn, error) {
	in := reader(nc)
	if balanced {
		if err := skipProxyHeader(in); err != nil {
			return nil, err
		}
	}
	client := &relay.ReadAhead{Conn: nc, In: in}
	begin, err := in.Peek(len(magic))
	switch {
	case err != nil: // it has gone, or sends too little to be a client
		return nil, nil
	case string(begin) == magic:
		f.answer(nc, in)
		return nil, nil
	case begin[0] == tlsHandshake && f.tls != nil:
		secure := tls.Server(client, f.tls)
		if err := secure.HandshakeContext(f.ctx); err != nil {
			return nil, err
		}
		return secure, nil
	case f.o.TLS.requireTLS():
		return nil, errors.New("the server is configured to only allow SSL connections")
	}
	return client, nil
}

// skipProxyHeader skips the line with which a load balancer says whose connection
// it hands on (PROXY protocol, version 1), if there is one.
func skipProxyHeader(in *bufio.Reader) error {
	const begin = "PROXY "
	if first, err := in.Peek(len(begin)); err != nil || string(first) != begin {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err == nil && !strings.HasSuffix(string(line), "\r\n") {
		err = errors.New("malformed header of the PROXY protocol")
	}
	return err
}

// answer serves another process, if it is on this machine.
func (f *front) answer(nc net.Conn, in *bufio.Reader) {
	there, ok := nc.RemoteAddr().(*net.TCPAddr)
	here, ok2 := nc.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || !there.IP.IsLoopback() && !there.IP.Equal(here.IP) {
		return
	}
	q, err := hear(nc, in)
	if err != nil {
		return
	}
	var a reply
	switch q.Kind {
	case askState:
		a = f.describe()
	case askInvite:
		if err := f.takeInvitation(q); err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = "there is no request " + q.Kind
	}
	_ = write(nc, a) // it hangs up if it did not hear
}

func (f *front) describe() reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	return reply{ID: f.id, State: f.state, Set: f.o.ReplSet, ConfigServer: f.o.ConfigServer, Host: f.host}
}

// attend waits for the order to stop, or for the end of the host, and ends the
// process then.
func (f *front) attend(control net.Conn, in *bufio.Reader) {
	defer breaks(f.ctx, control)()
	var r reply
	for !r.Stop {
		if err := read(in, &r); err != nil {
			f.log.add("The host of the data is gone", nil)
			f.end(exitAbrupt)
			return
		}
	}
	f.end(exitClean)
}

// forward hands a client over to a host, at an address.
func (f *front) forward(client net.Conn, address string) {
	host, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	defer breaks(f.ctx, client, host)()
	relay.Pass(client, host)
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
