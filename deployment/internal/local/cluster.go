// Package local runs clusters of mongod and mongos processes on this machine: standalone, replica set, sharded, and
// load balanced. Release.Plan and Argv decide what to start, as functions of the cluster's shape and the server
// version; Start starts it.
// All servers listen only on the loopback interface and have test commands enabled. All their files are in one
// temporary folder, which is removed with the cluster. Processes are therefore killed: a mongod may need 15 seconds to
// shut down.
package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/net/certificate"
	"github.com/unified-test-runner/utr/internal/process/ledger"
)

// Options describes the cluster to start.
type Options struct {
	Release Release
	Shape   Shape
	// Ledger records processes and folders until they are removed. It may be nil.
	Ledger *ledger.Ledger
	// Ports is shared by the clusters of this process.
	Ports *Ports
	// timeout bounds the start; 0 means defaultTimeout. Tests set it.
	timeout time.Duration
}

// defaultTimeout suffices for a busy machine with a slow disk.
const defaultTimeout = 3 * time.Minute

// portConflicts is the number of attempts to start when another process takes a port.
const portConflicts = 5

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	options Options
	plan    Plan
	folder  *ledger.TempFolder
	place   Place               // common to all servers
	secure  *tls.Config         // nil without TLS
	key     string              // internal password of the servers, "" without access control
	user    *options.Credential // nil without access control

	servers   []*server  // in start order
	balancers *Balancers // nil unless it is load balanced

	mu     sync.Mutex // guards what follows
	closed bool
}

// StartError means that a cluster did not start. Logs is the folder with the server logs, or "".
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

func (e *StartError) Unwrap() error { return e.Err }

// Start starts a cluster and waits until it accepts commands. Close removes it. Canceling ctx interrupts only the
// start, and everything is removed. All other errors are of type *StartError.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	what := fmt.Sprintf("%s of version %s", o.Shape.Topology.Name(), o.Release.Version)
	o.timeout = cmp.Or(o.timeout, defaultTimeout)
	plan, err := o.Release.Plan(o.Shape)
	if err != nil {
		return nil, &StartError{What: what, Err: err}
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("the start timed out after %s", o.timeout))
	defer cancel()
	for conflict := 1; ; conflict++ {
		c := &Cluster{options: o, plan: plan}
		if c.folder, err = o.Ledger.MakeFolder("local"); err != nil {
			return nil, &StartError{What: what, Err: err}
		}
		err := c.start(limited)
		if err == nil {
			return c, nil
		}
		var died *DiedError
		retry := errors.As(err, &died) && died.portTaken && conflict < portConflicts
		closing := c.Close()
		if !retry && ctx.Err() == nil {
			return nil, &StartError{What: what, Logs: c.Folder(), Err: errors.Join(err, closing)}
		}
		closing = errors.Join(closing, os.RemoveAll(c.Folder()))
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("start a %s: %w", what, context.Cause(ctx)), closing)
		}
		if closing != nil {
			return nil, &StartError{What: what, Err: closing}
		}
	}
}

// start starts and configures the servers. A mongos loads the list of shards when it starts, and updates it with a
// delay. The other mongoses therefore start after the first one has added the shards.
func (c *Cluster) start(ctx context.Context) error {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	first := min(1, len(c.plan.Mongoses))
	launching := func(all []Process) func(context.Context) error {
		return func(ctx context.Context) error { return c.launch(ctx, lost, all) }
	}
	for _, step := range []func(context.Context) error{
		c.writeSecrets, launching(c.plan.Mongods), c.initiate,
		launching(c.plan.Mongoses[:first]), c.addUser, c.addShards, launching(c.plan.Mongoses[first:]), c.balance,
	} {
		if err := step(ctx); err != nil {
			// The exit of a server explains later errors.
			if died := new(DiedError); errors.As(errors.Join(err, context.Cause(ctx)), &died) {
				return died
			}
			return err
		}
	}
	return nil
}

