package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/internal/relay"
)

// HostOption makes mongod a host, which serves the clients of other processes.
const HostOption = "--utrHost"

// Time limits.
const (
	restartTimeout = 30 * time.Second       // for processes to restart before the host exits
	pollInterval   = 100 * time.Millisecond // between checks for the end of the host
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
		_ = write(out, reply{Error: err.Error()})
		return err
	}
	if err := write(out, reply{Host: h.location()}); err != nil {
		return errors.Join(err, h.close())
	}
	if c, ok := out.(io.Closer); ok {
		_ = c.Close() // the reader need not wait for the end of the process
	}
	return h.run(ctx)
}

// spawn starts a host in its own process, which may outlive this one. Its standard error is written to log, which may
// be nil. end kills it.
func spawn(ctx context.Context, self []string, s spec, log *os.File) (w location, end func(), err error) {
	command := exec.Command(self[0], append(slices.Clone(self[1:]), "mongod", HostOption)...)
	command.SysProcAttr = newSession()
	if log != nil {
		command.Stderr = log
	}
	line, err := json.Marshal(s)
	if err != nil {
		return w, nil, err
	}
	command.Stdin = bytes.NewReader(append(line, '\n'))
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return w, nil, fmt.Errorf("start a host: %w", err)
	}
	end = func() { _ = command.Process.Kill() }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var a reply
	err = read(reader(out), &a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		end()
		_ = command.Wait()
		return w, nil, fmt.Errorf("start a host: %w", errors.Join(err, ctx.Err()))
	}
	go func() { _ = command.Wait() }() // reaps the process
	return a.Host, end, nil
}

type host struct {
	spec
	profile  server.Profile
	token    string
	listener net.Listener
	users    *server.Users
	cluster  *server.Cluster
	setName  string
	work     sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc

	mu         sync.Mutex
	routers    *server.Cluster
	fronts     map[string]*joinedFront // by the address for clients
	stateFiles map[string]string       // by the same address
	joined     bool                    // a front has joined
}

// joinedFront is a front that has joined.
type joinedFront struct {
	cluster  *server.Cluster
	server   *server.Server
	control  net.Conn
	balanced net.Listener // for clients that come through a load balancer
}

func (o *joinedFront) stop() { _ = write(o.control, reply{Stop: true}) }

func newHost(s spec) (*host, error) {
	profile, err := server.ProfileNamed(s.Version)
	if err != nil {
		return nil, err
	}
	h := &host{spec: s, profile: profile, token: rand.Text(), users: new(server.Users),
		fronts: map[string]*joinedFront{}, stateFiles: map[string]string{}}
	config := server.Config{Profile: profile, Users: h.users, Backend: data.New(data.Options{ReplicaSet: s.Set != nil})}
	var set server.SetConfig
	if s.Set != nil {
		if set, err = server.ParseSetConfig(s.Set); err != nil {
			return nil, err
		}
		set.Version = max(set.Version, 1)
		set.ConfigServer = set.ConfigServer || s.ConfigServer
		h.setName = set.Name
		config.Kind, config.SetName = server.ReplicaSet, set.Name
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.cluster = server.NewCluster(config)
	if s.Set != nil {
		err = h.cluster.Configure(set)
	}
	if err == nil {
		h.listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, h.cluster.Close())
	}
	return h, nil
}

