package schema

import (
	"strings"
	"testing"
)

const (
	head    = "description: a\nschemaVersion: '1.28'\n"
	oneTest = "tests: [{description: t, operations: []}]\n"
)

// inTest puts what a test has beside its description into a file, at line 5.
func inTest(fields string) string { return head + "tests:\n- description: t\n  " + fields + "\n" }

// operation puts an operation into a file, at line 6, column 5.
func operation(fields string) string { return inTest("operations:\n  - " + fields) }

// messages are rows beside those of the table: what is said in other words
// where the words depend on more than the key and its type.
func messages() []row {
	requirement := func(fields string) string { return head + oneTest + "runOnRequirements:\n- " + fields + "\n" }
	entity := func(fields string) string { return head + oneTest + "createEntities:\n- " + fields + "\n" }
	kms := func(providers string) string {
		return entity("clientEncryption: {id: e, clientEncryptionOpts: {keyVaultClient: c, keyVaultNamespace: n, kmsProviders:\n    " + providers + "}}")
	}
	events := func(kind, fields string) string {
		return inTest("operations: []\n  expectEvents:\n  - {client: c, " + kind + "events: [\n    " + fields + "]}")
	}
	const aVersion = `must be a version of two or three numbers, such as "4.2" or "4.2.1", is `
	const inKMS = "createEntities[0].clientEncryption.clientEncryptionOpts.kmsProviders"
	const inEvents = "tests[0].expectEvents[0].events[0]"
	return []row{
		{"a file that is an array", Newest, "[]", "1:1: must be an object, is an array"},
		{"an unknown key that is close to a known one", Newest, head + oneTest + "createEntitys: []",
			`4:1: createEntitys: unknown key in a test file; did you mean "createEntities"?`},
		{"an unknown key that belongs elsewhere", Newest, head + oneTest + "expectEvents: []",
			`4:1: expectEvents: unknown key in a test file; "expectEvents" is a key of a test`},
		{"an unknown key that belongs to too many", Newest, head + oneTest + "id: 1",
			`4:1: id: unknown key in a test file; possible keys are "description", "schemaVersion", "runOnRequirements", ` +
				`"createEntities", "initialData", "tests", "_yamlAnchors"`},
		{"an unknown key at an early version", "1.0", requirement("{zz9: 1}"),
			`5:4: runOnRequirements[0].zz9: unknown key in a runOnRequirement; possible keys are "minServerVersion", "maxServerVersion", "topologies"`},
		{"an unknown value at an early version", "1.9", events("eventType: zz9, ", ""),
			`7:28: tests[0].expectEvents[0].eventType: must be one of "command", "cmap", is the string "zz9"`},
		{"an unknown value that is close to a known one", Newest, requirement("{topologies: [replicasets]}"),
			`5:17: runOnRequirements[0].topologies[0]: unknown value "replicasets"; did you mean "replicaset"?`},
		{"a value that only the text of the format has", Newest, entity("client: {id: c, observeEvents: [poolDrainedEvent]}"),
			`5:35: createEntities[0].client.observeEvents[0]: unknown value "poolDrainedEvent"; did you mean "poolCreatedEvent"?`},
		{"a string for a boolean", Newest, requirement("{auth: 'true'}"),
			`5:10: runOnRequirements[0].auth: must be a boolean, is the string "true" (without quotes it would be a boolean)`},
		{"a string for the other boolean", Newest, requirement("{auth: 'false'}"),
			`5:10: runOnRequirements[0].auth: must be a boolean, is the string "false" (without quotes it would be a boolean)`},
		{"another string for a boolean", Newest, requirement("{auth: 'yes'}"),
			`5:10: runOnRequirements[0].auth: must be a boolean, is the string "yes"`},
		{"a string for an integer", Newest, entity("client: {id: c, awaitMinPoolSizeMS: '1'}"),
			`5:39: createEntities[0].client.awaitMinPoolSizeMS: must be an integer, is the string "1" (without quotes it would be an integer)`},
		{"a boolean for a string", Newest, requirement("{authMechanism: true}"),
			"5:19: runOnRequirements[0].authMechanism: must be a string, is true (in quotes it would be a string)"},
		{"a number of more than one digit", Newest, requirement("{auth: 12}"), "5:10: runOnRequirements[0].auth: must be a boolean, is the integer 12"},
		{"null for a string", Newest, requirement("{authMechanism: null}"),
			"5:19: runOnRequirements[0].authMechanism: must be a string, is null"},
		{"a number that was a version", "1.28", strings.Replace(head, "'1.28'", "1.0", 1) + oneTest,
			"2:16: schemaVersion: " + aVersion + "the number 1.0 (in quotes it would be a string)"},
		{"a long string", Newest, requirement("{auth: " + strings.Repeat("é", 41) + "}"),
			`5:10: runOnRequirements[0].auth: must be a boolean, is the string "` + strings.Repeat("é", 39) + `…"`},
		{"a string that is just short enough", Newest, requirement("{auth: " + strings.Repeat("é", 40) + "}"),
			`5:10: runOnRequirements[0].auth: must be a boolean, is the string "` + strings.Repeat("é", 40) + `"`},
		{"csfle as it was before it could be an object", "1.24", requirement("{csfle: 1}"),
			"5:11: runOnRequirements[0].csfle: must be a boolean, is the integer 1"},
		{"an alternative of a later version", "1.24", requirement("{csfle: {minLibmongocryptVersion: '1.2.3'}}"),
			"5:11: runOnRequirements[0].csfle: an object here needs schemaVersion 1.25, this file declares 1.24"},
		{"what is wrong in an alternative of a later version", "1.8", requirement("{csfle: {minLibmongocryptVersion: 1}}"),
			"5:11: runOnRequirements[0].csfle: an object here needs schemaVersion 1.25, this file declares 1.8\n" +
				"5:37: runOnRequirements[0].csfle.minLibmongocryptVersion: " + aVersion + "the integer 1 (in quotes it would be a string)"},
		{"a path with a key that needs quotes", Newest, entity("client: {id: c, autoEncryptOpts: {keyVaultNamespace: n, kmsProviders: {}, schemaMap: {a.b: 1}}}"),
			`5:94: createEntities[0].client.autoEncryptOpts.schemaMap["a.b"]: must be an object, is the integer 1`},
		{"an element of a map", Newest, entity("client: {id: c, autoEncryptOpts: {keyVaultNamespace: n, kmsProviders: {}, encryptedFieldsMap: {a: []}}}"),
			"5:101: createEntities[0].client.autoEncryptOpts.encryptedFieldsMap.a: must be an object, is an array"},
		{"a label with another character", Newest, kms("{'aws:a-b': {}}"),
			"6:6: " + inKMS + `.aws:a-b: unknown key in kmsProviders; possible keys are "aws", "azure", "gcp", "kmip", "local"`},
		{"a label that is empty", Newest, kms("{'aws:': {}}"),
			"6:6: " + inKMS + `.aws:: unknown key in kmsProviders; did you mean "aws"?`},
		{"a labelled provider is checked like the other", Newest, kms("{'kmip:Z9_': {zzz: x}}"),
			"6:19: " + inKMS + `.kmip:Z9_.zzz: unknown key in a kmip KMS provider; its only possible key is "endpoint"`},
		{"a key that the format forbids", Newest, head + oneTest + "initialData:\n" +
			"- {collectionName: c, databaseName: d, documents: [], createOptions: {writeConcern: {w: 1}}}",
			"5:85: initialData[0].createOptions.writeConcern: is not allowed here: the test runner always creates collections with write concern majority"},
		{"a pool event where the type is not given", Newest, events("", "{poolReadyEvent: {}}"),
			"8:6: " + inEvents + `.poolReadyEvent: unknown key in an expected event of type command; "poolReadyEvent" is a key of an expected event of type cmap`},
		{"a command event among pool events", Newest, events("eventType: cmap, ", "{commandStartedEvent: {}}"),
			"8:6: " + inEvents + `.commandStartedEvent: unknown key in an expected event of type cmap; "commandStartedEvent" is a key of an expected event of type command`},
		{"a pool event among events of monitoring", Newest, events("eventType: sdam, ", "{poolReadyEvent: {}}"),
			"8:6: " + inEvents + `.poolReadyEvent: unknown key in an expected event of type sdam; "poolReadyEvent" is a key of an expected event of type cmap`},
		{"events of an unknown type are not looked into", Newest, events("eventType: camp, ", "1"),
			`7:28: tests[0].expectEvents[0].eventType: unknown value "camp"; did you mean "cmap"?`},
		{"events of a type that is not a string are not looked into", Newest, events("eventType: 1, ", "1"),
			"7:28: tests[0].expectEvents[0].eventType: must be a string, is the integer 1 (in quotes it would be a string)"},
		{"a type of events that is new, and one that is newer", "1.2", events("eventType: sdam, ", "{topologyOpeningEvent: {}}"),
			`7:17: tests[0].expectEvents[0].eventType: "eventType" needs schemaVersion 1.3, this file declares 1.2` + "\n" +
				`7:28: tests[0].expectEvents[0].eventType: "sdam" needs schemaVersion 1.10, this file declares 1.2` + "\n" +
				"8:6: " + inEvents + `.topologyOpeningEvent: "topologyOpeningEvent" needs schemaVersion 1.20, this file declares 1.2`},
		{"events that are not a list, before they had a type", "1.2", inTest("operations: []\n  expectEvents:\n  - {client: c, events: {}}"),
			"7:25: tests[0].expectEvents[0].events: must be an array, is an object"},
		{"what a later version brought is checked as of that version", "1.0",
			inTest("operations: []\n  expectLogMessages:\n  - {client: c, messages: [1], ignoreExtraMessages: 1}"),
			"6:3: tests[0].expectLogMessages: \"expectLogMessages\" needs schemaVersion 1.13, this file declares 1.0\n" +
				"7:28: tests[0].expectLogMessages[0].messages[0]: must be an object, is the integer 1\n" +
				"7:32: tests[0].expectLogMessages[0].ignoreExtraMessages: \"ignoreExtraMessages\" needs schemaVersion 1.16, this file declares 1.0\n" +
				"7:53: tests[0].expectLogMessages[0].ignoreExtraMessages: must be a boolean, is the integer 1"},
		{"several problems, in the order of the file", Newest, operation("{nam: find, object: 1, arguments: 2, expectError: {isError: false}}"),
			"6:5: tests[0].operations[0]: an operation must have the key \"name\"\n" +
				"6:6: tests[0].operations[0].nam: unknown key in an operation; did you mean \"name\"?\n" +
				"6:25: tests[0].operations[0].object: must be a string, is the integer 1 (in quotes it would be a string)\n" +
				"6:39: tests[0].operations[0].arguments: must be an object, is the integer 2\n" +
				"6:65: tests[0].operations[0].expectError.isError: must be true, is false: an operation without expectError must succeed anyway"},
		{"three keys where one may be", Newest, entity("{client: {id: c}, bucket: {id: b, database: d}, thread: {id: t}}"),
			`5:21: createEntities[0]: an entity must have exactly one key, has 3: "client", "bucket", "thread"`},
	}
}

// Whatever an object may have is accepted, and whatever violates one thing
// that is said about it gets that message at that place.
func TestMessages(t *testing.T) {
	set := New()
	for _, r := range append(messages(), tableRows(t)...) {
		var got []string
		for _, p := range set.Validate(r.version, parse(t, r.file)) {
			got = append(got, strings.TrimPrefix(p.String(), "suite.yml:"))
		}
		if strings.Join(got, "\n") != r.want {
			t.Errorf("%s, at %s\n%s\n got: %s\nwant: %s", r.reason, r.version, r.file, strings.Join(got, "\n      "), r.want)
		}
	}
}
