package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// story is what can happen to an operation: which attempts fail, how, and what
// must be seen of it.
type story struct {
	says     string // what the description says after the operation's name
	rule     string // of reference/retry
	require  string // of the test; "" for what the file has
	point    string // flow YAML of the fail point; "" for none
	attempts int
	failing  int    // attempts that end in an error reply or none
	raises   string // flow YAML of expectError; "" for a success
	applied  bool   // the write was made although an error was raised
	noRetry  bool   // by the client with retryWrites false
}

const label = "RetryableWriteError"

// Versions and topologies that give labels in their own ways.
const (
	before44        = `{ minServerVersion: "4.2", maxServerVersion: "4.2.99", topologies: [ replicaset, sharded ] }`
	before44Set     = `{ minServerVersion: "4.2", maxServerVersion: "4.2.99", topologies: [ replicaset ] }`
	before44Sharded = `{ minServerVersion: "4.2", maxServerVersion: "4.2.99", topologies: [ sharded ] }`
)

// since44 is for what needs error labels in fail points, on some topologies.
func since44(o suites.Operation, topologies string) string {
	return fmt.Sprintf("{ minServerVersion: %q, topologies: [ %s ] }", later(o, "4.4"), topologies)
}

const (
	sets  = "replicaset"
	every = "replicaset, sharded, load-balanced"
)

// later is the version that an operation needs if the test needs this one.
func later(o suites.Operation, version string) string {
	if o.Since != "" {
		return o.Since
	}
	return version
}

func raisesLabelled(c suites.Code) string {
	return suites.RaisedLabels(c, label, "")
}

func raisesPlain(c suites.Code) string {
	return suites.RaisedLabels(c, "", label)
}

const (
	raisesNetwork        = "{ isClientError: true, errorLabelsContain: [ " + label + " ] }"
	raisesNetworkPlain   = "{ isClientError: true, errorLabelsOmit: [ " + label + " ] }"
	raisesConcern        = "{ isClientError: false, errorLabelsContain: [ " + label + " ] }"
	raisesConcernPlain   = "{ isClientError: false, errorLabelsOmit: [ " + label + " ] }"
	beforeCommit         = "failBeforeCommitExceptionCode: 1"
	transactionalWrite   = "onPrimaryTransactionalWrite"
	notRetriedWithOption = " with retryWrites false"
)

// concern is the data of failCommand for a write concern error.
func concern(code int, name, labels string) string {
	s := fmt.Sprintf("writeConcernError: { code: %d, errmsg: %q }", code, name)
	if labels != "none" {
		s += ", errorLabels: [ " + labels + " ]"
	}
	return s
}

