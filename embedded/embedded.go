// Package embedded starts MongoDB-compatible deployments inside the process,
// on real sockets of the loopback interface: standalone, replica set, sharded,
// load balanced. Any driver in any language can use one. Many can run at once;
// they share nothing.
//
// It exists for testing drivers: the protocol, fail points, error labels and
// the records of retryable writes are as the server has them, in the version
// that Options names. Data lives in memory.
package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/internal/certificate"
)

// Topology is the shape of a deployment.
type Topology uint8

// The topologies.
const (
	Standalone Topology = iota
	ReplicaSet
	Sharded
	LoadBalanced
)

var topologyNames = []string{"standalone", "replica set", "sharded", "load balanced"}

// String names the topology for people.
func (t Topology) String() string { return topologyNames[t] }

// DefaultSetName is the name of replica sets, if Options has none.
const DefaultSetName = "rs0"

// User may authenticate on a deployment with access control.
type User struct {
	Database string // where it is defined; empty: "admin"
	Name     string
	Password string
}

// Options say what deployment to start. The zero value is a standalone of the
// default version on a free port.
type Options struct {
	Topology Topology
	// Version is one of Versions. Empty: the default one.
	Version string
	// Members of a replica set; 0 means 3. Mongoses of a sharded cluster, also
	// behind load balancers; 0 means 2.
	Members, Mongoses int
	// SetName of a replica set; empty means DefaultSetName.
	SetName string
	// Set says how members of a replica set differ, in their order; those beyond it do not.
	Set []Member
	// Users switch access control on, if there are any. The connection string
	// holds the first one.
	Users []User
	// TLS makes all connections use it, with a certificate made on the spot:
	// see Deployment.CA.
	TLS bool
	// Host to listen on, by default 127.0.0.1. Anything else lets others in.
	Host string
	// NoScripting refuses $where and mapReduce, as servers do that are started
	// with --noscripting.
	NoScripting bool
	// Parameters are server parameters to start with, for every server, as
	// setParameter takes them. Versions from 8.2 on have the ingress rate
	// limiters (docs/embedded.md).
	Parameters bson.D
	// Ports to listen on, in order: the members or mongoses, then the load
	// balancer in front of all, then that in front of one. A port that is
	// missing here, or 0, is chosen freely.
	Ports []int
}

// Versions lists the server versions that can be imitated, oldest first.
func Versions() []string { return server.Profiles() }

// DefaultVersion is the server version that a deployment has if none is named.
const DefaultVersion = server.DefaultProfile

// ErrParameter is wrapped by Start's error if Options.Parameters has one that
// the version lacks, or a value that it does not take.
var ErrParameter = server.ErrParameter

// Defaults for the number of servers.
const (
	defaultMembers  = 3
	defaultMongoses = 2
)

// MaxServers bounds Members and Mongoses.
const MaxServers = 50

// Deployment is a running deployment. Its methods may be called concurrently.
type Deployment struct {
	options   Options
	set       []server.Member // what Options.Set configures, without their hosts
	cluster   *server.Cluster
	balancers []net.Listener
	ca        []byte
}

// Start starts a deployment. It is ready for clients when Start returns; Close
// it. The context bounds the start alone.
func Start(ctx context.Context, options Options) (*Deployment, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	set, err := options.readSet()
	if err != nil {
		return nil, err
	}
	profile, err := server.ProfileNamed(options.Version)
	if err != nil {
		return nil, err
	}
	if options.Topology == LoadBalanced && !profile.HasLoadBalancing() {
		return nil, fmt.Errorf("server version %s has no load balancing, which came with 5.0", profile.Name)
	}
	d := &Deployment{options: options, set: set}
	process := server.Process{Parameters: options.Parameters, AccessControl: len(options.Users) > 0}
	config := server.Config{Profile: profile, SetName: options.SetName, Kind: kinds[options.Topology], Backend: newBackend(options)}
	if config.Users, err = users(options.Users); err != nil {
		return nil, err
	}
	if options.TLS {
		made, err := certificate.New(options.Host)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(made.Server, made.Server)
		if err != nil {
			return nil, err
		}
		process.TLS, d.ca = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, made.CA
	}
	d.cluster = server.NewCluster(config)
	if err := d.start(ctx, process); err != nil {
		return nil, errors.Join(fmt.Errorf("start a %s: %w", options.Topology, err), d.Close())
	}
	return d, nil
}

// newBackend is the data of a deployment, empty.
func newBackend(o Options) server.Backend {
	return data.New(data.Options{
		Sharded:     kinds[o.Topology] == server.Sharded,
		ReplicaSet:  o.Topology == ReplicaSet,
		ShardName:   server.ShardName,
		ShardHost:   server.ShardHost(o.SetName),
		NoScripting: o.NoScripting,
	})
}

var kinds = map[Topology]server.Kind{
	Standalone: server.Single, ReplicaSet: server.ReplicaSet, Sharded: server.Sharded, LoadBalanced: server.Sharded,
}

// complete puts the defaults in.
func (o *Options) complete() error {
	if int(o.Topology) >= len(topologyNames) {
		return fmt.Errorf("unknown topology %d", o.Topology)
	}
	o.Members, o.Mongoses = cmp.Or(o.Members, defaultMembers), cmp.Or(o.Mongoses, defaultMongoses)
	o.SetName, o.Host = cmp.Or(o.SetName, DefaultSetName), cmp.Or(o.Host, "127.0.0.1")
	for _, n := range []int{o.Members, o.Mongoses} {
		if n < 1 || n > MaxServers {
			return fmt.Errorf("%d servers: there can be 1 to %d", n, MaxServers)
		}
	}
	return nil
}

