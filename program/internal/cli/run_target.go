package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// Values of --topology in addition to the topologies.
const (
	topologyAuto = "auto"
	topologyAll  = "all"
)

type deploymentFlags struct {
	deployment.EmbeddedOptions
	topology, auth string
}

func (f *flags) deployment(d *deploymentFlags, initial string, choices ...string) {
	for _, t := range []deployment.Topology{deployment.Single, deployment.ReplicaSet, deployment.Sharded,
		deployment.LoadBalanced} {
		choices = append(choices, string(t))
	}
	summary, versions := "server version of the embedded deployment", embedded.Versions()
	if slices.Contains(choices, topologyAuto) { // each test may have its own deployment
		summary += ", or " + deployment.AnyVersion +
			" picks a suitable version for each test (default with --topology " + topologyAuto + ")"
		versions = append(versions, deployment.AnyVersion)
	}
	d.topology, d.Members, d.Mongoses = initial, 3, 2
	choice(f, &d.topology, "topology", "NAME", "topology of the deployment", choices...)
	set(f, &d.Version, "server-version", "VERSION", summary, orDefault(oneOf[string](versions)), versions...)
	f.within(&d.Members, "members", "N", 1, embedded.MaxServers, "members of a replica set")
	f.within(&d.Mongoses, "mongoses", "N", 1, embedded.MaxServers, "routers of a sharded cluster")
	f.checks = append(f.checks, func() error {
		if v, err := specs.ParseVersion(d.Version); err == nil && v.Major < 5 &&
			d.topology == string(deployment.LoadBalanced) {
			return usage("--server-version %s: load balanced deployments require 5.0", d.Version)
		}
		return nil
	})
}

func (d *deploymentFlags) options() deployment.EmbeddedOptions {
	o := d.EmbeddedOptions
	if t := topologyOf(d.topology); t != "" {
		o.Topologies = []deployment.Topology{t}
	}
	if d.topology == topologyAuto {
		o.Version = cmp.Or(o.Version, deployment.AnyVersion)
	}
	if d.auth != "" {
		on := d.auth == "on"
		o.Auth = &on
	}
	return o
}

// topologyOf parses --topology; "" means all.
func topologyOf(name string) deployment.Topology {
	if name == topologyAuto || name == topologyAll {
		return ""
	}
	return deployment.Topology(name)
}

// checkTarget checks the flags for the deployment. It reads missing connection strings from the environment.
func (r *runFlags) checkTarget() error {
	r.config.AllTopologies = r.deployment.topology == topologyAll
	r.flags.inv.warnOfOptions("--uri-option", r.uriOptions)
	switch r.flags.target() {
	case onEmbedded:
		return nil
	case onOrchestration:
		service, err := openService(r.orchestration.URL)
		if err == nil {
			service.Close()
		}
		return err
	case onLocal:
		if r.local.Where == "" {
			return usage("--local requires a folder with mongod and mongos, or a mongod")
		}
		return nil
	}
	for _, t := range []struct {
		uri         *string
		flag, other string
	}{{&r.uri, "uri", envURI}, {&r.single, "single-uri", envSingleURI}} {
		at := "--" + t.flag
		if !r.flags.Changed(t.flag) {
			at, *t.uri = "$"+t.other, r.flags.inv.env(t.other)
		} else if *t.uri == "" {
			return usage("%s is empty", at)
		}
		if *t.uri == "" {
			continue
		}
		if err := r.flags.inv.checkURI(at, *t.uri); err != nil {
			return err
		}
	}
	return nil
}

// source opens the deployment. lost is called if its lock is lost.
func (p *runPlan) source(ctx context.Context, lost context.CancelCauseFunc) (deployment.Source, error) {
	r, c := p.run, p.inv
	if r.lock != nil {
		r.lock.Lost = lost
	}
	target := r.flags.target()
	var book *ledger.Ledger
	if target != onEmbedded || r.deployment.TLS { // certificates are files
		var err error
		if book, err = r.runLedger(ctx, c); err != nil && target != onURI {
			return nil, err
		} else if err != nil { // a run continues without a record of its lock and fail points, since a lock expires
			c.note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
		}
	}
	switch target {
	case onURI:
		return c.program.Open(ctx, deployment.ClusterOptions{URI: r.uri, SingleURI: r.single,
			FailPoints: runner.FailPoints(p.suites),
			ServerAPI:  p.config.ServerAPI, URIOptions: r.uriOptions, Lock: r.lock, Ledger: book, Note: c.note,
			FailPointMode: r.failPoints, Jobs: p.config.Jobs})
	case onLocal:
		o := r.local
		o.EmbeddedOptions = r.deployment.options()
		o.Version = "" // the binaries decide
		o.FailPointMode = r.failPoints
		o.URIOptions, o.Jobs, o.Parameters = r.uriOptions, p.config.Jobs, needsParameters(p.suites)
		o.Ledger, o.Note, o.Secret = book, c.note, c.secrets.Learn
		return c.program.Open(ctx, o)
	case onOrchestration:
		o := r.orchestration.OrchestrationOptions
		for _, name := range r.orchestration.names(&r.deployment) {
			cluster, err := r.orchestration.cluster(c, name)
			if err != nil {
				return nil, err
			}
			o.Clusters = append(o.Clusters, cluster)
		}
		o.Topology, o.URIOptions, o.ServerAPI, o.Lock = topologyOf(r.deployment.topology), r.uriOptions, p.config.ServerAPI,
			r.lock
		o.Jobs = (p.config.Jobs + r.clusters() - 1) / r.clusters()
		o.Ledger, o.Note, o.Secret, o.FailPointMode = book, c.note, c.secrets.Learn, r.failPoints
		return c.program.Open(ctx, o)
	default:
		o := r.deployment.options()
		o.FailPointMode = r.failPoints
		o.URIOptions, o.Ledger = r.uriOptions, book
		return c.program.Open(ctx, o)
	}
}

