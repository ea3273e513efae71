package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/text/secret"
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
	// Note receives messages, a line at a time. It may be nil.
	Note func(string)
}

// CheckURI checks a connection string without DNS lookups or connections. The error never contains its credentials.
func CheckURI(s string) error {
	u, err := parseURI(s)
	if err != nil {
		return err
	}
	u.options = u.given // such as tls, whose instances must be equal
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

// OpenCluster connects to a running deployment and returns a source with that one offer, for one worker at a time.
// Server selection takes up to serverSelectionTimeoutMS of the connection string, or 10 seconds. Errors never contain
// credentials. With ClusterOptions.Lock, the error is a *lock.HeldError if another run uses the deployment; only ctx
// and lock.Options bound that wait.
func OpenCluster(ctx context.Context, o ClusterOptions) (Source, error) {
	c, err := openCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	p := newPool(nil)
	p.add(c.Description(), &poolSlot{cluster: c, state: slotIdle, unique: true})
	return p, nil
}

// cluster is a running deployment.
type cluster struct {
	uri         uri // of hosts
	all, single uri // as tests get them
	description Description
	proxy       *proxy.Proxy // in front of the servers; may be nil
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

// DirectURI returns the connection string of one host. That of a load balancer cannot have directConnection.
func (c *cluster) DirectURI(address string) string {
	u := c.seen(c.uri)
	if c.description.Topology == LoadBalanced && slices.Contains(u.hosts, address) {
		return u.at(address).String()
	}
	return u.direct(address).String()
}

// openCluster connects to a deployment. It changes nothing before it holds the lock.
func openCluster(ctx context.Context, o ClusterOptions) (_ *cluster, err error) {
	c := new(cluster)
	o.Note = orIgnore(o.Note)
	seeds, err := parseURI(o.URI)
	if err != nil {
		return nil, err
	}
	u, err := seeds.reached(ctx)
	failed := func(err error) error { return fmt.Errorf("cannot use the deployment at %s: %w", u.names(), err) }
	if err != nil {
		return nil, failed(err)
	}
	u.api = o.ServerAPI
	limit := lookTimeout
	if ms, err := strconv.ParseUint(u.get("serverSelectionTimeoutMS"), 10, 31); err == nil && ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	d := &c.description
	*d, err = u.greet(ctx, limit)
	if err != nil && o.Lock != nil {
		off, blocked := u.unblock(ctx)
		if held := new(lock.HeldError); errors.As(blocked, &held) {
			return nil, blocked
		}
		if report(o.Note, leftOver, off); len(off) > 0 {
			*d, err = u.greet(ctx, limit)
		}
	}
	if err != nil {
		return nil, failed(err)
	}
	all := u
	if d.Topology == Sharded && len(u.hosts) > 1 {
		var left map[string]error
		if u, left, err = u.answering(ctx); err != nil {
			return nil, failed(err)
		}
		for _, host := range all.hosts {
			if left[host] != nil {
				o.Note(left[host].Error())
			}
		}
		d.Hosts = u.hosts
		c.repair = c.routes(all.withAll(o.URIOptions), o.Note)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.cleanUp.run(context.WithoutCancel(ctx)))
		}
	}()
	c.record(o)
	if o.Lock != nil {
		if err := c.hold(ctx, u, o); err != nil {
			return nil, err
		}
		off, errs := clearFailPoints(ctx, u, *d, o.FailPoints)
		report(o.Note, leftOver, off)
		for _, err := range errs {
			o.Note(err.Error())
		}
		if c.lock != nil && len(errs) == 0 {
			o.forgetLocks(slices.Concat(HostsOf(o.URI), HostsOf(u.String()), d.Hosts))
		}
	}
	if err := u.look(ctx, limit, func(ctx context.Context,
		run runFunc) error {
		return describe(ctx, run, u, d)
	}); err != nil {
		return nil, failed(err)
	}
	proxied, err := o.FailPointMode.needsProxy(ctx, u, *d)
	if err != nil {
		return nil, failed(err)
	}
	every, single := o.URI, o.URI
	if len(u.hosts) < len(all.hosts) {
		every = u.String()
	}
	switch {
	case d.Topology == LoadBalanced && o.SingleURI == "":
		return nil, errors.New("the deployment is load balanced: also name the load balancer for a single mongos (--single-uri)")
	case d.Topology == LoadBalanced:
		single = o.SingleURI
	case d.Topology == Sharded && len(d.Hosts) > 0:
		single = u.at(d.Hosts[0]).String()
	}
	err = c.reach(ctx, every, single, o.URIOptions, proxied)
	c.uri = u.withAll(o.URIOptions)
	return c, err
}

const leftOver = "left over from an earlier run, and turned off: "

// report passes on which fail points were on.
func report(note func(string), prefix string, off []leftFailPoint) {
	for _, left := range off {
		note(prefix + left.String())
	}
}

// record keeps an entry in the ledger until the lock is removed. If that fails, the run continues, since a lock
// expires.
func (c *cluster) record(o ClusterOptions) {
	forget, err := o.Ledger.Add(ledger.Entry{Kind: ledger.Lock, URI: secret.RedactURL(o.URI),
		Name: lock.Database + "." + lock.Collection})
	if err != nil {
		o.Note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
		forget = func() error { return nil }
	}
	c.cleanUp = append(c.cleanUp, func(context.Context) error {
		if c.lock != nil {
			if err := c.lock.Release(); err != nil {
				return err
			}
		}
		return forget()
	})
}

// forgetLocks removes the ledger's entries of ended runs for a deployment with these hosts: their lock was taken over,
// and their fail points are off.
func (o ClusterOptions) forgetLocks(hosts []string) {
	dead, _, _ := o.Ledger.Leftovers() // utr clean reports the error
	for _, l := range dead {
		of := HostsOf(l.Entry.URI)
		if l.Entry.Kind == ledger.Lock &&
			slices.ContainsFunc(of, func(host string) bool { return slices.Contains(hosts, host) }) {
			_ = l.Forget() // utr clean tries again
		}
	}
}

// hold acquires the lock. If the user may not write the lock document, the run continues without a lock.
func (c *cluster) hold(ctx context.Context, u uri, o ClusterOptions) (err error) {
	lo := *o.Lock
	lo.Note = o.Note
	store, err := lock.Open(u.client("utr lock"))
	if err == nil {
		c.lock, err = lock.Acquire(ctx, store, u.hosts, lo)
	}
	held := new(lock.HeldError)
	switch {
	case err == nil || errors.As(err, &held):
		return err
	case isUnauthorized(err) && u.authenticates():
		o.Note(fmt.Sprintf("the deployment at %s is not locked against other runs: the user of the connection string may not write %s.%s",
			u.names(), lock.Database, lock.Collection))
		return nil
	}
	return fmt.Errorf("cannot use the deployment at %s: %w", u.names(), u.plain(ctx, err))
}
