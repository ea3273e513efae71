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

// Servers requires a version of the server and one of the topologies, "" for
// all.
func Servers(version, topologies string) string {
	if topologies != "" {
		topologies = ", topologies: [ " + topologies + " ]"
	}
	return fmt.Sprintf("{ minServerVersion: %q%s }", version, topologies)
}

// Before44 requires a server that gives no error labels.
func Before44(topologies string) string {
	return `{ minServerVersion: "4.2", maxServerVersion: "4.2.99", topologies: [ ` + topologies + ` ] }`
}

// Authenticated requires users, behind a load balancer since there are any.
func Authenticated(version, topologies string) []string {
	return []string{fmt.Sprintf("{ minServerVersion: %q, auth: true, topologies: [ %s ] }", version, topologies),
		`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`}
}

// Sequences requires the fail point of Sequence.
func Sequences(topologies string) string {
	return Merge(Servers("4.4", topologies), "serverParameters: { failCommandSequence: true }")
}

// Quiet are the options of a client whose monitors sleep while a test runs,
// so that a fail point for hello meets its own connections alone.
const Quiet = "heartbeatFrequencyMS: 600000, serverMonitoringMode: poll"

var minimum = regexp.MustCompile(`minServerVersion: "[^"]*"`)

// AtLeast is a requirement with another version, if one is given.
func AtLeast(version, require string) string {
	if version == "" {
		return require
	}
	return minimum.ReplaceAllString(require, fmt.Sprintf("minServerVersion: %q", version))
}

// requires adapts a requirement to an operation that not every server has. It
// reports whether a server can meet both.
func (o Operation) requires(r string) (string, bool) {
	return AtLeast(o.Since, r), o.Since == "" || !strings.Contains(r, "maxServerVersion")
}
