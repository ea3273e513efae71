package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/meant"
)

// NewOrchestration makes a source of clusters of an orchestration service.
type NewOrchestration func(context.Context, deployment.OrchestrationOptions) (deployment.Source, error)

// envDriversTools names the folder that drivers-evergreen-tools is in.
const envDriversTools = "DRIVERS_TOOLS"

// existingCluster is the prefix of a --cluster value that names an existing cluster.
const existingCluster = "id:"

// orchestrationFlags select clusters of an orchestration service.
type orchestrationFlags struct {
	url     *string
	cluster *[]string
	each    *int
	version *string
	files   *string
}

func (f *flags) orchestration() *orchestrationFlags {
	const with = "with --orchestration: "
	o := &orchestrationFlags{}
	o.url = f.text("orchestration", "URL", "", "run on clusters of the mongo-orchestration service at this URL")
	o.cluster = f.texts("cluster", "PRESET|FILE|id:ID", with+"cluster to make, or the id of an existing one; presets are "+
		strings.Join(orchestration.Presets(), ", ")+" (default one for each topology)", append(orchestration.Presets(), existingCluster)...)
	o.each = f.number("clusters", "N", 1, 1, with+"how many to make of each cluster, to share the tests")
	o.version = f.text("orchestration-version", "NAME", "", with+"release from which the service makes clusters")
	o.files = f.text("orchestration-files", "DIR", "", with+"folder that replaces "+orchestration.FilesToken+" in configurations (or $"+envDriversTools+")")
	return o
}

// check judges the URL.
func (o *orchestrationFlags) check() error {
	client, err := orchestration.New(*o.url, orchestration.Limits{})
	if err != nil {
		return usage("--orchestration: %w", err)
	}
	client.Close()
	return nil
}

// touchesOthers reports whether tests run on a cluster that utr did not make.
func (o *orchestrationFlags) touchesOthers() bool {
	return slices.ContainsFunc(*o.cluster, func(name string) bool { return strings.HasPrefix(name, existingCluster) })
}

// defaults are the presets of a topology, with access control and TLS if requested.
func (o *orchestrationFlags) defaults(s *settingsFlags, topology deployment.Topology) (names []string) {
	for _, t := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded, deployment.Single, deployment.LoadBalanced} {
		if topology != t && (topology != "" || t == deployment.LoadBalanced) {
			continue
		}
		name := string(t)
		if *s.auth == "on" {
			name += "-auth"
		}
		if *s.tls {
			name += "-tls"
		}
		names = append(names, name)
	}
	return names
}

// clusters reads the values of --cluster.
func (o *orchestrationFlags) clusters(c *call, names []string) ([]deployment.OrchestratedCluster, error) {
	settings := orchestration.Settings{Version: *o.version, Files: *o.files}
	if settings.Files == "" {
		settings.Files = c.env(envDriversTools)
	}
	var out []deployment.OrchestratedCluster
	for _, name := range names {
		if id, found := strings.CutPrefix(name, existingCluster); found {
			if id == "" || strings.Contains(id, "/") {
				return nil, usage("--cluster %s: requires the id of a cluster", name)
			}
			out = append(out, deployment.OrchestratedCluster{ID: id})
			continue
		}
		configuration, err := configurationOf(name)
		if err != nil {
			return nil, err
		}
		if configuration.NeedsFiles() && settings.Files == "" && !configuration.Preset() {
			return nil, usage("--cluster %s: contains %s: --orchestration-files DIR must say what it stands for", name, orchestration.FilesToken)
		}
		if configuration.NamesData() {
			c.note(fmt.Sprintf("%s: dbpath is ignored: the service would remove that folder with the cluster", name))
		}
		out = append(out, deployment.OrchestratedCluster{Configuration: configuration.With(settings)})
	}
	return out, nil
}

// configurationOf returns a preset, or reads a file.
func configurationOf(name string) (orchestration.Configuration, error) {
	if slices.Contains(orchestration.Presets(), name) {
		return orchestration.Preset(name)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, `./\`) {
		hint := ""
		if likely := meant.Word(name, orchestration.Presets()); likely != "" {
			hint = fmt.Sprintf("; did you mean %s?", likely)
		}
		return orchestration.Configuration{}, usage("--cluster %s: no such preset or file%s", name, hint)
	}
	if err != nil {
		return orchestration.Configuration{}, invalid(fmt.Errorf("--cluster: %w", err))
	}
	configuration, err := orchestration.Parse(name, text)
	if err != nil {
		return orchestration.Configuration{}, invalid(fmt.Errorf("--cluster: %w", err))
	}
	return configuration, nil
}

// source opens the clusters.
func (o *orchestrationFlags) source(ctx context.Context, c *call, r *runFlags, lost context.CancelCauseFunc) (deployment.Source, error) {
	topology := topologyOf(*r.deployment.topology)
	names := *o.cluster
	if len(names) == 0 {
		names = o.defaults(r.settings, topology)
	}
	clusters, err := o.clusters(c, names)
	if err != nil {
		return nil, err
	}
	book, err := c.runLedger()
	if err != nil {
		return nil, err
	}
	return c.program.Orchestration(ctx, deployment.OrchestrationOptions{
		URL: *o.url, Clusters: clusters, Each: *o.each, Topology: topology, URIOptions: *r.settings.uriOptions, ServerAPI: *r.settings.serverAPI,
		Ledger: book, Secret: c.secrets.Learn, Note: c.note,
		Lock: r.lock.options(lost),
	})
}

// jobs is the default of --jobs: one test on each cluster.
func (o *orchestrationFlags) jobs(topology string) int {
	kinds := len(*o.cluster)
	if kinds == 0 {
		kinds = len(o.defaults(&settingsFlags{auth: new(string), tls: new(bool)}, topologyOf(topology)))
	}
	return kinds * *o.each
}

// topologyOf reads --topology; "" means all.
func topologyOf(name string) deployment.Topology {
	if name == topologyAuto || name == topologyAll {
		return ""
	}
	return deployment.Topology(name)
}

// note prints a message while a command runs.
func (c *call) note(line string) { _, _ = fmt.Fprintf(c.errors, "utr: %s\n", line) }

// ledger opens the ledger, which records what runs make outside themselves.
func (c *call) ledger() (*ledger.Ledger, error) {
	dir, err := ledger.Dir(c.env)
	if err != nil {
		return nil, err
	}
	return ledger.Open(dir)
}

// runLedger opens the ledger for a run, and mentions leftovers of earlier runs.
func (c *call) runLedger() (*ledger.Ledger, error) {
	book, err := c.ledger()
	if err != nil {
		return nil, err
	}
	if left, _, err := book.Leftovers(); err == nil && len(left) > 0 {
		c.note(fmt.Sprintf("leftovers of earlier runs: %d; utr clean removes them", len(left)))
	}
	return book, nil
}
