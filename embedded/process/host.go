package process

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/internal/relay"
)

// HostOption makes mongod a host: it serves no port of its own, but what other
// processes hand over.
const HostOption = "--utrHost"

// The host's patience.
const (
	grace     = 30 * time.Second       // until processes come again whose data are kept
	vigil     = 100 * time.Millisecond // between looks whether they may
	heartbeat = 500 * time.Millisecond // between invitations of members that are away
	answering = 10 * time.Second       // for a process to say what it wants
	gathering = 30 * time.Second       // for all members to join
)

// spec is what a host is to serve.
type spec struct {
	Version string `json:"version"`
	// Set is the configuration of a replica set, BSON; without it there is one
	// mongod alone.
	Set          []byte `json:"set,omitempty"`
	ConfigServer bool   `json:"configServer,omitempty"`
	// First is the member that is invited before the others, so that it is
	// elected if the priorities do not speak against it.
	First       string `json:"first,omitempty"`
	NoScripting bool   `json:"noScripting,omitempty"`
}

// whereabouts are how a host is found.
type whereabouts struct {
	Host  string `json:"host"`
	Token string `json:"token"`
	Error string `json:"error,omitempty"`
	// end ends the host that this process started.
	end func()
}

// Host serves the data of a deployment for the processes that play its
// servers. It reads what to serve from in, one line, and writes where it is to
// out. It returns when no process is left that could come again, or when ctx
// ends.
func Host(ctx context.Context, in io.Reader, out io.Writer) error {
	var s spec
	if err := read(bufio.NewReader(in), &s); err != nil {
		return fmt.Errorf("a host is started by mongod: %w", err)
	}
	h, err := newHost(s)
	if err != nil {
		_ = write(out, whereabouts{Error: err.Error()}) // the error is returned, too
		return err
	}
	if err := write(out, whereabouts{Host: h.listener.Addr().String(), Token: h.token}); err != nil {
		return errors.Join(err, h.close())
	}
	if c, ok := out.(io.Closer); ok {
		_ = c.Close() // whoever reads it may go on
	}
	return h.run(ctx)
}

// spawn starts a host in a process of its own, which outlives this one as long
// as it is needed.
func spawn(ctx context.Context, self []string, s spec, log *os.File) (whereabouts, error) {
	command := exec.Command(self[0], append(slices.Clone(self[1:]), "mongod", HostOption)...)
	command.SysProcAttr = apart()
	if log != nil {
		command.Stderr = log
	}
	in, err := command.StdinPipe()
	if err != nil {
		return whereabouts{}, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return whereabouts{}, err
	}
	if err := command.Start(); err != nil {
		return whereabouts{}, fmt.Errorf("start a host: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	var w whereabouts
	err = write(in, s)
	if err == nil {
		err = read(bufio.NewReader(out), &w)
	}
	_ = in.Close()
	if err == nil && w.Error != "" {
		err = errors.New(w.Error)
	}
	if err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return w, fmt.Errorf("start a host: %w", errors.Join(err, ctx.Err()))
	}
	go func() { _ = command.Wait() }() // so that it leaves no zombie
	w.end = func() { _ = command.Process.Kill() }
	return w, nil
}

// host serves one deployment.
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
	kick     chan struct{} // makes the heart beat at once

	mu         sync.Mutex
	routers    *server.Cluster
	seats      map[string]*occupant // by the address that clients know
	stateFiles map[string]string    // likewise
	begun      bool                 // somebody was there
	change     chan struct{}        // closed when somebody comes or goes
	conns      map[net.Conn]struct{}
}

// occupant is a process that has joined.
type occupant struct {
	server  *server.Server
	router  bool
	control net.Conn
	journal *journal
	serves  bool       // it hands its clients over by now; guarded by host.mu
	mu      sync.Mutex // of writing to control
}

func (o *occupant) tell(r reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = write(o.control, r) // a process that is gone need not hear it
}

