package local

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// Options say what cluster to start.
type Options struct {
	Release Release
	Shape   Shape
	// Folder is where the temporary folder of the cluster is made; "" is that
	// of the system.
	Folder string
	// Book remembers processes and folders until they are gone. Nil: nobody
	// does.
	Book *ledger.Ledger
	// Ports that clusters of this process share. Nil: it has its own.
	Ports *Ports
	// Timeout bounds the start; 0 means DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is enough for a busy machine with a slow disk.
const DefaultTimeout = 3 * time.Minute

// portConflicts is how often a start is tried anew since a port was taken.
const portConflicts = 5

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	shape   Shape
	version Version
	user    *User
	ca      string // file; "" without TLS
	folder  *ledger.TempFolder
	ports   *Ports

	mu        sync.Mutex // guards what follows
	servers   []*server  // in the order of their start
	balancers []*Balancer
	closed    bool
}

// StartError says that a cluster did not start. Logs is the folder in which
// the logs of its servers are kept, "" if there is none.
type StartError struct {
	What string
	Logs string
	Err  error
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("cannot start a %s: %s", e.What, e.Err)
	if e.Logs != "" {
		text += "\nthe logs of the servers are in " + e.Logs
	}
	return text
}

// Unwrap gives what happened.
func (e *StartError) Unwrap() error { return e.Err }

// Start starts a cluster and waits until it serves. Close it. The end of ctx
// ends the start alone, and leaves nothing behind. Other errors are of type
// *StartError.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	what := fmt.Sprintf("%s of version %s", o.Shape.Topology, o.Release.Version)
	plan, err := o.Release.plan(o.Shape)
	if err != nil {
		return nil, &StartError{What: what, Err: err}
	}
	if o.Ports == nil {
		o.Ports = new(Ports)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("the %s that a start may take are over", o.Timeout))
	defer cancel()
	for conflict := 1; ; conflict++ {
		c, err := start(limited, o, plan)
		if err == nil {
			return c, nil
		}
		if c == nil {
			return nil, &StartError{What: what, Err: err}
		}
		var died *DiedError
		again := errors.As(err, &died) && died.portTaken && conflict < portConflicts
		closing := c.Close()
		if !again && ctx.Err() == nil {
			return nil, &StartError{What: what, Logs: c.Folder(), Err: errors.Join(err, closing)}
		}
		closing = errors.Join(closing, c.RemoveLogs())
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("start a %s: %w", what, context.Cause(ctx)), closing)
		}
		if closing != nil {
			return nil, &StartError{What: what, Err: closing}
		}
	}
}

