package deployment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/process/ledger"
)

// ClusterOptions describes a running deployment.
type ClusterOptions struct {
	// URI is the connection string with all seeds.
	URI string
	// SingleURI is the connection string of the load balancer for a single mongos. It is required for load balanced
	// deployments and ignored otherwise (Unified Test Format, "Initializing the Test Runner").
	SingleURI string
	// URIOptions are added to the connection strings that tests get, and replace options of the same name.
	URIOptions []URIOption
	// ServerAPI is the Stable API version that our own clients declare, for servers with requireApiVersion, or "".
	ServerAPI string
	// Lock, if not nil, keeps other runs away until the source is closed. Fail points that an earlier run left on are
	// then turned off.
	Lock *lock.Options
	// Ledger records that a killed run leaves its lock and fail points on the deployment. It may be nil.
	Ledger *ledger.Ledger
	// FailPoints are names of fail points in addition to those that suites are known to set.
	FailPoints []string
	// FailPointMode is who executes fail points; "" means FailPointsAuto.
	FailPointMode FailPointMode
	// Jobs is how many workers use the deployment at the same time; less than 2 means 1. If there are more, each has a
	// proxy of its own that executes its fail points. With FailPointsServer, there must not be more.
	Jobs int
	// Note receives messages, a line at a time. It may be nil.
	Note func(string)
}

// CheckURI checks a connection string without DNS lookups or connections. The error never contains its credentials.
func CheckURI(s string) error {
	u, err := parseURI(s)
	if err != nil {
		return err
	}
	u.options = u.given // all instances of tls, for example, must be equal
	if u.scheme == "mongodb+srv" {
		if err := u.checkSRV(); err != nil {
			return err
		}
		u = u.at("localhost") // the hosts, and more options, come from DNS
	}
	err = u.redact(options.Client().ApplyURI(u.String()).Validate())
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "error parsing uri: ")) // by the Go driver
	}
	return err
}

// checkSRV checks what a connection string with mongodb+srv must not have (Initial DNS Seedlist Discovery, "URI
// Validation" and "Validation Before Querying DNS"; URI Options, "directConnection URI option with multiple seeds or
// SRV URI").
func (u uri) checkSRV() error {
	most, err := strconv.ParseUint(cmp.Or(u.get("srvMaxHosts"), "0"), 10, 31)
	is := func(option string) bool { return strings.EqualFold(u.get(option), "true") }
	for _, check := range []struct {
		fails  bool
		reason string
	}{
		{len(u.hosts) > 1, "must have one host"},
		{strings.Contains(u.hosts[0], ":"), "must have a host without a port"},
		{is("directConnection"), "cannot have directConnection=true"},
		{err != nil, "requires a number of at least 0 for srvMaxHosts"},
		{most > 0 && u.get("replicaSet") != "", "cannot have both srvMaxHosts and replicaSet"},
		{most > 0 && is("loadBalanced"), "cannot have both srvMaxHosts and loadBalanced=true"},
	} {
		if check.fails {
			return errors.New("a connection string with mongodb+srv " + check.reason)
		}
	}
	return nil
}

// OpenCluster connects to a running deployment and returns a source with one offer, for ClusterOptions.Jobs workers.
// Server selection takes up to serverSelectionTimeoutMS of the connection string, or 10 seconds. Errors never contain
// credentials. With ClusterOptions.Lock, the error is a *lock.HeldError if another run uses the deployment; only ctx
// and lock.Options bound that wait.
func OpenCluster(ctx context.Context, o ClusterOptions) (Source, error) {
	c, err := openCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := c.share(ctx, o.Jobs); err != nil {
		return nil, err
	}
	p := newPool(nil)
	p.add(c.Description(), (&poolSlot{unique: true}).ready(c))
	return p, nil
}

// cluster is a running deployment.
type cluster struct {
	uri         uri // of hosts
	all, single uri // as tests get them
	description Description
	proxy       *proxy.Proxy // in front of the servers; may be nil
	inside      bool         // servers have test commands, and execute the fail points that the proxy lacks
	others      []*cluster   // further views of the servers, each behind a proxy of its own
	owned       bool
	lock        *lock.Lock                         // may be nil
	dead        func() error                       // Dead; may be nil
	log         func(from, to time.Time) []LogLine // Log; may be nil
	repair      func(context.Context) error        // makes it usable after a test broke it; may be nil
	cleanUp     cleanUps
}

// cleanUps remove what a run has created outside itself, such as a lock, processes, a folder, or a cluster of a
// service, in reverse order. What cannot be removed stays in the ledger. Each may be called more than once.
type cleanUps []func(context.Context) error

func (all cleanUps) run(ctx context.Context) error {
	var errs []error
	for _, end := range slices.Backward(all) {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}

// reach sets the connection strings, and starts the proxy for fail points if tests require it.
func (c *cluster) reach(ctx context.Context, all, single string, options []URIOption, proxied bool) (err error) {
	if c.all, err = parseURI(all); err == nil {
		c.single, err = parseURI(single)
	}
	c.all, c.single = c.all.withAll(options), c.single.withAll(options)
	c.uri = c.all
	if err == nil && proxied {
		err = c.front(ctx)
	}
	return err
}

// share adds views of a cluster until n workers can use it at the same time. Without a proxy, one worker can. After an
// error, the cluster is removed.
func (c *cluster) share(ctx context.Context, n int) (err error) {
	if c.proxy == nil {
		return nil
	}
	c.description.Shared = n > 1
	for i := 1; i < n && err == nil; i++ {
		view := *c
		view.cleanUp, view.others = nil, nil
		err = view.front(ctx)
		c.cleanUp, c.others = append(c.cleanUp, view.cleanUp...), append(c.others, &view)
	}
	if err != nil {
		err = errors.Join(err, c.cleanUp.run(context.WithoutCancel(ctx)))
	}
	return err
}

// views returns the views of the cluster, one for each worker.
func (c *cluster) views() []*cluster { return append([]*cluster{c}, c.others...) }

// Sessions implements Deployment.
func (c *cluster) Sessions() []bson.RawValue {
	if c.proxy == nil {
		return nil
	}
	return c.proxy.Sessions()
}

func (c *cluster) URI() string       { return c.seen(c.all).String() }
func (c *cluster) SingleURI() string { return c.seen(c.single).String() }
func (c *cluster) Owned() bool       { return c.owned }

func (c *cluster) Description() Description {
	d := c.description
	d.Servers, d.Hosts = d.Hosts, c.fronts(d.Hosts)
	return d
}

func (c *cluster) Dead() error {
	if c.dead == nil {
		return nil
	}
	return c.dead()
}

func (c *cluster) Log(from, to time.Time) []LogLine {
	if c.log == nil {
		return nil
	}
	lines := c.log(from, to)
	for i := range lines {
		lines[i].Server = c.fronts([]string{lines[i].Server})[0]
	}
	return lines
}

// DirectURI returns the connection string of one host. The string of a load balancer cannot have directConnection.
func (c *cluster) DirectURI(address string) string {
	u := c.seen(c.uri)
	if c.description.Topology == LoadBalanced && slices.Contains(u.hosts, address) {
		return u.at(address).String()
	}
	return u.direct(address).String()
}