// stories are told of every operation.
func stories(o suites.Operation) []story {
	fail := func(n int, data string) string { return suites.FailPoint(o.Command, suites.Times(n), data) }
	labelled, onSet := since44(o, every), since44(o, sets)
	list := []story{
		{says: "succeeds at the first attempt", rule: "R6", attempts: 1},
		{says: "carries no transaction number" + notRetriedWithOption, rule: "R6", attempts: 1, noRetry: true},
		{says: "is retried after a network error", rule: "W10", point: fail(1, suites.Closes), attempts: 2, failing: 1},
		{says: "is not retried again after a second network error", rule: "R35", point: fail(2, suites.Closes), attempts: 2, failing: 2, raises: raisesNetwork},
		{says: "is not retried after a network error" + notRetriedWithOption, rule: "W30", point: fail(1, suites.Closes), attempts: 1, failing: 1,
			raises: raisesNetworkPlain, noRetry: true},
		{says: "is written once if the reply is lost", rule: "W10", require: onlySets(o), point: suites.SetFailPoint(transactionalWrite, suites.Times(1), ""),
			attempts: 2, failing: 1},
		{says: "is not written if both attempts fail before the commit", rule: "R35", require: onlySets(o),
			point: suites.SetFailPoint(transactionalWrite, suites.Always, beforeCommit), attempts: 2, failing: 2, raises: raisesNetwork},

		{says: "is retried after Interrupted with the label " + label, rule: "W10", require: labelled,
			point: fail(1, suites.Labelled(interrupted, label)), attempts: 2, failing: 1},
		{says: "is not retried after Interrupted", rule: "R34", point: fail(1, suites.ErrorCode(interrupted)), attempts: 1, failing: 1, raises: raisesPlain(interrupted)},

		{says: "is retried after a write concern error with the label " + label, rule: "W10", require: labelled,
			point: fail(1, concern(91, "ShutdownInProgress", label)), attempts: 2},
		{says: "is not retried again after a second write concern error with the label " + label, rule: "R35", require: labelled,
			point: fail(2, concern(91, "ShutdownInProgress", label)), attempts: 2, raises: raisesConcern, applied: true},
		{says: "is not retried after a write concern error with the label " + label + notRetriedWithOption, rule: "W30", require: labelled,
			point: fail(1, concern(91, "ShutdownInProgress", label)), attempts: 1, raises: "{ isClientError: false }", applied: true, noRetry: true},
		{says: "is not retried after write concern error ShutdownInProgress without a label", rule: "R34", require: labelled,
			point: fail(1, concern(91, "ShutdownInProgress", "")), attempts: 1, raises: raisesConcernPlain, applied: true},
		{says: "is not retried after write concern error WriteConcernFailed", rule: "R34",
			point: fail(1, concern(64, "WriteConcernFailed", "none")), attempts: 1, raises: raisesConcernPlain, applied: true},
	}
	for _, c := range retryable {
		list = append(list, story{says: "is retried after " + c.Name + " with the label " + label, rule: "W10", require: labelled,
			point: fail(1, suites.Labelled(c, label)), attempts: 2, failing: 1})
	}
	// A code that leaves the server known, one that makes it unknown, and one
	// that clears its pool.
	for _, c := range []suites.Code{coded("HostUnreachable"), coded("PrimarySteppedDown"), coded("ShutdownInProgress")} {
		list = append(list,
			story{says: "is not retried again after a second " + c.Name + " with the label " + label, rule: "R35", require: labelled,
				point: fail(2, suites.Labelled(c, label)), attempts: 2, failing: 2, raises: raisesLabelled(c)},
			story{says: "is not retried after " + c.Name + " without a label", rule: "R34", require: labelled,
				point: fail(1, suites.Labelled(c)), attempts: 1, failing: 1, raises: raisesPlain(c)},
			story{says: "is not retried after " + c.Name + " with the label " + label + notRetriedWithOption, rule: "W30", require: labelled,
				point: fail(1, suites.Labelled(c, label)), attempts: 1, failing: 1, raises: suites.RaisedCode(c), noRetry: true},
			story{says: "is retried after " + c.Name + ", which a mongod gives the label to", rule: "W10", require: onSet,
				point: fail(1, suites.ErrorCode(c)), attempts: 2, failing: 1},
		)
	}
	if o.Since != "" {
		return list
	}
	for _, c := range retryable {
		list = append(list, story{says: "is retried after " + c.Name + " of a server before 4.4", rule: "W10", require: before44,
			point: fail(1, suites.ErrorCode(c)), attempts: 2, failing: 1})
	}
	for _, c := range []suites.Code{coded("HostUnreachable"), coded("PrimarySteppedDown")} {
		list = append(list,
			story{says: "is not retried again after a second " + c.Name + " of a server before 4.4", rule: "R35", require: before44,
				point: fail(2, suites.ErrorCode(c)), attempts: 2, failing: 2, raises: raisesLabelled(c)},
			story{says: "is not retried after " + c.Name + " of a server before 4.4" + notRetriedWithOption, rule: "W30", require: before44,
				point: fail(1, suites.ErrorCode(c)), attempts: 1, failing: 1, raises: raisesPlain(c), noRetry: true})
	}
	onlyReads := suites.Code{Number: 134, Name: "ReadConcernMajorityNotAvailableYet"}
	return append(list,
		story{says: "is not retried after " + onlyReads.Name + " of a server before 4.4", rule: "R34", require: before44,
			point: fail(1, suites.ErrorCode(onlyReads)), attempts: 1, failing: 1, raises: raisesPlain(onlyReads)},
		story{says: "is retried after write concern error ShutdownInProgress of a mongod before 4.4", rule: "W10", require: before44Set,
			point: fail(1, concern(91, "ShutdownInProgress", "none")), attempts: 2},
		story{says: "is not retried again after a second write concern error of a mongod before 4.4", rule: "R35", require: before44Set,
			point: fail(2, concern(91, "ShutdownInProgress", "none")), attempts: 2, raises: raisesConcern, applied: true},
		story{says: "is not retried after write concern error ShutdownInProgress of a mongos before 4.4", rule: "R34", require: before44Sharded,
			point: fail(1, concern(91, "ShutdownInProgress", "none")), attempts: 1, raises: raisesConcernPlain, applied: true},
	)
}

// onlySets is for fail points that a mongos does not have.
func onlySets(o suites.Operation) string {
	return fmt.Sprintf("{ minServerVersion: %q, topologies: [ replicaset ] }", later(o, "4.2"))
}