// launch starts servers and waits until all answer. If one exits, it cancels the start.
func (c *Cluster) launch(ctx context.Context, lost context.CancelCauseFunc, all []Process) error {
	var launched []*server
	for _, p := range all {
		s, err := c.startServer(p)
		if err != nil {
			return err
		}
		go func() {
			select {
			case <-s.ended:
				lost(s.dead())
			case <-ctx.Done():
			}
		}()
		launched = append(launched, s)
	}
	return together(ctx, launched, (*server).awaitAnswer)
}

// together calls do concurrently for all elements.
func together[T any](ctx context.Context, all []T, do func(T, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range all {
		group.Go(func() error { return do(one, ctx) })
	}
	return group.Wait()
}

func (c *Cluster) startServer(p Process) (_ *server, err error) {
	at := c.place
	if at.Port, err = c.options.Ports.Next(); err == nil && p.Balanced {
		at.BalancerPort, err = c.options.Ports.Next()
	}
	if err != nil {
		return nil, err
	}
	path := c.options.Release.Mongod
	if p.Role == RoleMongos {
		path = c.options.Release.Mongos
		at.ConfigDB = configSet + "/" + strings.Join(addresses(c.members(configSet)), ",")
	} else {
		at.Data = filepath.Join(c.Folder(), p.Name)
		if err := os.Mkdir(at.Data, 0o700); err != nil {
			return nil, err
		}
	}
	s := &server{Process: p, place: at, args: Argv(p, c.options.Release.Version, at), secure: c.secure, key: c.key,
		log: filepath.Join(c.Folder(), p.Name+".log"), ended: make(chan struct{})}
	if err := s.launch(path, c.options.Ledger); err != nil {
		return nil, err
	}
	c.servers = append(c.servers, s)
	return s, nil
}

// members returns the servers of a set.
func (c *Cluster) members(set string) []*server {
	return slices.DeleteFunc(slices.Clone(c.servers), func(s *server) bool { return s.Set != set })
}

// entries returns the servers that clients connect to.
func (c *Cluster) entries() []*server {
	return slices.DeleteFunc(slices.Clone(c.servers),
		func(s *server) bool { return s.Role == RoleConfig || s.Role == RoleShard })
}

func addresses(servers []*server) (all []string) {
	for _, s := range servers {
		all = append(all, s.address())
	}
	return all
}

func (c *Cluster) initiate(ctx context.Context) error {
	return together(ctx, c.plan.Sets,
		func(set Set, ctx context.Context) error { return initiate(ctx, set, c.members(set.Name)) })
}

// addShards adds all shards through the first mongos.
func (c *Cluster) addShards(ctx context.Context) error {
	for _, set := range c.plan.Sets {
		if set.Role != RoleShard {
			continue
		}
		if err := c.entries()[0].addShard(ctx, c.user, set, addresses(c.members(set.Name))); err != nil {
			return err
		}
	}
	return nil
}

// keyBytes is the minimum length of the servers' internal password.
const keyBytes = 96

// writeSecrets writes the key file and the certificates.
func (c *Cluster) writeSecrets(context.Context) (err error) {
	if c.options.Shape.Auth {
		for len(c.key) < keyBytes {
			c.key += rand.Text()
		}
		c.place.KeyFile = filepath.Join(c.Folder(), "key")
		if err := os.WriteFile(c.place.KeyFile, []byte(c.key+"\n"), 0o600); err != nil {
			return err
		}
	}
	if !c.options.Shape.TLS {
		return nil
	}
	c.place.CA, c.place.Certificate = filepath.Join(c.Folder(), certificate.CAFile), filepath.Join(c.Folder(),
		certificate.ServerFile)
	c.secure, err = certificate.Write(c.Folder())
	return err
}

// addUser creates the user of a cluster with access control: on the primary, with all members acknowledging it, or
// through the first mongos.
func (c *Cluster) addUser(ctx context.Context) error {
	if !c.options.Shape.Auth {
		return nil
	}
	user, at := &options.Credential{Username: "utr", Password: rand.Text(), AuthSource: "admin"}, c.entries()
	var w any = len(at)
	if at[0].Role == RoleMongos {
		w = "majority"
	}
	for _, s := range at {
		now, err := s.hello(ctx)
		if err != nil {
			return err
		}
		if now.Writable {
			c.user = user
			return s.createUser(ctx, user, w)
		}
	}
	return errors.New("no server accepts writes to create a user")
}

// balance starts a load balancer for all mongoses, and one for the first.
func (c *Cluster) balance(ctx context.Context) (err error) {
	if c.options.Shape.Topology != embedded.LoadBalanced {
		return nil
	}
	var behind []string
	for _, s := range c.entries() {
		behind = append(behind, net.JoinHostPort(address, strconv.Itoa(s.place.BalancerPort)))
	}
	if c.balancers, err = NewBalancers(behind); err != nil {
		return err
	}
	all, single := c.URIs()
	for _, uri := range []string{all, single} {
		// Clients reject replies without a serviceId.
		err := await(ctx, "a mongos to answer behind the load balancer", func(ctx context.Context) error {
			return runBy(ctx, "the load balancer", options.Client().ApplyURI(uri), bson.D{{Key: "ping", Value: 1}})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Dead returns a *DiedError if a server has exited unexpectedly.
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

// Close stops the cluster and removes everything except the logs: see Folder. It may be called more than once.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.balancers != nil {
		c.balancers.Close()
	}
	// Mongoses first: otherwise they log errors about the other servers.
	errs := make([]error, len(c.servers))
	var all sync.WaitGroup
	for i, s := range slices.Backward(c.servers) {
		all.Go(func() {
			errs[i] = s.kill()
			c.options.Ports.free(s.place.Port, s.place.BalancerPort)
		})
	}
	all.Wait()
	if err := errors.Join(append(errs, c.tidy())...); err != nil {
		return err // utr clean removes the rest
	}
	return c.folder.Forget()
}

// tidy removes everything except the logs from the folder.
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

// Folder contains a log NAME.log for each server, also after Close.
func (c *Cluster) Folder() string { return c.folder.Path }

// Log returns what the servers logged from one time to another, both included, oldest first.
func (c *Cluster) Log(from, to time.Time) []embedded.LogLine {
	logs := make(map[string]string)
	for _, s := range c.servers {
		logs[s.address()] = s.log
	}
	return ReadLogs(logs, from, to)
}

// Hosts returns the addresses that clients connect to: of the members, the mongoses, or the load balancer.
func (c *Cluster) Hosts() []string {
	if c.options.Shape.Topology == embedded.LoadBalanced {
		return []string{c.balancers.All}
	}
	return addresses(c.entries())
}

// Password returns the password in the connection strings, or "".
func (c *Cluster) Password() string {
	if c.user == nil {
		return ""
	}
	return c.user.Password
}

// URIs returns the connection string with all seeds, and the string of one mongos, or of the load balancer for one;
// without mongoses both are equal. They contain the password.
func (c *Cluster) URIs() (all, single string) {
	hosts := c.Hosts()
	all = c.uri(hosts...)
	switch c.options.Shape.Topology {
	case embedded.Sharded:
		return all, c.uri(hosts[0])
	case embedded.LoadBalanced:
		return all, c.uri(c.balancers.First)
	}
	return all, all
}

func (c *Cluster) uri(hosts ...string) string {
	u := url.URL{Scheme: "mongodb", Host: strings.Join(hosts, ","), Path: "/"}
	if c.user != nil {
		u.User = url.UserPassword(c.user.Username, c.user.Password)
	}
	query := url.Values{}
	switch c.options.Shape.Topology {
	case embedded.ReplicaSet:
		query.Set("replicaSet", memberSet)
	case embedded.LoadBalanced:
		query.Set("loadBalanced", "true")
	}
	if c.place.CA != "" {
		query.Set("tls", "true")
		query.Set("tlsCAFile", c.place.CA)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
