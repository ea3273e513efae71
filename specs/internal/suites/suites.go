// Package suites writes suites from tables. What all specifications have in
// common is here: files, clients, operations, fail points and events. Each
// specification has a package below with its tables: the operations, the
// errors, and the stories of what can happen to an attempt. Every test says in
// its description which rule of reference/retry it checks.
//
// The suites are for any driver and any deployment since server 4.2. What a
// test needs beyond that stands in its runOnRequirements, and each file
// declares the lowest schemaVersion that it can.
package suites

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/schema"
)

// Specification is a folder of suites.
type Specification struct {
	Name    string // of the folder below specs
	Package string // with the tables, below this one
	Files   []*File
}

// Render writes the suites by file name.
func (s Specification) Render() (map[string][]byte, error) {
	out, schemas := map[string][]byte{}, schema.New()
	for _, f := range s.Files {
		text, err := f.render(s.Package, schemas)
		if err != nil {
			return nil, err
		}
		if _, twice := out[f.Name+".yml"]; twice {
			return nil, fmt.Errorf("there are two files %s", f.Name)
		}
		out[f.Name+".yml"] = text
	}
	return out, nil
}

// Requirements in flow YAML.
const (
	// Anywhere is for tests of all topologies.
	Anywhere = `{ minServerVersion: "4.2" }`
	// NoSingle is for what a standalone does not have.
	NoSingle = `{ minServerVersion: "4.2", topologies: [ replicaset, sharded, load-balanced ] }`
	// Monitored is for fail points that keep to one client by its appName,
	// which the first hello obeys since SERVER-49336, where there are monitors.
	Monitored = `{ minServerVersion: "4.4.7", topologies: [ single, replicaset, sharded ] }`
	// ShardedSet is for tests of several mongoses.
	ShardedSet = `{ minServerVersion: "4.2", topologies: [ sharded ] }`
)

// Quiet are the options of a client whose monitors sleep while a test runs,
// so that a fail point for hello meets its own connections alone.
const Quiet = "heartbeatFrequencyMS: 600000, serverMonitoringMode: poll"
