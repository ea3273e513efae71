package cli

import (
	"cmp"
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
	f.texts(&o.clusters, "cluster", "PRESET|FILE|id:ID", with+"cluster to create, or the id of an existing one; presets are "+
		strings.Join(orchestration.Presets(), ", ")+" (default one for each topology)", append(orchestration.Presets(), existingCluster)...)
	f.number(&o.Each, "clusters", "N", 1, with+"how many of each cluster to create; they share the tests")
	f.text(&o.settings.Version, "orchestration-version", "NAME", with+"name of the MongoDB release that the service starts")
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
	for _, t := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded, deployment.Single, deployment.LoadBalanced} {
		if topology == t || topology == "" && t != deployment.LoadBalanced {
			names = append(names, string(t)+secured)
		}
	}
	return names
}

func (o *orchestrationFlags) cluster(c *call, name string) (cluster deployment.OrchestratedCluster, err error) {
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
		return cluster, usage("--cluster %s: contains %s, which --orchestration-files DIR must replace", name, orchestration.FilesToken)
	}
	if configuration.NamesData {
		c.note(fmt.Sprintf("%s: dbpath is ignored: the service would remove that folder with the cluster", name))
	}
	return deployment.OrchestratedCluster{Configuration: configuration.With(settings)}, nil
}

func configurationOf(name string) (configuration orchestration.Configuration, err error) {
	if slices.Contains(orchestration.Presets(), name) {
		return orchestration.Preset(name)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, `./\`) {
		return configuration, usage("--cluster %s: no such preset or file%s", name, meant.Hint(name, orchestration.Presets()))
	}
	if err == nil {
		configuration, err = orchestration.Parse(name, text)
	}
	if err != nil {
		return configuration, invalid(fmt.Errorf("--cluster: %w", err))
	}
	return configuration, nil
}

func (c *call) note(line string) { _, _ = fmt.Fprintf(c.errors, "utr: %s\n", line) }

// ledger opens the ledger of what runs create outside their process.
func (c *call) ledger() (*ledger.Ledger, error) {
	dir, err := ledger.Dir(c.env)
	if err != nil {
		return nil, err
	}
	return ledger.Open(dir)
}

// runLedger opens the ledger for a run, and reports leftovers of earlier runs.
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
