package schema

import (
	"strings"
	"testing"
)

// What makes a file need a version, and where.
func TestLowest(t *testing.T) {
	file := func(fields string) string { return head + oneTest + fields + "\n" }
	set := New()
	for _, r := range []struct {
		reason, yaml string
		want         string // version, and the leading demand
	}{
		{"a file of the first version", file(""), "1.0"},
		{"a key of the whole file", file("_yamlAnchors: {}"), `1.1 for 4:1 _yamlAnchors: "_yamlAnchors"`},
		{"an enumerated value", file("runOnRequirements: [{topologies: [load-balanced]}]"),
			`1.3 for 4:35 runOnRequirements[0].topologies[0]: "load-balanced"`},
		{"an alternative form of a value", file("runOnRequirements: [{csfle: {minLibmongocryptVersion: '1.2'}}]"),
			"1.25 for 4:29 runOnRequirements[0].csfle: an object here"},
		{"a boolean csfle needs less", file("runOnRequirements: [{csfle: true}]"), `1.8 for 4:22 runOnRequirements[0].csfle: "csfle"`},
		{"a labelled key", file("createEntities: [{client: {id: c, autoEncryptOpts: {keyVaultNamespace: n, kmsProviders: {'aws:a': {}}}}}]"),
			`1.23 for 4:35 createEntities[0].client.autoEncryptOpts: "autoEncryptOpts"`},
		{"the most demanding of several leads", file("runOnRequirements: [{auth: true, serverless: forbid, authMechanism: x}]"),
			`1.19 for 4:54 runOnRequirements[0].authMechanism: "authMechanism"`},
		{"an operation, which the schema cannot see", operation("{name: runOnThread, object: testRunner}"),
			"1.10 for 6:12 tests[0].operations[0].name: operation runOnThread"},
		{"an operation of the same name on another object", operation("{name: wait, object: collection0}"), "1.0"},
		{"an operation in an operation",
			operation("{name: withTransaction, object: s, arguments: {callback: [{name: find, object: c, ignoreResultAndError: true}]}}"),
			`1.3 for 6:87 tests[0].operations[0].arguments.callback[0].ignoreResultAndError: "ignoreResultAndError"`},
		{"an operation named in an operation",
			operation("{name: loop, object: testRunner, arguments: {operations: [{name: createFindCursor, object: c}]}}"),
			"1.3 for 6:70 tests[0].operations[0].arguments.operations[0].name: operation createFindCursor"},
		{"an operator, which the schema cannot see", operation("{name: find, object: c, expectResult: [{a: {$$lte: 3}}]}"),
			"1.9 for 6:49 tests[0].operations[0].expectResult[0].a.$$lte: operator $$lte"},
		{"an operator in an event", inTest("operations: []\n  expectEvents: [{client: c, events: [{commandStartedEvent: {command: {a: {$$matchAsRoot: {}}}}}]}]"),
			"1.13 for 6:76 tests[0].expectEvents[0].events[0].commandStartedEvent.command.a.$$matchAsRoot: operator $$matchAsRoot"},
		{"an entity made by an operation",
			operation("{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: c, awaitMinPoolSizeMS: 1}}]}}"),
			`1.26 for 6:88 tests[0].operations[0].arguments.entities[0].client.awaitMinPoolSizeMS: "awaitMinPoolSizeMS"`},
		{"an event in the arguments of an operation",
			operation("{name: waitForEvent, object: testRunner, arguments: {event: {poolClearedEvent: {interruptInUseConnections: true}}}}"),
			`1.11 for 6:85 tests[0].operations[0].arguments.event.poolClearedEvent.interruptInUseConnections: "interruptInUseConnections"`},
		{"a placeholder in uriOptions", file("createEntities: [{client: {id: c, uriOptions: {authMechanism: {$$placeholder: 1}}}}]"),
			"1.19 for 4:64 createEntities[0].client.uriOptions.authMechanism: $$placeholder in uriOptions"},
		{"what looks like an operator in initial data is data",
			file("initialData: [{collectionName: c, databaseName: d, documents: [{$$lte: 1}]}]"), "1.0"},
		{"a file that is valid at no version", head + "tests: []\n", "none"},
	} {
		root := parse(t, r.yaml)
		got, demands, ok := set.LowestFor(root)
		if v, k := set.Lowest(root); v != got || k != ok {
			t.Errorf("%s: Lowest gives %q, %v", r.reason, v, k)
		}
		if ok && len(set.Validate(got, root)) > 0 || ok != (len(set.Validate(Newest, root)) == 0) {
			t.Errorf("%s: it is not valid at %q", r.reason, got)
		}
		if len(demands) > 0 && demands[0].Version != got {
			t.Errorf("%s: the leading demand is for %s", r.reason, demands[0].Version)
		}
		if !ok {
			got = "none"
		}
		if len(demands) > 0 {
			d := demands[0]
			got += " for " + strings.TrimPrefix(d.Position.String(), "suite.yml:") + " " + d.Path + ": " + d.What
		}
		if got != r.want {
			t.Errorf("%s:\ngot  %s\nwant %s", r.reason, got, r.want)
		}
	}
	if _, _, ok := set.LowestFor(nil); ok {
		t.Error("nothing has a lowest version")
	}
}

