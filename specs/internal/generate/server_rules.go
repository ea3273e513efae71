package main

import (
	"fmt"
	"strings"
)

// serverRule is a rule of what a server must do. Its number is its place in the list.
type serverRule struct {
	Says      string
	Source    string // a specification and its section
	Recording string // the scenarios of recordings that show it, "" for one that none shows
}

const (
	discovery  = "Server Discovery and Monitoring"
	sessions   = "Driver Sessions"
	writesSpec = "Retryable Writes"
	inside     = "Transactions"
	cursorSpec = "Find, getMore and killCursors Commands"
	runnerSpec = "Unified Test Format"
)

// serverRules returns the rules, the first of which is S1.
func serverRules() []serverRule {
	const (
		greeting = "handshake over OP_MSG"
		records  = "retryable writes: records; replays"
		failing  = "failCommand: what fails and how"
		batches  = "batches; get more errors"
		labelled = failing + "; labels: every code in every context"
	)
	return []serverRule{
		{"A server states its limits of sizes and batches.", discovery + `, "Other ServerDescription fields"`, greeting},
		{"A server with sessions states logicalSessionTimeoutMinutes.",
			sessions + `, "How to Tell Whether a Connection Supports Sessions"`, greeting},
		{"A server states its wire versions, which follow from its release.",
			discovery + `, "Checking wire protocol compatibility"; Server Wire version and Feature List`, greeting},
		{"A server states its time, its number for the connection, and whether it only reads.",
			discovery + `, "Parsing a hello or legacy hello response"`, greeting},
		{"A server states its topologyVersion.", discovery + `, "topologyVersion"`, greeting},
		{"A standalone has none of the fields of other kinds of servers.", discovery + `, "type"`, greeting},
		{"A primary states its replica set, its election and its last write.",
			discovery + `, "updateRSFromPrimary", "lastWriteDate and opTime"`, greeting},
		{"A mongos states that it is one.", discovery + `, "type"`, greeting},
		{"Servers of a cluster state their cluster time and the time of the operation.",
			sessions + `, "Receiving the current cluster time"`, greeting},
		{"hello and legacy hello say the same, but for the name of one field.", "MongoDB Handshake, \"Connection handshake\"",
			greeting + "; hello args"},
		{"hello waits for a change only with both arguments, and not if the server has restarted.",
			`Server Monitoring, "Awaitable hello or legacy hello Server Specification"`, "awaitable hello"},
		{"Commands accept the id of a session.", sessions + `, "Sending the session ID to the server on all commands"`,
			"sessions; retryable writes: records; sessions between"},
		{"Sessions can be started, refreshed, ended and killed at any time.", sessions + `, "Server Commands"`, "sessions"},
		{"Commands for sessions refuse what is not a session.", sessions + `, "endSessions"`, "sessions"},
		{"Every reply of a cluster has its cluster time and operation time.", `Causal Consistency, "operationTime"`,
			"writes; reads and cursors"},
		{"A write with a transaction number is executed once, and a repetition returns the same counts.",
			writesSpec + `, "Executing Retryable Write Commands"`, records},
		{"A repeated findAndModify returns the same document.",
			writesSpec + `, "Executing Retryable Write Commands"`, records},
		{"Numbers of a session grow, and a lower one is refused.", writesSpec + `, "Generating Transaction IDs"`,
			records + "; numbers"},
		{"Statements are recorded one by one, once they are executed.", writesSpec + `, "Executing Retryable Write Commands"`,
			records + "; stmt ids"},
		{"A transaction number is refused for anything that is not a retryable write.",
			writesSpec + `, "Unsupported Write Operations"`, records + "; numbers"},
		{"A standalone refuses what needs an oplog.", writesSpec + `, "Supported Server Versions"`,
			"retryable writes: records; what a standalone refuses"},
		{"A mongod adds RetryableWriteError to errors of writes with a transaction number.",
			writesSpec + `, "RetryableWriteError Labels"`, labelled},
		{"A mongod adds RetryableWriteError to replies with a write concern error.",
			writesSpec + `, "RetryableWriteError Labels"`, failing + "; labels: write concern errors of every code"},
		{"The fail point decides about labels if it names them.", runnerSpec + `, "failPoint"`, failing},
		{"A server adds TransientTransactionError to errors in a transaction that can be repeated.",
			inside + `, "Transient Transaction Error"`, "transactions; labels: every code in a running transaction"},
		{"A mongod adds labels to errors of commits and aborts.", inside + `, "commitTransaction"`,
			"transactions; labels: every code in a running transaction"},
		{"An error that changes the state of a member has its topologyVersion.", discovery + `, "topologyVersion"`, failing},
		{"A mongod adds ResumableChangeStreamError to errors of change streams.", `Change Streams, "Resumable Error"`,
			"labels: every code in every context"},
		{"A transaction reads its own writes; others see them after the commit.", inside + `, "Transactions Wire Protocol"`,
			"transactions; machine"},
		{"A commit can be repeated, and ends the transaction.", inside + `, "commitTransaction"`, "transactions; machine"},
		{"A number is one transaction of its session, started once.", inside + `, "Behavior of the startTransaction field"`,
			"transactions; machine"},
		{"The fields of a transaction come together.", inside + `, "Behavior of the autocommit field"`, "numbers"},
		{"Some commands and options are refused in transactions.", inside + `, "Behavior of the writeConcern field"`,
			"transactions; commands in"},
		{"An error of a statement aborts the transaction.", inside + `, "Error Label"`, "transactions; conflicts"},
		{"Only a mongos returns recovery tokens.", inside + `, "Behavior of the recoveryToken field"`, "transactions"},
		{"A write returns what it has done.", "CRUD, \"Write Results\"", "writes"},
		{"An error of a statement does not fail the command.", "CRUD, \"Error Handling\"",
			"writes; retryable writes: records"},
		{"Writes that no driver sends are refused.", "CRUD, \"Bulk Write Models\"", "writes"},
		{"A write concern error does not undo the write.", `Read and Write Concern, "Write Concern"`,
			"writes; on standalone"},
		{"Unknown commands and fields are refused.", "Run Command", "diagnostics"},
		{"Mistakes in queries are refused.", "CRUD, \"Read\"", "reads and cursors"},
		{"A namespace that does not exist is empty; only commands about its indexes fail.",
			"Collection Management; Index Management", "namespaces and indexes; reads and cursors"},
		{"API version 1 has what it has, and nothing else.", "Stable API For Drivers", "api version; api"},
		{"A secondary says that it is one.", discovery + `, "updateRSWithPrimaryFromMember"`, "a secondary"},
		{"A secondary reads and does not write.", discovery + `, "not writable primary" and "node is recovering"`,
			"a secondary"},
		{"The mode of a fail point says how often it strikes.", runnerSpec + `, "failPoint"`, "failCommand: modes"},
		{"The data of failCommand say what it strikes.", runnerSpec + `, "failPoint"`,
			failing + "; failCommand: refused configurations"},
		{"The data of failCommand say what it does.", runnerSpec + `, "failPoint"`, failing},
		{"A wrong configuration of a fail point is refused.", runnerSpec + `, "failPoint"`,
			"failCommand: refused configurations"},
		{"onPrimaryTransactionalWrite loses the reply of a retryable write.", writesSpec + `, "Test Plan"`,
			"onPrimaryTransactionalWrite"},
		{"A cursor without further documents has id 0.", cursorSpec + `, "find"`,
			"reads and cursors; " + batches + "; namespaces and indexes"},
		{"A getMore of no cursor fails.", cursorSpec + `, "getMore"`, "reads and cursors; get more errors"},
		{"killCursors says which cursors it ended.", cursorSpec + `, "killCursors"`, "reads and cursors; " + batches},
		{"Options of cursors that do not fit are refused.", cursorSpec + `, "find"`, batches + "; tailable"},
		{"A cursor lives until its last batch.", cursorSpec + `, "getMore"`, "reads and cursors; " + batches},
		{"A tailable cursor lives on at the end.", cursorSpec + `, "find"`, "tailable"},
	}
}

