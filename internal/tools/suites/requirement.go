package main

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// requirement is an item of runOnRequirements; the zero value is none.
type requirement struct {
	Min, Max   string // server versions
	Auth       bool
	Topologies topologies
	Sequences  bool // the fail point of func sequence
	Backoff    bool // the server parameter of func baseBackoff
	Commands   bool // test commands: fail points of the server itself
}

// topologies is a set of topologies, 0 for any.
type topologies uint8

const (
	single topologies = 1 << iota
	sets
	sharded
	balanced // whose connections carry the id of a service

	clusters    = sets | sharded
	monitored   = single | clusters   // with monitors
	withRetries = clusters | balanced // with retryable writes and change streams
)

// topologyNames are the names of topologies in the format, in the order of the bits.
func topologyNames() []string { return []string{"single", "replicaset", "sharded", "load-balanced"} }

// UnmarshalYAML reads a list of topologies.
func (t *topologies) UnmarshalYAML(n *yaml.Node) error {
	for _, name := range n.Content {
		i := slices.Index(topologyNames(), name.Value)
		if i < 0 {
			return mistake(name, "unknown topology %q", name.Value)
		}
		*t |= 1 << i
	}
	return nil
}

func (t topologies) value() value {
	var names []string
	for i, name := range topologyNames() {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return list(names...)
}

func (r requirement) value() value {
	v := doc("minServerVersion", quoted(r.Min))
	if r.Max != "" {
		v = merge(v, doc("maxServerVersion", quoted(r.Max)))
	}
	if r.Auth {
		v = merge(v, doc("auth", true))
	}
	if r.Topologies != 0 {
		v = merge(v, doc("topologies", r.Topologies.value()))
	}
	if r.Sequences {
		v = merge(v, doc("serverParameters", doc("failCommandSequence", true)))
	}
	if r.Commands {
		v = merge(v, doc("serverParameters", doc("enableTestCommands", true)))
	}
	if r.Backoff {
		v = merge(v, doc("serverParameters", doc(baseBackoffParameter, 0)))
	}
	return v
}

// since returns the requirement with a later version, unless version is "".
func (r requirement) since(version string) requirement {
	if version != "" && r.Min != "" {
		r.Min = version
	}
	return r
}

// servers requires a minimum server version and one of the topologies.
func servers(version string, t topologies) requirement {
	return requirement{Min: version, Topologies: t}
}

// serversBefore44 requires a server that does not add error labels.
func serversBefore44(t topologies) requirement {
	return requirement{Min: "4.2", Max: "4.2.99", Topologies: t}
}

// authenticated requires authentication, behind a load balancer as well.
func authenticated(version string, t topologies) []requirement {
	return []requirement{{Min: version, Auth: true, Topologies: t}, {Min: "5.0", Auth: true, Topologies: balanced}}
}

// sequenceServers requires the fail point of func sequence.
func sequenceServers(t topologies) requirement {
	return requirement{Min: "4.4", Topologies: t, Sequences: true}
}
