package main

import "fmt"

// fact is a field of a reply, what the server does with it, and why drivers need it.
type fact struct {
	Says, Because string
	Field         string // as YAML
	Since         string
	Rule          string
}

// greetings are the commands for the state of a server.
var greetings = []struct{ command, title, since string }{{"hello: 1", "hello", "4.4"},
	{"isMaster: 1", "isMaster", "4.2"}}

// helloFacts are the fields of every server's hello.
var helloFacts = []fact{
	{"states maxBsonObjectSize", "drivers refuse to send larger documents", "maxBsonObjectSize: 16777216", "", "S1"},
	{"states maxMessageSizeBytes", "drivers split bulk writes by it", "maxMessageSizeBytes: 48000000", "", "S1"},
	{"states maxWriteBatchSize", "drivers split bulk writes by it", "maxWriteBatchSize: 100000", "", "S1"},
	{"states logicalSessionTimeoutMinutes", "drivers use sessions only with servers that state it",
		"logicalSessionTimeoutMinutes: { $$type: [ int, long ] }", "", "S2"},
	{"states minWireVersion 0", "drivers refuse servers whose lowest version is higher than their own highest",
		"minWireVersion: 0", "", "S3"},
	{"states maxWireVersion as an integer", "drivers derive from it what the server can do",
		"maxWireVersion: { $$type: [ int, long ] }", "", "S3"},
	{"states connectionId as a number", "drivers log it, so that the server's log can be searched",
		"connectionId: { $$type: [ int, long, double ] }", "", "S4"},
	{"states localTime as a date", "drivers compute the staleness of secondaries from such times",
		"localTime: { $$type: date }", "", "S4"},
	{"states topologyVersion", "drivers ignore replies that are older than what they know",
		"topologyVersion: { processId: { $$type: objectId }, counter: { $$type: [ int, long ] } }", "4.4", "S5"},
}

// stateFacts are the fields by kind of server, of a primary in a replica set.
var stateFacts = []struct {
	topologies topologies
	facts      []fact
}{
	{single, []fact{
		{"has no setName", "drivers take a server with a setName for a member of a replica set",
			"setName: { $$exists: false }", "", "S6"},
		{"has no hosts", "drivers would connect to them", "hosts: { $$exists: false }", "", "S6"},
		{"has no msg", "drivers take a server with msg isdbgrid for a mongos", "msg: { $$exists: false }", "", "S6"},
		{"states readOnly false", "drivers can write to the server", "readOnly: false", "", "S4"},
		{"has no $clusterTime", "drivers would send it to other servers", "$clusterTime: { $$exists: false }", "", "S9"},
		{"has no operationTime", "sessions would wait for that time", "operationTime: { $$exists: false }", "", "S9"},
	}},
	{sets, []fact{
		{"states setName", "drivers remove members of other replica sets", "setName: { $$type: string }", "", "S7"},
		{"states setVersion", "drivers recognize stale primaries by it and electionId",
			"setVersion: { $$type: [ int, long ] }", "", "S7"},
		{"states electionId on the primary", "drivers recognize stale primaries by it and setVersion",
			"electionId: { $$type: objectId }", "", "S7"},
		{"states hosts", "drivers connect to all of them", "hosts: { $$type: array }", "", "S7"},
		{"states primary", "drivers without a primary look for it there", "primary: { $$type: string }", "", "S7"},
		{"states me", "drivers remove servers that are known by another address", "me: { $$type: string }", "", "S7"},
		{"states secondary false on the primary", "drivers read from secondaries with such a preference",
			"secondary: false", "", "S7"},
		{"states readOnly false on the primary", "drivers can write to the server", "readOnly: false", "", "S4"},
		{"states lastWrite.lastWriteDate", "drivers compute the staleness of secondaries from it",
			"lastWrite: { lastWriteDate: { $$type: date }, opTime: { $$type: object } }", "", "S7"},
		{"states lastWrite.majorityWriteDate", "it is the time of the last write that cannot be lost",
			"lastWrite: { majorityWriteDate: { $$type: date }, majorityOpTime: { $$type: object } }", "", "S7"},
		{"has no msg", "drivers take a server with msg isdbgrid for a mongos", "msg: { $$exists: false }", "", "S6"},
	}},
	{sharded, []fact{
		{"states msg isdbgrid", "drivers recognize a mongos by it", "msg: isdbgrid", "", "S8"},
		{"has no setName", "drivers take a server with a setName for a member of a replica set",
			"setName: { $$exists: false }", "", "S8"},
		{"has no hosts", "drivers would connect to them", "hosts: { $$exists: false }", "", "S8"},
		{"has no secondary", "a mongos is not a member of a replica set", "secondary: { $$exists: false }", "", "S8"},
	}},
	{clusters, []fact{
		{"states $clusterTime with its signature", "drivers send it with later commands, to every server",
			"$clusterTime: { clusterTime: { $$type: timestamp }, signature: { hash: { $$type: binData }, keyId: { $$type: [ int, long ] } } }", "", "S9"},
		{"states operationTime", "sessions with causal consistency read no earlier state",
			"operationTime: { $$type: timestamp }", "", "S9"},
	}},
}

