//go:generate env UTR_UPDATE=1 go test -count 1 -run "^(TestDeviationsPage|TestDeviationPages|TestDeviationSuites)$" .

package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/codes"
)

// The names of the drivers as engines.
const (
	goDriver = "driver"
	pyMongo  = "pymongo"
	nodeJS   = "node"
	java     = "java"
	rust     = "rust"
)

// tested lists the engines of the table with the tested driver and version.
// Conditions ignore versions, since some engines do not know theirs.
func tested() []struct{ name, driver string } {
	return []struct{ name, driver string }{
		{goDriver, "mongo-driver/v2 2.10.0"},
		{pyMongo, "PyMongo 4.20.1"},
		{nodeJS, "Node driver 7.9.0"},
		{java, "Java driver 5.14.0"},
		{rust, "Rust driver 3.9.1"},
	}
}

// Deviations returns the table of decisions in the order of the ids.
func Deviations() []Deviation {
	return []Deviation{
		{
			ID: "D1", Engines: by(goDriver), Title: "continues an unordered bulk write after a command that failed as a whole",
			Section: "Retryable Writes, Executing Retryable Write Commands: a failed retry interrupts the batch, ordered or " +
				"not, as a retryable error does without retries; Bulk Write, Top-Level Errors: all such errors do",
			Suite: "unordered-bulk-write-continues.yml",
			Code: map[string]string{
				goDriver: "bulkWrite.execute (mongo/bulk_write.go): continueOnError is also true after an error of a command",
			},
			example:  Schedule{Operation: "bulkWriteUnordered", Topology: plainest, Faults: []Fault{{Code: 8000}}},
			schedule: allOf(calls("bulkWriteUnordered"), events(shorter)),
		},
		{
			ID: "D2", Engines: by(goDriver, nodeJS), Title: "ends an ordered bulk write at a write concern error",
			Section: "CRUD, Error Handling, does not say whether a bulk write continues; Bulk Write, Write Concern Errors: client bulk writes do", Permitted: true,
			Suite: "ordered-bulk-write-ends-at-write-concern-error.yml",
			Code: map[string]string{
				goDriver: "bulkWrite.execute (mongo/bulk_write.go): a WriteConcernError counts as writeErrorOccurred",
				nodeJS:   "executeCommands and handleWriteError (src/bulk/common.ts)",
			},
			example:  Schedule{Operation: "bulkWrite", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: allOf(calls("bulkWrite"), fault(Fault.ofWriteConcern), events(longer)),
		},
		{
			ID: "D3", Engines: by(goDriver), Title: "does not retry error 50 that has the label RetryableWriteError",
			Section: "Retryable Writes, Determining Retryable Write Errors",
			Suite:   "error-50-with-label-is-retried.yml",
			Code: map[string]string{
				goDriver: "ExtractErrorFromServerResponse (x/mongo/driver/errors.go) makes error 50 a context.DeadlineExceeded, which ends the loop of Operation.Execute (x/mongo/driver/operation.go)",
			},
			example: Schedule{Operation: "insertOne", Topology: plainest,
				Faults: []Fault{{Code: 50, Labels: []string{"RetryableWriteError"}}}},
			schedule: fault(func(f Fault) bool { return f.Code == codes.MaxTimeMSExpired && f.labelled("RetryableWriteError") }),
		},
		{
			ID: "D4", Engines: by(goDriver, nodeJS, rust),
			Title:   "raises the previous error of a read when the last one has the label NoWritesPerformed",
			Section: "Retryable Reads, If a retry attempt fails (the label belongs to Retryable Writes)",
			Suite:   "no-writes-performed-of-a-read.yml",
			Code: map[string]string{
				goDriver: "Operation.Execute (x/mongo/driver/operation.go): prevIndefiniteErr also replaces the error of a read",
				nodeJS:   "executeOperationWithRetries (src/operations/execute_operation.ts): the label keeps the previous error of any operation",
				rust:     "Retry::handle_failure (src/client/executor/retry.rs): indicates_writes_performed also decides for reads",
			},
			example: Schedule{Operation: "find", Topology: plainest,
				Faults: []Fault{{Code: 6}, {Code: 262, Labels: []string{"NoWritesPerformed"}}}},
			schedule: allOf(shown.reads, labelled("NoWritesPerformed")),
		},
		{
			ID: "D5", Engines: by(goDriver),
			Title: "decides whether to retry by the error before one that has the label NoWritesPerformed, so that a write may " +
				"be sent again for an error that is not retryable",
			Section: "Retryable Writes, Executing Retryable Write Commands: the label only selects the error to raise; Client " +
				"Backpressure, Interaction with Other Retry Policies",
			Suite: "last-error-decides.yml",
			Code: map[string]string{
				goDriver: `Operation.Execute (x/mongo/driver/operation.go): prevIndefiniteErr replaces the error, and "goto checkError" decides again`,
			},
			example: Schedule{Operation: "deleteMany", Topology: plainest,
				Faults: []Fault{overloaded(), {Code: 2, Labels: []string{"NoWritesPerformed"}}}},
			schedule: allOf(shown.writes, labelled("NoWritesPerformed"), events(func(l, r []string) bool { return len(r) > 0 }),
				anyOf(events(func(l, r []string) bool { return len(r) > len(l) }), labelled("SystemOverloadedError"))),
		},
		{
			ID: "D6", Title: "sends the second attempt to the mongos that failed the first, because it has not checked the other one yet",
			Section: "Server Selection, Multi-threaded or asynchronous server selection: selection does not wait for discovery; " +
				"Server Selection Algorithm: if no server is suitable without the deprioritized ones, they are not filtered out", Permitted: true,
			// Generated schedules begin after discovery.
			test: allOf(topology("sharded"), sameEvents(servers)),
		},
		{
			ID: "D7", Engines: by(goDriver), Title: "does not apply a client's timeoutMS to getMore",
			Section: "Client Side Operations Timeout, Cursors: the default timeoutMode of cursors that are not tailable is cursorLifetime",
			Suite:   "timeout-of-a-cursor.yml",
			Code: map[string]string{
				goDriver: "Cursor.All (mongo/cursor.go) does not apply clientTimeout, which Cursor.next does",
			},
			example: Schedule{Operation: "getMore", Topology: plainest, Options: Options{"timeoutMS": someTimeMS},
				Faults: []Fault{{BlockMS: blockedMS}}},
			schedule: allOf(calls("getMore"), shown.timed, fault(func(f Fault) bool { return f.BlockMS > someTimeMS })),
		},
		{
			ID: "D8", Engines: by(goDriver, pyMongo, nodeJS, java),
			Title:    "does not report the labels of a client bulk write's write concern error",
			Section:  "Retryable Writes, RetryableWriteError Labels; Bulk Write, Write Concern Errors",
			schedule: allOf(calls("clientBulkWrite"), fault(Fault.ofWriteConcern), outcomesOnly()),
			test: each(func(one Difference) bool {
				return strings.Contains(one.Left, ".clientBulkWrite raised") &&
					strings.Contains(one.Left, "write concern error:") &&
					one.Right == strings.Replace(one.Left, ", RetryableWriteError", "", 1)
			}),
		},
		{
			ID: "D9", Engines: by(goDriver),
			Title:   "waits up to half a second, its shortest heartbeatFrequencyMS, for the next check of a server that it has marked Unknown, which may be more time than timeoutMS leaves",
			Section: "Server Monitoring, Requesting an immediate check: a request is ignored while hello is in progress, as when it streams", Permitted: true,
			schedule: allOf(shown.timed, anyOf(events(longer), calls("bulkWriteUnordered")), fault(Fault.unsettles)),
		},
		{
			ID: "D10", Engines: by(goDriver),
			Title: "labels the network errors of writes to a standalone with RetryableWriteError",
			Section: "Retryable Writes, RetryableWriteError Labels: any server version that supports retryable writes, which a " +
				"standalone of that version does not", Permitted: true,
			Suite: "network-error-of-a-standalone.yml",
			Code: map[string]string{
				goDriver: "Operation.Execute (x/mongo/driver/operation.go): the label needs retryEnabled, but not retrySupported",
			},
			example:  Schedule{Operation: "insertOne", Topology: "single", Faults: []Fault{{Close: true}}},
			schedule: allOf(topology("single"), outcomesOnly(), right("RetryableWriteError")),
			test: allOf(topology("single"), outcomes(func(l, r string) bool {
				return strings.HasSuffix(l, "raised client error") && r == l+", RetryableWriteError"
			})),
		},
		{
			ID: "D11", Engines: by(goDriver),
			Title:   "raises the write concern error of an aggregate with $out as an error without a public type",
			Section: "Read and Write Concern, Errors",
			Suite:   "write-concern-error-of-out.yml",
			Code: map[string]string{
				goDriver: "wrapErrors (mongo/errors.go), which Collection.Aggregate calls, has no case for driver.WriteCommandError",
			},
			example:  Schedule{Operation: "aggregateOut", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: allOf(calls("aggregateOut"), fault(Fault.ofWriteConcern), outcomesOnly()),
		},
		{
			ID: "D12", Engines: by(goDriver),
			Title:   "counts other errors after an overload error against limits other than maxAdaptiveRetries",
			Section: "Client Backpressure, Overload retry policy: the limit applies to all retry attempts, also under timeoutMS",
			Suite:   "limit-after-overload.yml",
			Code: map[string]string{
				goDriver: "Operation.Execute (x/mongo/driver/operation.go): nextBudget is reset to defaultBudget after each attempt",
			},
			example: Schedule{Operation: "find", Topology: plainest, Options: Options{"maxAdaptiveRetries": 3},
				Faults: []Fault{overloaded(), {Close: true}, {Close: true}}},
			schedule: allOf(anyOf(func(s shown) bool { return s.Options["maxAdaptiveRetries"] != nil }, shown.timed),
				fault(func(f Fault) bool { return f.labelled("SystemOverloadedError") && f.labelled("RetryableError") })),
		},
		{
			ID: "D13", Engines: by(goDriver, pyMongo, nodeJS, java),
			Title:   "reports only the last write concern error of a bulk write, and none if a command failed",
			Section: "CRUD, Error Handling, BulkWriteException: writeConcernError", Permitted: true,
			schedule: allOf(bulk, outcomesOnly(), left("write concern error:")),
		},
		{
			ID: "D14", Engines: by(goDriver, pyMongo, nodeJS, java, rust),
			Title:   "leaves a server's TransientTransactionError on the error of a commit whose outcome is not known",
			Section: "Transactions, Error Labels: the two labels exclude each other", Permitted: true,
			Suite: "labels-of-an-unknown-commit.yml",
			Code: map[string]string{
				goDriver: "Operation.Execute (x/mongo/driver/operation.go) adds a label and removes none",
				pyMongo:  "ClientSession.commit_transaction (client_session.py) removes the label only from a ConnectionFailure",
				nodeJS:   "shouldAddUnknownTransactionCommitResultLabel (src/sessions.ts), whose callers remove no label",
				java:     "ClientSessionImpl.commitTransaction",
				rust:     "Error::should_add_unknown_transaction_commit_result_label (src/error.rs) is false if the error has the other label, which stays",
			},
			example: Schedule{Operation: "commitTransaction", Topology: plainest,
				Faults: []Fault{{Code: 50, Labels: []string{"TransientTransactionError"}}}},
			schedule: allOf(labelled("TransientTransactionError"), outcomesOnly(), left("UnknownTransactionCommitResult")),
		},
		{
			ID: "D15", Engines: by(goDriver, pyMongo),
			Title: "raises an error other than the last one without the label NoWritesPerformed",
			Section: "Retryable Writes, Executing Retryable Write Commands: the newest error that indicates an attempt, which " +
				"may be a network error or a write concern error; Client Backpressure, Overload retry policy",
			Suite: "error-of-several.yml",
			Code: map[string]string{
				goDriver: "resetForRetry in Operation.Execute (x/mongo/driver/operation.go): prevIndefiniteErr is never a network error or a write concern error",
				pyMongo:  "_ClientConnectionRetryable.run (mongo_client.py)",
			},
			example: Schedule{Operation: "insertOne", Topology: plainest,
				Faults: []Fault{overloaded(), {Close: true},
					{Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError", "NoWritesPerformed"}, Backoff: 1}}},
			schedule: allOf(shown.writes, shown.alone,
				anyOf(labelled("NoWritesPerformed"), left("NoWritesPerformed"), right("NoWritesPerformed"),
					laterFault(Fault.labelledByServer)),
				outcomes(func(l, r string) bool { return strings.Contains(l, " raised ") && strings.Contains(r, " raised ") })),
		},
		{
			ID: "D16", Engines: by(goDriver),
			Title:   "retries commitTransaction and abortTransaction behind a load balancer based on the error code, without the label RetryableWriteError",
			Section: "Retryable Writes, Determining Retryable Write Errors: from 4.4 on the server's label alone decides",
			Suite:   "commit-behind-a-load-balancer.yml",
			Code: map[string]string{
				goDriver: "Error.RetryableWrite (x/mongo/driver/errors.go)",
			},
			example: Schedule{Operation: "commitTransaction", Topology: "load-balanced",
				Faults: []Fault{{Code: 6, Labels: []string{"TransientTransactionError"}}}},
			schedule: allOf(topology("load-balanced"),
				anyOf(allOf(calls("commitTransaction", "abortTransaction"), events(shorter)),
					allOf(calls("withTransaction"), events(commitsAgain))), // the transaction should restart
				fault(func(f Fault) bool { return f.Code != 0 && f.Labels != nil && !f.labelled("RetryableWriteError") })),
		},
		{
			ID: "D17", Engines: by(goDriver),
			Title:   "sends the updates and deletes of many documents of a bulk write in separate commands",
			Section: "Retryable Writes, Supported Write Operations: drivers MUST NOT alter splitting to make more writes retryable",
			test: allOf(sameEvents(`, \d+ statements?`), each(func(one Difference) bool {
				return strings.Contains(one.Left, " statements")
			})),
		},
		{
			ID: "D18", Title: "backs off for a random time, so that more or fewer attempts fit into timeoutMS",
			Section: "Client Backpressure, Overload retry policy: jitter", Permitted: true,
			test: each(func(one Difference) bool {
				l, r := strings.Split(one.Left, "\n"), strings.Split(one.Right, "\n")
				return one.Aspect == "events" && strings.Contains(one.Left, "failed: code 462") && (longer(l, r) || longer(r, l))
			}),
		},
		{
			ID: "D19", Engines: by(goDriver, java),
			Title:    "sends the recovery token of an earlier transaction with the abort of one that has none yet",
			Section:  "Transactions, recoveryToken field: starting a transaction clears it",
			schedule: sameEvents(", recovery token"),
		},
		{
			ID: "D20", Engines: by(pyMongo),
			Title:   "raises MaxTimeMSExpired as an error that is a timeout even without timeoutMS",
			Section: "Client Side Operations Timeout, Errors: without timeoutMS, drivers MUST return their existing errors; ExecutionTimeout is one", Permitted: true,
			schedule: outcomes(func(l, r string) bool {
				return strings.Replace(l, "raised server error, code 50", "raised timeout, code 50", 1) == r
			}),
		},
		{
			ID: "D21", Engines: by(pyMongo),
			Title:   "publishes a command failed event for a reply that has ok: 1 and a write concern error",
			Section: "Command Logging and Monitoring, Succeeded or Failed",
			Suite:   "command-that-succeeds.yml",
			Code: map[string]string{
				pyMongo: "_run_command (command_runner.py): _check_command_response raises a write concern error before the event is published",
			},
			example: Schedule{Operation: "findOneAndUpdate", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: each(func(one Difference) bool {
				return one.Aspect == "events" &&
					one.Right == strings.ReplaceAll(one.Left, "succeeded, write concern error ", "failed: code ")
			}),
		},
		{
			ID: "D22", Engines: by(pyMongo),
			Title: "reports UnknownTransactionCommitResult based on the error code, whether it has the label RetryableWriteError or not",
			Section: "Transactions, UnknownTransactionCommitResult, names retryable writes errors; Retryable Writes, " +
				"Determining Retryable Write Errors: from 4.4 on the server's label alone decides", Permitted: true,
			Suite: "label-of-a-commit-by-its-code.yml",
			Code: map[string]string{
				pyMongo: "ClientSession.commit_transaction (client_session.py): _UNKNOWN_COMMIT_ERROR_CODES",
			},
			example: Schedule{Operation: "commitTransaction", Topology: plainest,
				Faults: []Fault{{Code: 6, Labels: []string{}}}},
			schedule: anyOf(allOf(calls("withTransaction"), events(commitsAgain)), outcomes(func(l, r string) bool {
				const label = ", UnknownTransactionCommitResult"
				return strings.TrimSuffix(l, label) == strings.TrimSuffix(r, label)
			})),
		},
		{
			ID: "D23", Engines: by(pyMongo), Fixed: map[string]string{pyMongo: "4.20.1"},
			Title:   "does not retry getMore behind a load balancer",
			Section: "Client Backpressure, Driver mechanisms subject to the retry policy",
			Suite:   "getmore-behind-a-load-balancer.yml",
			Code: map[string]string{
				pyMongo: "MongoClient._run_operation (mongo_client.py)",
			},
			example:  Schedule{Operation: "getMore", Topology: "load-balanced", Faults: []Fault{overloaded()}},
			schedule: allOf(calls("getMore"), topology("load-balanced"), events(longer)),
		},
		{
			ID: "D24", Engines: by(pyMongo, nodeJS),
			Title:     "ends a bulk write, ordered or not, at a write concern error whose code is that of a retryable error",
			Section:   "CRUD, Error Handling, does not say whether a bulk write continues after a write concern error",
			Permitted: true,
			Suite:     "bulk-write-ends-at-retryable-write-concern-error.yml",
			Code: map[string]string{
				pyMongo: "_Bulk._execute_command (bulk.py): _RETRYABLE_ERROR_CODES",
				nodeJS:  "executeCommands (src/bulk/common.ts) throws after any MongoWriteConcernError",
			},
			example:  Schedule{Operation: "bulkWriteUnordered", Topology: "single", Faults: []Fault{{WriteConcernError: 6}}},
			schedule: allOf(bulk, fault(Fault.ofWriteConcern), events(longer)),
		},
		{
			ID: "D25", Engines: by(pyMongo),
			Title:    "commits without write concern majority after an overload error, even if another error preceded it",
			Section:  "Transactions, Interaction with Client Backpressure",
			schedule: sameEvents(`, w "majority"`),
		},
		{
			ID: "D26", Engines: by(pyMongo, java),
			Title:    "keeps its connections after a write concern error that says that the server is shutting down",
			Section:  `Server Discovery and Monitoring, "not writable primary" and "node is recovering": these errors clear the pool, other state change errors do not`,
			schedule: allOf(fault(Fault.shutsDown), sameEvents(cleared)),
		},
		{
			ID: "D27", Engines: by(pyMongo),
			Title:   "retries an aggregate that writes only if both retryReads and retryWrites are true",
			Section: "Client Backpressure, Overload retry policy",
			Suite:   "aggregate-that-writes.yml",
			Code: map[string]string{
				pyMongo: "_ClientConnectionRetryable.run (mongo_client.py): retry_writes is required by _is_aggregate_write, and retry_reads by _is_read",
			},
			example: Schedule{Operation: "aggregateOut", Topology: plainest, Options: Options{"retryReads": false},
				Faults: []Fault{overloaded()}},
			schedule: allOf(calls("aggregateOut"), off("retryReads"), events(longer)),
		},
		{
			ID: "D28", Engines: by(nodeJS),
			Title:     "labels every network error with RetryableWriteError, including those of reads",
			Section:   "Retryable Writes, RetryableWriteError Labels: read literally, any network error of a client with retryWrites true",
			Permitted: true,
			Suite:     "network-error-of-a-read.yml",
			Code: map[string]string{
				nodeJS: "Server.decorateCommandError (src/sdam/server.ts)",
			},
			example:  Schedule{Operation: "find", Topology: plainest, Faults: []Fault{{Close: true}, {Close: true}}},
			schedule: outcomes(func(l, r string) bool { return r == l+", RetryableWriteError" }),
		},
		{
			ID: "D29", Engines: by(nodeJS, rust),
			Title:    "clears the pool twice for one network error behind a load balancer, or not at all",
			Section:  "Server Discovery and Monitoring, Network error when reading or writing",
			schedule: allOf(topology("load-balanced"), sameEvents(cleared)),
		},
		{
			ID: "D30", Engines: by(nodeJS),
			Title:   "raises the write concern error of an insertMany without its labels, and in place of a write error",
			Section: "CRUD, Error Handling; Retryable Writes, RetryableWriteError Labels",
			Suite:   "write-errors-beside-write-concern-error.yml",
			Code: map[string]string{
				nodeJS: "executeCommands (src/bulk/common.ts) makes a MongoBulkWriteError of the code and the message of a MongoWriteConcernError",
			},
			example:  Schedule{Operation: "insertManyUnordered", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: allOf(calls("insertMany", "insertManyUnordered"), outcomesOnly(), fault(Fault.ofWriteConcern)),
		},
		{
			ID: "D31", Engines: by(nodeJS),
			Title:    "with retryWrites false, does not retry commitTransaction after an overload error was followed by another",
			Section:  "Transactions, Interaction with Retryable Writes: commitTransaction is retried whatever retryWrites is",
			schedule: allOf(calls("commitTransaction"), off("retryWrites"), events(longer)),
		},
		{
			ID: "D32", Engines: by(nodeJS),
			Title:   "sends neither abortTransaction nor commitTransaction if the first command has failed with the label RetryableError, without SystemOverloadedError",
			Section: "Transactions, ClientSession changes: sending a command begins the transaction, whatever its result",
			Suite:   "abort-after-a-failed-command.yml",
			Code: map[string]string{
				nodeJS: "updateSessionFromResponse (src/sessions.ts): isRetryableError keeps the state STARTING_TRANSACTION",
			},
			example: Schedule{Operation: "withTransaction", Topology: plainest,
				Faults: []Fault{{Code: 211, Labels: []string{"RetryableError"}}}},
			schedule: allOf(events(longer), labelled("RetryableError"),
				events(func(l, r []string) bool { return strings.Contains(l[len(r)], "Transaction on admin") })),
		},
		{
			ID: "D33", Title: "sends the next attempt to the mongos that has just failed, because an earlier fault has made the other one Unknown",
			Section: "Server Selection, Server Selection Algorithm: if no server is suitable without the deprioritized ones, they are not filtered out", Permitted: true,
			schedule: allOf(topology("sharded"), sameEvents(servers), func(s shown) bool {
				return len(slices.DeleteFunc(slices.Clone(s.Faults), func(f Fault) bool { return !f.unsettles() })) > 1
			}),
		},
		{
			ID: "D34", Engines: by(java), Title: "raises the timeout of a write without the label RetryableWriteError",
			Section: "Retryable Writes, RetryableWriteError Labels: network errors MUST have the label, and a timeout of the socket is one",
			schedule: allOf(shown.timed, outcomes(func(l, r string) bool {
				return strings.Contains(l, " raised timeout") && strings.Replace(l, ", RetryableWriteError", "", 1) == r
			})),
		},
		{
			ID: "D35", Engines: by(java),
			Title:   "retries a write concern error of an insert, update or delete only if its code says that the server is not writable, whatever its label",
			Section: "Retryable Writes, Determining Retryable Write Errors: the server's label decides",
			Suite:   "write-concern-error-of-an-update.yml",
			example: Schedule{Operation: "updateOne", Topology: plainest, Faults: []Fault{{WriteConcernError: 262}}},
			schedule: anyOf(allOf(events(func(l, r []string) bool { return len(l) >= len(r) && len(r) > 0 }),
				fault(func(f Fault) bool { return f.ofWriteConcern() && !f.deposes() })),
				// The bulk write continues where a retry would have failed.
				allOf(bulk, faultAt(0, func(f Fault) bool { return f.ofWriteConcern() && !f.deposes() }))),
		},
		{
			ID: "D36", Engines: by(java), Title: "raises the previous error when the retry of a read fails with MaxTimeMSExpired",
			Section:  "Retryable Reads, If a retry attempt fails: the error of the retry is raised",
			Suite:    "max-time-expired-of-a-retry.yml",
			example:  Schedule{Operation: "find", Topology: plainest, Faults: []Fault{{Code: 89}, {Code: 50}}},
			schedule: allOf(shown.reads, outcomesOnly(), shown.alone, left("raised server error, code 50")),
		},
		{
			ID: "D37", Engines: by(java),
			Title: "with timeoutMS, publishes and raises MaxTimeMSExpired as a timeout that has no reply and no code, and that ends the operation",
			Section: "Client Side Operations Timeout, Error Transformations: it becomes the new error type; Command Logging " +
				"and Monitoring, Error Handling, does not say in which form the event has it", Permitted: true,
			schedule: allOf(shown.timed, fault(func(f Fault) bool { return f.Code == codes.MaxTimeMSExpired }),
				func(s shown) bool {
					return slices.ContainsFunc(s.differences, func(one Difference) bool {
						return strings.Contains(one.Left, "code 50") && !strings.Contains(one.Right, "code 50") ||
							strings.Contains(one.Right, "raised timeout")
					})
				}),
		},
		{
			ID: "D38", Engines: by(java),
			Title: "reports UnknownTransactionCommitResult behind a load balancer based on the error code, without the label RetryableWriteError",
			Section: "Transactions, UnknownTransactionCommitResult, names retryable writes errors; Retryable Writes, " +
				"Determining Retryable Write Errors", Permitted: true,
			schedule: allOf(topology("load-balanced"), outcomes(func(l, r string) bool {
				return l+", UnknownTransactionCommitResult" == r
			})),
		},
		{
			ID: "D39", Engines: by(java),
			Title:   "when a retry fails after a write concern error or with one, raises it and continues the bulk write",
			Section: "Retryable Writes, Executing Retryable Write Commands: a failed retry interrupts the batch, ordered or not; which error is raised",
			schedule: anyOf(allOf(bulk, anyOf(fault(Fault.deposes), faultAt(1, Fault.ofWriteConcern)),
				events(func(l, r []string) bool { return len(r) > len(l) })),
				allOf(fault(Fault.deposes), func(s shown) bool { return s.differences[0].Aspect == "operation" },
					left("raised server error"), right("raised server error"))),
		},
		{
			ID: "D40", Engines: by(goDriver, pyMongo, nodeJS, rust), Title: "reads error labels inside a write concern error",
			Section: "Retryable Writes, Determining Retryable Write Errors: a label is in the top-level errorLabels of the reply",
			Suite:   "labels-inside-a-write-concern-error.yml",
			Code: map[string]string{
				goDriver: "ExtractErrorFromServerResponse (x/mongo/driver/errors.go): the case writeConcernError",
				pyMongo:  "_get_wce_doc (helpers_shared.py) and PyMongoError (errors.py), which reads errorLabels of the write concern error",
				nodeJS:   "MongoWriteConcernError (src/error.ts) has the fields of writeConcernError, with errorLabels",
				rust:     "Error::new (src/error.rs) adds the labels of the write concern error",
			},
			example: Schedule{Operation: "insertOne", Topology: plainest,
				Faults: []Fault{{WriteConcernError: 64, Inner: []string{"RetryableWriteError"}}}},
			schedule: fault(func(f Fault) bool { return f.Inner != nil }),
		},
		{
			ID: "D41", Engines: by(nodeJS),
			Title: "with maxAdaptiveRetries 0, retries commitTransaction and abortTransaction after no error",
			Section: "Transactions, Interaction with Retryable Writes: both are retried; Client Backpressure, Overload retry policy: " +
				"maxAdaptiveRetries is about overload errors",
			Suite: "commit-without-adaptive-retries.yml",
			Code: map[string]string{
				nodeJS: "ClientSession.commitTransaction and abortTransaction (src/sessions.ts): remainingAttempts",
			},
			example: Schedule{Operation: "commitTransaction", Topology: plainest, Options: Options{"maxAdaptiveRetries": 0},
				Faults: []Fault{{Close: true}}},
			schedule: allOf(calls("commitTransaction", "abortTransaction", "withTransaction"), zero("maxAdaptiveRetries"),
				events(longer)),
		},
		{
			ID: "D42", Engines: by(rust), Title: "reports UnknownTransactionCommitResult only for write concern errors of three codes",
			Section: "Transactions, UnknownTransactionCommitResult: all write concern errors except two have the label",
			Suite:   "write-concern-error-of-a-commit.yml",
			Code: map[string]string{
				rust: "Error::should_add_unknown_transaction_commit_result_label (src/error.rs)",
			},
			example: Schedule{Operation: "commitTransaction", Topology: plainest, Faults: []Fault{{WriteConcernError: 8000}}},
			schedule: allOf(fault(Fault.ofWriteConcern), outcomes(func(l, r string) bool {
				return strings.Replace(l, ", UnknownTransactionCommitResult", "", 1) == r
			})),
		},
		{
			ID: "D43", Engines: by(rust), Title: "raises the last error if all have the label NoWritesPerformed",
			Section: "Retryable Writes, Executing Retryable Write Commands: the first one",
			Suite:   "no-writes-performed-by-any-attempt.yml",
			Code: map[string]string{
				rust: "Retry::handle_failure (src/client/executor/retry.rs): the newer error wins unless only the older one indicates writes",
			},
			example: Schedule{Operation: "insertOne", Topology: plainest,
				Faults: []Fault{{Code: 6, Labels: []string{"RetryableWriteError", "NoWritesPerformed"}},
					{Code: 7, Labels: []string{"RetryableWriteError", "NoWritesPerformed"}}}},
			schedule: allOf(shown.writes, shown.alone, labelled("NoWritesPerformed"),
				outcomes(func(l, r string) bool {
					return strings.Contains(l, "NoWritesPerformed") && strings.Contains(r, "NoWritesPerformed")
				})),
		},
		{
			ID: "D44", Engines: by(pyMongo),
			Title:   "does not see the labels of a write concern error of a bulkWrite or insertMany, whose code decides whether to retry",
			Section: "Retryable Writes, Determining Retryable Write Errors: the server's label decides",
			Suite:   "write-concern-error-of-an-insert-many.yml",
			Code: map[string]string{
				pyMongo: "_Bulk._execute_command (bulk.py): _RETRYABLE_ERROR_CODES",
			},
			example: Schedule{Operation: "insertMany", Topology: plainest,
				Faults: []Fault{{WriteConcernError: 64, Labels: []string{"RetryableWriteError"}}}},
			schedule: allOf(calls("bulkWrite", "bulkWriteUnordered", "insertMany", "insertManyUnordered"),
				fault(func(f Fault) bool { return f.ofWriteConcern() && len(f.Labels) > 0 })),
		},
	}
}

// shown is a schedule with its differences, at least one. For the test of a suite, the
// schedule has only the topology.
type shown struct {
	Schedule
	differences []Difference
}

type condition func(shown) bool

func allOf(conditions ...condition) condition {
	return func(s shown) bool {
		return !slices.ContainsFunc(conditions, func(holds condition) bool { return !holds(s) })
	}
}

func anyOf(conditions ...condition) condition {
	return func(s shown) bool {
		return slices.ContainsFunc(conditions, func(holds condition) bool { return holds(s) })
	}
}

func calls(operations ...string) condition {
	return func(s shown) bool { return slices.Contains(operations, s.Operation) }
}

// bulk holds for a bulk write of a collection.
func bulk(s shown) bool { return calls("bulkWrite", "bulkWriteUnordered")(s) }

// zero holds if an option is 0.
func zero(option string) condition {
	return func(s shown) bool { return fmt.Sprint(s.Options[option]) == "0" }
}

// off holds if an option is false.
func off(option string) condition { return func(s shown) bool { return s.Options[option] == false } }

func topology(name string) condition { return func(s shown) bool { return s.Topology == name } }

// writes reports whether errors are raised as those of a write, which runCommand is in this respect (Client
// Backpressure, "Overload retry policy").
func (s Schedule) writes() bool {
	return parts().Operations[s.Operation].Write || s.Operation == "runCommand"
}
func (s Schedule) reads() bool { return !s.writes() }
func (s shown) alone() bool    { return len(s.differences) == 1 }
func (s Schedule) timed() bool { return s.Options["timeoutMS"] != nil }

// fault holds if a function holds for one of the faults.
func fault(holds func(Fault) bool) condition {
	return func(s shown) bool { return slices.ContainsFunc(s.Faults, holds) }
}

// faultAt holds if a function holds for one of the faults, counted from 0.
func faultAt(i int, holds func(Fault) bool) condition {
	return func(s shown) bool { return i < len(s.Faults) && holds(s.Faults[i]) }
}

// laterFault holds if a function holds for one of the faults after the first.
func laterFault(holds func(Fault) bool) condition {
	return func(s shown) bool { return len(s.Faults) > 1 && slices.ContainsFunc(s.Faults[1:], holds) }
}

func labelled(name string) condition { return fault(func(f Fault) bool { return f.labelled(name) }) }

func (f Fault) labelled(name string) bool { return slices.Contains(f.Labels, name) }
func (f Fault) ofWriteConcern() bool      { return f.WriteConcernError != 0 }

// labelledByServer reports whether the server chooses the labels of the error, which include NoWritesPerformed if the
// session wrote nothing.
func (f Fault) labelledByServer() bool {
	return f.Labels == nil && (slices.Contains(retryableCodes, f.Code) || slices.Contains(stateChangeCodes, f.Code))
}

// deposes reports whether the fault is a write concern error with a state change code.
func (f Fault) deposes() bool { return slices.Contains(stateChangeCodes, f.WriteConcernError) }

// shutsDown reports whether the fault is a write concern error of a server that is shutting down.
func (f Fault) shutsDown() bool { return slices.Contains(shutdownCodes, f.WriteConcernError) }

// unsettles reports whether the fault makes the server Unknown to the client.
func (f Fault) unsettles() bool {
	return f.Close || f.LoseReply || slices.Contains(stateChangeCodes, f.Code) || f.deposes()
}

// events compares the lines of the first client whose events differ.
func events(compare func(left, right []string) bool) condition {
	return func(s shown) bool {
		i := slices.IndexFunc(s.differences, func(one Difference) bool { return one.Aspect == "events" })
		return i >= 0 && compare(strings.Split(s.differences[i].Left, "\n"), strings.Split(s.differences[i].Right, "\n"))
	}
}

// longer reports whether the others are a proper prefix of the lines.
func longer(lines, others []string) bool {
	return len(lines) > len(others) && slices.Equal(lines[:len(others)], others)
}

func shorter(lines, others []string) bool { return longer(others, lines) }

// commitsAgain reports whether the right engine retries commitTransaction more often. Retries have a write concern
// (Transactions, "Majority write concern is used when retrying commitTransaction").
func commitsAgain(left, right []string) bool {
	retried := regexp.MustCompile(`send commitTransaction .*w "majority"`)
	count := func(lines []string) int { return len(retried.FindAllString(strings.Join(lines, "\n"), -1)) }
	return count(right) > count(left)
}

// each holds if a function holds for every difference.
func each(holds func(Difference) bool) condition {
	return func(s shown) bool {
		return !slices.ContainsFunc(s.differences, func(one Difference) bool { return !holds(one) })
	}
}

// outcomes holds if only outcomes of operations differ, and the function holds for each.
func outcomes(hold func(left, right string) bool) condition {
	return each(func(one Difference) bool { return one.Aspect == "operation" && hold(one.Left, one.Right) })
}

// sameEvents holds if only events differ, and only in text that matches a regular expression.
func sameEvents(text string) condition {
	without := regexp.MustCompile(text)
	return each(func(one Difference) bool {
		return one.Aspect == "events" && one.Left != one.Right &&
			without.ReplaceAllString(one.Left, "") == without.ReplaceAllString(one.Right, "")
	})
}

const (
	servers = " at (another|the same) server" // of attempts
	cleared = "\n  pool cleared"
)

// outcomesOnly holds if only outcomes of operations differ.
func outcomesOnly() condition {
	return each(func(one Difference) bool { return one.Aspect == "operation" })
}

// left and right hold if a side of the first difference contains a text.
func left(text string) condition {
	return func(s shown) bool { return strings.Contains(s.differences[0].Left, text) }
}

func right(text string) condition {
	return func(s shown) bool { return strings.Contains(s.differences[0].Right, text) }
}

// overloaded is an overload error with a short backoff.
func overloaded() Fault {
	return Fault{Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError"}, Backoff: 1}
}
