package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/text/secret"
)

// opening is a deployment that is being opened.
type opening struct {
	ClusterOptions
	*cluster
	named, used uri           // with all hosts of the connection string, and with those that tests use
	limit       time.Duration // for server selection
}

// openCluster connects to a deployment. It changes nothing before it holds the lock.
func openCluster(ctx context.Context, o ClusterOptions) (*cluster, error) {
	o.Note = orIgnore(o.Note)
	p := &opening{ClusterOptions: o, cluster: new(cluster)}
	for _, step := range []func(context.Context) error{
		p.resolve, p.discover, p.leaveOut, p.claim, p.describe, p.route,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, p.cleanUp.run(context.WithoutCancel(ctx)))
		}
	}
	return p.cluster, nil
}

func (p *opening) failed(err error) error {
	return fmt.Errorf("cannot use the deployment at %s: %w", p.used.names(), err)
}

// resolve reads the connection string, and the hosts that its SRV record names.
func (p *opening) resolve(ctx context.Context) error {
	seeds, err := parseURI(p.ClusterOptions.URI)
	if err != nil {
		return err
	}
	if p.used, err = seeds.reached(ctx); err != nil {
		return p.failed(err)
	}
	p.used.api = p.ServerAPI
	p.named = p.used
	p.limit = lookTimeout
	if ms, err := strconv.ParseUint(p.used.get("serverSelectionTimeoutMS"), 10, 31); err == nil && ms > 0 {
		p.limit = time.Duration(ms) * time.Millisecond
	}
	return nil
}

// discover determines topology and hosts. If every handshake fails because an earlier run left failCommand on, it is
// turned off.
func (p *opening) discover(ctx context.Context) (err error) {
	p.description, err = p.used.discover(ctx, p.limit)
	if err != nil && p.Lock != nil {
		off, blocked := p.used.unblock(ctx)
		if held := new(lock.HeldError); errors.As(blocked, &held) {
			return blocked
		}
		if report(p.Note, leftOver, off); len(off) > 0 {
			p.description, err = p.used.discover(ctx, p.limit)
		}
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// leaveOut leaves out each mongos that does not answer.
func (p *opening) leaveOut(ctx context.Context) error {
	if p.description.Topology != Sharded || len(p.named.hosts) < 2 {
		return nil
	}
	used, left, err := p.named.answering(ctx)
	if err != nil {
		return p.failed(err)
	}
	for _, host := range p.named.hosts {
		if left[host] != nil {
			p.Note(left[host].Error())
		}
	}
	p.used, p.description.Hosts = used, used.hosts
	p.repair = p.routes(p.named.withAll(p.URIOptions), p.Note)
	return nil
}

// claim locks the deployment and turns off the fail points that an earlier run left on.
func (p *opening) claim(ctx context.Context) error {
	p.record(p.ClusterOptions)
	if p.Lock == nil {
		return nil
	}
	if err := p.hold(ctx, p.used, p.ClusterOptions); err != nil {
		return err
	}
	off, errs := clearFailPoints(ctx, p.used, p.description, p.FailPoints)
	report(p.Note, leftOver, off)
	for _, err := range errs {
		p.Note(err.Error())
	}
	if p.lock != nil && len(errs) == 0 {
		p.forgetLocks(slices.Concat(HostsOf(p.ClusterOptions.URI), HostsOf(p.used.String()), p.description.Hosts))
	}
	return nil
}

// describe determines the rest of the description.
func (p *opening) describe(ctx context.Context) error {
	err := p.used.look(ctx, p.limit, func(ctx context.Context, run runFunc) error {
		return describe(ctx, run, p.used, &p.description)
	})
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// route sets the connection strings of tests, and starts the proxy that executes fail points if one is required.
func (p *opening) route(ctx context.Context) error {
	proxied, err := p.FailPointMode.needsProxy(ctx, p.used, p.description)
	if err != nil {
		return p.failed(err)
	}
	if !proxied && p.FailPointMode.shares(p.Jobs) {
		proxied, p.inside = true, true
	}
	every, single := p.ClusterOptions.URI, p.ClusterOptions.URI
	if len(p.used.hosts) < len(p.named.hosts) {
		every = p.used.String()
	}
	switch d := p.description; {
	case d.Topology == LoadBalanced && p.ClusterOptions.SingleURI == "":
		return errors.New("the deployment is load balanced: also name the load balancer for a single mongos (--single-uri)")
	case d.Topology == LoadBalanced:
		single = p.ClusterOptions.SingleURI
	case d.Topology == Sharded && len(d.Hosts) > 0:
		single = p.used.at(d.Hosts[0]).String()
	}
	err = p.reach(ctx, every, single, p.URIOptions, proxied)
	p.uri = p.used.withAll(p.URIOptions)
	return err
}

const leftOver = "left over from an earlier run, and turned off: "

// report notes which fail points were on.
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
