package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// A mistake in the demands is an error with its file and line.
func TestMistakesInDemands(t *testing.T) {
	const rules = "conditions: { mongos: { topologies: [ sharded ] }, 'since 5.0': { min: '5.0' } }\n" +
		"documents: { none: [] }\nrules: [ { id: S1, says: x, section: y } ]\nfiles: [ pings ]\n"
	const suite = "- name: pings\n  description: ping\n  tests:\n"
	const ping = "    - { says: ping (S1), steps: [ { send: { ping: 1 }, gets: {} } ] }\n"
	for _, tt := range []struct{ reason, rules, rows, want string }{
		{"no mistake", rules, suite + ping, ""},
		{"each", rules, suite + "    - { says: 'ping <n> (S1)', each: { n: [ 1 ] }, steps: [ { send: { ping: <n> }, gets: {} } ] }", ""},
		{"an unknown field of a suite", rules, "- nam: pings", "servers/pings.yml: yaml: construct errors: line 1: field nam not found"},
		{"an unknown field of a test", rules, suite + "    - { sais: ping }", "line 4: field sais not found"},
		{"an unknown field of a step", rules, suite + "    - says: ping (S1)\n      steps: [ { sent: {} } ]", "line 5: field sent not found"},
		{"an unknown field of a rule", strings.Replace(rules, "section", "sektion", 1), suite + ping,
			"servers/rules.yml: yaml: construct errors: line 3: field sektion not found"},
		{"a field that occurs twice", rules, suite + "    - says: ping (S1)\n      says: ping (S1)", `line 5: mapping key "says" already defined at line 4`},
		{"an unknown condition of a suite", rules, "- name: pings\n  when: since 6.0\n", `servers/pings.yml: line 2: unknown condition "since 6.0"`},
		{"an unknown condition of a test", rules, suite + "    - says: ping (S1)\n      when: [ mongos, mongod ]", `line 5: unknown condition "mongod"`},
		{"a condition that is defined twice", "conditions:\n  mongos: {}\n  mongos: {}", "", `line 3: mapping key "mongos" already defined at line 2`},
		{"an unknown topology", "conditions:\n  mongos: { topologies: [ shard ] }", "", `line 2: unknown topology "shard"`},
		{"unknown documents", rules, suite + ping + strings.Replace(ping, "ping (S1)", "left (S1), left: some", 1), `line 5: unknown documents "some"`},
		{"an unknown rule", rules, suite + strings.Replace(ping, "S1", "S2", 1), `line 4: "ping (S2)" does not end with a rule`},
		{"two tests that say the same", rules, suite + ping + ping, `line 5: another test of pings says "ping (S1)"`},
		{"two suites with one name", rules, suite + ping + suite + ping, `line 5: another suite has the name pings`},
		{"an unknown variable", rules, suite + strings.Replace(ping, "ping: 1", "ping: <n>", 1), "line 4: unknown variable <n>"},
		{"an unknown field of a variable", rules,
			suite + "    - says: ping (S1)\n      each: { n: [ { a: 1 } ] }\n      steps: [ { send: { ping: <n.b> }, gets: {} } ]",
			"line 6: unknown variable <n.b>"},
		{"a step without an answer", rules, suite + strings.Replace(ping, ", gets: {}", "", 1), "line 4: a step of the test"},
		{"a step with two answers", rules, suite + strings.Replace(ping, "gets: {}", "gets: {}, fails: { errorCode: 1 }", 1), "line 4: a step of the test"},
	} {
		_, err := readDemands(fstest.MapFS{"servers/rules.yml": {Data: []byte(tt.rules)}, "servers/pings.yml": {Data: []byte(tt.rows)}})
		if tt.want == "" {
			testkit.Check(t, err)
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.reason, err, tt.want)
		}
	}
}
