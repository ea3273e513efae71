package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
)

// ClusterOptions says which running deployment to use.
type ClusterOptions struct {
	// URI is the connection string with all seeds.
	URI string
	// SingleURI is the connection string of the load balancer that fronts a
	// single mongos. Demanded for load balanced deployments, unused elsewhere
	// (Unified Test Format, "Initializing the Test Runner").
	SingleURI string
	// URIOptions are added to the connection strings that tests get, in the place
	// of their own of the same name.
	URIOptions []URIOption
	// ServerAPI is the version of the Stable API that clients of ours declare,
	// for servers with requireApiVersion; "" declares none.
	ServerAPI string
	// Lock, if not nil, keeps other runs away until the source is closed. Then
	// fail points that an earlier run left on are turned off, too.
	Lock *lock.Options
	// Ledger remembers that a run that is killed leaves its lock and fail points
	// there; nil remembers nothing.
	Ledger *ledger.Ledger
	// FailPoints names fail points beside those that suites are known to set.
	FailPoints []string
	// Note gets what was found, a line at a time. Nil drops it.
	Note func(string)
}

// CheckURI says what is wrong with a connection string by itself: nothing is
// looked up or connected to. The error never holds its credentials.
func CheckURI(s string) error {
	u, err := parseURI(s)
	if err != nil || u.scheme == "mongodb+srv" { // the rest stands in the domain name system
		return err
	}
	return u.redact(options.Client().ApplyURI(s).Validate())
}

// OpenCluster looks at a deployment that somebody else runs, for as long as
// serverSelectionTimeoutMS in the connection string says, or 10 seconds, and gives a
// source with that one offer. Tests run on it one at a time. Errors never hold
// the connection string's credentials. With ClusterOptions.Lock the error is a
// *lock.HeldError if another run uses the deployment; ctx alone bounds the wait for
// that one.
func OpenCluster(ctx context.Context, o ClusterOptions) (Source, error) {
	c, err := openCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	p := newPool(nil)
	p.add(c.description, &poolSlot{cluster: c, state: slotIdle})
	return p, nil
}

// cluster is a running deployment of any source.
type cluster struct {
	uri         uri // of hosts
	all, single uri // as tests get them
	description Description
	owned       bool
	lock        *lock.Lock                         // nil if the run takes no lock
	dead        func() error                       // nil if the ends of its servers are not known
	log         func(from, to time.Time) []LogLine // nil if their logs are not known
	right       func(context.Context) error        // puts it right after a test that broke it; nil if nobody can
	cleanUp     cleanUps
}

// cleanUps remove what a run has made outside itself, such as a lock, processes, a
// folder, a cluster of a service; the last one is called first. What cannot be removed
// stays in the ledger. Each may be called more than once.
type cleanUps []func(context.Context) error

func (all cleanUps) run(ctx context.Context) error {
	var errs []error
	for _, end := range slices.Backward(all) {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}

// reach says by which connection strings tests reach the cluster.
func (c *cluster) reach(all, single string, options []URIOption) (err error) {
	if c.all, err = parseURI(all); err == nil {
		c.single, err = parseURI(single)
	}
	c.all, c.single = c.all.withAll(options), c.single.withAll(options)
	c.uri = c.all
	return err
}

func (c *cluster) Description() Description { return c.description }
func (c *cluster) URI() string              { return c.all.String() }
func (c *cluster) SingleURI() string        { return c.single.String() }
func (c *cluster) Owned() bool              { return c.owned }

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
	return c.log(from, to)
}

// DirectURI aims at one host. A load balancer cannot be passed by: its own
// connection string is the most direct one.
func (c *cluster) DirectURI(address string) string {
	if c.description.Topology == LoadBalanced && slices.Contains(c.uri.hosts, address) {
		return c.uri.at(address).String()
	}
	return c.uri.direct(address).String()
}

// openCluster looks at a deployment, in the order that leaves other runs alone:
// nothing is changed before the lock is held.
func openCluster(ctx context.Context, o ClusterOptions) (_ *cluster, err error) {
	c := new(cluster)
	if o.Note == nil {
		o.Note = func(string) {}
	}
	seeds, err := parseURI(o.URI)
	if err != nil {
		return nil, err
	}
	u, err := seeds.reached(ctx)
	failed := func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("cannot use the deployment at %s: %w", u.names(), err)
	}
	if err != nil {
		return nil, failed(err)
	}
	u.api = o.ServerAPI
	limit := lookTimeout
	if ms, err := strconv.ParseUint(u.get("serverSelectionTimeoutMS"), 10, 31); err == nil && ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	d := &c.description
	meet := func() error {
		return failed(u.look(ctx, limit, func(ctx context.Context, run runs) (err error) { *d, err = greet(ctx, run, u); return }))
	}
	if err := meet(); err != nil {
		if o.Lock == nil {
			return nil, err
		}
		off, blocked := u.unblock(ctx)
		if held := new(lock.HeldError); errors.As(blocked, &held) {
			return nil, blocked
		}
		if len(off) == 0 {
			return nil, err
		}
		tell(o.Note, leftOver, off)
		if err := meet(); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.cleanUp.run(context.WithoutCancel(ctx)))
		}
	}()
	c.remember(o)
	if o.Lock != nil {
		if err := c.hold(ctx, u, o); err != nil {
			return nil, err
		}
		off, unasked := clearFailPoints(ctx, u, *d, o.FailPoints)
		tell(o.Note, leftOver, off)
		for _, err := range unasked {
			o.Note(err.Error())
		}
	}
	if err := u.look(ctx, limit, func(ctx context.Context, run runs) error { return describe(ctx, run, u, d) }); err != nil {
		return nil, failed(err)
	}
	single := o.URI
	switch {
	case d.Topology == LoadBalanced && o.SingleURI == "":
		return nil, errors.New("the deployment is load balanced: name the load balancer in front of a single mongos too (--single-uri)")
	case d.Topology == LoadBalanced:
		single = o.SingleURI
	case d.Topology == Sharded && len(d.Hosts) > 0:
		single = u.at(d.Hosts[0]).String()
	}
	err = c.reach(o.URI, single, o.URIOptions)
	c.uri = u.withAll(o.URIOptions)
	return c, err
}

const leftOver = "left over from an earlier run, and turned off: "

// tell reports fail points that were on, after some words.
func tell(note func(string), words string, off []leftFailPoint) {
	for _, left := range off {
		note(words + left.String())
	}
}

// remember has the ledger know of the run as long as the lock is there. Without
// a ledger the run goes on, since a lock expires.
func (c *cluster) remember(o ClusterOptions) {
	forget, err := o.Ledger.Add(ledger.Entry{Kind: ledger.Lock, URI: secret.Hide(o.URI), Name: lock.Database + "." + lock.Collection})
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

// hold takes the lock. A user who may not write the lock document runs without
// it.
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
		o.Note(fmt.Sprintf("no lock keeps other runs away from the deployment at %s: the user of the connection string may not write %s.%s",
			u.names(), lock.Database, lock.Collection))
		return nil
	case isUnauthorized(err):
		return fmt.Errorf("cannot use the deployment at %s: %w", u.names(), u.plain(ctx, err))
	}
	return u.plain(ctx, err)
}
