package specs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

const head = `description: d
schemaVersion: "1.28"
createEntities:
  - client: { id: client0, observeEvents: [commandStartedEvent] }
  - database: { id: database0, client: client0, databaseName: db }
  - collection: { id: collection0, database: database0, collectionName: c }
  - session: { id: session0, client: client0 }
  - bucket: { id: bucket0, database: database0 }
  - thread: { id: thread0 }
`

const noOperations = "tests: [{description: t, operations: []}]"

// withHead makes a suite whose head is changed in one place.
func withHead(old, changed string) string {
	return strings.Replace(head, old, changed, 1) + noOperations
}

// withClient makes a suite whose client has something more.
func withClient(more string) string { return withHead("id: client0,", "id: client0, "+more+",") }

// withSession makes a suite whose session has options.
func withSession(options string) string {
	return withHead("client: client0 }\n  - bucket", "client: client0, sessionOptions: {"+options+"} }\n  - bucket")
}

// withOperations makes a suite of one test with these operations.
func withOperations(list string) string {
	return head + "tests:\n  - description: t\n    operations: [" + list + "]\n"
}

// checks has for each rule files that keep to it and files that do not, with
// the path of the problem.
var checks = []struct {
	rule, reason, in string
	path             string // "" if nothing is to be reported
}{
	{"extended-json", "well-formed", withOperations(`{name: insertOne, object: collection0, arguments: {document: {_id: {$oid: 57e193d7a9cc81b4027498b5}}}}`), ""},
	{"extended-json", "malformed", withOperations(`{name: insertOne, object: collection0, arguments: {document: {_id: {$oid: x}}}}`), "tests[0].operations[0].arguments.document._id"},
	{"extended-json", "anchors are not for test runners", head + "_yamlAnchors: {a: {$oid: x}}\n" + noOperations, ""},
	{"duplicate-test", "two names", head + "tests: [{description: t, operations: []}, {description: u, operations: []}]", ""},
	{"duplicate-test", "one name", head + "tests: [{description: t, operations: []}, {description: t, operations: []}]", "tests[1].description"},
	{"version-range", "equal is a range", head + "runOnRequirements: [{minServerVersion: '4.2', maxServerVersion: 4.2.0}]\n" + noOperations, ""},
	{"version-range", "compared numerically", head + "runOnRequirements: [{minServerVersion: '4.2', maxServerVersion: '4.10'}]\n" + noOperations, ""},
	{"version-range", "no server", head + "tests: [{description: t, operations: [], runOnRequirements: [{minServerVersion: '4.10', maxServerVersion: '4.2'}]}]", "tests[0].runOnRequirements[0]"},
	{"collection-data", "two namespaces, ids of two types", head + "initialData: [{databaseName: d, collectionName: c, documents: [{_id: 1}, {_id: '1'}, {x: 1}, {x: 1}]}, {databaseName: d, collectionName: e, documents: [{_id: 1}]}]\n" + noOperations, ""},
	{"collection-data", "a namespace twice", head + "initialData: [{databaseName: d, collectionName: c, documents: []}, {databaseName: d, collectionName: c, documents: []}]\n" + noOperations, "initialData[1]"},
	{"collection-data", "an _id twice in an outcome", head + "tests: [{description: t, operations: [], outcome: [{databaseName: d, collectionName: c, documents: [{_id: 1}, {_id: 1}]}]}]", "tests[0].outcome[0].documents[1]._id"},
	{"duplicate-entity", "each test has its own map", head + "tests: [{description: t, operations: [&o {name: find, object: collection0, arguments: {filter: {}}, saveResultAsEntity: r}]}, {description: u, operations: [*o]}]", ""},
	{"duplicate-entity", "in createEntities", withHead("id: thread0", "id: client0"), "createEntities[5].thread.id"},
	{"duplicate-entity", "by a saved result", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, saveResultAsEntity: session0}`), "tests[0].operations[0].saveResultAsEntity"},
	{"duplicate-entity", "by an operation", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: [{thread: {id: thread0}}]}}`), "tests[0].operations[0].arguments.entities[0].thread.id"},
	{"duplicate-entity", "by a topology description", withOperations(`{name: recordTopologyDescription, object: testRunner, arguments: {client: client0, id: client0}}`), "tests[0].operations[0].arguments.id"},
	{"undefined-entity", "made by an operation before", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: [{thread: {id: thread1}}]}}, {name: waitForThread, object: testRunner, arguments: {thread: thread1}}`), ""},
	{"undefined-entity", "made by an operation after", withOperations(`{name: waitForThread, object: testRunner, arguments: {thread: thread1}}, {name: createEntities, object: testRunner, arguments: {entities: [{thread: {id: thread1}}]}}`), "tests[0].operations[0].arguments.thread"},
	{"undefined-entity", "out of order", "description: d\nschemaVersion: '1.0'\ncreateEntities: [{database: {id: d, client: c, databaseName: x}}, {client: {id: c}}]\n" + noOperations, "createEntities[0].database.client"},
	{"undefined-entity", "of another type", withHead("database: database0, collectionName", "database: client0, collectionName"), "createEntities[2].collection.database"},
	{"undefined-entity", "an object", withOperations(`{name: find, object: collection1, arguments: {filter: {}}}`), "tests[0].operations[0].object"},
	{"undefined-entity", "a session", withOperations(`{name: find, object: collection0, arguments: {filter: {}, session: session1}}`), "tests[0].operations[0].arguments.session"},
	{"undefined-entity", "a session that is a client", withOperations(`{name: find, object: collection0, arguments: {filter: {}, session: client0}}`), "tests[0].operations[0].arguments.session"},
	{"undefined-entity", "a fail point's client", withOperations(`{name: failPoint, object: testRunner, arguments: {client: client1, failPoint: {configureFailPoint: x, mode: "off"}}}`), "tests[0].operations[0].arguments.client"},
	{"undefined-entity", "a client of expectEvents", head + "tests: [{description: t, operations: [], expectEvents: [{client: client1, events: []}]}]", "tests[0].expectEvents[0].client"},
	{"undefined-entity", "of an operator", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{_id: {$$matchesEntity: e}}]}`), "tests[0].operations[0].expectResult[0]._id.$$matchesEntity"},
	{"undefined-entity", "within a callback", withOperations(`{name: withTransaction, object: session0, arguments: {callback: [{name: find, object: nope, arguments: {filter: {}}}]}}`), "tests[0].operations[0].arguments.callback[0].object"},
	{"undefined-entity", "on a thread", withOperations(`{name: runOnThread, object: testRunner, arguments: {thread: thread0, operation: {name: find, object: nope, arguments: {filter: {}}}}}`), "tests[0].operations[0].arguments.operation.object"},
	{"unknown-operation", "on a cursor that was saved", withOperations(`{name: createFindCursor, object: collection0, arguments: {filter: {}}, saveResultAsEntity: r}, {name: iterateOnce, object: r}`), ""},
	{"unknown-operation", "on a collection that createCollection returned", withOperations(`{name: createCollection, object: database0, arguments: {collection: x}, saveResultAsEntity: r}, {name: insertOne, object: r, arguments: {document: {}}}`), ""},
	{"unknown-operation", "no such name", withOperations(`{name: fnid, object: collection0}`), "tests[0].operations[0].name"},
	{"unknown-operation", "of another kind", withOperations(`{name: insertOne, object: database0}`), "tests[0].operations[0].name"},
	{"unknown-operation", "of the test runner", withOperations(`{name: sleep, object: testRunner}`), "tests[0].operations[0].name"},
	{"unknown-operation", "on a thread", withOperations(`{name: find, object: thread0}`), "tests[0].operations[0].name"},
	{"unknown-argument", "known", withOperations(`{name: find, object: collection0, arguments: {filter: {}, sort: {}}}`), ""},
	{"unknown-argument", "unknown", withOperations(`{name: find, object: collection0, arguments: {filter: {}, srot: {}}}`), "tests[0].operations[0].arguments.srot"},
	{"missing-argument", "given", withOperations(`{name: wait, object: testRunner, arguments: {ms: 1}}`), ""},
	{"missing-argument", "missing", withOperations(`{name: find, object: collection0, arguments: {}}`), "tests[0].operations[0]"},
	{"missing-argument", "no arguments at all", withOperations(`{name: find, object: collection0}`), "tests[0].operations[0]"},
	{"argument-value", "case makes no difference", withOperations(`{name: findOneAndUpdate, object: collection0, arguments: {filter: {}, update: [], returnDocument: aFTER}}`), ""},
	{"argument-value", "no such value", withOperations(`{name: findOneAndUpdate, object: collection0, arguments: {filter: {}, update: [], returnDocument: New}}`), "tests[0].operations[0].arguments.returnDocument"},
	{"argument-value", "case makes a difference", withOperations(`{name: assertSessionTransactionState, object: testRunner, arguments: {session: session0, state: None}}`), "tests[0].operations[0].arguments.state"},
	{"argument-value", "a source", withOperations(`{name: upload, object: bucket0, arguments: {filename: f, source: {$$hexBytes: "1F"}}}`), ""},
	{"argument-value", "a source of an odd number of digits", withOperations(`{name: upload, object: bucket0, arguments: {filename: f, source: {$$hexBytes: "1"}}}`), "tests[0].operations[0].arguments.source"},
	{"argument-value", "a source with another key", withOperations(`{name: upload, object: bucket0, arguments: {filename: f, source: {$$hexBytes: "1F", x: 1}}}`), "tests[0].operations[0].arguments.source"},
	{"argument-value", "a source that is not one", withOperations(`{name: uploadWithId, object: bucket0, arguments: {id: 1, filename: f, source: "1F"}}`), "tests[0].operations[0].arguments.source"},
	{"common-option", "all keys that exist", withOperations(`{name: aggregate, object: collection0, arguments: {pipeline: [], readConcern: {level: local}, readPreference: {mode: nearest, tagSets: [], maxStalenessSeconds: 90, hedge: {}}, writeConcern: {w: 1, journal: true, wtimeoutMS: 1}}}`), ""},
	{"common-option", "a key that does not exist", withOperations(`{name: find, object: collection0, arguments: {filter: {}, readConcern: {levle: local}}}`), "tests[0].operations[0].arguments.readConcern.levle"},
	{"common-option", "the name of the server's field", withOperations(`{name: insertOne, object: collection0, arguments: {document: {}, writeConcern: {w: 1, j: true}}}`), "tests[0].operations[0].arguments.writeConcern.j"},
	{"common-option", "those of entities", withSession("causalConsistency: true, defaultTransactionOptions: {readConcern: {level: local}}"), ""},
	{"common-option", "a read concern of a collection", withHead("collectionName: c", "collectionName: c, collectionOptions: {readConcern: {levle: local}}"), "createEntities[2].collection.collectionOptions.readConcern.levle"},
	{"common-option", "options of transactions that were flattened into those of the session", withSession("writeConcern: {w: 1}"), "createEntities[3].session.sessionOptions.writeConcern"},
	{"common-option", "a write concern of transactions", withSession("defaultTransactionOptions: {writeConcern: {wtimeout: 1}}"), "createEntities[3].session.sessionOptions.defaultTransactionOptions.writeConcern.wtimeout"},
	{"common-option", "no option of transactions", withSession("defaultTransactionOptions: {readConcrn: {}}"), "createEntities[3].session.sessionOptions.defaultTransactionOptions.readConcrn"},
	{"common-option", "no option of buckets", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: [{bucket: {id: b, database: database0, bucketOptions: {chunkSize: 4}}}]}}`), "tests[0].operations[0].arguments.entities[0].bucket.bucketOptions.chunkSize"},
	{"common-option", "not a document", withOperations(`{name: find, object: collection0, arguments: {filter: {}, readPreference: primary}}`), "tests[0].operations[0].arguments.readPreference"},
	{"write-model", "all keys that exist", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: {document: {}}}, {updateOne: {filter: {}, update: {}, arrayFilters: [], collation: {}, hint: x, sort: {}, upsert: true}}]}}`), ""},
	{"write-model", "those of clients name a namespace", withOperations(`{name: clientBulkWrite, object: client0, arguments: {models: [{deleteMany: {namespace: d.c, filter: {}}}]}}`), ""},
	{"write-model", "those of collections do not", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: {document: {}, namespace: d.c}}]}}`), "tests[0].operations[0].arguments.requests[0].insertOne.namespace"},
	{"write-model", "a key that does not exist", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: {document: {}}}, {updateOne: {filter: {}, update: {}, upsrt: true}}]}}`), "tests[0].operations[0].arguments.requests[1].updateOne.upsrt"},
	{"write-model", "one that updateMany does not have", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{updateMany: {filter: {}, update: {}, sort: {}}}]}}`), "tests[0].operations[0].arguments.requests[0].updateMany.sort"},
	{"write-model", "a key that is missing", withOperations(`{name: clientBulkWrite, object: client0, arguments: {models: [{insertOne: {namespace: d.c}}]}}`), "tests[0].operations[0].arguments.models[0].insertOne"},
	{"write-model", "no such model", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{insertMany: {documents: []}}]}}`), "tests[0].operations[0].arguments.requests[0].insertMany"},
	{"write-model", "two at once", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: {document: {}}, deleteOne: {filter: {}}}]}}`), "tests[0].operations[0].arguments.requests[0]"},
	{"write-model", "not a document", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: 1}]}}`), "tests[0].operations[0].arguments.requests[0].insertOne"},
	{"write-model", "no list", withOperations(`{name: bulkWrite, object: collection0, arguments: {requests: {insertOne: {document: {}}}}}`), "tests[0].operations[0].arguments.requests"},
	{"nested", "well-formed, whatever version is declared", strings.Replace(withOperations(`{name: withTransaction, object: session0, arguments: {callback: [{name: find, object: collection0, arguments: {filter: {}}, expectError: {isTimeoutError: true}}]}}, {name: createEntities, object: testRunner, arguments: {entities: [{client: {id: client1, awaitMinPoolSizeMS: 1}}]}}`), "1.28", "1.10", 1), ""},
	{"nested", "a misspelt assertion in a callback", withOperations(`{name: withTransaction, object: session0, arguments: {callback: [{name: find, object: collection0, arguments: {filter: {}}, expectResults: []}]}}`), "tests[0].operations[0].arguments.callback[0].expectResults"},
	{"nested", "assertions that exclude each other", withOperations(`{name: withTransaction, object: session0, arguments: {callback: [{name: find, object: collection0, arguments: {filter: {}}, ignoreResultAndError: true, expectError: {errorCode: 1}}]}}`), "tests[0].operations[0].arguments.callback[0]"},
	{"nested", "a callback that is no list", withOperations(`{name: withTransaction, object: session0, arguments: {callback: find}}`), "tests[0].operations[0].arguments.callback"},
	{"nested", "a misspelt assertion on a thread", withOperations(`{name: runOnThread, object: testRunner, arguments: {thread: thread0, operation: {name: find, object: collection0, arguments: {filter: {}}, expectErrors: {isError: true}}}}`), "tests[0].operations[0].arguments.operation.expectErrors"},
	{"nested", "a boolean that is a string, in a callback on a thread", withOperations(`{name: runOnThread, object: testRunner, arguments: {thread: thread0, operation: {name: withTransaction, object: session0, arguments: {callback: [{name: find, object: collection0, arguments: {filter: {}}, ignoreResultAndError: "true"}]}}}}`), "tests[0].operations[0].arguments.operation.arguments.callback[0].ignoreResultAndError"},
	{"nested", "an entity's key that there is not", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: client1, observeEvent: [commandStartedEvent]}}]}}`), "tests[0].operations[0].arguments.entities[0].client.observeEvent"},
	{"nested", "a list that is a string", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: client1, observeEvents: commandStartedEvent}}]}}`), "tests[0].operations[0].arguments.entities[0].client.observeEvents"},
	{"nested", "no entity at all", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: []}}`), "tests[0].operations[0].arguments.entities"},
	{"nested", "an event's value that no server has", withOperations(`{name: assertEventCount, object: testRunner, arguments: {client: client0, event: {serverDescriptionChangedEvent: {newDescription: {type: Unknwon}}}, count: 0}}`), "tests[0].operations[0].arguments.event.serverDescriptionChangedEvent.newDescription.type"},
	{"special-operation", "entity operations have results", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: []}`), ""},
	{"special-operation", "special ones have not", withOperations(`{name: wait, object: testRunner, arguments: {ms: 1}, expectError: {isError: true}}`), "tests[0].operations[0].expectError"},
	{"fail-point", "well-formed", withOperations(`{name: failPoint, object: testRunner, arguments: {client: client0, failPoint: {configureFailPoint: x, mode: "off"}}}`), ""},
	{"fail-point", "no mode", withOperations(`{name: failPoint, object: testRunner, arguments: {client: client0, failPoint: {configureFailPoint: x}}}`), "tests[0].operations[0].arguments.failPoint"},
	{"fail-point", "another command", withOperations(`{name: targetedFailPoint, object: testRunner, arguments: {session: session0, failPoint: {ping: 1}}}`), "tests[0].operations[0].arguments.failPoint"},
	{"operator", "all of them", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$exists: false}, b: {$$type: [int, number]}, c: {$$matchesHexBytes: "0aF1"}, d: {$$unsetOrMatches: {x: {$$lte: 1.5}}}, e: {$$sessionLsid: session0}, f: {$$matchAsDocument: {$$matchAsRoot: {}}}, g: {$$matchesHexBytes: ""}}]}`), ""},
	{"operator", "arguments are not matched", withOperations(`{name: find, object: collection0, arguments: {filter: {$$foo: 1}}}`), ""},
	{"operator", "unknown", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$exist: false}}]}`), "tests[0].operations[0].expectResult[0].a.$$exist"},
	{"operator", "odd number of digits", withOperations(`{name: download, object: bucket0, arguments: {id: 1}, expectResult: {$$matchesHexBytes: "abc"}}`), "tests[0].operations[0].expectResult.$$matchesHexBytes"},
	{"operator", "no digits", withOperations(`{name: download, object: bucket0, arguments: {id: 1}, expectResult: {$$matchesHexBytes: "xy"}}`), "tests[0].operations[0].expectResult.$$matchesHexBytes"},
	{"operator", "unknown type", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$type: [int, integer]}}]}`), "tests[0].operations[0].expectResult[0].a.$$type"},
	{"operator", "no types", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$type: []}}]}`), "tests[0].operations[0].expectResult[0].a.$$type"},
	{"operator", "not alone", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$exists: true, x: 1}}]}`), "tests[0].operations[0].expectResult[0].a.$$exists"},
	{"operator", "not first", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {x: 1, $$exists: true}}]}`), "tests[0].operations[0].expectResult[0].a.$$exists"},
	{"operator", "no boolean", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$exists: 1}}]}`), "tests[0].operations[0].expectResult[0].a.$$exists"},
	{"operator", "no number", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$lte: "1"}}]}`), "tests[0].operations[0].expectResult[0].a.$$lte"},
	{"operator", "not a document", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{a: {$$matchAsRoot: 1}}]}`), "tests[0].operations[0].expectResult[0].a.$$matchAsRoot"},
	{"operator", "in an event", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: [{commandStartedEvent: {command: {a: {$$foo: 1}}}}]}]}]", "tests[0].expectEvents[0].events[0].commandStartedEvent.command.a.$$foo"},
	{"operator", "in an error", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectError: {errorResponse: {a: {$$foo: 1}}}}`), "tests[0].operations[0].expectError.errorResponse.a.$$foo"},
	{"placeholder", "in uriOptions", withClient("uriOptions: {authMechanismProperties: {b: {$$placeholder: 1}}}"), ""},
	{"placeholder", "in an argument", withOperations(`{name: find, object: collection0, arguments: {filter: {a: {$$placeholder: 1}}}}`), "tests[0].operations[0].arguments.filter.a.$$placeholder"},
	{"placeholder", "in an expected result", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, expectResult: {$$placeholder: 1}}`), "tests[0].operations[0].expectResult.$$placeholder"},
	{"unobserved-event", "observed", withOperations(`{name: waitForEvent, object: testRunner, arguments: {client: client0, event: {commandStartedEvent: {}}, count: 1}}`), ""},
	{"unobserved-event", "not observed", withOperations(`{name: waitForEvent, object: testRunner, arguments: {client: client0, event: {poolClearedEvent: {}}, count: 1}}`), "tests[0].operations[0].arguments.event.poolClearedEvent"},
	{"unobserved-event", "in expectEvents", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: [{commandStartedEvent: {}}, {commandFailedEvent: {}}]}]}]", "tests[0].expectEvents[0].events[1].commandFailedEvent"},
	{"unobserved-event", "none is expected of a type that the client observes", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: []}]}]", ""},
	{"unobserved-event", "none is expected of a type that it does not", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, eventType: cmap, events: []}]}]", "tests[0].expectEvents[0].events"},
	{"unobserved-event", "log messages that are observed", strings.Replace(head, "id: client0,", "id: client0, observeLogMessages: {command: debug},", 1) + "tests: [{description: t, operations: [], expectLogMessages: [{client: client0, messages: [{level: debug, component: command, data: {}}]}]}]", ""},
	{"unobserved-event", "log messages of another component", strings.Replace(head, "id: client0,", "id: client0, observeLogMessages: {command: debug},", 1) + "tests: [{description: t, operations: [], expectLogMessages: [{client: client0, messages: [{level: debug, component: connection, data: {}}]}]}]", "tests[0].expectLogMessages[0].messages[0].component"},
	{"unobserved-event", "no log messages, none of which would be seen", head + "tests: [{description: t, operations: [], expectLogMessages: [{client: client0, messages: []}]}]", "tests[0].expectLogMessages[0].messages"},
	{"repeated-expectation", "two types", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: []}, {client: client0, eventType: cmap, events: []}]}]", ""},
	{"repeated-expectation", "command is the default", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: []}, {client: client0, eventType: command, events: []}]}]", "tests[0].expectEvents[1]"},
	{"uri-option", "case makes no difference, as in connection strings", withClient("uriOptions: {retryReads: false, appName: x, wtimeoutMS: 1, readPreferenceTags: ['a:b']}"), ""},
	{"uri-option", "misspelt", withClient("uriOptions: {w: 1, retryRead: false}"), "createEntities[0].client.uriOptions.retryRead"},
	{"uri-option", "of a client that a test makes", withOperations(`{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: c, uriOptions: {retryWrite: true}}}]}}`), "tests[0].operations[0].arguments.entities[0].client.uriOptions.retryWrite"},
	{"api-version", "1", withClient("serverApi: {version: '1'}"), ""},
	{"api-version", "2", withClient("serverApi: {version: '2'}"), "createEntities[0].client.serverApi.version"},
	{"kms-credentials", "none and all", withClient("autoEncryptOpts: {keyVaultNamespace: a.b, kmsProviders: {aws: {}, local: {key: x}}}"), ""},
	{"kms-credentials", "some", withClient("autoEncryptOpts: {keyVaultNamespace: a.b, kmsProviders: {aws: {accessKeyId: x}}}"), "createEntities[0].client.autoEncryptOpts.kmsProviders.aws"},
	{"vacuous", "an operation may fail", withOperations(`{name: find, object: collection0, arguments: {filter: {}}}`), ""},
	{"vacuous", "no events are expected, so that one is too many", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: []}]}]", ""},
	{"vacuous", "nothing", withOperations(""), "tests[0]"},
	{"vacuous", "everything is ignored", withOperations(`{name: find, object: collection0, arguments: {filter: {}}, ignoreResultAndError: true}`), "tests[0]"},
	{"vacuous", "every event is ignored", head + "tests: [{description: t, operations: [], expectEvents: [{client: client0, events: [], ignoreExtraEvents: true}]}]", "tests[0]"},
}

func TestChecks(t *testing.T) {
	severity := map[string]specs.Severity{}
	for _, c := range specs.Checks() {
		if c.Doc == "" {
			t.Errorf("%s has no doc", c.Name)
		}
		severity[c.Name] = c.Severity
	}
	kept, broken := map[string]bool{}, map[string]bool{}
	for _, tt := range checks {
		want, known := severity[tt.rule]
		if !known {
			t.Errorf("there is no rule %s", tt.rule)
		}
		if tt.path == "" {
			kept[tt.rule] = true
		} else {
			broken[tt.rule] = true
		}
		var problems []specs.Problem
		s, err := specs.Parse("f.yml", []byte(tt.in))
		var invalid *specs.InvalidError
		switch {
		case errors.As(err, &invalid):
			problems = invalid.Problems
			if want == specs.Warning {
				t.Errorf("%s: %s: refused: %v", tt.rule, tt.reason, err)
				continue
			}
		case err != nil:
			t.Errorf("%s: %s: %v", tt.rule, tt.reason, err)
			continue
		default:
			problems = s.Warnings
			if want == specs.Error && tt.path != "" {
				t.Errorf("%s: %s: accepted", tt.rule, tt.reason)
			}
		}
		var found []specs.Problem
		for _, p := range problems {
			if p.Rule == tt.rule {
				found = append(found, p)
			}
		}
		switch {
		case tt.path == "" && len(found) > 0:
			t.Errorf("%s: %s: reported: %v", tt.rule, tt.reason, found)
		case tt.path != "" && len(found) != 1:
			t.Errorf("%s: %s: want one problem, got %v", tt.rule, tt.reason, problems)
		case tt.path != "" && (found[0].Path != tt.path || found[0].Severity != want || found[0].Position.Line == 0 || found[0].Position.Column == 0):
			t.Errorf("%s: %s: got %v, want path %s", tt.rule, tt.reason, found[0], tt.path)
		}
	}
	for name := range severity {
		if !kept[name] || !broken[name] {
			t.Errorf("rule %s lacks a row that keeps to it or one that does not", name)
		}
	}
}

// Flaws are the problems of the rules that make a test fail, each with the test
// that it stands in.
func TestFlaws(t *testing.T) {
	const good = `{name: find, object: collection0, arguments: {filter: {}}}`
	const flawed = `{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: {}}], writeConcern: {j: true}}}`
	const warned = `{name: find, object: nowhere, arguments: {filter: {}}}`
	s, err := specs.Parse("f.yml", []byte(head+"tests: ["+
		"{description: a, operations: ["+good+"]}, {description: b, operations: ["+good+", "+flawed+"]}, {description: c, operations: ["+warned+"]}]"))
	testkit.Check(t, err)
	for i, want := range [][]string{
		nil, // nothing is wrong with it
		{"operations[1].arguments.requests[0].insertOne", "operations[1].arguments.writeConcern.j"}, // in the order of the file
		nil, // it fails while it runs
	} {
		var got []string
		for _, p := range s.Tests[i].Flaws {
			got = append(got, p.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("test %s has the flaws %q, want %q", s.Tests[i].Description, got, want)
		}
	}
	// An entity of the file is made for each test.
	s, err = specs.Parse("f.yml", []byte(strings.Replace(head, "id: session0", "id: session0, sessionOptions: {x: 1}", 1)+
		"tests: [{description: a, operations: ["+good+"]}, {description: b, operations: ["+warned+"]}]"))
	testkit.Check(t, err)
	for _, test := range s.Tests {
		if len(test.Flaws) != 1 || test.Flaws[0].Path != "createEntities[3].session.sessionOptions.x" {
			t.Errorf("test %s has the flaws %v", test.Description, test.Flaws)
		}
	}
}

func TestSchemaVersions(t *testing.T) {
	for _, tt := range []struct{ reason, in, words string }{
		{"missing", "description: d\ntests: []", "schemaVersion is missing"},
		{"not a string", "schemaVersion: 1.0\ntests: []", "must be a string"},
		{"malformed", "schemaVersion: '1.x'\ntests: []", "1.28"},
		{"of another major", "schemaVersion: '2.0'\ntests: []", "major"},
		{"newer", "schemaVersion: '1.99'\ntests: []", "1.28"},
		{"not a document", "[schemaVersion]", "a suite is a document"},
	} {
		_, err := specs.Parse("f.yml", []byte(tt.in))
		var invalid *specs.InvalidError
		if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Rule != "schemaVersion" || !strings.Contains(err.Error(), tt.words) || !strings.HasPrefix(err.Error(), "f.yml:1:") {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
	if _, err := specs.Parse("f.yml", []byte("description: d\nschemaVersion: '1.5.3'\ntests: [{description: t, operations: []}]")); err != nil {
		t.Errorf("a patch version: %v", err)
	}
}

// A missing entity is named, with what it should be where that is known.
func TestUndefinedEntityMessages(t *testing.T) {
	for in, want := range map[string]string{
		`{name: find, object: nope, arguments: {filter: {}}}`:                                                 `there is no entity "nope" here`,
		`{name: waitForThread, object: testRunner, arguments: {thread: nope}}`:                                `there is no entity "nope" here; a thread is wanted`,
		`{name: find, object: collection0, arguments: {filter: {}, session: client0}}`:                        `entity "client0" is a client, not a session`,
		`{name: find, object: collection0, arguments: {filter: {}}, expectResult: [{$$matchesEntity: nope}]}`: `there is no entity "nope" here`,
	} {
		s, err := specs.Parse("f.yml", []byte(withOperations(in)))
		if err != nil || len(s.Warnings) == 0 || s.Warnings[0].Message != want {
			t.Errorf("%s: %v, %+v, want %s", in, err, s.Warnings, want)
		}
	}
}

// Not just the first problem is reported.
func TestAllProblems(t *testing.T) {
	_, err := specs.Parse("f.yml", []byte("schemaVersion: '1.0'\nfoo: 1\ntests: [{description: 1, operations: 2}]"))
	var invalid *specs.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) < 4 {
		t.Errorf("%v", err)
	}
}

// No file, however odd, makes loading panic, and whatever is reported has a
// place and words.
func FuzzParse(f *testing.F) {
	for i := 0; i < len(checks); i += 9 { // TestChecks has them all
		f.Add([]byte(checks[i].in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := specs.Parse("f.yml", data)
		var problems []specs.Problem
		var invalid *specs.InvalidError
		switch {
		case err == nil:
			problems = s.Warnings
		case errors.As(err, &invalid):
			problems = invalid.Problems
			if len(problems) == 0 {
				t.Fatal("refused for nothing")
			}
		default:
			t.Fatalf("another type of error: %T", err)
		}
		for _, p := range problems {
			if p.Position.Line < 1 || p.Position.Column < 1 || p.Message == "" || p.Rule == "" {
				t.Fatalf("problem without place or words: %#v", p)
			}
		}
	})
}
