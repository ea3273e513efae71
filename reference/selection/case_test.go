package selection_test

import (
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
)

func TestParseCase(t *testing.T) {
	const servers = "topology_description: {type: Sharded, servers: [{address: a, type: Mongos, avg_rtt_ms: 2.5, tags: {dc: ny}, lastUpdateTime: 7, lastWrite: {lastWriteDate: {$numberLong: \"9\"}}}]}\n"
	minute := int64(90)
	for _, r := range []struct{ reason, text, fails string }{
		{"an empty file", "", "empty document"},
		{"a field is misspelled", "topologydescription: {}", "unknown key topologydescription"},
		{"a field of a server is misspelled", "topology_description: {type: Sharded, servers: [{adress: a}]}",
			"unknown key adress"},
		{"the type of the topology is unknown", "topology_description: {type: Cluster}",
			`type: "Cluster" is not one of [Unknown Single`},
		{"the type of a server is unknown", "topology_description: {type: Sharded, servers: [{address: a, type: mongos}]}",
			`servers[0]: type: "mongos" is not one of`},
		{"a server without an address", "topology_description: {type: Sharded, servers: [{type: Mongos}]}",
			"servers[0]: address is missing"},
		{"a date that is not a number", strings.Replace(servers, `"9"`, "today", 1),
			`lastWriteDate: "today" is not a number`},
		{"a round trip time that is not a number", strings.Replace(servers, "2.5", ".nan", 1),
			"servers[0]: avg_rtt_ms: NaN is not a duration"},
		{"an infinite round trip time", strings.Replace(servers, "2.5", ".inf", 1),
			"servers[0]: avg_rtt_ms: +Inf is not a duration"},
		{"an infinite interval", servers + "heartbeatFrequencyMS: .inf", "does not belong there"},
		{"an interval that is not a number", servers + "heartbeatFrequencyMS: .nan", "does not belong there"},
		{"a staleness that is not a number", servers + "read_preference: {mode: Nearest, maxStalenessSeconds: .nan}",
			"does not belong there"},
		{"an unknown operation", servers + "operation: ping", `operation: "ping" is not one of read, write`},
		{"all fields", servers + "operation: write\nheartbeatFrequencyMS: 500\nread_preference: {mode: Nearest, tag_sets: [{dc: ny}], maxStalenessSeconds: 90}\n" +
			"deprioritized_servers: [{address: a}]\nsuitable_servers: []", ""},
	} {
		got, err := selection.ParseCase([]byte(r.text))
		if r.fails != "" {
			testkit.WantError(t, r.reason, err, r.fails)
			continue
		}
		testkit.Check(t, err)
		want := selection.Case{
			Topology: selection.Topology{Type: selection.Sharded,
				Servers: []selection.Server{{Address: "a", Type: selection.Mongos,
					RTT: 2500 * time.Microsecond, Tags: tags{"dc": "ny"}, LastUpdate: time.UnixMilli(7), LastWrite: time.UnixMilli(9)}}},
			Preference:    selection.Preference{Mode: nearest, TagSets: []tags{{"dc": "ny"}}, MaxStalenessSeconds: &minute},
			Deprioritized: []string{"a"},
			Options: selection.Options{Write: true, LocalThreshold: selection.DefaultLocalThreshold,
				HeartbeatFrequency: 500 * time.Millisecond},
		}
		testkit.Same(t, r.reason, got, want)
	}
}

func TestParsePreference(t *testing.T) {
	for _, r := range []struct {
		reason, text string
		want         selection.Preference
		fails        string
	}{
		{"a mode", "secondary", mode(selection.Secondary), ""},
		{"a mode spelled as in test files", "SecondaryPreferred", mode(selection.SecondaryPreferred), ""},
		{"a document", "{mode: nearest, tag_sets: [{dc: ny}, {}]}", mode(nearest, tags{"dc": "ny"}, tags{}), ""},
		{"an unknown mode is not validated", "nearer", mode("nearer"), ""},
		{"a misspelled field", "{mode: nearest, tagsets: []}", selection.Preference{}, "unknown key tagsets"},
		{"a tag that looks like a number", "{mode: nearest, tag_sets: [{rack: 1.10, 010: yes}]}",
			mode(nearest, tags{"rack": "1.10", "010": "yes"}), ""},
		{"an empty text", "", selection.Preference{}, "empty"},
	} {
		got, err := selection.ParsePreference(r.text)
		testkit.Equal(t, r.reason, got, r.want)
		testkit.WantError(t, r.reason, err, r.fails)
	}
}