func (h *host) run(ctx context.Context) error {
	h.work.Go(func() {
		relay.Accept(h.listener, func(nc net.Conn) { h.work.Go(func() { h.handle(nc) }) })
	})
	h.work.Go(h.invite)
	h.wait(ctx)
	return h.close()
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

// wait returns when no front is connected, and their state files were deleted or restartTimeout is over.
func (h *host) wait(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for left := time.Now(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		h.mu.Lock()
		connected, joined, files := len(h.fronts) > 0, h.joined, slices.Collect(maps.Values(h.stateFiles))
		h.mu.Unlock()
		switch {
		case connected:
			left = time.Now()
		case joined && !slices.ContainsFunc(files, exists), time.Since(left) > restartTimeout:
			return
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (h *host) location() location {
	return location{Address: h.listener.Addr().String(), Token: h.token}
}

func (h *host) handle(nc net.Conn) {
	defer closeOnDone(h.ctx, nc)()
	defer func() { _ = nc.Close() }()
	in := reader(nc)
	q, err := readRequest(nc, in)
	if err != nil {
		return
	}
	if subtle.ConstantTimeCompare([]byte(q.Host.Token), []byte(h.token)) != 1 {
		_ = write(nc, reply{Error: "this is the host of another deployment"})
		return
	}
	o, a, err := h.admit(nc, q)
	if err != nil {
		_ = write(nc, reply{Error: err.Error()})
		return
	}
	if write(nc, a) == nil {
		_, _ = io.Copy(io.Discard, in) // returns when the front exits
	}
	h.remove(q.Member, o)
}

func (h *host) admit(nc net.Conn, q request) (*joinedFront, reply, error) {
	if q.Server == nil {
		return nil, reply{}, errors.New("server options are required")
	}
	h.mu.Lock()
	old := h.fronts[q.Member]
	h.mu.Unlock()
	if old != nil { // it has ended, but the connection has not
		h.remove(q.Member, old)
		_ = old.control.Close()
	}
	cluster, err := h.clusterOf(q.Server)
	if err != nil {
		return nil, reply{}, err
	}
	o := &joinedFront{cluster: cluster, control: nc}
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, reply{}, err
	}
	if o.balanced, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, reply{}, errors.Join(err, clients.Close())
	}
	o.server, err = cluster.Join(q.Member, server.Process{
		Parameters: parameters(q.Server.Parameters), AnyParameter: true, AccessControl: q.Server.Access, Arguments: q.Server.Arguments, PID: q.Server.PID,
		Shutdown: o.stop, Listener: clients,
	})
	if err != nil {
		return nil, reply{}, errors.Join(err, clients.Close(), o.balanced.Close())
	}
	h.work.Go(func() { relay.Accept(o.balanced, func(nc net.Conn) { o.server.Serve(nc, true) }) })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fronts[q.Member], h.joined = o, true
	if q.Server.StateFile != "" {
		h.stateFiles[q.Member] = q.Server.StateFile
	}
	return o, reply{Clients: clients.Addr().String(), Balanced: o.balanced.Addr().String()}, nil
}

// clusterOf returns the cluster for a server: the deployment, or for a mongos the sharded cluster of the config
// servers.
func (h *host) clusterOf(s *serverOptions) (*server.Cluster, error) {
	if !s.Router {
		return h.cluster, nil
	}
	if !h.ConfigServer {
		return nil, errors.New("this replica set was not started with --configsvr")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.routers == nil {
		h.routers = server.NewCluster(server.Config{
			Kind: server.Sharded, Profile: h.profile, SetName: h.setName, Users: h.users,
			Backend: data.New(data.Options{Sharded: true, NoShard: true}),
		})
	}
	return h.routers, nil
}

// remove removes a front, unless another one has replaced it.
func (h *host) remove(member string, o *joinedFront) {
	h.mu.Lock()
	found := h.fronts[member] == o
	if found {
		delete(h.fronts, member)
	}
	h.mu.Unlock()
	if found {
		_ = o.balanced.Close()
		_ = o.cluster.Kill(o.server)
	}
}

// missing returns the members that have not joined, after the first one has.
func (h *host) missing() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	if h.Set != nil && h.joined {
		for _, s := range h.cluster.Members() {
			if h.fronts[s.Address()] == nil {
				out = append(out, s.Address())
			}
		}
	}
	return out
}

func (h *host) invite() {
	tick := time.NewTicker(inviteInterval)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		}
		var invitations sync.WaitGroup
		for _, member := range h.missing() {
			invitations.Go(func() {
				q := request{Kind: kindInvite, Host: h.location(), Set: h.setName, Member: member}
				_, _ = exchange(h.ctx, member, q) // the member may be down
			})
		}
		invitations.Wait()
	}
}
