package cli

import (
	"slices"
	"strings"
)

// The targets of a run, of which it has one. A flag of the same name chooses the
// target; without any, tests run on embedded deployments.
const (
	onEmbedded      = "embedded"
	onURI           = "uri"
	onLocal         = "local"
	onOrchestration = "orchestration"
)

// targets are the flags that choose a target, and exclude each other.
var targets = []string{onURI, onLocal, onOrchestration}

// targetFlags are the flags that only some targets accept. The reason is for messages.
var targetFlags = []struct {
	flag string
	on   []string
	why  string
}{
	{"topology", []string{onEmbedded, onLocal, onOrchestration}, "the deployment has its own"},
	{"server-version", []string{onEmbedded}, "the servers have their own"},
	{"members", []string{onEmbedded, onLocal}, "the clusters have their own"},
	{"mongoses", []string{onEmbedded, onLocal}, "the clusters have their own"},
	{"auth", []string{onEmbedded, onLocal, onOrchestration}, "the connection string decides"},
	{"tls", []string{onEmbedded, onLocal, onOrchestration}, "the connection string decides"},
	{"single-uri", []string{onURI}, ""},
	{"local-shards", []string{onLocal}, ""},
	{"cluster", []string{onOrchestration}, ""},
	{"clusters", []string{onOrchestration}, ""},
	{"orchestration-version", []string{onOrchestration}, ""},
	{"orchestration-files", []string{onOrchestration}, ""},
}

// needs are the flags that mean nothing without another one.
var needs = []struct{ flag, other string }{
	{"durations", "shard"},
	{"engines", "engine"},
	{"earlier", "html"},
	{"older-than", "orchestration"},
	{"ca-file", "tls"},
	{"seed", "generate"},
	{"write", "generate"},
	{"limit", "generate"},
}

// excludes are flags that contradict each other.
var excludes = []struct{ flag, other, why string }{
	{"auth", "cluster", "the clusters have their own"},
	{"tls", "cluster", "the clusters have their own"},
	{"known-failing", "generate", "it names tests of suites"},
}

// target gives what the command line says to run on, and how it says so. A flag
// comes before the environment.
func (f *flags) target() (target, spelled string) {
	for _, t := range targets {
		if f.Changed(t) {
			return t, "--" + t
		}
	}
	if f.call.env(envURI) != "" {
		return onURI, "$" + envURI
	}
	return onEmbedded, ""
}

// conflicts judges the flags of a command line together. A row applies to the
// commands that have its flags.
func (f *flags) conflicts() error {
	if f.Lookup(onLocal) != nil { // a run
		if err := f.onOneTarget(); err != nil {
			return err
		}
	}
	for _, n := range needs {
		other := f.Lookup(n.other)
		if other == nil || !f.Changed(n.flag) {
			continue
		}
		if value := other.Value.String(); !other.Changed || value == "" || value == "false" {
			return usage("--%s requires --%s", n.flag, n.other)
		}
	}
	for _, e := range excludes {
		if f.Changed(e.flag) && f.Changed(e.other) {
			return usage("--%s cannot be used with --%s: %s", e.flag, e.other, e.why)
		}
	}
	return nil
}

// onOneTarget judges the flags that say where to run.
func (f *flags) onOneTarget() error {
	for i, t := range targets {
		for _, other := range targets[:i] {
			if f.Changed(t) && f.Changed(other) {
				return usage("--%s and --%s exclude each other: both say where to run", other, t)
			}
		}
	}
	target, spelled := f.target()
	for _, t := range targetFlags {
		switch {
		case !f.Changed(t.flag) || slices.Contains(t.on, target):
		case t.why == "":
			return usage("--%s requires --%s", t.flag, strings.Join(t.on, " or --"))
		default:
			return usage("--%s cannot be used with %s: %s", t.flag, spelled, t.why)
		}
	}
	return nil
}
