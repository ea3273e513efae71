package main

import "fmt"

// Codes for which a server adds labels, and codes for which it does not, according to recordings of every code.
var (
	retryableWriteCodes = []code{hostUnreachable, hostNotFound, networkTimeout, shutdownInProgress, primarySteppedDown,
		exceededTimeLimit,
		socketException, notWritablePrimary, interruptedAtShutdown, interruptedDueToReplStateChange, notPrimaryNoSecondaryOk, notPrimaryOrSecondary}
	transientCodes = []code{{24, "LockTimeout"}, writeConflict, {246, "SnapshotUnavailable"}, {251, "NoSuchTransaction"}}
	plainCodes     = []code{{1, "InternalError"}, badValue, cursorNotFound, maxTimeMSExpired, writeConcernFailed,
		{121, "DocumentValidationFailure"}}
	changeOfState = []code{primarySteppedDown, notWritablePrimary, interruptedDueToReplStateChange,
		notPrimaryNoSecondaryOk, notPrimaryOrSecondary}
)

// numberOnly returns a code whose name is not expected, because it depends on the version.
func (c code) numberOnly() code { return code{c.Number, ""} }

// labelFiles returns the suites of error labels.
func labelFiles() []*file {
	const insert, findAndModify = "insert: documents, documents: [ { _id: 4 } ]", "findAndModify: documents, query: { _id: 1 }, update: { $inc: { x: 1 } }"
	failing := func(c code, command string) step { return do(failPoint(times(1), errorCode(c), command)) }
	var writes, transactions, states, streams []demand
	for _, c := range retryableWriteCodes {
		for _, command := range []string{insert, findAndModify} {
			s := send(command).numbered(1)
			writes = append(writes, demand{fmt.Sprintf("%s with a transaction number has the label %s after %d %s: drivers retry it (S22)", s.name(), writable, c.Number, c.Name),
				requirement{}, []step{failing(c, s.name()),
					s.failsWithout(c.numberOnly(), labels{writable}, labels{transientTransaction})}, left(initial()...)})
		}
	}
	for _, c := range append(plainCodes, transientCodes...) {
		writes = append(writes, demand{fmt.Sprintf("insert with a transaction number has no label after %d %s: a retry would fail again (S22)", c.Number, c.Name),
			requirement{}, []step{failing(c, "insert"), send(insert).numbered(1).failsWithout(c.numberOnly(), nil,
				labels{writable, transientTransaction})}, left(initial()...)})
	}
	for _, c := range []code{shutdownInProgress, notWritablePrimary} {
		for _, s := range []step{send(insert), send("find: documents"), send("ping: 1")} {
			writes = append(writes, demand{fmt.Sprintf("%s without a transaction number has no label after %d %s: it is not a retryable write (S22)", s.name(), c.Number, c.Name),
				requirement{}, []step{failing(c, s.name()),
					s.failsWithout(c.numberOnly(), nil, labels{writable})}, left(initial()...)})
		}
	}
	concern := func(c code) step { return do(failPoint(times(1), writeConcernError(c, "x"), "insert")) }
	reply := func(c code) string {
		return fmt.Sprintf("n: 1, writeConcernError: { code: %d, errmsg: x }, ", c.Number)
	}
	withFour := left(append(initial(), doc("_id", 4))...)
	for _, c := range []code{shutdownInProgress, notWritablePrimary, interruptedAtShutdown} {
		writes = append(writes,
			demand{fmt.Sprintf("insert with a transaction number has the label %s beside a write concern error %d %s: drivers retry it (S23)", writable, c.Number, c.Name),
				requirement{}, []step{concern(c),
					send(insert).numbered(1).carries(reply(c) + "errorLabels: [ " + writable + " ]")}, withFour},
			demand{fmt.Sprintf("insert without a transaction number has no label beside a write concern error %d %s: it is not a retryable write (S23)", c.Number, c.Name),
				requirement{}, []step{concern(c), send(insert).carries(reply(c) + "errorLabels: { $$exists: false }")}, withFour})
	}
	for _, c := range []code{writeConcernFailed, {100, "UnsatisfiableWriteConcern"}} {
		writes = append(writes, demand{fmt.Sprintf("insert has no label beside a write concern error %d %s: the write is applied (S23)", c.Number, c.Name),
			requirement{}, []step{concern(c),
				send(insert).numbered(1).carries(reply(c) + "errorLabels: { $$exists: false }")}, withFour})
	}
	writes = append(writes,
		demand{"insert has the labels of the fail point in place of the server's: suites give errors the labels of any version (S24)", requirement{},
			[]step{do(failPoint(times(1), errorWithLabels(shutdownInProgress, "Mine", writable), "insert")),
				send(insert).numbered(1).fails(shutdownInProgress, "Mine", writable)}, nil},
		demand{"insert has no labels if the fail point has an empty list: suites give errors the labels of any version (S24)",
			requirement{},
			[]step{do(failPoint(times(1), errorWithLabels(shutdownInProgress), "insert")),
				send(insert).numbered(1).failsWithout(shutdownInProgress, nil, labels{writable})}, nil})

	before := demand{"insert with a transaction number has no label before 4.4: drivers decide by the code (S22)",
		requirement{},
		[]step{failing(shutdownInProgress, "insert"),
			send(insert).numbered(1).failsWithout(shutdownInProgress, nil, labels{writable})}, left(initial()...)}

	for _, c := range append(transientCodes, shutdownInProgress, interruptedAtShutdown, notWritablePrimary) {
		transactions = append(transactions,
			demand{fmt.Sprintf("insert in a transaction has the label %s after %d %s: drivers repeat the transaction (S25)",
				transientTransaction, c.Number, c.Name),
				servers("4.4", sets), []step{failing(c, "insert"), send(insert).starts(1).failsWithout(c.numberOnly(),
					labels{transientTransaction}, labels{writable})}, left(initial()...)})
	}
	for _, c := range plainCodes {
		transactions = append(transactions,
			demand{fmt.Sprintf("insert in a transaction has no label after %d %s: repeating the transaction would not help (S25)", c.Number, c.Name),
				servers("4.4", sets), []step{failing(c, "insert"), send(insert).starts(1).failsWithout(c.numberOnly(), nil,
					labels{transientTransaction, writable})}, left(initial()...)})
	}
	transactions = append(transactions,
		demand{"insert in a transaction has the label " + transientTransaction +
			" after 91 ShutdownInProgress on a mongos: drivers repeat the transaction (S25)",
			servers("4.4", sharded), []step{failing(shutdownInProgress, "insert"),
				send(insert).starts(1).fails(shutdownInProgress, transientTransaction)}, left(initial()...)})
	for _, end := range []struct {
		step    step
		outcome []outcome
	}{{commit(1), withFour}, {abort(1), left(initial()...)}} {
		name := end.step.name()
		for _, c := range []code{shutdownInProgress, notWritablePrimary, interruptedDueToReplStateChange} {
			transactions = append(transactions,
				demand{fmt.Sprintf("%s has the label %s after %d %s: drivers retry it (S26)", name, writable, c.Number, c.Name),
					servers("4.4", sets),
					[]step{send(insert).starts(1).gets("n: 1"), failing(c, name),
						end.step.failsWithout(c.numberOnly(), labels{writable},
							labels{transientTransaction}), end.step.gets("")}, end.outcome})
		}
		for _, c := range []code{writeConflict, {251, "NoSuchTransaction"}} {
			transactions = append(transactions,
				demand{fmt.Sprintf("%s has the label %s after %d %s: the transaction is lost (S26)", name, transientTransaction,
					c.Number, c.Name), servers("4.4", sets),
					[]step{send(insert).starts(1).gets("n: 1"), failing(c, name),
						end.step.failsWithout(c.numberOnly(), labels{transientTransaction},
							labels{writable}), end.step.gets("")}, end.outcome})
		}
	}
	for _, c := range changeOfState {
		states = append(states, demand{fmt.Sprintf("find has a topologyVersion after %d %s: drivers ignore the error if they know a newer state (S27)", c.Number, c.Name), requirement{},
			[]step{failing(c, "find"), send("find: documents").fails(c.numberOnly()).
				responds("topologyVersion: { processId: { $$type: objectId }, counter: { $$type: [ int, long ] } }")}, nil})
	}
	for _, c := range []code{hostUnreachable, writeConflict, badValue} {
		states = append(states, demand{fmt.Sprintf("find has no topologyVersion after %d %s: the state of the server is the same (S27)", c.Number, c.Name), requirement{},
			[]step{failing(c, "find"), send("find: documents").fails(c.numberOnly()).responds("topologyVersion: { $$exists: false }")}, nil})
	}
	const stream = "aggregate: documents, pipeline: [ { $changeStream: {} } ], cursor: {}"
	for _, c := range []code{hostUnreachable, shutdownInProgress, retryChangeStream, notWritablePrimary} {
		streams = append(streams, demand{fmt.Sprintf("aggregate with $changeStream has the label ResumableChangeStreamError after %d %s: drivers resume it (S28)", c.Number, c.Name), requirement{},
			[]step{failing(c, "aggregate"), send(stream).fails(c.numberOnly(), "ResumableChangeStreamError")}, nil})
	}
	for _, c := range []code{badValue, maxTimeMSExpired} {
		streams = append(streams, demand{fmt.Sprintf("aggregate with $changeStream has no label after %d %s: drivers raise the error (S28)", c.Number, c.Name), requirement{},
			[]step{failing(c, "aggregate"),
				send(stream).failsWithout(c.numberOnly(), nil, labels{"ResumableChangeStreamError"})}, nil})
	}
	tested := func(version string, t topologies) requirement {
		r := servers(version, t)
		r.commands = true
		return r
	}
	old := serversBefore44(sets)
	old.commands = true
	const needs = "Fail points of the server cause the errors, so that its labels are seen and not those of a proxy."
	return []*file{
		serverFile("labels", "labels of retryable writes", tested("4.4", sets), []string{
			"Servers add the label since 4.4 (Retryable Writes, \"RetryableWriteError Labels\"). Recordings show it for every code.", needs}, writes),
		serverFile("labels-before-4.4", "labels of retryable writes before 4.4", old, []string{
			"Servers add the label since 4.4 (Retryable Writes, \"RetryableWriteError Labels\").", needs}, []demand{before}),
		serverFile("labels-transactions", "labels in transactions", tested("4.4", clusters), []string{
			"Transactions, \"Transient Transaction Error\"; recordings show the labels for every code.", needs}, transactions),
		serverFile("labels-states", "topologyVersion in errors", tested("4.4", sets), []string{
			"Errors have a topologyVersion since 4.4 (Server Discovery and Monitoring, \"topologyVersion\").", needs}, states),
		serverFile("labels-change-streams", "labels of change streams", tested("4.4", sets), []string{
			"Servers add the label since 4.4 (Change Streams, \"Resumable Error\").", needs}, streams),
	}
}
