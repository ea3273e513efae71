package deployment

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/deployment/internal/local"
)

// LocalOptions describes the clusters of binaries on this machine that a source starts.
type LocalOptions struct {
	// Where is a release: see local.Find.
	Where string
	// EmbeddedOptions apply to clusters of binaries, too, except that the release determines the version, and the
	// ledger records processes and folders.
	EmbeddedOptions
	// Shards of sharded clusters; 0 means the default of package local.
	Shards int
	// Jobs is how many workers use clusters of the same offer at the same time; 0 means 1. With FailPointsServer, each has
	// a cluster of its own, otherwise they share one.
	Jobs int
	// Parameters includes server parameters and authentication mechanisms in the offers. A mongod and a mongos are
	// started to read them. The first tests use these servers.
	Parameters bool
	// Secret receives the password of each cluster before it can be printed. It may be called concurrently and may be
	// nil.
	Secret func(string)
	// Note receives messages, for example that a server ended. It may be called concurrently and may be nil.
	Note func(string)
}

// localSource is a source of clusters of local binaries.
type localSource struct {
	*pool
	options LocalOptions
	release local.Release
	ports   local.Ports

	mu   sync.Mutex
	logs []string // folders with logs so far
}

// OpenLocal returns a source that starts clusters on demand and keeps idle ones for the next worker. OpenLocal itself
// starts clusters only if LocalOptions.Parameters is set. Its method KeepLogs preserves the server logs.
func OpenLocal(ctx context.Context, o LocalOptions) (Source, error) {
	release, err := local.Find(ctx, o.Where)
	if err != nil {
		return nil, err
	}
	o.Note, o.Secret = orIgnore(o.Note), orIgnore(o.Secret)
	if _, why := release.Plan(local.Shape{Topology: Sharded}); why != nil && len(o.Topologies) == 0 {
		o.Note(why.Error() + "; tests that need one are skipped")
	}
	s := &localSource{pool: newPool(o.Note), options: o, release: release}
	s.makingLimit = 0 // a start can be interrupted and leaves nothing
	s.cleanUp = cleanUps{s.finish}
	offers, err := localOffers(release, o)
	if err != nil {
		return nil, err
	}
	clusters, shared := max(1, o.Jobs), o.FailPointMode.shares(o.Jobs)
	if shared {
		clusters = 1
	}
	for i, about := range offers {
		if about.Shared = shared; o.FailPointMode == FailPointsProxy {
			about = about.proxied()
		}
		// learn may change the offer later.
		start := func(ctx context.Context) (*cluster, error) { return s.start(ctx, s.about[i]) }
		s.add(about, slots(clusters, "cluster "+about.Name, start)...)
	}
	if o.Parameters {
		if err := s.learn(ctx); err != nil {
			if ctx.Err() == nil { // after an interruption, the parameters are not needed
				s.KeepLogs()
			}
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func localOffers(r local.Release, o LocalOptions) ([]Description, error) {
	can := func(t Topology) error { _, err := r.Plan(o.shape(Description{Topology: t})); return err }
	return Description{Version: r.Version}.offers(o.Topologies, len(o.Topologies) > 0, o.Auth, can)
}

// shape returns what to start for an offer.
func (o LocalOptions) shape(about Description) local.Shape {
	return local.Shape{Topology: about.Topology, Members: o.Members, Shards: o.Shards, Mongoses: o.Mongoses,
		TLS: o.TLS, Auth: about.Auth}
}

// learn starts the first offer that clients reach through a mongod and the first through a mongos, and adds their
// parameters to all offers. The first tests use these clusters.
func (s *localSource) learn(ctx context.Context) error {
	var first []*poolSlot
	for _, routed := range []bool{false, true} {
		if i := slices.IndexFunc(s.about, func(o Description) bool { return o.ReplicaSetShards == routed }); i >= 0 {
			first = append(first, s.offers[i].slots[0])
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
		for i := range s.about {
			if o := &s.about[i]; o.ReplicaSetShards == about.ReplicaSetShards {
				o.Parameters, o.AuthMechanisms = found.Parameters, found.AuthMechanisms
			}
		}
	}
	return nil
}

func (s *localSource) start(ctx context.Context, about Description) (*cluster, error) {
	o := local.Options{Release: s.release, Shape: s.options.shape(about), Ledger: s.options.Ledger, Ports: &s.ports}
	l, err := local.Start(ctx, o)
	if failed := new(local.StartError); errors.As(err, &failed) && failed.Logs != "" {
		s.addLogs(failed.Logs)
	}
	if err != nil {
		return nil, err
	}
	if password := l.Password(); password != "" {
		s.options.Secret(password)
	}
	c := &cluster{dead: l.Dead, log: l.Log, description: about, owned: true}
	c.description.Hosts = l.Hosts()
	// Whether the logs are kept is decided when the source is closed.
	c.cleanUp = cleanUps{func(context.Context) error { s.addLogs(l.Folder()); return l.Close() }}
	all, single := l.URIs()
	proxied := s.options.FailPointMode == FailPointsProxy
	c.inside = !proxied && about.Shared
	if err := c.reach(ctx, all, single, s.options.URIOptions, proxied || about.Shared); err != nil {
		return nil, errors.Join(err, c.cleanUp.run(context.WithoutCancel(ctx)))
	}
	return c, c.share(ctx, s.options.Jobs)
}

// addLogs adds a folder that contains only logs.
func (s *localSource) addLogs(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.logs, folder) {
		s.logs = append(s.logs, folder)
	}
}

// finish removes the logs, or reports their folders, after all clusters are closed.
func (s *localSource) finish(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, folder := range s.logs {
		if s.keepLogs.Load() {
			s.options.Note("the logs of the servers are in " + folder)
		} else {
			errs = append(errs, os.RemoveAll(folder))
		}
	}
	s.logs = nil
	return errors.Join(errs...)
}
