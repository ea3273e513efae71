package deployment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
)

// EmbeddedOptions describes the embedded deployments of a source.
type EmbeddedOptions struct {
	// Topologies to offer, in order of preference; empty means all that the version supports.
	Topologies []Topology
	// Version is the emulated server version, such as "8.0", or "" for the default of package embedded. AnyVersion
	// offers all versions, the default one first.
	Version string
	// Members of replica sets and Mongoses of sharded clusters; 0 means the defaults of package embedded.
	Members, Mongoses int
	// TLS makes the servers require TLS for all connections.
	TLS bool
	// Auth selects deployments with or without access control; nil offers both.
	Auth *bool
	// URIOptions are added to the connection strings.
	URIOptions []URIOption
	// FailPointMode is who executes fail points. The servers that a source starts have test commands, so that only
	// FailPointsProxy makes a difference.
	FailPointMode FailPointMode
	// Ledger records the folders of certificates until they are removed. It may be nil.
	Ledger *ledger.Ledger
}

// AnyVersion means all versions that can be emulated.
const AnyVersion = "auto"

// versions returns the versions to offer, in order of preference: the default one, later ones, then earlier ones,
// newest first.
func (o EmbeddedOptions) versions() []string {
	if o.Version != AnyVersion {
		return []string{o.Version}
	}
	all := embedded.Versions() // oldest first
	i := slices.Index(all, embedded.DefaultVersion)
	slices.Reverse(all[:i])
	return slices.Concat(all[i:], all[:i])
}

// embeddedRoom is the maximum number of deployments per offer, more than a run needs.
const embeddedRoom = 100

// OpenEmbedded returns a source that starts deployments on demand, on free ports of the loopback interface, and keeps
// idle ones for the next worker.
func OpenEmbedded(o EmbeddedOptions) (Source, error) {
	versions := o.versions()
	p := newPool(nil)
	p.makingLimit = 0 // a start can be interrupted and leaves nothing
	for _, version := range versions {
		servers, err := embedded.Options{Version: version}.About()
		if err != nil {
			return nil, err
		}
		model := Description{Version: servers.Version}
		model.setParameters(servers.Parameters)
		must := len(o.Topologies) > 0 && len(versions) == 1 // with several versions, another may have the topology
		offers, err := model.offers(o.Topologies, must, o.Auth, func(t Topology) error {
			_, err := embedded.Options{Topology: t, Version: version}.About()
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, about := range offers {
			if o.FailPointMode == FailPointsProxy {
				about = about.proxied()
			}
			start := embedded.Options{Topology: about.Topology, Version: version,
				Members: o.Members, Mongoses: o.Mongoses, TLS: o.TLS}
			if about.Auth {
				start.Users = []embedded.User{{Name: "utr", Password: rand.Text()}}
			}
			p.add(about, slots(embeddedRoom, about.Name, func(ctx context.Context) (*cluster, error) {
				return startEmbedded(ctx, about, start, o)
			})...)
		}
	}
	return p, nil
}

func startEmbedded(ctx context.Context, about Description, start embedded.Options,
	o EmbeddedOptions) (_ *cluster, err error) {
	d, err := embedded.Start(ctx, start)
	if err != nil {
		return nil, fmt.Errorf("start a %s: %w", about.Name, err)
	}
	about.Hosts = d.Hosts()
	c := &cluster{log: d.Log, description: about, owned: true}
	c.cleanUp = cleanUps{func(context.Context) error { return d.Close() }}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.cleanUp.run(context.WithoutCancel(ctx)))
		}
	}()
	var trusted []URIOption
	if pem := d.CA(); pem != nil {
		folder, err := o.Ledger.MakeFolder("ca")
		if err != nil {
			return nil, err
		}
		c.cleanUp = append(c.cleanUp, folder.Close)
		file := filepath.Join(folder.Path, "ca.pem")
		if err := os.WriteFile(file, pem, 0o600); err != nil {
			return nil, err
		}
		trusted = []URIOption{{"tlsCAFile", file}}
	}
	return c, c.reach(ctx, d.URI(), d.SingleURI(), append(trusted, o.URIOptions...), o.FailPointMode == FailPointsProxy)
}