// requirementsPage is the page of the rules, relative to package specs.
const requirementsPage = "../docs/server/requirements.md"

// introduction begins the page of the rules. A tilde stands for a backquote.
const introduction = `# What a server must do

This page is for those who make or choose a server that speaks MongoDB's protocol: what drivers rely on, as rules with
numbers. The suites of ~specs/server~ judge a server by them:

~~~
$ utr run --uri 'mongodb://localhost:27017/?replicaSet=rs0' server
~~~

The suites send commands as they are, so that a failure points at the server and not at a driver. Most tests use
~runCommand~: fields of hello, error codes, labels, and retryable writes and transactions with numbers of their own.
Batches of cursors are seen in the events of a driver that iterates them. A description says what the server does, why
drivers need it, and the number of the rule. The reference engine, which is the default, sends what the suites say.
Other drivers pass most tests; some change commands that they recognize, such as the transaction number of a commit.

**Where the rules come from.** Each expectation was first seen in the reply of a real server, MongoDB 4.9 or 5.0: a
test of this repository looks it up in recordings, which are not part of it. Only the wire versions of other releases,
and that servers before 4.4 add no labels, come from the specifications. The table names the scenarios, and the
section of the specifications that drivers follow. A rule with a condition has it in ~runOnRequirements~, and the
comment of the suite names its source: a version from which a specification has the rule, or the oldest recorded
version with it. What nobody recorded, such as messages, is not expected.

**Which tests run.** A standalone, a replica set, a mongos and a load balancer each have tests of their own; ~utr
doctor~ says which would run. ~labels*~ and ~fail-points*~ require a server with test commands (~enableTestCommands~),
because with ~--fail-points proxy~ they would judge the proxy. ~secondary~ requires a secondary, which no requirement
can express.

**The embedded deployment** passes all of them on every topology at every version that it offers. Servers that depart
in known ways have a list with a reason for each ([known
failures](../start/running.md#known-failures-and-flaky-tests)).

<!-- This page is made by go generate ./specs. -->

| rule | what a server does | specification | recordings | suites | tests |
|---|---|---|---|---|---|
`

// requirements returns the text of the page, whose table says which rule has how many tests in which suites.
func requirements(s specification) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(introduction, "~", "`"))
	for i, r := range serverRules() {
		id, tests := fmt.Sprintf("S%d", i+1), 0
		var suites []string
		for _, f := range s.Files {
			n := 0
			for _, t := range f.Tests {
				if strings.HasSuffix(t.Description, "("+id+")") {
					n++
				}
			}
			if n > 0 {
				suites = append(suites, "`"+f.Name+"`")
			}
			tests += n
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d |\n", id, r.Says, r.Source, r.Recording,
			strings.Join(suites, ", "), tests)
	}
	return b.String()
}
