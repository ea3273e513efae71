package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/net/relay"
)

// HostOption makes mongod a host, which serves the clients of other processes.
const HostOption = "--utrHost"

// Time limits.
const (
	restartTimeout = 30 * time.Second       // for processes to restart before the host exits
	pollInterval   = 100 * time.Millisecond // between checks for the end of the host
	retryInterval  = 100 * time.Millisecond // between attempts to reach the config servers
	inviteInterval = 200 * time.Millisecond // between invitations of missing members
	requestTimeout = 10 * time.Second       // of a request to another process
)

type spec struct {
	Version      string `json:"version"`
	Set          []byte `json:"set,omitempty"` // BSON configuration of a replica set; nil for a standalone
	ConfigServer bool   `json:"configServer,omitempty"`
}

// Host runs a host. It reads a spec from in and writes a reply with its location to out, one line each. It returns when
// no front is connected or may restart, or when ctx ends.
func Host(ctx context.Context, in io.Reader, out io.Writer) error {
	var s spec
	if err := read(reader(in), &s); err != nil {
		return fmt.Errorf("a host can only be started by mongod: %w", err)
	}
	h, err := newHost(s)
	if err != nil {
		_ = answer(out, reply{}, err)
		return err
	}
	h.work.Go(func() {
		relay.Accept(h.listener, func(nc net.Conn) { h.work.Go(func() { h.handle(nc) }) })
	})
	if s.Set != nil {
		h.work.Go(h.invite)
	}
	if err = write(out, reply{Host: h.location}); err == nil {
		h.wait(ctx)
	}
	return errors.Join(err, h.close())
}

// startHost starts a host in another process, which may outlive this one, and joins it.
func (f *front) startHost(ctx context.Context, s spec, member string) error {
	command := exec.Command(f.self, HostOption)
	command.SysProcAttr = newSession()
	if f.logFile != nil {
		command.Stderr = f.logFile
	}
	var in bytes.Buffer
	_ = write(&in, s) // a spec can be marshaled
	command.Stdin = &in
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return fmt.Errorf("start a host: %w", err)
	}
	kill := func() { _ = command.Process.Kill() }
	defer context.AfterFunc(ctx, kill)()
	var a reply
	if err = read(reader(out), &a); err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	go func() { _ = command.Wait() }() // reaps the process
	if err == nil {
		err = f.join(ctx, a.Host, member)
	}
	if err != nil {
		kill()
		return fmt.Errorf("start a host: %w", errors.Join(err, ctx.Err()))
	}
	return nil
}

type host struct {
	spec
	location location
	listener net.Listener
	config   server.Config
	cluster  *server.Cluster
	work     sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex
	routers *server.Cluster
	fronts  map[string]*joinedFront // that have joined, by the address for clients
}

// joinedFront is a front that has joined.
type joinedFront struct {
	cluster   *server.Cluster
	server    *server.Server
	control   net.Conn
	stateFile string // while it exists, the front may restart
	left      bool   // has exited; guarded by host.mu
}

func newHost(s spec) (*host, error) {
	v, err := version.Named(s.Version)
	if err != nil {
		return nil, err
	}
	h := &host{spec: s, fronts: map[string]*joinedFront{}}
	h.config = server.Config{Version: v, Users: new(server.Users),
		Backend: h.backend(commands.Options{ReplicaSet: s.Set != nil})}
	var set server.SetConfig
	if s.Set != nil {
		if set, err = server.ParseSetConfig(s.Set); err != nil {
			return nil, err
		}
		set.Version = max(set.Version, 1)
		set.ConfigServer = set.ConfigServer || s.ConfigServer
		h.config.Topology, h.config.SetName = server.ReplicaSet, set.Name
	}
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	h.location = location{Address: h.listener.Addr().String(), Token: rand.Text()}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.cluster = server.NewCluster(h.config)
	if s.Set != nil {
		err = h.cluster.Configure(set)
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *host) close() error {
	h.cancel()
	err := h.listener.Close()
	h.work.Wait()
	if h.routers != nil {
		err = errors.Join(err, h.routers.Close())
	}
	return errors.Join(err, h.cluster.Close())
}

// backend returns the data of a cluster of the host. The front of a server ends when its client sends shutdown.
func (h *host) backend(o commands.Options) backend {
	return backend{commands.New(o), func(address string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		_ = write(h.fronts[address].control, reply{})
	}}
}

// wait returns when all fronts have left, and their state files were deleted or restartTimeout is over.
func (h *host) wait(ctx context.Context) {
	end := time.Now().Add(restartTimeout)
	repeat(ctx, pollInterval, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		mayStart := len(h.fronts) == 0
		for _, o := range h.fronts {
			if !o.left {
				end = time.Now().Add(restartTimeout)
				return false
			}
			_, err := os.Stat(o.stateFile)
			mayStart = mayStart || err == nil
		}
		return !mayStart || time.Now().After(end)
	})
}