// count is how many servers the topology has.
func (o *Options) count() int {
	switch o.Topology {
	case Standalone:
		return 1
	case ReplicaSet:
		return o.Members
	}
	return o.Mongoses
}

// listenAddress is where server or balancer number i is to listen.
func (o *Options) listenAddress(i int) string {
	port := 0
	if i < len(o.Ports) {
		port = o.Ports[i]
	}
	return net.JoinHostPort(o.Host, strconv.Itoa(port))
}

func (d *Deployment) start(ctx context.Context, process server.Process) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := d.options.count()
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = d.options.listenAddress(i)
	}
	if err := d.cluster.Listen(process, d.shape, addresses...); err != nil || d.options.Topology != LoadBalanced {
		return err
	}
	for i, behind := range []int{n, 1} {
		b, err := d.cluster.Balance(d.options.listenAddress(n+i), behind)
		if err != nil {
			return err
		}
		d.balancers = append(d.balancers, b)
	}
	return nil
}

func users(list []User) (*server.Users, error) {
	u := new(server.Users)
	for _, user := range list {
		if user.Database == "" {
			user.Database = "admin"
		}
		if err := u.Add(user.Database, user.Name, user.Password); err != nil {
			return nil, fmt.Errorf("user %q: %w", user.Name, err)
		}
	}
	return u, nil
}

// Close stops the deployment and waits until nothing of it is left. Commands
// that run are broken off. It may be called more than once.
func (d *Deployment) Close() error {
	var errs []error
	for _, b := range d.balancers {
		if err := b.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, d.cluster.Close())...)
}

// Hosts are the addresses of the members or mongoses, in order. Behind a load
// balancer clients do not see them.
func (d *Deployment) Hosts() []string {
	var hosts []string
	for _, s := range d.cluster.Members() {
		hosts = append(hosts, s.Address())
	}
	return hosts
}

// CA is the certificate in PEM form that clients must trust to use TLS, nil
// without TLS.
func (d *Deployment) CA() []byte { return slices.Clone(d.ca) }

// ClientTLS is what a Go client needs to use TLS, nil without TLS.
func (d *Deployment) ClientTLS() *tls.Config {
	if d.ca == nil {
		return nil
	}
	return certificate.Trust(d.ca)
}

// URI is the connection string with all seeds. It holds the password of the
// first user: do not print it.
func (d *Deployment) URI() string { return d.through(d.Hosts(), 0) }

// SingleURI is the connection string of one mongos of a sharded cluster, or of
// the load balancer in front of one. Elsewhere it equals URI.
func (d *Deployment) SingleURI() string {
	hosts := d.Hosts()
	if d.options.Topology == Sharded {
		hosts = hosts[:1]
	}
	return d.through(hosts, 1)
}

// through is the connection string of hosts, or of the balancer in front of them.
func (d *Deployment) through(hosts []string, balancer int) string {
	switch d.options.Topology {
	case ReplicaSet:
		return d.uri(hosts, url.Values{"replicaSet": {d.options.SetName}})
	case LoadBalanced:
		return d.uri([]string{d.balancers[balancer].Addr().String()}, url.Values{"loadBalanced": {"true"}})
	}
	return d.uri(hosts, url.Values{})
}

// DirectURI is the connection string of one host alone, by its address.
func (d *Deployment) DirectURI(address string) string {
	return d.uri([]string{address}, url.Values{"directConnection": {"true"}})
}

func (d *Deployment) uri(hosts []string, query url.Values) string {
	u := url.URL{Scheme: "mongodb", Host: strings.Join(hosts, ","), Path: "/"}
	if len(d.options.Users) > 0 {
		user := d.options.Users[0]
		u.User = url.UserPassword(user.Name, user.Password)
		if user.Database != "" && user.Database != "admin" {
			query.Set("authSource", user.Database)
		}
	}
	if d.options.TLS {
		query.Set("tls", "true")
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Primary is the address of the member that takes writes, empty if there is
// none.
func (d *Deployment) Primary() string {
	if s := d.cluster.Primary(); s != nil {
		return s.Address()
	}
	return ""
}

// StepDown makes another member of the replica set primary. Clients that await
// changes hear of it at once.
func (d *Deployment) StepDown() error { return d.cluster.StepDown() }

// LogLine is one line of what a server logs: connections, commands with their
// errors, fail points, elections. It holds no secret.
type LogLine = server.LogLine

// Log gives what the servers logged in a window of time, both ends included,
// oldest first. The last two thousand lines of a deployment are remembered.
func (d *Deployment) Log(from, to time.Time) []LogLine { return d.cluster.Log(from, to) }

// Kill ends the server at address as a crash would: connections break, new
// ones are refused.
func (d *Deployment) Kill(address string) error { return d.at(address, d.cluster.Kill) }

// Restart brings a killed server back, on its port.
func (d *Deployment) Restart(address string) error { return d.at(address, d.cluster.Restart) }

// at does something to the server at an address.
func (d *Deployment) at(address string, do func(*server.Server) error) error {
	for _, s := range d.cluster.Members() {
		if s.Address() == address {
			return do(s)
		}
	}
	return fmt.Errorf("no server has the address %s", address)
}
