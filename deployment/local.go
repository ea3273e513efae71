package deployment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment/local"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// LocalOptions says which clusters of binaries of this machine a source can
// start.
type LocalOptions struct {
	// Where is a release: see local.Find.
	Where string
	// Topologies on offer, in order of preference; empty means all that the
	// release has, replica sets first.
	Topologies []Topology
	// Members of replica sets, Shards and Mongoses of sharded clusters; 0 means
	// the defaults of package local.
	Members, Shards, Mongoses int
	// TLS makes all connections use it.
	TLS bool
	// Auth: nil offers each topology both without and with access control.
	Auth *bool
	// Jobs is how many clusters of each offer there can be at once; 0 means 1.
	Jobs int
	// Parameters has the offers tell server parameters and authentication
	// mechanisms, for which a mongod and a mongos must be started and asked. They
	// are kept for the first tests.
	Parameters bool
	// Folder is where the folders of clusters are made; "" is that of the system
	// for temporary files.
	Folder string
	// Ledger remembers processes and folders until they are gone.
	Ledger *ledger.Ledger
	// StartTimeout bounds the start of one cluster; 0 means local.DefaultTimeout.
	StartTimeout time.Duration
	// Secret is told the password of each cluster before it can be printed. It
	// may be called concurrently. Nil drops it.
	Secret func(string)
	// Note tells people what happened, such as a server that died. It may be
	// called concurrently. Nil drops it.
	Note func(string)
}

// localKinds are the topologies in the order in which a run prefers them, as
// kinds is for embedded ones.
var localKinds = []localKind{
	{ReplicaSet, local.ReplicaSet},
	{Sharded, local.Sharded},
	{LoadBalanced, local.LoadBalanced},
	{Single, local.Standalone},
}

type localKind struct {
	topology Topology
	kind     local.Topology
}

// LocalSource is a source of clusters of local binaries.
type LocalSource struct {
	*pool
	options LocalOptions
	release local.Release
	ports   local.Ports

	mu       sync.Mutex
	ready    map[string]*localCluster // started to be asked, by name of the offer
	failures map[string]string        // folder of logs of the last start that failed, by name of the offer
	logs     []*local.Cluster         // closed, of which the logs are kept so far
	keep     bool                     // the logs
}

