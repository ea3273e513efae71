package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/internal/net/relay"
)

// front is the public side of a process.
type front struct {
	o       *Options
	self    string // path of this program
	id      string
	log     *slog.Logger
	logFile *os.File // nil if the log is standard output
	tls     *tls.Config
	ctx     context.Context         // ends with the process
	end     context.CancelCauseFunc // ends the process with an exitCode
	work    sync.WaitGroup

	joining sync.Mutex // held while joining a host
	lobby   lobby      // the clients before the process joins a host

	mu    sync.Mutex
	state string
	host  location
	serve func(nc net.Conn, balanced bool) // serves and closes a connection, maybe in the background
}

// setState changes the state of the process, and the function that serves its clients.
func (f *front) setState(state string, host location, serve func(net.Conn, bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.host, f.serve = state, host, serve
}

// wait starts a server without configuration, which waits for replSetInitiate or an invitation.
func (f *front) wait() error {
	data := backend{commands.New(commands.Options{}), func(string) { f.end(exitClean) }}
	cluster := server.NewCluster(server.Config{Version: f.o.Version, Backend: waiting{data, f.initiate}})
	f.work.Go(func() {
		<-f.ctx.Done()
		_ = cluster.Close()
	})
	alone, err := cluster.Join(f.address(), f.o.process(f.o.Version))
	if err == nil {
		f.setState(stateWaiting, location{}, func(nc net.Conn, balanced bool) { alone.Serve(f.lobby.enter(nc), balanced) })
	}
	return err
}

func (f *front) open(nc net.Conn, balanced bool) {
	stop := closeOnDone(f.ctx, nc)
	client, err := f.identify(nc, balanced)
	stop()
	if err != nil {
		f.log.Info("Error receiving request from client",
			slog.Group("attr", "remote", nc.RemoteAddr().String(), "error", err.Error()))
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

const tlsHandshake = 0x16 // the first byte of a TLS handshake

// identify returns the connection of a client without TLS and PROXY header, nil if it is not a client.
func (f *front) identify(nc net.Conn, balanced bool) (net.Conn, error) {
	in := reader(nc)
	if balanced {
		if err := skipProxyHeader(in); err != nil {
			return nil, err
		}
	}
	client := &readAhead{Conn: nc, in: in}
	first, err := in.Peek(len(magic))
	switch {
	case err != nil: // it disconnected
		return nil, nil
	case string(first) == magic:
		f.serveRequest(nc, in)
		return nil, nil
	case first[0] == tlsHandshake && f.tls != nil:
		secure := tls.Server(client, f.tls)
		if err := secure.HandshakeContext(f.ctx); err != nil {
			return nil, err
		}
		return secure, nil
	case strings.HasPrefix(f.o.TLS.Mode, "require"):
		return nil, errors.New("the server is configured to only allow SSL connections")
	}
	return client, nil
}

// skipProxyHeader skips the header of a load balancer (PROXY protocol, version 1), if present.
func skipProxyHeader(in *bufio.Reader) error {
	const prefix = "PROXY "
	if first, err := in.Peek(len(prefix)); err != nil || string(first) != prefix {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err == nil && !strings.HasSuffix(string(line), "\r\n") {
		err = errors.New("malformed header of the PROXY protocol")
	}
	return err
}

// serveRequest serves a request of another process on this machine.
func (f *front) serveRequest(nc net.Conn, in *bufio.Reader) {
	there, ok := nc.RemoteAddr().(*net.TCPAddr)
	here, ok2 := nc.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || !there.IP.IsLoopback() && !there.IP.Equal(here.IP) {
		return
	}
	q, err := readRequest(nc, in)
	if err != nil {
		return
	}
	var a reply
	switch q.Kind {
	case kindState:
		a = f.describe()
	case kindInvite:
		err = f.acceptInvitation(q)
	default:
		err = errors.New("unknown request " + q.Kind)
	}
	_ = answer(nc, a, err)
}

func (f *front) describe() reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	return reply{ID: f.id, State: f.state, Set: f.o.ReplSet, ConfigServer: f.o.ConfigServer, Host: f.host}
}

// watchHost ends the process when the host exits, or sends a line because a client has sent shutdown.
func (f *front) watchHost(control net.Conn, in *bufio.Reader) {
	defer closeOnDone(f.ctx, control)()
	if err := read(in, new(reply)); err != nil {
		f.log.Info("The host of the data has exited")
		f.end(exitAbrupt) // the first code counts
	}
	f.end(exitClean)
}

// forward connects a client to its server in the host.
func (f *front) forward(client net.Conn, q request) {
	host, _, _, err := dial(f.ctx, q.Host.Address, q)
	if err != nil {
		_ = client.Close()
		return
	}
	defer closeOnDone(f.ctx, client, host)()
	relay.Copy(client, host)
}

// address returns the default address of the process.
func (f *front) address() string {
	host := f.o.Bind[0]
	if slices.Contains([]string{"0.0.0.0", "::", "localhost"}, host) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(f.o.Port))
}

// readAhead is a connection from which in has already buffered bytes. It cannot be half-closed.
type readAhead struct {
	net.Conn
	in *bufio.Reader
}

// Read returns the buffered bytes first.
func (r *readAhead) Read(b []byte) (int, error) {
	if r.in.Buffered() > 0 {
		return r.in.Read(b)
	}
	return r.Conn.Read(b)
}
