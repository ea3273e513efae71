package deployment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// EmbeddedOptions says which embedded deployments a source can make.
type EmbeddedOptions struct {
	// Topologies on offer, in order of preference; empty means all that the
	// version has, replica sets first.
	Topologies []Topology
	// Version of the server that is imitated, such as "8.0"; "" is the
	// default of package embedded. AnyVersion offers all versions, the default
	// one first.
	Version string
	// Members of replica sets and Mongoses of sharded clusters; 0 means the
	// defaults of package embedded.
	Members, Mongoses int
	// TLS makes all connections use it.
	TLS bool
	// Auth: nil offers each topology both without and with access control.
	Auth *bool
	// Ledger remembers the folders of certificates until they are gone; nil
	// remembers nothing.
	Ledger *ledger.Ledger
}

// AnyVersion stands for all versions that can be imitated.
const AnyVersion = "auto"

// versions gives the versions to offer in order of preference: the default one,
// those after it, and those before it, newest first.
func (o EmbeddedOptions) versions() []string {
	if o.Version != AnyVersion {
		return []string{o.Version}
	}
	all := embedded.Versions() // oldest first
	i := slices.Index(all, embedded.DefaultVersion)
	earlier := slices.Clone(all[:i])
	slices.Reverse(earlier)
	return append(slices.Clone(all[i:]), earlier...)
}

// kinds are the topologies that can be embedded, in the order in which a run
// prefers them: a replica set meets most requirements.
var kinds = []struct {
	topology Topology
	kind     embedded.Topology
	minMajor int
}{
	{ReplicaSet, embedded.ReplicaSet, 0},
	{Sharded, embedded.Sharded, 0},
	{LoadBalanced, embedded.LoadBalanced, 5},
	{Single, embedded.Standalone, 0},
}

