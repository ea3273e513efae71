package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
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
	for _, t := range []deployment.Topology{deployment.Single, deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced} {
		choices = append(choices, string(t))
	}
	summary, versions := "server version of the embedded deployment", embedded.Versions()
	if slices.Contains(choices, topologyAuto) { // each test may have its own deployment
		summary += ", or " + deployment.AnyVersion +
			": for each test one that meets its requirements (default with --topology " + topologyAuto + ")"
		versions = append(versions, deployment.AnyVersion)
	}
	d.topology, d.Members, d.Mongoses = initial, 3, 2
	choice(f, &d.topology, "topology", "NAME", "topology of the deployment", choices...)
	set(f, &d.Version, "server-version", "VERSION", summary, func(s string) (string, error) {
		if s == "" { // the default
			return s, nil
		}
		return oneOf[string](versions)(s)
	}, versions...)
	f.within(&d.Members, "members", "N", 1, embedded.MaxServers, "members of a replica set")
	f.within(&d.Mongoses, "mongoses", "N", 1, embedded.MaxServers, "routers of a sharded cluster")
	f.checks = append(f.checks, func() error {
		if v, err := specs.ParseVersion(d.Version); err == nil && v.Major < 5 && d.topology == string(deployment.LoadBalanced) {
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
func (r *runFlags) checkTarget(c *call) error {
	r.config.AllTopologies = r.deployment.topology == topologyAll
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
			at, *t.uri = "$"+t.other, c.env(t.other)
		} else if *t.uri == "" {
			return usage("%s is empty", at)
		}
		if *t.uri == "" {
			continue
		}
		if err := deployment.CheckURI(*t.uri); err != nil {
			return usage("%s: %w", at, err)
		}
	}
	return nil
}

// source opens the deployment. lost is called if its lock is lost.
func (r *runFlags) source(ctx context.Context, c *call, lost context.CancelCauseFunc, suites []*specs.Suite) (deployment.Source, error) {
	if r.lock != nil {
		r.lock.Lost = lost
	}
	var options any
	var err error
	switch r.flags.target() {
	case onURI:
		o := deployment.ClusterOptions{URI: r.uri, SingleURI: r.single, FailPoints: runner.FailPoints(suites), ServerAPI: r.config.ServerAPI,
			URIOptions: r.uriOptions, Lock: r.lock, Note: c.note}
		// The ledger records the lock and the fail points. A run continues without it, since a lock expires.
		if o.Ledger, err = c.runLedger(); err != nil {
			c.note(fmt.Sprintf("if this run is killed, utr clean requires --uri to find the deployment: %s", err))
			err = nil
		}
		options = o
	case onLocal:
		o := r.local
		o.EmbeddedOptions = r.deployment.options()
		o.Version = "" // the binaries decide
		o.URIOptions, o.Jobs, o.Parameters, o.Note, o.Secret = r.uriOptions, r.config.Jobs, needsParameters(suites), c.note, c.secrets.Learn
		o.Ledger, err = c.runLedger()
		options = o
	case onOrchestration:
		o := r.orchestration.OrchestrationOptions
		for _, name := range r.orchestration.names(&r.deployment) {
			cluster, err := r.orchestration.cluster(c, name)
			if err != nil {
				return nil, err
			}
			o.Clusters = append(o.Clusters, cluster)
		}
		o.Topology, o.URIOptions, o.ServerAPI = topologyOf(r.deployment.topology), r.uriOptions, r.config.ServerAPI
		o.Lock, o.Secret, o.Note = r.lock, c.secrets.Learn, c.note
		o.Ledger, err = c.runLedger()
		options = o
	default:
		o := r.deployment.options()
		o.URIOptions = r.uriOptions
		if o.TLS { // certificates are files
			o.Ledger, err = c.runLedger()
		}
		options = o
	}
	if err != nil {
		return nil, err
	}
	return c.program.Open(ctx, options)
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

func (c *call) announceDrops(source deployment.Source, suites []*specs.Suite) {
	dropped := runner.DropPlan(suites)
	if len(dropped) == 0 {
		return
	}
	hosts := slices.Concat(mapSlice(source.Offers(), func(o deployment.Description) []string { return o.Hosts })...)
	_, _ = fmt.Fprintf(c.errors, "utr drops these collections of the deployment at %s: %s\n",
		strings.Join(hosts, ","), strings.Join(dropped, ", "))
}

// usesExistingCluster reports whether tests run on a cluster that utr did not create.
func (r *runFlags) usesExistingCluster() bool {
	return r.uri != "" || slices.ContainsFunc(r.orchestration.clusters, func(name string) bool {
		return strings.HasPrefix(name, existingCluster)
	})
}