// versions are the wire versions of server releases.
var versions = []struct {
	release string
	wire    int
	rule    string
}{{"4.2", 8, ""}, {"4.4", 9, ""}, {"5.0", 13, ""}, {"6.0", 17, ""}, {"7.0", 21, ""}, {"8.0", 25, ""}}

func (f fact) demand(command, title, since string, t topologies, kind string) demand {
	if f.Since != "" {
		since = f.Since
	}
	return demand{fmt.Sprintf("%s %s%s: %s (%s)", title, f.Says, kind, f.Because, f.Rule), servers(since, t),
		[]step{send(command).gets(f.Field)}, nil}
}

var kinds = map[topologies]string{single: " on a standalone", sets: " in a replica set", sharded: " on a mongos",
	clusters: " in a cluster"}

// helloFiles returns the suites of hello.
func helloFiles() []*file {
	var fields, states, wire []demand
	for _, g := range greetings {
		writable := "isWritablePrimary: true, ismaster: { $$exists: false }"
		if g.title == "isMaster" {
			writable = "ismaster: true, isWritablePrimary: { $$exists: false }"
		}
		fields = append(fields, fact{"says that the server accepts writes", "drivers choose it for them", writable,
			"", "S10"}.
			demand(g.command, g.title, g.since, monitored, ""))
		for _, f := range helloFacts {
			fields = append(fields, f.demand(g.command, g.title, g.since, 0, ""))
		}
		for _, s := range stateFacts {
			for _, f := range s.facts {
				states = append(states, f.demand(g.command, g.title, g.since, s.topologies, kinds[s.topologies]))
			}
		}
	}
	fields = append(fields,
		demand{"ismaster is isMaster in lower case: old drivers spell it so (S10)", requirement{},
			[]step{send("ismaster: 1").gets("ismaster: true")}, nil},
		demand{"hello answers on any database: drivers send it to admin, applications to their own (S10)", servers("4.4", 0),
			[]step{send("hello: 1").gets("isWritablePrimary: true"),
				send("hello: 1").to("admin").gets("isWritablePrimary: true")}, nil},
		demand{"isMaster with helloOk answers helloOk: drivers send hello from then on (S10)", servers("5.0", 0),
			[]step{send("isMaster: 1, helloOk: true").gets("helloOk: true, ismaster: true")}, nil},
		demand{"isMaster without helloOk has no helloOk: drivers ask for it (S10)", servers("5.0", monitored),
			[]step{send("isMaster: 1").gets("ismaster: true")}, nil},
	)
	stale := "topologyVersion: { processId: { $oid: \"000000000000000000000001\" }, counter: { $numberLong: \"0\" } }"
	awaited := []demand{
		{"hello answers at once if the topologyVersion is of another process: the server has restarted (S11)", requirement{},
			[]step{send("hello: 1, " + stale + ", maxAwaitTimeMS: { $numberLong: \"60000\" }").
				gets("isWritablePrimary: true, topologyVersion: { processId: { $$type: objectId }, counter: { $$type: [ int, long ] } }")}, nil},
	}
	for _, on := range []struct {
		where string
		needs requirement
		code  code
	}{{"", servers("4.4", single|sets), code{31368, ""}}, {" on a mongos", servers("4.4", sharded), code{51760, ""}}} {
		awaited = append(awaited,
			demand{"hello refuses a topologyVersion without maxAwaitTimeMS" + on.where + ": a driver would wait forever (S11)",
				on.needs,
				[]step{send("hello: 1, " + stale).fails(on.code)}, nil},
			demand{"hello refuses maxAwaitTimeMS without a topologyVersion" + on.where + ": there is nothing to wait for (S11)",
				on.needs,
				[]step{send("hello: 1, maxAwaitTimeMS: { $numberLong: \"100\" }").fails(on.code)}, nil})
	}
	for _, v := range versions {
		wire = append(wire, demand{fmt.Sprintf("hello of %s states maxWireVersion %d: drivers know the release only by this number (S3)", v.release, v.wire),
			requirement{min: v.release, max: v.release +
				".99"}, []step{send("isMaster: 1").gets(fmt.Sprintf("maxWireVersion: %d", v.wire))}, nil})
	}
	return []*file{
		serverFile("hello", "the fields of every hello", servers("4.2", 0),
			[]string{"What every server says about itself. The command hello exists since 4.4, and so does topologyVersion (Server Discovery",
				"and Monitoring, \"topologyVersion\"). 5.0.0 answers helloOk, 4.9 does not, according to recordings."}, fields),
		serverFile("hello-state", "the fields of hello by kind of server", servers("4.2", monitored),
			[]string{"How drivers recognize a standalone, a primary and a mongos (Server Discovery and Monitoring, \"type\").",
				"The command hello exists since 4.4."}, states),
		serverFile("hello-awaited", "hello that waits for a change", servers("4.4", monitored),
			[]string{"The streaming protocol exists since 4.4 (Server Monitoring, \"Streaming Protocol\"). A mongos has its own codes, according",
				"to recordings."}, awaited),
		serverFile("hello-wire-versions", "wire versions", servers("4.2", 0),
			[]string{"The numbers are those of the Server Wire version and Feature List; a recording shows that of 5.0."}, wire),
	}
}
