package runner

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// Each rule holds for a test, and not for one beside it.
func TestFootprints(t *testing.T) {
	const entities = `[{client: {id: c}}, {database: {id: d, client: c, databaseName: db}}, {collection: {id: x, database: d, collectionName: own}},
		{database: {id: a, client: c, databaseName: admin}}, {session: {id: s, client: c}}`
	const thread = `{thread: {id: t}}`
	timed := func(limit string) string { return `{name: find, object: x, arguments: {filter: {}, ` + limit + `}}` }
	command := func(name string) string {
		return `{name: runCommand, object: d, arguments: {commandName: ` + name + `, command: {` + name + `: 1}}}`
	}
	cleared := command("ping") + `], expectEvents: [{client: m, eventType: cmap, events: [{poolClearedEvent: {}}]}`
	blocked := func(ms string) string {
		return `{name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: failCommand, mode: alwaysOn, data: {failCommands: [find], blockConnection: true, blockTimeMS: ` + ms + `}}}}`
	}
	wait := func(ms string) string { return `{name: wait, object: testRunner, arguments: {ms: ` + ms + `}}` }
	why := func(i int) string { return clusterRules[i].why }
	stream := func(object string) string {
		return `{name: createChangeStream, object: ` + object + `, arguments: {pipeline: []}, saveResultAsEntity: w}`
	}
	const iterate = `, {name: iterateUntilDocumentOrError, object: w}`
	const insert = `, {name: insertOne, object: x, arguments: {document: {}}}`
	for _, r := range []struct{ reason, operations, more, alone, names string }{
		{"its own collection", `{name: find, object: x, arguments: {filter: {}}}`, "", "", "db.own"},
		{"an outcome and a target", `{name: aggregate, object: x, arguments: {pipeline: [{$out: target}]}}`, "", "", "db.own db.target"},
		{"an assertion about a collection", `{name: assertCollectionExists, object: testRunner, arguments: {databaseName: e, collectionName: f}}`, "",
			"", "db.own e.f"},
		{"state collections of encryption", `{name: assertCollectionExists, object: testRunner, arguments: {databaseName: db, collectionName: enxcol_.own.esc}}`, "",
			namesServers, "db.enxcol_.own.esc db.own"},
		{"fail points, a session and commands of the connection", blocked("600") + `, {name: startTransaction, object: s}, ` + command("ping"), "",
			"", "db.own"},

		{"a fail point inside a server", strings.Replace(blocked("600"), "failCommand", "failReceivedGetmore", 1), "", insideServer, "db.own"},
		{"an option of a fail point inside a server", strings.Replace(blocked("600"), "blockConnection: true", "failBeforeCommitExceptionCode: 8", 1),
			"", insideServer, "db.own"},
		{"an operation that is not known", `{name: invent, object: x}`, "", why(0), "db.own"},
		{"listDatabases", `{name: listDatabases, object: c}`, "", "", "*.* db.own"},
		{"listDatabases, and a write", `{name: listDatabases, object: c}` + insert, "", wholeRules[0].why, "db.own"},
		{"listDatabaseNames, on a thread", `{name: runOnThread, object: testRunner, arguments: {thread: t, operation: {name: listDatabaseNames, object: c}}}`, thread,
			"", "*.* db.own"},
		{"listDatabaseObjects", `{name: listDatabaseObjects, object: c}`, "", "", "*.* db.own"},
		{"listDatabases of another name", `{name: listDatabases, object: c, arguments: {filter: {name: e}}}`, "", "", "*.* db.own"},
		{"listDatabases of the name of its own", `{name: listDatabases, object: c, arguments: {filter: {name: db}}}`, "", "", "db.own"},
		{"a change stream of the cluster", stream("c") + iterate, "", "", "*.* db.own"},
		{"a change stream of the cluster, and a write", stream("c") + iterate + insert, "", wholeRules[1].why, "db.own"},
		{"a change stream of the cluster that is not iterated", stream("c") + insert, "", "", "db.own"},
		{"the reply to a change stream of the cluster", stream("c") + `], expectEvents: [{client: c, events: [{commandSucceededEvent: {reply: {ok: 1}}}]}`,
			"", "", "*.* db.own"},
		{"a change stream of a collection", stream("x") + iterate, "", "", "db.own"},
		{"dropDatabase of others", `{name: dropDatabase, object: c, arguments: {database: other}}`, "", why(1), "db.own other.*"},
		{"dropDatabase of its own", `{name: dropDatabase, object: c, arguments: {database: db}}`, "", "", "db.* db.own"},
		{"the command dropDatabase, of its own", command("dropDatabase"), "", "", "db.* db.own"},
		{"an election", `{name: waitForPrimaryChange, object: testRunner, arguments: {client: c, priorTopologyDescription: p}}`, "", why(2), "db.own"},
		{"a collection with encryption", `{name: createEncryptedCollection, object: e, arguments: {database: d, collection: y}}`,
			`{clientEncryption: {id: e, clientEncryptionOpts: {keyVaultClient: c, keyVaultNamespace: k.v, kmsProviders: {}}}}`, why(3), "db.own k.v"},
		{"a server parameter", command("setParameter"), "", why(4), "db.own"},
		{"killAllSessions", command("killAllSessions"), "", why(4), "db.own"},
		{"a step down", command("replSetStepDown"), "", why(4), "db.own"},
		{"connections that a server counts", command("serverStatus"), "", why(4), "db.own"},
		{"a command with a cursor", `{name: runCursorCommand, object: d, arguments: {commandName: currentOp, command: {currentOp: 1}}}`, "",
			why(4), "db.own"},
		{"operations in progress", `{name: aggregate, object: a, arguments: {pipeline: [{$currentOp: {}}]}}`, "", why(5), "admin.* db.own"},
		{"one session of the server", `{name: aggregate, object: a, arguments: {pipeline: [{$listLocalSessions: {}}, {$limit: 1}]}}`, "", "", "db.own"},
		{"two sessions of the server", `{name: aggregate, object: a, arguments: {pipeline: [{$listLocalSessions: {}}, {$limit: 2}]}}`, "",
			why(5), "admin.* db.own"},
		{"collections of the server's database", `{name: listCollections, object: a}`, "", why(5), "admin.* db.own"},
		{"transactions of the server", `{name: find, object: y, arguments: {filter: {}}}`,
			`{database: {id: e, client: c, databaseName: config}}, {collection: {id: y, database: e, collectionName: transactions}}`,
			namesServers, "config.transactions db.own"},

		{"listCollections", `{name: listCollectionNames, object: d}`, "", "", "db.* db.own"},
		{"the command listCollections", command("listCollections"), "", "", "db.* db.own"},
		{"listCollections of one name", `{name: listCollections, object: d, arguments: {filter: {name: z}}}`, "", "", "db.own db.z"},
		{"listCollections of names", `{name: listCollections, object: d, arguments: {filter: {name: {$ne: z}}}}`, "", "", "db.* db.own"},
		{"the command listCollections of one name",
			`{name: runCommand, object: d, arguments: {commandName: listCollections, command: {listCollections: 1, filter: {name: z}}}}`, "",
			"", "db.own db.z"},
		{"a change stream of a database", stream("d") + iterate, "", "", "db.* db.own"},
		{"a change stream of a database that is not iterated", stream("d"), "", "", "db.own"},
		{"a change stream of a database that another test can drop", stream("e"), `{database: {id: e, client: c, databaseName: e}}`, "", "db.own e.*"},
		{"an aggregation of a database", `{name: aggregate, object: d, arguments: {pipeline: []}}`, "", "", "db.* db.own"},
		{"another collection, in a stage of a stage", `{name: aggregate, object: x, arguments: {pipeline: [{$facet: {f: [{$unionWith: z}]}}]}}`, "",
			"", "db.* db.own"},
		{"a view", `{name: createCollection, object: d, arguments: {collection: v, viewOn: z}}`, "", "", "db.* db.own db.v"},

		{"a limit below 500 ms", timed("maxTimeMS: 499"), "", tightLimit, "db.own"},
		{"a limit of 500 ms", timed("timeoutMS: 500"), "", "", "db.own"},
		{"no limit", timed("timeoutMS: 0"), "", "", "db.own"},
		{"an option of a client", timed("skip: 0"), `{client: {id: e, uriOptions: {serverSelectionTimeoutMS: 100}}}`, tightLimit, "db.own"},
		{"an interval is not a limit", timed("skip: 0"), `{client: {id: e, uriOptions: {heartbeatFrequencyMS: 100}}}`, "", "db.own"},
		{"a limit that ends soon after a wait", blocked("600") + ", " + timed("timeoutMS: 1000"), "", tightLimit, "db.own"},
		{"a limit that ends later", blocked("500") + ", " + timed("timeoutMS: 1000"), "", "", "db.own"},
		{"a limit that ends during the wait", blocked("1500") + ", " + timed("timeoutMS: 1000"), "", "", "db.own"},
		{"a limit that ends soon after a server has waited for a change", `{name: createChangeStream, object: x, arguments: {pipeline: [], timeoutMS: 1050}}`,
			"", tightLimit, "db.own"},
		{"a limit that ends long after it", `{name: createChangeStream, object: x, arguments: {pipeline: [], timeoutMS: 1500}}`, "", "", "db.own"},
		{"a limit that ends soon after a server has waited for a document", timed("timeoutMS: 1000, cursorType: tailableAwait"), "",
			tightLimit, "db.own"},
		{"a cursor that does not wait", timed("timeoutMS: 1000, cursorType: tailable"), "", "", "db.own"},
		{"a script on a server", `{name: find, object: x, arguments: {filter: {$where: sleep(2000) || true}}}`, "", tightLimit, "db.own"},
		{"a short wait for a thread", wait("100"), thread, tightLimit, "db.own"},
		{"a short wait, for nothing", wait("100"), "", "", "db.own"},

		{"connections to one of several mongos", cleared, `{client: {id: m, useMultipleMongoses: true, observeEvents: [poolClearedEvent]}}`,
			choosesServers, "db.own"},
		{"connections to the only mongos", cleared, `{client: {id: m, useMultipleMongoses: false, observeEvents: [poolClearedEvent]}}`,
			"", "db.own"},
		{"several mongos, and no closed connections", command("ping"), `{client: {id: m, useMultipleMongoses: true}}`, "", "db.own"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			more := ""
			if r.more != "" {
				more = ", " + r.more
			}
			text := "description: s\nschemaVersion: '1.28'\ncreateEntities: " + strings.ReplaceAll(entities, "\n\t\t", "") + more + "]\n" +
				"initialData: [{databaseName: db, collectionName: own, documents: []}]\ntests: [{description: a, operations: [" +
				r.operations + "]}]\n"
			suite, err := specs.Parse("s.yml", []byte(text))
			testkit.Check(t, err)
			f := footprintOf(suite, suite.Tests[0])
			testkit.Equal(t, "why it runs alone", f.alone, r.alone)
			testkit.Equal(t, "namespaces", strings.Join(f.names, " "), r.names)
		})
	}
}

