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

// HostOption makes mongod a host: it serves no port of its own, but what other
// processes hand over.
const HostOption = "--utrHost"

// The time limits of a host.
const (
	grace     = 30 * time.Second       // until processes come again whose data are kept
	vigil     = 100 * time.Millisecond // between looks whether they may
	heartbeat = 200 * time.Millisecond // between invitations of members that are away
	answering = 10 * time.Second       // for a process to answer
)

type spec struct {
	Version string `json:"version"`
	// Set is the configuration of a replica set, BSON; without it there is one
	// mongod alone.
	Set          []byte `json:"set,omitempty"`
	ConfigServer bool   `json:"configServer,omitempty"`
}

// Host serves the data of a deployment for the processes that play its
// servers. It reads what to serve from in, one line, and writes where it is to
// out. It returns when no process is left that could come again, or when ctx
// ends.
func Host(ctx context.Context, in io.Reader, out io.Writer) error {
	var s spec
	if err := read(reader(in), &s); err != nil {
		return fmt.Errorf("a host is started by mongod: %w", err)
	}
	h, err := newHost(s)
	if err != nil {
		_ = write(out, reply{Error: err.Error()}) // the error is returned, too
		return err
	}
	if err := write(out, reply{Host: h.whereabouts()}); err != nil {
		return errors.Join(err, h.close())
	}
	if c, ok := out.(io.Closer); ok {
		_ = c.Close() // whoever reads it may go on
	}
	return h.run(ctx)
}

// spawn starts a host in a process of its own, which outlives this one as long
// as it is needed. Its standard error goes to log, if there is one. end ends it.
func spawn(ctx context.Context, self []string, s spec, log *os.File) (w whereabouts, end func(), err error) {
	command := exec.Command(self[0], append(slices.Clone(self[1:]), "mongod", HostOption)...)
	command.SysProcAttr = apart()
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
	go func() { _ = command.Wait() }() // so that it leaves no zombie
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
	seats      map[string]*occupant // by the address that clients know
	stateFiles map[string]string    // by the same address
	begun      bool                 // a process has joined
}

// occupant is a process that has joined.
type occupant struct {
	cluster  *server.Cluster
	server   *server.Server
	control  net.Conn
	balanced net.Listener // for clients that come through a load balancer
}

func (o *occupant) stop() { _ = write(o.control, reply{Stop: true}) } // a process that is gone need not hear it

func newHost(s spec) (*host, error) {
	profile, err := server.ProfileNamed(s.Version)
	if err != nil {
		return nil, err
	}
	h := &host{spec: s, profile: profile, token: rand.Text(), users: new(server.Users),
		seats: map[string]*occupant{}, stateFiles: map[string]string{}}
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
	h.work.Go(h.beat)
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

// wait returns when no process is there and none will come: the state files of
// those that were there are gone, or the grace period is over.
func (h *host) wait(ctx context.Context) {
	tick := time.NewTicker(vigil)
	defer tick.Stop()
	for left := time.Now(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		h.mu.Lock()
		occupied, begun, files := len(h.seats) > 0, h.begun, slices.Collect(maps.Values(h.stateFiles))
		h.mu.Unlock()
		switch {
		case occupied:
			left = time.Now()
		case begun && !slices.ContainsFunc(files, exists), time.Since(left) > grace:
			return
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (h *host) whereabouts() whereabouts {
	return whereabouts{Address: h.listener.Addr().String(), Token: h.token}
}

// handle lets a process play a server until its connection ends.
func (h *host) handle(nc net.Conn) {
	defer breaks(h.ctx, nc)()
	defer func() { _ = nc.Close() }()
	in := reader(nc)
	q, err := hear(nc, in)
	if err != nil {
		return
	}
	if subtle.ConstantTimeCompare([]byte(q.Host.Token), []byte(h.token)) != 1 {
		_ = write(nc, reply{Error: "this is the host of another deployment"})
		return
	}
	o, a, err := h.seat(nc, q)
	if err != nil {
		_ = write(nc, reply{Error: err.Error()}) // it hangs up if it did not hear
		return
	}
	if write(nc, a) == nil {
		_, _ = io.Copy(io.Discard, in) // until its end
	}
	h.unseat(q.Member, o)
}

func (h *host) seat(nc net.Conn, q request) (*occupant, reply, error) {
	if q.Seat == nil {
		return nil, reply{}, errors.New("a seat is required")
	}
	h.mu.Lock()
	old := h.seats[q.Member]
	h.mu.Unlock()
	if old != nil { // its end has not been noticed yet
		h.unseat(q.Member, old)
		_ = old.control.Close()
	}
	cluster, err := h.clusterOf(q.Seat)
	if err != nil {
		return nil, reply{}, err
	}
	o := &occupant{cluster: cluster, control: nc}
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, reply{}, err
	}
	if o.balanced, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, reply{}, errors.Join(err, clients.Close())
	}
	o.server, err = cluster.Join(q.Member, server.Process{
		Parameters: parameters(q.Seat.Parameters), AnyParameter: true, AccessControl: q.Seat.Access, Arguments: q.Seat.Arguments, PID: q.Seat.PID,
		Shutdown: o.stop, Listener: clients,
	})
	if err != nil {
		return nil, reply{}, errors.Join(err, clients.Close(), o.balanced.Close())
	}
	h.work.Go(func() { relay.Accept(o.balanced, func(nc net.Conn) { o.server.Serve(nc, true) }) })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seats[q.Member], h.begun = o, true
	if q.Seat.StateFile != "" {
		h.stateFiles[q.Member] = q.Seat.StateFile
	}
	return o, reply{Clients: clients.Addr().String(), Balanced: o.balanced.Addr().String()}, nil
}

// clusterOf is what a process joins: the deployment itself, or for a mongos the
// sharded cluster that it is the configuration of.
func (h *host) clusterOf(s *seat) (*server.Cluster, error) {
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

// unseat removes a process, if the seat is still its own.
func (h *host) unseat(member string, o *occupant) {
	h.mu.Lock()
	seated := h.seats[member] == o
	if seated {
		delete(h.seats, member)
	}
	h.mu.Unlock()
	if seated {
		_ = o.balanced.Close()
		_ = o.cluster.Kill(o.server)
	}
}

// away are the members of the set that have not joined, once one has.
func (h *host) away() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	if h.Set != nil && h.begun {
		for _, s := range h.cluster.Members() {
			if h.seats[s.Address()] == nil {
				out = append(out, s.Address())
			}
		}
	}
	return out
}

// invite asks the members that are away to join. Those that have joined serve
// their clients then.
func (h *host) invite() {
	var invitations sync.WaitGroup
	for _, member := range h.away() {
		invitations.Go(func() {
			q := request{Kind: askInvite, Host: h.whereabouts(), Set: h.setName, Member: member}
			_, _ = ask(h.ctx, member, q) // nobody may be there
		})
	}
	invitations.Wait()
}

// beat invites members that are away, again and again: they may have been started
// later, or again.
func (h *host) beat() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			h.invite()
		}
	}
}