// needsParameters reports whether a requirement depends on parameters of the running server.
func needsParameters(suites []*specs.Suite) bool {
	needs := func(r specs.Requirement) bool { return r.ServerParameters != nil || r.AuthMechanism != "" }
	return slices.ContainsFunc(suites, func(s *specs.Suite) bool {
		return slices.ContainsFunc(s.Requirements, needs) || slices.ContainsFunc(s.Tests, func(t *specs.Test) bool {
			return slices.ContainsFunc(t.Requirements, needs)
		})
	})
}

// usesExistingCluster reports whether tests run on a cluster that utr did not create.
func (r *runFlags) usesExistingCluster() bool {
	return r.uri != "" || slices.ContainsFunc(r.orchestration.clusters, func(name string) bool {
		return strings.HasPrefix(name, existingCluster)
	})
}

// existingCluster is the prefix of a --cluster value that names an existing cluster.
const existingCluster = "id:"

type orchestrationFlags struct {
	deployment.OrchestrationOptions
	clusters []string // presets, files, ids
	settings orchestration.Settings
}

func (o *orchestrationFlags) declare(f *flags) {
	const with = "with --orchestration: "
	o.Each = 1
	f.text(&o.URL, "orchestration", "URL", "run on clusters of the mongo-orchestration service at this URL")
	list(f, &o.clusters, "cluster", "PRESET|FILE|id:ID",
		with+"cluster to create, or the id of an existing one; presets are "+
			strings.Join(orchestration.Presets(), ", ")+" (default one for each topology)", clusterName,
		append(orchestration.Presets(), existingCluster)...)
	f.number(&o.Each, "clusters", "N", 1, with+"how many of each cluster to create; they share the tests")
	f.text(&o.settings.Version, "orchestration-version", "NAME",
		with+"name of the MongoDB release that the service starts")
	f.text(&o.settings.Files, "orchestration-files", "DIR",
		with+"folder that replaces "+orchestration.FilesToken+" in configurations (or $"+envDriversTools+")")
}

func openService(url string) (*orchestration.Client, error) {
	client, err := orchestration.New(url)
	if err != nil {
		return nil, usage("--orchestration: %w", err)
	}
	return client, nil
}

// names returns the values of --cluster, or else the presets of the topology.
func (o *orchestrationFlags) names(d *deploymentFlags) (names []string) {
	if len(o.clusters) > 0 {
		return o.clusters
	}
	topology, secured := topologyOf(d.topology), ""
	if d.auth == "on" {
		secured = "-auth"
	}
	if d.TLS {
		secured += "-tls"
	}
	for _, t := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded, deployment.Single,
		deployment.LoadBalanced} {
		if topology == t || topology == "" && t != deployment.LoadBalanced {
			names = append(names, string(t)+secured)
		}
	}
	return names
}

func (o *orchestrationFlags) cluster(c *invocation, name string) (cluster deployment.OrchestratedCluster, err error) {
	if id, found := strings.CutPrefix(name, existingCluster); found {
		if id == "" || strings.Contains(id, "/") {
			return cluster, usage("--cluster %s: requires the id of a cluster", name)
		}
		return deployment.OrchestratedCluster{ID: id}, nil
	}
	settings := o.settings
	settings.Files = cmp.Or(settings.Files, c.env(envDriversTools))
	configuration, err := configurationOf(name)
	if err != nil {
		return cluster, err
	}
	if configuration.NeedsFiles && settings.Files == "" && !configuration.Preset {
		return cluster, usage("--cluster %s: contains %s, which --orchestration-files DIR must replace", name,
			orchestration.FilesToken)
	}
	if configuration.NamesData {
		c.note(fmt.Sprintf("%s: dbpath is ignored: the service would remove that folder with the cluster", name))
	}
	return deployment.OrchestratedCluster{Configuration: configuration.With(settings)}, nil
}

// clusterName checks a value of --cluster.
func clusterName(name string) (string, error) {
	_, err := os.Stat(name)
	if err != nil && !slices.Contains(orchestration.Presets(), name) && !strings.ContainsAny(name, `.:/\`) {
		return name, errors.New("no such preset or file")
	}
	return name, nil
}

func configurationOf(name string) (configuration orchestration.Configuration, err error) {
	if slices.Contains(orchestration.Presets(), name) {
		return orchestration.Preset(name)
	}
	text, err := os.ReadFile(name)
	if err == nil {
		configuration, err = orchestration.Parse(name, text)
	}
	if err != nil {
		err = invalid(fmt.Errorf("--cluster: %w", err))
	}
	return configuration, err
}

// runLedger opens the ledger for a run. Outside of a matrix, which does so itself, it removes leftovers of earlier
// runs.
func (r *runFlags) runLedger(ctx context.Context, c *invocation) (*ledger.Ledger, error) {
	book, err := c.ledger()
	if err == nil && r.config.Cell == "" {
		c.removeLeftovers(ctx, book, r.orchestration.URL)
	}
	return book, err
}