// The page describes each rule.
func TestFootprintsOnThePage(t *testing.T) {
	page := testkit.Read(t, "../docs/server/fail-points.md")
	for _, r := range slices.Concat(wholeRules, clusterRules, databaseRules) {
		testkit.Contains(t, page, "| "+r.why+" | ")
	}
	for _, why := range []string{tightLimit, failedBeside, insideServer, choosesServers, namesServers, noSessions} {
		testkit.Contains(t, page, "| "+why+" | ")
	}
}

// Tests that only read the same initial data have the same identification of it, others none.
func TestReads(t *testing.T) {
	identified := func(data, operation string) string {
		suite, err := specs.Parse("s.yml", []byte(`{description: s, schemaVersion: "1.28", createEntities: [{client: {id: c}},
			{database: {id: d, client: c, databaseName: db}}, {collection: {id: x, database: d, collectionName: x}},
			{collection: {id: y, database: d, collectionName: y}}], initialData: [`+data+`],
			tests: [{description: a, operations: [`+operation+`]}]}`))
		testkit.Check(t, err)
		return footprintOf(suite, suite.Tests[0]).reads
	}
	const x, find = `{databaseName: db, collectionName: x, documents: [{_id: 1}]}`, `{name: find, object: x, arguments: {filter: {}}}`
	want := identified(x, find)
	testkit.Equal(t, "a reader is identified", want != "", true)
	for _, r := range []struct {
		reason, data, operation string
		same, reads             bool
	}{
		{"another operation that reads", x, `{name: aggregate, object: x, arguments: {pipeline: [{$match: {}}]}}`, true, true},
		{"a write", x, `{name: insertOne, object: x, arguments: {document: {}}}`, false, false},
		{"an aggregation that writes", x, `{name: aggregate, object: x, arguments: {pipeline: [{$out: y}]}}`, false, false},
		{"an aggregation that counts reads", x, `{name: aggregate, object: x, arguments: {pipeline: [{$collStats: {latencyStats: {}}}]}}`, false, false},
		{"another document", strings.Replace(x, "1", "2", 1), find, false, true},
		{"another type of number", strings.Replace(x, "1", "1.0", 1), find, false, true},
		{"another collection", x + ", " + strings.Replace(x, "Name: x", "Name: y", 1), find, false, true},
		{"options of a collection", strings.Replace(x, "documents", "createOptions: {capped: true, size: 512}, documents", 1), find, false, false},
	} {
		got := identified(r.data, r.operation)
		testkit.Equal(t, r.reason+": the same data", got == want, r.same)
		testkit.Equal(t, r.reason+": it only reads", got != "", r.reads)
	}
}