// start starts the processes of a plan. The cluster that it gives beside an
// error is to be closed; there is none if not even its folder could be made.
func start(ctx context.Context, o Options, plan Plan) (*Cluster, error) {
	c := &Cluster{shape: o.Shape.complete(), version: o.Release.Version, ports: o.Ports}
	var err error
	if c.folder, err = o.Book.MakeFolder(o.Folder, "local"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &starter{cluster: c, plan: plan, options: o, cancel: cancel, admins: make(map[string][]*admin)}
	if err := s.run(ctx); err != nil {
		// That a server ended says more than what then did not work any more.
		var died *DiedError
		if errors.As(err, &died) || ctx.Err() != nil && errors.As(context.Cause(ctx), &died) {
			err = died
		}
		return c, err
	}
	return c, nil
}

// starter is the state of one start.
type starter struct {
	cluster *Cluster
	plan    Plan
	options Options
	place   Place // what is the same for all
	secure  *tls.Config
	key     string // the password of the servers among themselves
	cancel  context.CancelCauseFunc
	admins  map[string][]*admin // of the members of each set; of "", the servers of no set
}

func (s *starter) run(ctx context.Context) error {
	if err := s.writeSecrets(); err != nil {
		return err
	}
	for i, wave := range s.plan.Waves {
		if err := s.wave(ctx, wave); err != nil {
			return err
		}
		if i == 0 {
			together, ctx := errgroup.WithContext(ctx)
			for _, set := range s.plan.Sets {
				together.Go(func() error { return initiate(ctx, set, s.admins[set.Name]) })
			}
			if err := together.Wait(); err != nil {
				return err
			}
		}
		// The user and the shards are added as soon as there is somebody to ask.
		if routed := wave[0].Role == RoleMongos; i == len(s.plan.Waves)-1 && !routed || i == 1 {
			if err := s.addUser(ctx); err != nil {
				return err
			}
			if err := s.addShards(ctx); err != nil {
				return err
			}
		}
	}
	return s.balance(ctx)
}

// wave starts processes and waits until all answer.
func (s *starter) wave(ctx context.Context, wave []Process) error {
	// One after the other, which takes no time, so that their order is known.
	var launched []*admin
	for _, p := range wave {
		l, err := s.launch(p)
		if err != nil {
			return err
		}
		l.watch(ctx, s.cancel)
		a := &admin{l, s.secure, s.key}
		launched = append(launched, a)
		s.admins[p.Set] = append(s.admins[p.Set], a)
	}
	together, ctx := errgroup.WithContext(ctx)
	for _, a := range launched {
		together.Go(func() error { return a.answering(ctx) })
	}
	return together.Wait()
}

// launch starts one process.
func (s *starter) launch(p Process) (*server, error) {
	c := s.cluster
	at := s.place
	var err error
	if at.Port, err = c.ports.Next(); err != nil {
		return nil, err
	}
	if p.Balanced {
		if at.BalancerPort, err = c.ports.Next(); err != nil {
			return nil, err
		}
	}
	path := s.options.Release.Mongod
	if p.Role == RoleMongos {
		path = s.options.Release.Mongos
		at.ConfigDB = configSet + "/" + strings.Join(s.hosts(configSet), ",")
	} else {
		at.Data = filepath.Join(c.Folder(), p.Name)
		if err := os.Mkdir(at.Data, 0o700); err != nil {
			return nil, err
		}
	}
	l, err := launch(path, p, c.version, at, filepath.Join(c.Folder(), p.Name+".log"), s.options.Book)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers = append(c.servers, l)
	return l, nil
}

// hosts gives the addresses of the members of a set.
func (s *starter) hosts(set string) []string {
	var hosts []string
	for _, m := range s.cluster.servers {
		if m.Set == set {
			hosts = append(hosts, m.address())
		}
	}
	return hosts
}

// addShards adds all shards through the first mongos.
func (s *starter) addShards(ctx context.Context) error {
	for _, set := range s.plan.Sets {
		if !set.Shard {
			continue
		}
		if err := addShard(ctx, s.admins[""][0], s.cluster.user, set, s.hosts(set.Name)); err != nil {
			return err
		}
	}
	return nil
}

// keyBytes is the length of the members' password, before it is text.
const keyBytes = 96

// writeSecrets writes the file that holds the members' password among
// themselves, and certificates.
func (s *starter) writeSecrets() error {
	c := s.cluster
	if c.shape.Auth {
		s.place.KeyFile = filepath.Join(c.Folder(), "key")
		var key strings.Builder
		for key.Len() < keyBytes {
			key.WriteString(rand.Text())
		}
		s.key = key.String()
		if err := os.WriteFile(s.place.KeyFile, []byte(s.key+"\n"), 0o600); err != nil {
			return err
		}
	}
	if !c.shape.TLS {
		return nil
	}
	authority, err := WriteCertificates(c.Folder())
	if err != nil {
		return err
	}
	c.ca = filepath.Join(c.Folder(), caFile)
	s.place.CA, s.place.Certificate = c.ca, filepath.Join(c.Folder(), serverFile)
	s.secure = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	s.secure.RootCAs.AddCert(authority)
	return nil
}

// addUser makes the user of the cluster, if it is to have one, where clients
// come in: on the primary, or through a mongos.
func (s *starter) addUser(ctx context.Context) error {
	if !s.cluster.shape.Auth {
		return nil
	}
	user := User{Name: "utr", Password: rand.Text()}
	at, members := s.admins[""], 0
	switch s.cluster.shape.Topology {
	case Standalone:
		members = 1
	case ReplicaSet:
		at = s.admins[memberSet]
		members = len(at)
	}
	for _, a := range at {
		now, err := a.hello(ctx)
		if err != nil {
			return err
		}
		if now == primary || now == router {
			if err := createUser(ctx, a, user, members); err != nil {
				return err
			}
			s.cluster.user = &user
			return nil
		}
	}
	return errors.New("there is no server that takes a user")
}

// balance puts a load balancer in front of all mongoses, and one in front of
// the first.
func (s *starter) balance(ctx context.Context) error {
	if s.cluster.shape.Topology != LoadBalanced {
		return nil
	}
	var behind []string
	for _, m := range s.cluster.servers {
		if m.Balanced {
			behind = append(behind, net.JoinHostPort(address, strconv.Itoa(m.place.BalancerPort)))
		}
	}
	for _, targets := range [][]string{behind, behind[:1]} {
		b, err := NewBalancer(targets)
		if err != nil {
			return fmt.Errorf("the load balancer: %w", err)
		}
		s.cluster.mu.Lock()
		s.cluster.balancers = append(s.cluster.balancers, b)
		s.cluster.mu.Unlock()
	}
	for _, uri := range []string{s.cluster.URI(), s.cluster.SingleURI()} {
		if err := behindBalancer(ctx, uri); err != nil {
			return err
		}
	}
	return nil
}

// Dead reports whether a server ended though nobody asked it to: the error is of
// type *DiedError then.
func (c *Cluster) Dead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("the cluster is closed")
	}
	for _, s := range c.servers {
		if err := s.dead(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the cluster and waits until nothing of it is left but the logs: see
// Folder and RemoveLogs. It may be called more than once.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	for _, b := range c.balancers {
		b.Close()
	}
	// A mongos first, so that it does not tell its log about the others.
	errs := make([]error, len(c.servers))
	var all sync.WaitGroup
	for i := len(c.servers) - 1; i >= 0; i-- {
		all.Go(func() { errs[i] = c.servers[i].kill() })
	}
	all.Wait()
	for _, s := range c.servers {
		s.freePorts(c.ports)
	}
	if err := errors.Join(append(errs, c.tidy())...); err != nil {
		return err // utr clean removes what is left
	}
	return c.folder.Forget()
}

