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

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/net/certificate"
	"github.com/unified-test-runner/utr/internal/text/plural"
)

// Topology is the shape of a deployment, as runOnRequirements name it.
type Topology = server.Topology

// The topologies.
const (
	Standalone   = server.Standalone
	ReplicaSet   = server.ReplicaSet
	Sharded      = server.Sharded
	LoadBalanced = server.LoadBalanced
)

// DefaultSetName is the default of Options.SetName.
const DefaultSetName = "rs0"

// User is a user of a deployment with access control.
type User struct {
	Database string // authentication database; "" means "admin"
	Name     string
	Password string
}

// Options describe the deployment to start. The zero value is a standalone of the default version on a free port.
type Options struct {
	Topology Topology
	// Version is one of Versions; "" means DefaultVersion.
	Version string
	// Members is the size of a replica set; 0 means 3. Mongoses is the number of mongoses of a sharded or load
	// balanced cluster; 0 means 2.
	Members, Mongoses int
	// SetName is the name of the replica set; "" means DefaultSetName.
	SetName string
	// MemberConfigs configures the first members of a replica set, in order. Other members have the default
	// configuration.
	MemberConfigs []Member
	// Users enable access control if there are any. The connection string contains the first one.
	Users []User
	// TLS requires TLS on all connections, with a newly created certificate: see Deployment.CA.
	TLS bool
	// Host is the address to listen on, by default 127.0.0.1. Other addresses make the deployment reachable for
	// other machines.
	Host string
	// NoScripting refuses $where and mapReduce, like the option --noscripting of a server.
	NoScripting bool
	// Parameters are startup parameters of every server, in the form that setParameter accepts. The ingress rate
	// limiters exist since 8.2 (docs/application/embedded.md).
	Parameters bson.D
	// Ports to listen on, in this order: members or mongoses, load balancer in front of all mongoses, load balancer
	// in front of one. A missing port, or 0, means any free port.
	Ports []int
}

// Versions lists the supported server versions, oldest first.
func Versions() []string { return version.Names() }

// DefaultVersion is the default of Options.Version.
const DefaultVersion = version.Default

// ErrParameter is wrapped by the error of Start if Options.Parameters has a parameter that the version does not have,
// or an invalid value.
var ErrParameter = server.ErrParameter

// MaxServers is the maximum of Members and of Mongoses.
const MaxServers = 50

// About is what the servers of a deployment report.
type About struct {
	Version    [3]int   // the first three numbers of versionArray
	Parameters bson.Raw // the server parameters, with their values at startup
}

// About returns what the servers of a deployment with these options would report, without starting one.
func (o Options) About() (About, error) {
	v, err := o.version()
	if err != nil {
		return About{}, err
	}
	parameters, err := server.Parameters(v, server.Process{Parameters: o.Parameters})
	return About{v.Numbers, parameters}, err
}

// version returns the version. It must support the topology.
func (o Options) version() (*version.Version, error) {
	v, err := version.Named(o.Version)
	if err == nil && o.Topology == LoadBalanced && !v.Has.LoadBalancing {
		err = fmt.Errorf("server version %s does not support load balancing, which requires 5.0", v.Name)
	}
	return v, err
}

// Deployment is a running deployment. Its methods may be called concurrently.
type Deployment struct {
	options   Options
	cluster   *server.Cluster
	balancers []net.Listener
	ca        []byte
}

