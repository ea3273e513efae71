//go:generate env UTR_UPDATE=1 go test -count 1 -run "^(TestDeviationsPage|TestDeviationSuites)$" .

package compare

import (
	"regexp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// The drivers, as they call themselves as engines.
const (
	goDriver = "driver"
	pyMongo  = "pymongo"
	nodeJS   = "node"
	java     = "java"
)

// tested lists the engines of the table, by what they call themselves, with the driver
// and the version that were tested. Versions are not compared: binaries do not always
// know theirs.
func tested() []struct{ name, driver string } {
	return []struct{ name, driver string }{
		{goDriver, "mongo-driver/v2 2.9.3"},
		{pyMongo, "PyMongo 4.20.0"},
		{nodeJS, "Node driver 7.9.0"},
		{java, "Java driver 5.14.0"},
	}
}

// Deviations is the table of decisions, in the order of the ids.
func Deviations() []Deviation {
	return []Deviation{
		{
			ID: "D1", Engines: by(goDriver), Title: "continues an unordered bulk write after a command that failed as a whole",
			Section: "Retryable Writes, Executing Retryable Write Commands: a failed retry interrupts the batch, ordered or not, as a retryable error does without retries; Bulk Write (client), Top-Level Errors, says it of all errors",
			Suite:   "unordered-bulk-write-goes-on.yml", example: Schedule{Operation: "bulkWriteAnyhow", Topology: plainest, Faults: []Fault{{Code: 8000}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.Operation == "bulkWriteAnyhow" && longer(r, l)
			},
		},
		{
			ID: "D2", Engines: by(goDriver, nodeJS), Title: "ends an ordered bulk write at a write concern error",
			Section: "CRUD, Error Handling; Bulk Write (client), Write Concern Errors, asks the contrary of client bulk writes", Permitted: true,
			Suite: "ordered-bulk-write-ends-at-write-concern-error.yml", example: Schedule{Operation: "bulkWrite", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.Operation == "bulkWrite" && s.has(func(f Fault) bool { return f.WriteConcernError != 0 }) && longer(l, r)
			},
		},
		{
			ID: "D3", Engines: by(goDriver), Title: "does not retry error 50 that has the label RetryableWriteError",
			Section: "Retryable Writes, Determining Retryable Errors",
			Suite:   "error-50-with-label-is-retried.yml", example: Schedule{Operation: "insertOne", Topology: plainest, Faults: []Fault{{Code: 50, Labels: []string{"RetryableWriteError"}}}},
			schedule: func(s Schedule, d []Difference) bool {
				return s.has(func(f Fault) bool { return f.Code == 50 && f.labelled("RetryableWriteError") })
			},
		},
		{
			ID: "D4", Engines: by(goDriver, nodeJS), Title: "raises the error before the last one of a read that has the label NoWritesPerformed",
			Section: "Retryable Reads, Executing Retryable Read Operations (the label is one of Retryable Writes)",
			Suite:   "no-writes-performed-says-nothing-of-reads.yml", example: Schedule{Operation: "find", Topology: plainest, Faults: []Fault{{Code: 6}, {Code: 262, Labels: []string{"NoWritesPerformed"}}}},
			schedule: func(s Schedule, d []Difference) bool {
				return !operations[s.Operation].write && s.has(func(f Fault) bool { return f.labelled("NoWritesPerformed") })
			},
		},
		{
			ID: "D5", Engines: by(goDriver), Title: "decides whether to retry by the error before one that has the label NoWritesPerformed, so that a write may be sent again for an error that is not retryable",
			Section: "Retryable Writes, Executing Retryable Write Commands: the label is about which error is raised; Client Backpressure, Interaction with Other Retry Policies",
			Suite:   "last-error-decides.yml", example: Schedule{Operation: "deleteMany", Topology: plainest, Faults: []Fault{overloaded(), {Code: 2, Labels: []string{"NoWritesPerformed"}}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return operations[s.Operation].write && len(r) > 0 && (len(r) > len(l) || s.has(func(f Fault) bool { return f.labelled("SystemOverloadedError") })) &&
					s.has(func(f Fault) bool { return f.labelled("NoWritesPerformed") })
			},
		},
		{
			ID: "D6", Engines: by(goDriver, pyMongo, java), Title: "may send a second attempt to the mongos that failed the first",
			Section: "Retryable Reads and Retryable Writes, Sharded clusters: the server is deprioritized",
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.Topology == "sharded" && (elsewhere(l) != elsewhere(r) || sameEvents(d, withoutPlaces))
			},
		},
		{
			ID: "D7", Engines: by(goDriver), Title: "gives getMore no share of a client's timeoutMS",
			Section: "Client Side Operations Timeout, Cursors: the default timeoutMode of cursors that are not tailable is cursorLifetime",
			Suite:   "timeout-of-a-cursor.yml", example: Schedule{Operation: "getMore", Topology: plainest, Options: Options{"timeoutMS": someTimeMS}, Faults: []Fault{{BlockMS: blockedMS}}},
			schedule: func(s Schedule, d []Difference) bool {
				return s.Operation == "getMore" && s.timed() && s.has(func(f Fault) bool { return f.BlockMS > someTimeMS })
			},
		},
		{
			ID: "D8", Engines: by(goDriver, pyMongo, nodeJS, java), Title: "does not report the labels of a client bulk write's write concern error",
			Section: "Retryable Writes, Error Labels; Bulk Write (client), Write Concern Errors",
			schedule: func(s Schedule, d []Difference) bool {
				return s.Operation == "clientBulkWrite" && s.has(func(f Fault) bool { return f.WriteConcernError != 0 }) && only(d, "operation")
			},
			test: func(_ result.TestID, d []Difference) bool {
				return each(d, func(one Difference) bool {
					return strings.Contains(one.Left, ".clientBulkWrite raised") && strings.Contains(one.Left, "write concern error:") &&
						one.Right == strings.Replace(one.Left, ", RetryableWriteError", "", 1)
				})
			},
		},
		{
			ID: "D9", Engines: by(goDriver), Title: "checks a server that it has marked Unknown only after half a second, which may be more time than timeoutMS leaves",
			Section: "Server Discovery and Monitoring, Not writable primary and recovering: multi-threaded clients request an immediate check", Permitted: true,
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.timed() && (longer(l, r) || s.Operation == "bulkWriteAnyhow") && s.has(Fault.unsettles)
			},
		},
		{
			ID: "D10", Engines: by(goDriver), Title: "labels the network errors of writes to a standalone with RetryableWriteError",
			Section: "Retryable Writes, RetryableWriteError Labels: any server version that supports retryable writes, which a standalone of that version does not", Permitted: true,
			Suite: "network-error-of-a-standalone.yml", example: Schedule{Operation: "insertOne", Topology: "single", Faults: []Fault{{Close: true}}},
			schedule: func(s Schedule, d []Difference) bool {
				return s.Topology == "single" && only(d, "operation") && strings.Contains(d[0].Right, "RetryableWriteError")
			},
			test: func(id result.TestID, d []Difference) bool {
				return strings.HasPrefix(id.Deployment, "single") && each(d, func(one Difference) bool {
					return one.Aspect == "operation" && strings.HasSuffix(one.Left, "raised client error") && one.Right == one.Left+", RetryableWriteError"
				})
			},
		},
		{
			ID: "D11", Engines: by(goDriver), Title: "raises the write concern error of an aggregate with $out as an error without a public type",
			Section: "Read and Write Concern, Errors",
			Suite:   "write-concern-error-of-out.yml", example: Schedule{Operation: "aggregateOut", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: func(s Schedule, d []Difference) bool {
				return s.Operation == "aggregateOut" && s.has(func(f Fault) bool { return f.WriteConcernError != 0 }) && only(d, "operation")
			},
		},
		{
			ID: "D12", Engines: by(goDriver), Title: "after an overload error, counts other errors against other limits than maxAdaptiveRetries",
			Section: "Client Backpressure, Overload retry policy: the limit applies to all retry attempts, also under timeoutMS",
			Suite:   "limit-after-overload.yml",
			example: Schedule{Operation: "find", Topology: plainest, Options: Options{"maxAdaptiveRetries": 3}, Faults: []Fault{overloaded(), {Close: true}, {Close: true}}},
			schedule: func(s Schedule, d []Difference) bool {
				return s.has(func(f Fault) bool { return f.labelled("SystemOverloadedError") && f.labelled("RetryableError") }) &&
					(s.Options["maxAdaptiveRetries"] != nil || s.timed())
			},
		},
		{
			ID: "D13", Engines: by(goDriver, pyMongo, nodeJS, java), Title: "reports only the last write concern error of a bulk write, and none if a command failed",
			Section: "CRUD, Error Handling, BulkWriteException: writeConcernError", Permitted: true,
			schedule: func(s Schedule, d []Difference) bool {
				return strings.HasPrefix(s.Operation, "bulkWrite") && only(d, "operation") && strings.Contains(d[0].Left, "write concern error:")
			},
		},
		{
			ID: "D14", Engines: by(goDriver, pyMongo, nodeJS, java), Title: "leaves a server's TransientTransactionError on the error of a commit whose outcome is not known",
			Section: "Transactions, Error Labels: the two labels exclude each other", Permitted: true,
			Suite:   "labels-of-an-unknown-commit.yml",
			example: Schedule{Operation: "commitTransaction", Topology: plainest, Faults: []Fault{{Code: 50, Labels: []string{"TransientTransactionError"}}}},
			schedule: func(s Schedule, d []Difference) bool {
				return s.has(func(f Fault) bool { return f.labelled("TransientTransactionError") }) && only(d, "operation") &&
					strings.Contains(d[0].Left, "UnknownTransactionCommitResult")
			},
		},
		{
			ID: "D15", Engines: by(goDriver, pyMongo, nodeJS), Title: "of several errors, raises another than the last one without the label NoWritesPerformed; looks for the label in write concern errors, too",
			Section: "Retryable Writes, Executing Retryable Write Commands: which error is raised",
			Suite:   "error-of-several.yml",
			example: Schedule{Operation: "insertOne", Topology: plainest, Faults: []Fault{overloaded(), {Close: true}, {Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError", "NoWritesPerformed"}, Backoff: 1}}},
			schedule: func(s Schedule, d []Difference) bool {
				return (operations[s.Operation].write || s.Operation == "runCommand") && only(d, "operation") && len(d) == 1 &&
					(s.has(func(f Fault) bool { return f.labelled("NoWritesPerformed") }) || strings.Contains(d[0].Left+d[0].Right, "NoWritesPerformed"))
			},
		},
		{
			ID: "D16", Engines: by(goDriver), Title: "behind a load balancer, retries commitTransaction and abortTransaction by the code of the error, without the label RetryableWriteError",
			Section: "Retryable Writes, Determining Retryable Errors: from 4.4 on the server's label alone decides",
			Suite:   "commit-behind-a-load-balancer.yml",
			example: Schedule{Operation: "commitTransaction", Topology: "load-balanced", Faults: []Fault{{Code: 6, Labels: []string{"TransientTransactionError"}}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				again := (s.Operation == "commitTransaction" || s.Operation == "abortTransaction") && longer(r, l) ||
					s.Operation == "withTransaction" && commitsAgain(r) > commitsAgain(l) // where the transaction should begin anew
				return s.Topology == "load-balanced" && again &&
					s.has(func(f Fault) bool { return f.Code != 0 && f.Labels != nil && !f.labelled("RetryableWriteError") })
			},
		},
		{
			ID: "D17", Engines: by(goDriver), Title: "sends updates and deletes of many in commands of their own, apart from those of one",
			Section: "Retryable Writes, Supported Write Operations: bulk writes may be split so that more can be retried", Permitted: true,
			test: func(_ result.TestID, d []Difference) bool {
				return each(d, func(one Difference) bool {
					return one.Aspect == "events" && strings.Contains(one.Left, " statements") && withoutCounts(one.Left) == withoutCounts(one.Right)
				})
			},
		},
		{
			ID: "D18", Title: "backs off as long as jitter says, so that timeoutMS leaves room for more attempts or fewer",
			Section: "Client Backpressure, Overload retry policy: jitter", Permitted: true,
			test: func(_ result.TestID, d []Difference) bool {
				return each(d, func(one Difference) bool {
					l, r := strings.Split(one.Left, "\n"), strings.Split(one.Right, "\n")
					return one.Aspect == "events" && strings.Contains(one.Left, "failed: code 462") && (longer(l, r) || longer(r, l))
				})
			},
		},
		{
			ID: "D19", Engines: by(goDriver, java), Title: "sends the recovery token of an earlier transaction with the abort of one that has none yet",
			Section: "Transactions, Recovery Token: starting a transaction clears it",
			schedule: func(_ Schedule, d []Difference) bool {
				return sameEvents(d, without(", recovery token"))
			},
		},
		{
			ID: "D20", Engines: by(pyMongo), Title: "raises MaxTimeMSExpired as a timeout, without timeoutMS as well",
			Section: "Client Side Operations Timeout, Errors: asked for with timeoutMS", Permitted: true,
			schedule: func(_ Schedule, d []Difference) bool {
				return each(d, func(one Difference) bool {
					return one.Aspect == "operation" && strings.Replace(one.Left, "raised server error, code 50", "raised time-out, code 50", 1) == one.Right
				})
			},
		},
		{
			ID: "D21", Engines: by(pyMongo), Title: "publishes a command failed event for a reply that has ok: 1 and a write concern error",
			Section: "Command Logging and Monitoring, Succeeded or Failed",
			Suite:   "command-that-succeeds.yml", example: Schedule{Operation: "findOneAndUpdate", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: func(_ Schedule, d []Difference) bool {
				return each(d, func(one Difference) bool {
					return one.Aspect == "events" && strings.ReplaceAll(one.Left, "succeeded, write concern error ", "failed: code ") == one.Right
				})
			},
		},
		{
			ID: "D22", Engines: by(pyMongo), Title: "reports UnknownTransactionCommitResult by the code of the error, whether it has the label RetryableWriteError or not",
			Section: "Transactions, UnknownTransactionCommitResult, names retryable writes errors; Retryable Writes, Determining Retryable Errors: from 4.4 on the server's label alone decides", Permitted: true,
			Suite: "label-of-a-commit-by-its-code.yml", example: Schedule{Operation: "commitTransaction", Topology: plainest, Faults: []Fault{{Code: 6, Labels: []string{}}}},
			schedule: func(s Schedule, d []Difference) bool {
				const label = ", UnknownTransactionCommitResult"
				l, r := events(d)
				return s.Operation == "withTransaction" && commitsAgain(r) > commitsAgain(l) || each(d, func(one Difference) bool {
					return one.Aspect == "operation" && strings.TrimSuffix(one.Left, label) == strings.TrimSuffix(one.Right, label)
				})
			},
		},
		{
			ID: "D23", Engines: by(pyMongo), Title: "behind a load balancer, does not retry getMore",
			Section: "Client Backpressure, Driver mechanisms subject to the retry policy",
			Suite:   "getmore-behind-a-load-balancer.yml", example: Schedule{Operation: "getMore", Topology: "load-balanced", Faults: []Fault{overloaded()}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.Operation == "getMore" && s.Topology == "load-balanced" && longer(l, r)
			},
		},
		{
			ID: "D24", Engines: by(pyMongo, nodeJS), Title: "ends a bulk write, ordered or not, at a write concern error whose code is that of a retryable error",
			Section: "CRUD, Error Handling",
			Suite:   "bulk-write-ends-at-retryable-write-concern-error.yml", example: Schedule{Operation: "bulkWriteAnyhow", Topology: "single", Faults: []Fault{{WriteConcernError: 6}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return strings.HasPrefix(s.Operation, "bulkWrite") && s.has(func(f Fault) bool { return f.WriteConcernError != 0 }) && longer(l, r)
			},
		},
		{
			ID: "D25", Engines: by(pyMongo), Title: "after an overload error, commits without asking for majority, although another error came before",
			Section: "Transactions, Interaction with Client Backpressure",
			schedule: func(_ Schedule, d []Difference) bool {
				return sameEvents(d, without(`, w "majority"`))
			},
		},
		{
			ID: "D26", Engines: by(pyMongo, java), Title: "keeps its connections after a write concern error that says that the server is not writable",
			Section: "Server Discovery and Monitoring, Not writable primary and recovering",
			schedule: func(s Schedule, d []Difference) bool {
				return s.has(func(f Fault) bool { return slices.Contains(stateChangeCodes, f.WriteConcernError) }) && sameEvents(d, without(cleared))
			},
		},
		{
			ID: "D27", Engines: by(pyMongo), Title: "retries an aggregate that writes only if both retryReads and retryWrites are true",
			Section: "Client Backpressure, Overload retry policy",
			Suite:   "aggregate-that-writes.yml",
			example: Schedule{Operation: "aggregateOut", Topology: plainest, Options: Options{"retryReads": false}, Faults: []Fault{overloaded()}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.Operation == "aggregateOut" && s.Options["retryReads"] == false && longer(l, r)
			},
		},
		{
			ID: "D28", Engines: by(nodeJS), Title: "labels every network error with RetryableWriteError, that of a read as well",
			Section: "Retryable Writes, RetryableWriteError Labels: network errors of retryable write commands",
			Suite:   "network-error-of-a-read.yml", example: Schedule{Operation: "find", Topology: plainest, Faults: []Fault{{Close: true}, {Close: true}}},
			schedule: func(_ Schedule, d []Difference) bool {
				return each(d, func(one Difference) bool {
					return one.Aspect == "operation" && one.Right == one.Left+", RetryableWriteError"
				})
			},
		},
		{
			ID: "D29", Engines: by(nodeJS), Title: "behind a load balancer, clears the pool twice for one network error, or not at all",
			Section: "Server Discovery and Monitoring, Network error when reading or writing",
			schedule: func(s Schedule, d []Difference) bool {
				return s.Topology == "load-balanced" && sameEvents(d, without(cleared))
			},
		},
		{
			ID: "D30", Engines: by(nodeJS), Title: "raises the write concern error of an insertMany without its labels, and in place of a write error",
			Section: "CRUD, Error Handling; Retryable Writes, RetryableWriteError Labels",
			Suite:   "write-errors-beside-write-concern-error.yml", example: Schedule{Operation: "insertManyAnyhow", Topology: plainest, Faults: []Fault{{WriteConcernError: 64}}},
			schedule: func(s Schedule, d []Difference) bool {
				return strings.HasPrefix(s.Operation, "insertMany") && only(d, "operation") && s.has(func(f Fault) bool { return f.WriteConcernError != 0 })
			},
		},
		{
			ID: "D31", Engines: by(nodeJS), Title: "with retryWrites false, does not retry commitTransaction after an overload error was followed by another",
			Section: "Transactions, Interaction with Retryable Writes: commitTransaction is retried whatever retryWrites is",
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.Operation == "commitTransaction" && s.Options["retryWrites"] == false && longer(l, r)
			},
		},
		{
			ID: "D32", Engines: by(nodeJS), Title: "sends neither abortTransaction nor commitTransaction if the first command has failed with the label RetryableError, without SystemOverloadedError",
			Section: "Transactions, ClientSession changes: a command that is sent begins the transaction, whatever becomes of it",
			Suite:   "abort-after-a-failed-command.yml", example: Schedule{Operation: "withTransaction", Topology: plainest, Faults: []Fault{{Code: 211, Labels: []string{"RetryableError"}}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return longer(l, r) && strings.Contains(l[len(r)], "Transaction on admin") && s.has(func(f Fault) bool { return f.labelled("RetryableError") })
			},
		},
		{
			ID: "D33", Title: "sends the next attempt to the mongos that has just failed, because an earlier fault has made the other one Unknown",
			Section: "Retryable Reads and Retryable Writes, Sharded clusters: if all servers are deprioritized, one of them is selected", Permitted: true,
			schedule: func(s Schedule, d []Difference) bool {
				unknown := 0
				for _, f := range s.Faults {
					if f.unsettles() {
						unknown++
					}
				}
				return s.Topology == "sharded" && unknown > 1 && sameEvents(d, withoutPlaces)
			},
		},
		{
			ID: "D34", Engines: by(java), Title: "raises the time-out of a write without the label RetryableWriteError",
			Section: "Retryable Writes, RetryableWriteError Labels: network errors of retryable write commands", Permitted: true,
			schedule: func(s Schedule, d []Difference) bool {
				return s.timed() && each(d, func(one Difference) bool {
					return one.Aspect == "operation" && strings.Contains(one.Left, " raised time-out") && one.Left == one.Right+", RetryableWriteError"
				})
			},
		},
		{
			ID: "D35", Engines: by(java), Title: "retries a write concern error of an insert, update or delete only if its code says that the server is not writable, whatever its label",
			Section: "Retryable Writes, Determining Retryable Errors: the server's label decides",
			Suite:   "write-concern-error-of-an-update.yml", example: Schedule{Operation: "updateOne", Topology: plainest, Faults: []Fault{{WriteConcernError: 262}}},
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return len(l) >= len(r) && len(r) > 0 && s.has(func(f Fault) bool {
					return f.WriteConcernError != 0 && !slices.Contains(stateChangeCodes, f.WriteConcernError)
				})
			},
		},
		{
			ID: "D36", Engines: by(java), Title: "raises the error before MaxTimeMSExpired of a read's retry",
			Section: "Retryable Reads, Executing Retryable Read Operations: the error of the retry is raised",
			Suite:   "max-time-expired-of-a-retry.yml", example: Schedule{Operation: "find", Topology: plainest, Faults: []Fault{{Code: 89}, {Code: 50}}},
			schedule: func(s Schedule, d []Difference) bool {
				return !operations[s.Operation].write && only(d, "operation") && len(d) == 1 && strings.Contains(d[0].Left, "raised server error, code 50")
			},
		},
		{
			ID: "D37", Engines: by(java), Title: "with timeoutMS, publishes and raises MaxTimeMSExpired as a time-out that has no reply and no code, and that ends the operation",
			Section: "Command Logging and Monitoring, Failure", Permitted: true,
			schedule: func(s Schedule, d []Difference) bool {
				return s.timed() && s.has(func(f Fault) bool { return f.Code == 50 }) && slices.ContainsFunc(d, func(one Difference) bool {
					return strings.Contains(one.Left, "code 50") && !strings.Contains(one.Right, "code 50") || strings.Contains(one.Right, "raised time-out")
				})
			},
		},
		{
			ID: "D38", Engines: by(java), Title: "behind a load balancer, reports UnknownTransactionCommitResult by the code of the error, without the label RetryableWriteError",
			Section: "Transactions, UnknownTransactionCommitResult, names retryable writes errors; Retryable Writes, Determining Retryable Errors", Permitted: true,
			schedule: func(s Schedule, d []Difference) bool {
				return s.Topology == "load-balanced" && each(d, func(one Difference) bool {
					return one.Aspect == "operation" && one.Left+", UnknownTransactionCommitResult" == one.Right
				})
			},
		},
		{
			ID: "D39", Engines: by(java), Title: "after the retry of a command that had a write concern error has failed, raises that error, and sends the next commands of a bulk write",
			Section: "Retryable Writes, Executing Retryable Write Commands: a failed retry interrupts the batch, ordered or not; which error is raised",
			schedule: func(s Schedule, d []Difference) bool {
				l, r := events(d)
				return s.has(func(f Fault) bool { return slices.Contains(stateChangeCodes, f.WriteConcernError) }) &&
					(strings.HasPrefix(s.Operation, "bulkWrite") && len(r) > len(l) ||
						d[0].Aspect == "operation" && strings.Contains(d[0].Left, "raised server error") && strings.Contains(d[0].Right, "raised server error"))
			},
		},
	}
}

func (f Fault) labelled(name string) bool { return slices.Contains(f.Labels, name) }

// unsettles reports whether the fault makes the server Unknown to the client.
func (f Fault) unsettles() bool {
	return f.Close || f.LoseReply || slices.Contains(stateChangeCodes, f.Code) || slices.Contains(stateChangeCodes, f.WriteConcernError)
}

func (s Schedule) timed() bool { return s.Options["timeoutMS"] != nil }

func (s Schedule) has(what func(Fault) bool) bool { return slices.ContainsFunc(s.Faults, what) }

// elsewhere says that a second attempt goes to another server.
func elsewhere(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, " at another server") })
}

// events gives the lines of the first client whose events differ.
func events(d []Difference) (left, right []string) {
	for _, one := range d {
		if one.Aspect == "events" {
			return strings.Split(one.Left, "\n"), strings.Split(one.Right, "\n")
		}
	}
	return nil, nil
}

// commitsAgain counts the commits after the first: they have a write concern of
// their own (Transactions, "Majority write concern is used when retrying
// commitTransaction").
func commitsAgain(lines []string) (n int) {
	for _, l := range lines {
		if strings.Contains(l, "send commitTransaction ") && strings.Contains(l, `w "majority"`) {
			n++
		}
	}
	return n
}

// longer reports whether the lines begin with all of the others, and continue.
func longer(lines, others []string) bool {
	return len(lines) > len(others) && slices.Equal(lines[:len(others)], others)
}

// each reports whether there are differences and something holds for all of them.
func each(d []Difference, holds func(Difference) bool) bool {
	return len(d) > 0 && !slices.ContainsFunc(d, func(one Difference) bool { return !holds(one) })
}

// withoutCounts removes the numbers of statements.
func withoutCounts(lines string) string {
	return regexp.MustCompile(`, \d+ statements?`).ReplaceAllString(lines, "")
}

// sameEvents reports whether nothing but events differs, and only in what a function removes.
func sameEvents(d []Difference, removes func(lines string) string) bool {
	return each(d, func(one Difference) bool {
		return one.Aspect == "events" && one.Left != one.Right && removes(one.Left) == removes(one.Right)
	})
}

// without makes a function that removes a text.
func without(text string) func(string) string {
	return func(lines string) string { return strings.ReplaceAll(lines, text, "") }
}

// cleared is the line about a cleared pool.
const cleared = "\n  pool cleared"

// withoutPlaces removes which servers attempts went to.
func withoutPlaces(lines string) string {
	return strings.NewReplacer(" at another server", "", " at the same server", "").Replace(lines)
}

// only reports whether all differences have one aspect.
func only(d []Difference, aspect string) bool {
	return !slices.ContainsFunc(d, func(one Difference) bool { return one.Aspect != aspect })
}

// overloaded is an overload error that may be retried soon.
func overloaded() Fault {
	return Fault{Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError"}, Backoff: 1}
}