// tidy removes all of the folder but the logs.
func (c *Cluster) tidy() error {
	entries, err := os.ReadDir(c.Folder())
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".log" {
			errs = append(errs, os.RemoveAll(filepath.Join(c.Folder(), e.Name())))
		}
	}
	return errors.Join(errs...)
}

// RemoveLogs removes what a Close has kept.
func (c *Cluster) RemoveLogs() error { return os.RemoveAll(c.Folder()) }

// Folder is where the logs are: a file NAME.log for each server.
func (c *Cluster) Folder() string { return c.folder.Path }

// Log gives the lines that the servers logged from one time to another, in
// their order.
func (c *Cluster) Log(from, to time.Time) []Line {
	c.mu.Lock()
	logs := make(map[string]string)
	for _, s := range c.servers {
		logs[s.address()] = s.log
	}
	c.mu.Unlock()
	return ReadLogs(logs, from, to)
}

// Hosts are the addresses that clients see: of the members or mongoses, in
// order; of a load balanced cluster, that of the balancer.
func (c *Cluster) Hosts() []string {
	if c.shape.Topology == LoadBalanced {
		return []string{c.balancers[0].Address()}
	}
	var hosts []string
	for _, s := range c.servers {
		if s.Role&(RoleStandalone|RoleMember|RoleMongos) != 0 {
			hosts = append(hosts, s.address())
		}
	}
	return hosts
}

// Password is that of the user in the connection strings, "" if there is none.
func (c *Cluster) Password() string {
	if c.user == nil {
		return ""
	}
	return c.user.Password
}

// URI is the connection string with all seeds. It holds the password, if there
// is one.
func (c *Cluster) URI() string { return c.uri(c.Hosts()) }

// SingleURI is that of one mongos, or of the load balancer in front of one.
// Elsewhere it equals URI.
func (c *Cluster) SingleURI() string {
	switch c.shape.Topology {
	case Sharded:
		return c.uri(c.Hosts()[:1])
	case LoadBalanced:
		return c.uri([]string{c.balancers[1].Address()})
	}
	return c.URI()
}

func (c *Cluster) uri(hosts []string) string {
	u := url.URL{Scheme: "mongodb", Host: strings.Join(hosts, ","), Path: "/"}
	if c.user != nil {
		u.User = url.UserPassword(c.user.Name, c.user.Password)
	}
	query := url.Values{}
	switch c.shape.Topology {
	case ReplicaSet:
		query.Set("replicaSet", memberSet)
	case LoadBalanced:
		query.Set("loadBalanced", "true")
	}
	if c.ca != "" {
		query.Set("tls", "true")
		query.Set("tlsCAFile", c.ca)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Processes gives the ids of the processes, in the order of their start.
func (c *Cluster) Processes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []int
	for _, s := range c.servers {
		ids = append(ids, s.command.Process.Pid)
	}
	return ids
}