// Start starts a deployment. It accepts clients when Start returns. The caller must Close it. The context applies
// to the start only.
func Start(ctx context.Context, options Options) (*Deployment, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	members, err := options.members()
	if err != nil {
		return nil, err
	}
	v, err := options.version()
	if err != nil {
		return nil, err
	}
	d := &Deployment{options: options}
	process := server.Process{Parameters: options.Parameters, AccessControl: len(options.Users) > 0}
	config := server.Config{Version: v, SetName: options.SetName, Topology: options.Topology, Users: new(server.Users)}
	config.Backend = commands.New(commands.Options{
		Sharded: options.Topology.HasMongos(), ReplicaSet: options.Topology == ReplicaSet,
		ShardName: server.ShardName, ShardHost: server.ShardHost(options.SetName), NoScripting: options.NoScripting,
	})
	for _, user := range options.Users {
		if err := config.Users.Add(cmp.Or(user.Database, "admin"), user.Name, user.Password); err != nil {
			return nil, fmt.Errorf("user %q: %w", user.Name, err)
		}
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
	if err := d.start(ctx, process, members); err != nil {
		return nil, errors.Join(fmt.Errorf("start a %s: %w", options.Topology.Name(), err), d.Close())
	}
	return d, nil
}

func (o *Options) complete() error {
	if o.Topology = cmp.Or(o.Topology, Standalone); o.Topology.Name() == "" {
		return fmt.Errorf("unknown topology %q", o.Topology)
	}
	o.Members, o.Mongoses = cmp.Or(o.Members, 3), cmp.Or(o.Mongoses, 2)
	o.SetName, o.Host = cmp.Or(o.SetName, DefaultSetName), cmp.Or(o.Host, "127.0.0.1")
	for _, n := range []int{o.Members, o.Mongoses} {
		if n < 1 || n > MaxServers {
			return fmt.Errorf("%s: must be between 1 and %d", plural.Of(n, "server"), MaxServers)
		}
	}
	return nil
}

func (d *Deployment) start(ctx context.Context, process server.Process, members []server.Member) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	servers := map[Topology]int{Standalone: 1, ReplicaSet: d.options.Members}
	n := cmp.Or(servers[d.options.Topology], d.options.Mongoses)
	addresses := make([]string, n+2) // the last two are for load balancers
	ports := append(slices.Clone(d.options.Ports), make([]int, len(addresses))...)
	for i := range addresses {
		addresses[i] = net.JoinHostPort(d.options.Host, strconv.Itoa(ports[i]))
	}
	if err := d.cluster.Listen(process, members, addresses[:n]...); err != nil || d.options.Topology != LoadBalanced {
		return err
	}
	for i, behind := range []int{n, 1} {
		b, err := d.cluster.Balance(addresses[n+i], behind)
		if err != nil {
			return err
		}
		d.balancers = append(d.balancers, b)
	}
	return nil
}

// Close interrupts running commands, stops the deployment and waits for its goroutines and sockets. It may be called
// more than once.
func (d *Deployment) Close() error {
	var errs []error
	for _, b := range d.balancers {
		if err := b.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, d.cluster.Close())...)
}

// Hosts returns the addresses of the members or mongoses, in order. Clients of a load balancer do not see them.
func (d *Deployment) Hosts() []string {
	var hosts []string
	for _, s := range d.cluster.Members() {
		hosts = append(hosts, s.Address())
	}
	return hosts
}

// CA returns the CA certificate for clients, PEM encoded; nil without TLS.
func (d *Deployment) CA() []byte { return slices.Clone(d.ca) }

// ClientTLS returns a configuration that trusts the CA, nil without TLS.
func (d *Deployment) ClientTLS() *tls.Config {
	if d.ca == nil {
		return nil
	}
	return certificate.Trust(d.ca)
}

// URI returns the connection string with all seeds. It contains the password of the first user: do not print it.
func (d *Deployment) URI() string { return d.through(d.Hosts(), 0) }

// SingleURI returns the connection string of one mongos of a sharded cluster, or of the load balancer in front of
// one mongos. For other topologies it equals URI.
func (d *Deployment) SingleURI() string {
	hosts := d.Hosts()
	if d.options.Topology == Sharded {
		hosts = hosts[:1]
	}
	return d.through(hosts, 1)
}

// through returns the connection string of hosts, or of the balancer in front of them.
func (d *Deployment) through(hosts []string, balancer int) string {
	switch d.options.Topology {
	case ReplicaSet:
		return d.uri(hosts, url.Values{"replicaSet": {d.options.SetName}})
	case LoadBalanced:
		return d.uri([]string{d.balancers[balancer].Addr().String()}, url.Values{"loadBalanced": {"true"}})
	}
	return d.uri(hosts, url.Values{})
}

// DirectURI returns the connection string of a direct connection to one host.
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

// Primary returns the address of the primary, "" if the deployment has none.
func (d *Deployment) Primary() string {
	if s := d.cluster.Primary(); s != nil {
		return s.Address()
	}
	return ""
}

// StepDown steps the primary down and elects another member. Awaitable hellos are answered immediately.
func (d *Deployment) StepDown() error { return d.cluster.StepDown() }

// LogLine is one line of a server's log: connections, commands with their errors, fail points, elections. It never
// contains secrets.
type LogLine = server.LogLine

// Log returns the log lines from one time to another, both inclusive, oldest first. A deployment keeps about two
// thousand lines.
func (d *Deployment) Log(from, to time.Time) []LogLine { return d.cluster.Log(from, to) }

// Kill ends the server at address like a crash: its connections break and new ones are refused.
func (d *Deployment) Kill(address string) error { return d.at(address, d.cluster.Kill) }

// Restart starts a killed server again, on its port.
func (d *Deployment) Restart(address string) error { return d.at(address, d.cluster.Restart) }

func (d *Deployment) at(address string, do func(*server.Server) error) error {
	for _, s := range d.cluster.Members() {
		if s.Address() == address {
			return do(s)
		}
	}
	return fmt.Errorf("no server has the address %s", address)
}
