package main

import (
	"fmt"
	"regexp"
	"strings"
)

// Topologies in flow YAML.
const (
	Single    = "single"
	Sets      = "replicaset"
	Sharded   = "sharded"
	Clusters  = "replicaset, sharded"
	Monitored = "single, replicaset, sharded"        // with monitors
	Retrying  = "replicaset, sharded, load-balanced" // with retryable writes and change streams
	Balanced  = "load-balanced"                      // whose connections carry the id of a service
)

// Servers requires a minimum server version and one of the topologies, "" for any.
func Servers(version, topologies string) string {
	if topologies != "" {
		topologies = ", topologies: [ " + topologies + " ]"
	}
	return fmt.Sprintf("{ minServerVersion: %q%s }", version, topologies)
}

// Before44 requires a server that does not add error labels.
func Before44(topologies string) string {
	return `{ minServerVersion: "4.2", maxServerVersion: "4.2.99", topologies: [ ` + topologies + ` ] }`
}

// Authenticated requires authentication, behind a load balancer as well.
func Authenticated(version, topologies string) []string {
	return []string{fmt.Sprintf("{ minServerVersion: %q, auth: true, topologies: [ %s ] }", version, topologies),
		`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`}
}

// Sequences requires the fail point of Sequence.
func Sequences(topologies string) string {
	return Merge(Servers("4.4", topologies), "serverParameters: { failCommandSequence: true }")
}

// Quiet are the options of a client whose monitors send no hello during a test, so that a fail point for
// hello only affects the connections of its pool.
const Quiet = "heartbeatFrequencyMS: 600000, serverMonitoringMode: poll"

var minimum = regexp.MustCompile(`minServerVersion: "[^"]*"`)

// AtLeast replaces the version of a requirement, unless version is "".
func AtLeast(version, require string) string {
	if version == "" {
		return require
	}
	return minimum.ReplaceAllString(require, fmt.Sprintf("minServerVersion: %q", version))
}

// requires adapts a requirement to the first server version with the operation. It reports whether a
// server can meet both.
func (o Operation) requires(r string) (string, bool) {
	return AtLeast(o.Since, r), o.Since == "" || !strings.Contains(r, "maxServerVersion")
}