// OpenEmbedded gives a source that starts deployments on demand and keeps idle
// ones for the next worker. Each has free ports of the loopback interface.
func OpenEmbedded(ctx context.Context, o EmbeddedOptions) (Source, error) {
	s := &embeddedSource{ledger: o.Ledger, idle: make(map[int][]*embeddedDeployment), lent: make(map[Deployment]int)}
	versions := o.versions()
	models, failures := make([]Description, len(versions)), make([]error, len(versions))
	var all sync.WaitGroup
	for i, v := range versions {
		all.Go(func() { models[i], failures[i] = s.model(ctx, v) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	asked := o.Topologies
	if len(asked) == 0 {
		for _, k := range kinds {
			asked = append(asked, k.topology)
		}
	}
	for i, model := range models {
		for _, t := range asked {
			err := s.offer(t, versions[i], o, model)
			if errors.Is(err, errLacking) && (len(o.Topologies) == 0 || len(versions) > 1) {
				continue // others have it
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// errLacking is wrapped by the error for a version that lacks a topology.
var errLacking = errors.New("load balancing came with 5.0")

// model starts a standalone to learn what all deployments of a version have in
// common.
func (s *embeddedSource) model(ctx context.Context, version string) (Description, error) {
	d, err := embedded.Start(ctx, embedded.Options{Version: version})
	if err != nil {
		return Description{}, err
	}
	about, err := probe(ctx, d.URI())
	return about, errors.Join(err, d.Close())
}

// offer adds a topology of a version to the offers, without and with access
// control.
func (s *embeddedSource) offer(t Topology, version string, o EmbeddedOptions, model Description) error {
	for _, k := range kinds {
		if k.topology != t {
			continue
		}
		if model.Version[0] < k.minMajor {
			return fmt.Errorf("server version %d.%d has no %s deployments: %w", model.Version[0], model.Version[1], t, errLacking)
		}
		for _, auth := range []bool{false, true} {
			if o.Auth != nil && *o.Auth != auth {
				continue
			}
			about := model
			about.Topology = t
			about.Hosts = nil
			about.Auth = auth
			about.ReplicaSetShards = t == Sharded || t == LoadBalanced
			about.Name = fmt.Sprintf("%s %d.%d", t, model.Version[0], model.Version[1])
			start := embedded.Options{
				Topology: k.kind, Version: version, Members: o.Members, Mongoses: o.Mongoses, TLS: o.TLS,
			}
			if auth {
				about.Name += " auth"
				start.Users = []embedded.User{{Name: "utr", Password: rand.Text()}}
			}
			s.offers = append(s.offers, about)
			s.starts = append(s.starts, start)
		}
		return nil
	}
	return fmt.Errorf("topology %q cannot be embedded", t)
}

// embeddedSource starts what it lends.
type embeddedSource struct {
	offers []Description
	starts []embedded.Options // of each offer
	ledger *ledger.Ledger

	mu     sync.Mutex
	closed bool
	idle   map[int][]*embeddedDeployment
	lent   map[Deployment]int
}

func (s *embeddedSource) Offers() []Description { return s.offers }

func (s *embeddedSource) Acquire(ctx context.Context, i int) (Deployment, error) {
	if i < 0 || i >= len(s.offers) {
		return nil, fmt.Errorf("there is no offer %d of %d", i, len(s.offers))
	}
	if d := s.takeIdle(i); d != nil {
		return d, nil
	}
	d, err := startEmbedded(ctx, s.offers[i], s.starts[i], s.ledger)
	if err != nil {
		return nil, fmt.Errorf("start a %s: %w", s.offers[i].Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(errors.New("the source of deployments is closed"), d.close())
	}
	s.lent[d] = i
	return d, nil
}

func (s *embeddedSource) takeIdle(i int) *embeddedDeployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle[i])
	if n == 0 {
		return nil
	}
	d := s.idle[i][n-1]
	s.idle[i] = s.idle[i][:n-1]
	s.lent[d] = i
	return d
}

func (s *embeddedSource) Release(d Deployment, broken bool) {
	own, ok := d.(*embeddedDeployment)
	if !ok {
		return
	}
	s.mu.Lock()
	i, lent := s.lent[d]
	delete(s.lent, d)
	keep := lent && !broken && !s.closed
	if keep {
		s.idle[i] = append(s.idle[i], own)
	}
	s.mu.Unlock()
	if lent && !keep {
		_ = own.close() // nobody is left to tell: its sockets are gone either way
	}
}

func (s *embeddedSource) Close() error {
	s.mu.Lock()
	s.closed = true
	var all []*embeddedDeployment
	for _, ds := range s.idle {
		all = append(all, ds...)
	}
	for d := range s.lent {
		all = append(all, d.(*embeddedDeployment))
	}
	clear(s.idle)
	clear(s.lent)
	s.mu.Unlock()
	var errs []error
	for _, d := range all {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}

// embeddedDeployment is one running embedded deployment.
type embeddedDeployment struct {
	*embedded.Deployment
	about  Description
	caFile string       // "" without TLS
	forget func() error // removes the folder of the certificate
}

func startEmbedded(ctx context.Context, about Description, o embedded.Options, book *ledger.Ledger) (*embeddedDeployment, error) {
	inner, err := embedded.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	d := &embeddedDeployment{Deployment: inner, about: about}
	d.about.Hosts = inner.Hosts()
	if pem := inner.CA(); pem != nil {
		if d.caFile, d.forget, err = writeCA(pem, book); err != nil {
			return nil, errors.Join(err, inner.Close())
		}
	}
	return d, nil
}

// writeCA puts a certificate where connection strings can name it: into a
// folder of its own, which forget removes.
func writeCA(pem []byte, book *ledger.Ledger) (file string, forget func() error, err error) {
	folder, done, err := book.MakeFolder("", "ca")
	if err != nil {
		return "", nil, err
	}
	forget = func() error {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		return done()
	}
	file = filepath.Join(folder, "ca.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		return "", nil, errors.Join(err, forget())
	}
	return file, forget, nil
}

func (d *embeddedDeployment) close() error {
	err := d.Deployment.Close()
	if d.forget != nil {
		err = errors.Join(err, d.forget())
	}
	return err
}

func (d *embeddedDeployment) Description() Description { return d.about }
func (d *embeddedDeployment) Owned() bool              { return true }
func (d *embeddedDeployment) URI() string              { return d.trusting(d.Deployment.URI()) }
func (d *embeddedDeployment) SingleURI() string        { return d.trusting(d.Deployment.SingleURI()) }
func (d *embeddedDeployment) DirectURI(address string) string {
	return d.trusting(d.Deployment.DirectURI(address))
}

// Log implements Logger.
func (d *embeddedDeployment) Log(from, to time.Time) []LogLine {
	lines := d.Deployment.Log(from, to)
	out := make([]LogLine, len(lines))
	for i, l := range lines {
		out[i] = LogLine(l)
	}
	return out
}

// trusting adds the file of the certificate to a connection string that uses
// TLS.
func (d *embeddedDeployment) trusting(uri string) string {
	if d.caFile == "" {
		return uri
	}
	return uri + "&tlsCAFile=" + url.QueryEscape(d.caFile)
}