func newHost(s spec) (*host, error) {
	profile, err := server.ProfileNamed(s.Version)
	if err != nil {
		return nil, err
	}
	h := &host{
		spec: s, profile: profile, token: secret(), users: server.NewUsers(), kick: make(chan struct{}, 1),
		seats: map[string]*occupant{}, stateFiles: map[string]string{}, change: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	config := server.Config{Profile: profile, Users: h.users, AccessByPlace: true, Backend: data.New(data.Options{
		ReplicaSet: s.Set != nil, NoScripting: s.NoScripting,
	})}
	var set server.SetConfig
	if s.Set != nil {
		if set, err = server.ParseSetConfig(s.Set, profile); err != nil {
			return nil, err
		}
		set.Version = max(set.Version, 1)
		set.ConfigServer = set.ConfigServer || s.ConfigServer
		h.setName = set.Name
		config.Kind, config.SetName, config.Reconfigure = server.ReplicaSet, set.Name, h.reconfigured
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.cluster = server.NewCluster(config)
	if s.Set != nil {
		_, err = h.cluster.Configure(set)
	}
	if err == nil {
		h.listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, h.cluster.Close())
	}
	return h, nil
}

// secret is what nobody guesses.
func secret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (h *host) run(ctx context.Context) error {
	h.work.Go(h.accept)
	h.work.Go(h.beat)
	h.wait(ctx)
	return h.close()
}

func (h *host) close() error {
	h.cancel()
	err := h.listener.Close()
	h.mu.Lock()
	for nc := range h.conns {
		_ = nc.Close()
	}
	routers := h.routers
	h.mu.Unlock()
	h.work.Wait()
	if routers != nil {
		err = errors.Join(err, routers.Close())
	}
	return errors.Join(err, h.cluster.Close())
}

// wait returns when nobody is there, and nobody will be: the files of those who
// were are gone, or the grace is over.
func (h *host) wait(ctx context.Context) {
	for {
		h.mu.Lock()
		empty, begun, change, files := len(h.seats) == 0, h.begun, h.change, slices.Collect(maps.Values(h.stateFiles))
		h.mu.Unlock()
		if !empty {
			select {
			case <-change:
				continue
			case <-ctx.Done():
				return
			}
		}
		if !h.keep(ctx, change, begun, files) {
			return
		}
	}
}

// keep waits for somebody to come, the first time or again, as long as there is
// one of the files. False: it is in vain.
func (h *host) keep(ctx context.Context, change <-chan struct{}, begun bool, files []string) bool {
	over := time.NewTimer(grace)
	defer over.Stop()
	look := time.NewTicker(vigil)
	defer look.Stop()
	for {
		if begun && !slices.ContainsFunc(files, exists) {
			return false
		}
		select {
		case <-change:
			return true
		case <-over.C:
			return false
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// changed wakes who waits for somebody. Called with mu held.
func (h *host) changed() {
	close(h.change)
	h.change = make(chan struct{})
}

func (h *host) accept() {
	relay.Accept(h.listener, func(nc net.Conn) {
		h.work.Go(func() { h.handle(nc) })
	})
}

// handle takes up what a process wants.
func (h *host) handle(nc net.Conn) {
	if !h.hold(nc) {
		return
	}
	in := bufio.NewReader(nc)
	q, err := h.request(nc, in)
	if err != nil {
		h.drop(nc)
		return
	}
	switch q.Kind {
	case askForward:
		h.release(nc)
		h.forward(nc, in, q)
		return
	case askJoin:
		h.join(nc, in, q)
	case askGather:
		_ = write(nc, h.gather()) // it hangs up if it did not hear
	}
	h.drop(nc)
}

// hold has the connection closed with the host. False: it is closed already.
func (h *host) hold(nc net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		_ = nc.Close()
		return false
	}
	h.conns[nc] = struct{}{}
	return true
}

func (h *host) release(nc net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, nc)
}

func (h *host) drop(nc net.Conn) {
	h.release(nc)
	_ = nc.Close()
}

// request reads what a process wants, and refuses strangers.
func (h *host) request(nc net.Conn, in *bufio.Reader) (request, error) {
	var q request
	_ = nc.SetReadDeadline(time.Now().Add(answering))
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != magic {
		return q, errors.Join(err, errors.New("a stranger"))
	}
	if err := read(in, &q); err != nil {
		return q, err
	}
	_ = nc.SetReadDeadline(time.Time{})
	if subtle.ConstantTimeCompare([]byte(q.Token), []byte(h.token)) != 1 {
		return q, errors.Join(errors.New("a stranger"), write(nc, reply{Error: "this is the host of another deployment"}))
	}
	return q, nil
}

// forward hands a client over to a server.
func (h *host) forward(nc net.Conn, in *bufio.Reader, q request) {
	h.mu.Lock()
	o := h.seats[q.Member]
	h.mu.Unlock()
	if o == nil {
		_ = nc.Close()
		return
	}
	client := &rewound{relay.ReadAhead{Conn: nc, In: in}, told(q.Remote)}
	if q.Balanced {
		o.server.ServeBalanced(client)
	} else {
		o.server.Serve(client)
	}
}

// join lets a process play a server until its connection ends.
func (h *host) join(nc net.Conn, in *bufio.Reader, q request) {
	o, err := h.seat(nc, q)
	if err != nil {
		_ = write(nc, reply{Error: err.Error()}) // it hangs up if it did not hear
		return
	}
	o.tell(reply{})
	var said request
	for read(in, &said) == nil { // until its end
		h.mu.Lock()
		o.serves = true
		h.changed()
		h.mu.Unlock()
	}
	h.unseat(q.Member, o)
	_ = o.journal.Close()
}

func (h *host) seat(nc net.Conn, q request) (*occupant, error) {
	if q.Seat == nil {
		return nil, errors.New("a process that brings nothing along")
	}
	h.mu.Lock()
	old := h.seats[q.Member]
	h.mu.Unlock()
	if old != nil { // of which we have not heard yet that it is gone
		h.unseat(q.Member, old)
		_ = old.control.Close()
	}
	cluster, err := h.clusterOf(q.Seat)
	if err != nil {
		return nil, err
	}
	o := &occupant{router: q.Seat.Router, control: nc}
	if o.journal, err = openJournal(q.Seat.LogPath, q.Seat.Verbosity, q.Seat.SlowMS, nil); err != nil {
		return nil, err
	}
	place := server.Place{
		AccessControl: q.Seat.Access, Arguments: q.Seat.Arguments, PID: q.Seat.PID, Journal: o.journal,
		Shutdown: func() { o.tell(reply{Stop: true}) },
	}
	for _, d := range []struct {
		data []byte
		to   *bson.D
	}{{q.Seat.Parameters, &place.Parameters}, {q.Seat.Inert, &place.Inert}, {q.Seat.Options, &place.Options}} {
		if d.data != nil {
			err = errors.Join(err, bson.Unmarshal(d.data, d.to))
		}
	}
	if err == nil {
		o.server, err = cluster.Join(q.Member, place)
	}
	if err != nil {
		return nil, errors.Join(err, o.journal.Close())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seats[q.Member], h.begun = o, true
	if q.Seat.StateFile != "" {
		h.stateFiles[q.Member] = q.Seat.StateFile
	}
	h.changed()
	return o, nil
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
			Kind: server.Sharded, Profile: h.profile, SetName: h.setName, Users: h.users, AccessByPlace: true, Shards: true,
			Backend: data.New(data.Options{Sharded: true, NoShard: true, NoScripting: h.NoScripting}),
		})
	}
	return h.routers, nil
}

