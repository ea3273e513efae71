package deployment

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/deployment/local"
)

// LocalOptions says which clusters of binaries of this machine a source can
// start.
type LocalOptions struct {
	// Where is a release: see local.Find.
	Where string
	// EmbeddedOptions mean the same for clusters of binaries, whose version is that of
	// the release. The ledger remembers processes and folders.
	EmbeddedOptions
	// Shards of sharded clusters; 0 means the default of package local.
	Shards int
	// Jobs is how many clusters of each offer there can be at once; 0 means 1.
	Jobs int
	// Parameters has the offers tell server parameters and authentication
	// mechanisms, for which a mongod and a mongos must be started and asked. They
	// are kept for the first tests.
	Parameters bool
	// Secret gets the password of each cluster before it can be printed. It
	// may be called concurrently. Nil drops it.
	Secret func(string)
	// Note gets what happened, such as a server that died. It may be
	// called concurrently. Nil drops it.
	Note func(string)
}

// localSource is a source of clusters of local binaries.
type localSource struct {
	*pool
	options LocalOptions
	release local.Release
	ports   local.Ports

	mu   sync.Mutex
	logs []string // folders that are kept so far
	keep bool     // the logs
}

// OpenLocal gives a source that starts clusters when they are wanted, and keeps
// idle ones for the next worker. It starts nothing yet unless
// LocalOptions.Parameters is set. Its method KeepLogs has the logs of all servers
// outlive it.
func OpenLocal(ctx context.Context, o LocalOptions) (Source, error) {
	release, err := local.Find(ctx, o.Where)
	if err != nil {
		return nil, err
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if _, why := release.Plan(local.Shape{Topology: local.Sharded}); why != nil && len(o.Topologies) == 0 {
		o.Note(why.Error() + "; tests that need one are skipped")
	}
	s := &localSource{pool: newPool(o.Note), options: o, release: release}
	s.patience = 0 // a start is broken off at once, and leaves nothing
	s.cleanUp = cleanUps{s.finish}
	offers, err := localOffers(release, o)
	if err != nil {
		return nil, err
	}
	places := make([][]*poolSlot, len(offers))
	for i, about := range offers {
		// What the offer tells may be learned later.
		make := func(ctx context.Context) (*cluster, error) { return s.start(ctx, offers[i]) }
		places[i] = slots(max(1, o.Jobs), "cluster "+about.Name, make)
	}
	if o.Parameters {
		if err := s.learn(ctx, offers, places); err != nil {
			if ctx.Err() == nil { // else nobody needs them
				s.KeepLogs()
			}
			return nil, errors.Join(err, s.Close())
		}
	}
	for i, about := range offers {
		s.add(about, places[i]...)
	}
	return s, nil
}

// localOffers gives the offers of a release.
func localOffers(r local.Release, o LocalOptions) ([]Description, error) {
	can := func(t Topology) error { _, err := r.Plan(o.shape(Description{Topology: t})); return err }
	return Description{Version: r.Version}.offers(o.Topologies, len(o.Topologies) > 0, o.Auth, can)
}

// shape is what is started for an offer.
func (o LocalOptions) shape(about Description) local.Shape {
	kinds := map[Topology]local.Topology{
		Single: local.Standalone, ReplicaSet: local.ReplicaSet, Sharded: local.Sharded, LoadBalanced: local.LoadBalanced}
	return local.Shape{Topology: kinds[about.Topology], Members: o.Members, Shards: o.Shards, Mongoses: o.Mongoses, TLS: o.TLS, Auth: about.Auth}
}

// learn asks a mongod and a mongos for their parameters: the first of the
// offers that clients reach through each. They are kept for the first tests.
func (s *localSource) learn(ctx context.Context, offers []Description, places [][]*poolSlot) error {
	var first []*poolSlot
	for _, routed := range []bool{false, true} {
		if i := slices.IndexFunc(offers, func(o Description) bool { return o.ReplicaSetShards == routed }); i >= 0 {
			first = append(first, places[i][0])
		}
	}
	if err := s.fill(ctx, first); err != nil {
		return err
	}
	for _, slot := range first {
		about := &slot.cluster.description
		found, err := probe(ctx, slot.cluster.URI())
		if err != nil {
			return err
		}
		about.Parameters, about.AuthMechanisms = found.Parameters, found.AuthMechanisms
		for i := range offers {
			if o := &offers[i]; o.ReplicaSetShards == about.ReplicaSetShards {
				o.Parameters, o.AuthMechanisms = found.Parameters, found.AuthMechanisms
			}
		}
	}
	return nil
}

// start starts a cluster.
func (s *localSource) start(ctx context.Context, about Description) (*cluster, error) {
	o := local.Options{Release: s.release, Shape: s.options.shape(about), Book: s.options.Ledger, Ports: &s.ports}
	l, err := local.Start(ctx, o)
	if failed := new(local.StartError); errors.As(err, &failed) && failed.Logs != "" {
		s.kept(failed.Logs)
	}
	if err != nil {
		return nil, err
	}
	if password := l.Password(); password != "" && s.options.Secret != nil {
		s.options.Secret(password)
	}
	c := &cluster{dead: l.Dead, log: l.Log, description: about, owned: true}
	c.description.Hosts = l.Hosts()
	// Only at the end of the source it is known whether somebody needs the logs.
	c.cleanUp = cleanUps{func(context.Context) error { s.kept(l.Folder()); return l.Close() }}
	all, single := l.URIs()
	return c, c.reach(all, single, s.options.URIOptions)
}

// kept remembers a folder that has logs and nothing else.
func (s *localSource) kept(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.logs, folder) {
		s.logs = append(s.logs, folder)
	}
}

// KeepLogs has the logs of all servers outlive the source, which tells where
// they are: for a run in which something failed.
func (s *localSource) KeepLogs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = true
}

// finish ends the keeping of logs, once all clusters are closed: they are
// removed if nobody needs them, and reported otherwise.
func (s *localSource) finish(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, folder := range s.logs {
		if s.keep {
			s.options.Note("the logs of the servers are in " + folder)
		} else {
			errs = append(errs, os.RemoveAll(folder))
		}
	}
	s.logs = nil
	return errors.Join(errs...)
}