// OpenLocal gives a source that starts clusters when they are wanted, and keeps
// idle ones for the next worker. It starts nothing yet unless
// LocalOptions.Parameters is set.
func OpenLocal(ctx context.Context, o LocalOptions) (*LocalSource, error) {
	release, err := local.Find(ctx, o.Where)
	if err != nil {
		return nil, err
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if why := release.Can(local.Shape{Topology: local.Sharded}); why != nil && len(o.Topologies) == 0 {
		o.Note(why.Error() + "; tests that need one are skipped")
	}
	s := &LocalSource{pool: newPool(o.Note), options: o, release: release, ready: make(map[string]*localCluster), failures: make(map[string]string)}
	s.patience = 0 // a start is broken off at once, and leaves nothing
	s.cleanUp = append(s.cleanUp, s.finish)
	offers, err := localOffers(release, o)
	if err != nil {
		return nil, err
	}
	if o.Parameters {
		if err := s.learn(ctx, offers); err != nil {
			if ctx.Err() == nil { // else nobody wants them
				s.KeepLogs()
			}
			return nil, errors.Join(err, s.Close())
		}
	}
	for _, offer := range offers {
		var slots []*poolSlot
		for i := range max(1, o.Jobs) {
			slots = append(slots, &poolSlot{
				name: fmt.Sprintf("cluster %d of %s", i+1, offer.about.Name),
				make: func(ctx context.Context) (pooled, error) { return s.start(ctx, offer) },
			})
		}
		s.add(offer.about, slots...)
	}
	return s, nil
}

// localOffer is an offer and what is started for it.
type localOffer struct {
	about Description
	shape local.Shape
}

// localOffers gives the offers of a release. A topology that was asked for and
// cannot be had is an error; of the others it is left out.
func localOffers(r local.Release, o LocalOptions) ([]localOffer, error) {
	var offers []localOffer
	asked := o.Topologies
	if len(asked) == 0 {
		for _, k := range localKinds {
			asked = append(asked, k.topology)
		}
	}
	for _, t := range asked {
		i := slices.IndexFunc(localKinds, func(k localKind) bool { return k.topology == t })
		if i < 0 {
			return nil, fmt.Errorf("topology %q cannot be started from local binaries", t)
		}
		shape := local.Shape{Topology: localKinds[i].kind, Members: o.Members, Shards: o.Shards, Mongoses: o.Mongoses, TLS: o.TLS}
		if err := r.Can(shape); err != nil {
			if len(o.Topologies) > 0 {
				return nil, err
			}
			continue
		}
		for _, auth := range []bool{false, true} {
			if o.Auth != nil && *o.Auth != auth {
				continue
			}
			offer := localOffer{shape: shape, about: Description{
				Name: fmt.Sprintf("%s %d.%d", t, r.Version[0], r.Version[1]), Topology: t, Version: r.Version,
				Auth: auth, ReplicaSetShards: t == Sharded || t == LoadBalanced,
			}}
			offer.shape.Auth = auth
			if auth {
				offer.about.Name += " auth"
			}
			offers = append(offers, offer)
		}
	}
	return offers, nil
}

// learn asks a mongod and a mongos for their parameters: the first of the
// offers that clients reach through each. They are kept for the first tests.
func (s *LocalSource) learn(ctx context.Context, offers []localOffer) error {
	routed := func(o localOffer) bool { return o.about.ReplicaSetShards }
	var wait sync.WaitGroup
	errs := make([]error, 2)
	about := make([]Description, len(errs))
	for n, through := range []bool{false, true} {
		i := slices.IndexFunc(offers, func(o localOffer) bool { return routed(o) == through })
		if i < 0 {
			continue
		}
		wait.Go(func() {
			c, err := s.launch(ctx, offers[i])
			if err == nil {
				s.mu.Lock()
				s.ready[offers[i].about.Name] = c
				s.mu.Unlock()
				about[n], err = probe(ctx, c.URI())
			}
			errs[n] = err
		})
	}
	wait.Wait()
	for i := range offers {
		n := 0
		if routed(offers[i]) {
			n = 1
		}
		offers[i].about.Parameters, offers[i].about.AuthMechanisms = about[n].Parameters, about[n].AuthMechanisms
	}
	return errors.Join(errs...)
}

// start gives a cluster for a slot: one that was started to be asked, or a new
// one.
func (s *LocalSource) start(ctx context.Context, o localOffer) (pooled, error) {
	s.mu.Lock()
	c := s.ready[o.about.Name]
	delete(s.ready, o.about.Name)
	s.mu.Unlock()
	if c != nil {
		c.about = o.about
		c.about.Hosts = c.Cluster.Hosts()
		return c, nil
	}
	c, err := s.launch(ctx, o)
	s.failed(o, err)
	if err != nil {
		return nil, err // not a nil *localCluster that is not nil any more
	}
	return c, nil
}

// failed keeps the logs of the newest start that failed for an offer, which
// are those that are told of.
func (s *LocalSource) failed(o localOffer, err error) {
	var start *local.StartError
	_ = errors.As(err, &start)
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.failures[o.about.Name]; before != "" {
		_ = os.RemoveAll(before) // no more than a log that nobody was told of
	}
	delete(s.failures, o.about.Name)
	if start != nil {
		s.failures[o.about.Name] = start.Logs
	}
}

// launch starts a cluster.
func (s *LocalSource) launch(ctx context.Context, o localOffer) (*localCluster, error) {
	c, err := local.Start(ctx, local.Options{
		Release: s.release, Shape: o.shape, Folder: s.options.Folder, Book: s.options.Ledger, Ports: &s.ports, Timeout: s.options.StartTimeout,
	})
	if err != nil {
		return nil, err
	}
	if password := c.Password(); password != "" && s.options.Secret != nil {
		s.options.Secret(password)
	}
	started := &localCluster{Cluster: c, source: s, about: o.about}
	started.about.Hosts = c.Hosts()
	return started, nil
}

// Acquire gives a cluster of which all servers run.
func (s *LocalSource) Acquire(ctx context.Context, i int) (Deployment, error) {
	for {
		d, err := s.pool.Acquire(ctx, i)
		if err != nil {
			return nil, err
		}
		if Died(d) == nil {
			return d, nil
		}
		s.pool.Release(d, true)
	}
}

// Release gives a cluster back. One with a server that died is not handed out
// again, whatever the test says.
func (s *LocalSource) Release(d Deployment, broken bool) {
	if c, ok := d.(*localCluster); ok {
		s.pool.Release(d, broken || c.Dead() != nil)
	}
}

// KeepLogs has the logs of all servers outlive the source, which tells where
// they are: for a run in which something failed.
func (s *LocalSource) KeepLogs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = true
}

// finish ends the keeping of logs, once all clusters are closed: they are
// removed if nobody wants them, and told of otherwise.
func (s *LocalSource) finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.ready {
		errs = append(errs, c.Cluster.Close(s.keep))
		s.logs = append(s.logs, c.Cluster)
	}
	clear(s.ready)
	for _, c := range s.logs {
		if s.keep {
			s.options.Note("the logs of the servers are in " + c.Folder())
		} else {
			errs = append(errs, c.RemoveLogs())
		}
	}
	s.logs = nil
	return errors.Join(errs...)
}

// localCluster is a cluster as a deployment.
type localCluster struct {
	*local.Cluster
	source *LocalSource
	about  Description
}

func (c *localCluster) Description() Description { return c.about }
func (c *localCluster) Owned() bool              { return true }

// Log makes it a Logger.
func (c *localCluster) Log(from, to time.Time) []LogLine {
	var out []LogLine
	for _, l := range c.Cluster.Log(from, to) {
		out = append(out, LogLine{Time: l.Time, Server: l.Server, Text: l.Text})
	}
	return out
}

// errDoubtful is why a cluster is given up of which all servers run.
var errDoubtful = errors.New("a test left it in a state that is not known")

// mend never does: a new cluster costs seconds, and is known to be right.
func (c *localCluster) mend(context.Context) error {
	if err := c.Dead(); err != nil {
		return err
	}
	return errDoubtful
}

// close takes the cluster down. Its logs stay until the source is closed: only
// then it is known whether somebody wants them.
func (c *localCluster) close(context.Context) error {
	s := c.source
	s.mu.Lock()
	s.logs = append(s.logs, c.Cluster)
	s.mu.Unlock()
	return c.Cluster.Close(true)
}