// unseat takes a process away, if it is still the one there.
func (h *host) unseat(member string, o *occupant) {
	h.mu.Lock()
	present := h.seats[member] == o
	if present {
		delete(h.seats, member)
		h.changed()
	}
	routers := h.routers
	h.mu.Unlock()
	switch {
	case !present:
	case o.router:
		routers.Leave(o.server)
	default:
		h.cluster.Leave(o.server)
	}
}

// away are the members of the set that have not joined.
func (h *host) away() []string {
	return h.lacking(func(o *occupant) bool { return o == nil })
}

// lacking are the members of the set of whose occupants, nil for none, something
// is true.
func (h *host) lacking(what func(*occupant) bool) []string {
	if h.Set == nil {
		return nil
	}
	var out []string
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.cluster.Members() {
		if what(h.seats[s.Address()]) {
			out = append(out, s.Address())
		}
	}
	return out
}

// beat invites members that are away, again and again: they may have begun
// later, or anew.
func (h *host) beat() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	if h.First != "" {
		h.invite(h.First)
	}
	for {
		var invitations sync.WaitGroup
		for _, member := range h.away() {
			invitations.Go(func() { h.invite(member) })
		}
		invitations.Wait()
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		case <-h.kick:
		}
	}
}

// invite asks the process at a member's address to join. It may not be there.
func (h *host) invite(member string) {
	ctx, cancel := context.WithTimeout(h.ctx, answering)
	defer cancel()
	_, _ = ask(ctx, member, request{Kind: askInvite, Host: h.listener.Addr().String(), Token: h.token, Set: h.setName, Member: member})
}

// gather waits until all members have joined.
func (h *host) gather() reply {
	over := time.NewTimer(gathering)
	defer over.Stop()
	for {
		h.mu.Lock()
		change := h.change
		h.mu.Unlock()
		away := h.lacking(func(o *occupant) bool { return o == nil || !o.serves })
		if len(away) == 0 {
			return reply{}
		}
		select {
		case <-change:
		case <-over.C:
			return reply{Error: fmt.Sprintf("waited %v for %s", gathering, strings.Join(away, ", "))}
		case <-h.ctx.Done():
			return reply{Error: "the host ends"}
		}
	}
}

// reconfigured lets removed members go and waits for new ones that are there.
func (h *host) reconfigured(removed []*server.Server) {
	for _, s := range removed {
		h.mu.Lock()
		o := h.seats[s.Address()]
		delete(h.stateFiles, s.Address())
		h.mu.Unlock()
		if o != nil {
			o.tell(reply{Removed: true})
		}
	}
	var invitations sync.WaitGroup
	for _, member := range h.away() {
		invitations.Go(func() { h.invite(member) })
	}
	invitations.Wait()
}