// handle serves a request: a front joins until it exits, or a client gets a connection to its server.
func (h *host) handle(nc net.Conn) {
	defer closeOnDone(h.ctx, nc)()
	in := reader(nc)
	q, err := readRequest(nc, in)
	if err != nil {
		_ = nc.Close()
		return
	}
	o, err := h.front(nc, q)
	written := answer(nc, reply{}, err)
	switch {
	case err == nil && q.Kind == kindClient:
		o.server.Serve(nc, q.Balanced)
		return
	case err == nil && written == nil:
		_, _ = io.Copy(io.Discard, in) // returns when the front exits
	}
	_ = nc.Close()
	if o != nil {
		h.leave(o)
	}
}

// leave stops the server of a front that has exited.
func (h *host) leave(o *joinedFront) {
	_ = o.cluster.Kill(o.server)
	h.mu.Lock()
	defer h.mu.Unlock()
	o.left = true
}

// front returns the front of a request. A front that joins replaces an earlier one, which has ended although its
// connection has not.
func (h *host) front(nc net.Conn, q request) (*joinedFront, error) {
	if subtle.ConstantTimeCompare([]byte(q.Host.Token), []byte(h.location.Token)) != 1 {
		return nil, errors.New("this is the host of another deployment")
	}
	h.mu.Lock()
	old := h.fronts[q.Member]
	h.mu.Unlock()
	switch {
	case q.Kind == kindClient && old == nil:
		return nil, errors.New(q.Member + " has not joined")
	case q.Kind == kindClient:
		return old, nil
	case q.Server == nil:
		return nil, errors.New("server options are required")
	case old != nil:
		h.leave(old)
		_ = old.control.Close()
	}
	cluster, err := h.clusterOf(q.Server)
	if err != nil {
		return nil, err
	}
	o := &joinedFront{cluster: cluster, control: nc, stateFile: q.Server.stateFile()}
	if o.server, err = cluster.Join(q.Member, q.Server.process(h.config.Version)); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fronts[q.Member] = o
	return o, nil
}

// clusterOf returns the cluster for a server: the deployment, or for a mongos the sharded cluster of the config
// servers.
func (h *host) clusterOf(o *Options) (*server.Cluster, error) {
	if !o.Mongos {
		return h.cluster, nil
	}
	if !h.ConfigServer {
		return nil, errors.New("this replica set was not started with --configsvr")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.routers == nil {
		config := h.config
		data := h.backend(commands.Options{Sharded: true})
		data.clearShards()
		config.Topology, config.Backend = server.Sharded, data
		h.routers = server.NewCluster(config)
	}
	return h.routers, nil
}

// invite invites the missing members.
func (h *host) invite() {
	repeat(h.ctx, inviteInterval, func() bool {
		var invitations sync.WaitGroup
		for _, member := range h.missing() {
			invitations.Go(func() {
				q := request{Kind: kindInvite, Host: h.location, Set: h.config.SetName, Member: member}
				_, _ = exchange(h.ctx, q.Member, q) // the member may be down
			})
		}
		invitations.Wait()
		return false
	})
}

// missing returns the members without a front, after the first one has joined.
func (h *host) missing() (members []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.cluster.Members() {
		if o := h.fronts[s.Address()]; len(h.fronts) > 0 && (o == nil || o.left) {
			members = append(members, s.Address())
		}
	}
	return members
}