// Every operation and operator of a later version needs that version, and no
// lower one.
func TestLowestOfWhatNoSchemaShows(t *testing.T) {
	set := New()
	for what, want := range map[string]string{
		"testRunner loop": "1.2", "testRunner assertNumberConnectionsCheckedOut": "1.3", "collection0 createFindCursor": "1.3",
		"testRunner createEntities": "1.9", "testRunner assertEventCount": "1.10", "testRunner assertTopologyType": "1.10",
		"testRunner recordTopologyDescription": "1.10", "testRunner runOnThread": "1.10", "testRunner wait": "1.10",
		"testRunner waitForEvent": "1.10", "testRunner waitForPrimaryChange": "1.10", "testRunner waitForThread": "1.10",
		"$$lte": "1.9", "$$matchAsDocument": "1.13", "$$matchAsRoot": "1.13", "$$exists": "1.0",
	} {
		fields := "{name: find, object: c, expectResult: {" + what + ": 1}}"
		if object, name, isOperation := strings.Cut(what, " "); isOperation {
			fields = "{name: " + name + ", object: " + object + "}"
		}
		if got, _ := set.Lowest(parse(t, operation(fields))); got != want {
			t.Errorf("%s needs %s, want %s", what, got, want)
		}
	}
}

func TestNested(t *testing.T) {
	for _, r := range []struct {
		reason, operation string
		want              string // a path below the operation's arguments, and the message
	}{
		{"nothing is nested", "{name: find, object: c, arguments: {filter: {}, foo: 1}}", ""},
		{"no arguments", "{name: runOnThread, object: testRunner}", ""},
		{"newer than the file declares",
			"{name: runOnThread, object: testRunner, arguments: {operation: {name: a, object: b, ignoreResultAndError: true}}}", ""},
		{"an operation's key", "{name: runOnThread, object: testRunner, arguments: {operation: {name: a, object: b, exepctError: {isError: true}}}}",
			`operation.exepctError: unknown key in an operation; did you mean "expectError"?`},
		{"what an operation must have", "{name: withTransaction, object: s, arguments: {callback: [{name: a}]}}",
			`callback[0]: an operation must have the key "object"`},
		{"of two levels", "{name: runOnThread, object: testRunner, arguments: " +
			"{operation: {name: withTransaction, object: s, arguments: {callback: [1]}}}}",
			"operation.arguments.callback[0]: must be an object, is the integer 1"},
		{"of a loop", "{name: loop, object: testRunner, arguments: {operations: [{name: a}]}}", `operations[0]: an operation must have the key "object"`},
		{"of an error", "{name: withTransaction, object: s, arguments: {callback: [{name: a, object: b, expectError: {isError: false}}]}}",
			"callback[0].expectError.isError: must be true, is false: an operation without expectError must succeed anyway"},
		{"entities", "{name: createEntities, object: testRunner, arguments: {entities: [{thread: {id: 1}}]}}",
			"entities[0].thread.id: must be a string, is the integer 1 (in quotes it would be a string)"},
		{"no entities", "{name: createEntities, object: testRunner, arguments: {entities: []}}", "entities: must have at least one element"},
		{"events to wait for", "{name: waitForEvent, object: testRunner, arguments: {event: {poolClearedEvent: {reason: x}}}}",
			`event.poolClearedEvent.reason: unknown key in a poolClearedEvent; "reason" is a key of a connectionCheckOutFailedEvent and of a connectionClosedEvent`},
		{"events to count", "{name: assertEventCount, object: testRunner, arguments: {event: {commandStartedEvent: {}, count: 1}}}",
			`event: an expected event of type command must have exactly one key, has 2: "commandStartedEvent", "count"` + "\n" +
				`tests[0].operations[0].arguments.event.count: unknown key in an expected event of type command; ` +
				`possible keys are "commandStartedEvent", "commandSucceededEvent", "commandFailedEvent"`},
		{"events to observe that the schemas forgot, and official suites observe", "{name: createEntities, object: testRunner, arguments: " +
			"{entities: [{client: {id: c, observeEvents: [serverHeartbeatStartedEvent, serverHeartbeatSucceededEvent, serverHeartbeatFailedEvent]}}]}}", ""},
		{"an event to observe that does not exist", "{name: createEntities, object: testRunner, arguments: " +
			"{entities: [{client: {id: c, observeEvents: [poolDrainedEvent]}}]}}",
			`entities[0].client.observeEvents[0]: unknown value "poolDrainedEvent"; did you mean "poolCreatedEvent"?`},
		{"an event of an unknown type is left to the runner, which names it",
			"{name: waitForEvent, object: testRunner, arguments: {event: {poolEvent: {}}}}", ""},
	} {
		var got []string
		for _, p := range New().Nested(parse(t, operation(r.operation))) {
			got = append(got, p.Path+": "+p.Message)
		}
		if text := strings.TrimPrefix(strings.Join(got, "\n"), "tests[0].operations[0].arguments."); text != r.want {
			t.Errorf("%s: got %q, want %q", r.reason, text, r.want)
		}
	}
	if got := New().Nested(nil); got != nil {
		t.Errorf("nothing has %v", got)
	}
}