// Whatever begins and ends, a footprint is refused exactly if it overlaps with one of those that are claimed. Tests that
// only read the same data overlap until the first of them has created it, and after one of them has failed.
func TestClaimsAgainstPairs(t *testing.T) {
	seed := testkit.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	names := strings.Fields("a.x a.y a.* b.x b.* c.x *.*")
	claimed := newClaims()
	var running []footprint
	filled := map[string]bool{} // of the names in use
	users := func(name string) (n int) {
		for _, f := range running {
			if slices.Contains(f.names, name) {
				n++
			}
		}
		return n
	}
	change := map[int]func(i int){
		0: func(i int) { // it creates its initial data
			for _, name := range running[i].names {
				filled[name] = filled[name] || users(name) == 1
			}
			claimed.fill(claimed.sole(running[i]), true)
		},
		1: func(i int) { // it fails
			for _, name := range running[i].names {
				filled[name] = false
			}
			claimed.fill(running[i].names, false)
		},
		2: func(i int) { // it ends
			names := running[i].names
			claimed.release(running[i])
			running = slices.Delete(running, i, i+1)
			for _, name := range names {
				filled[name] = filled[name] && users(name) > 0
			}
		},
	}
	for range 40_000 {
		if i := random.IntN(12); i < len(running) {
			change[random.IntN(3)](i)
			continue
		}
		f := footprint{reads: []string{"", "", "these", "those"}[random.IntN(4)]}
		if random.IntN(8) == 0 {
			f.alone, f.reads = "it drops a database of others", ""
		}
		f.names = slices.DeleteFunc(slices.Clone(names), func(string) bool { return random.IntN(4) > 0 })
		want := !slices.ContainsFunc(running, func(other footprint) bool { return overlap(f, other, filled) })
		if got := claimed.try(f); got != want {
			t.Fatalf("beside %v, %v may begin: %v, want %v", running, f, got, want)
		} else if got {
			running = append(running, f)
		}
	}
}

func overlap(a, b footprint, filled map[string]bool) bool {
	if a.alone != "" || b.alone != "" {
		return true
	}
	return slices.ContainsFunc(a.names, func(x string) bool {
		return slices.ContainsFunc(b.names, func(y string) bool {
			ofX, nameX, _ := strings.Cut(x, ".")
			ofY, nameY, _ := strings.Cut(y, ".")
			return (x == y || x == wholeCluster || y == wholeCluster || ofX == ofY && (nameX == wholeDatabase || nameY == wholeDatabase)) &&
				!(a.reads != "" && a.reads == b.reads && filled[y])
		})
	})
}
