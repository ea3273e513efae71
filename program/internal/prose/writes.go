package prose

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner/blackpipe"
)

func writeTests() []Test {
	return []Test{
		{"writes-1", "1. Test that retryable writes raise an exception when using the MMAPv1 storage engine", Needs{},
			everyPolicy,
			withoutTransactionNumbers},
		{"writes-2", "2. Test that drivers properly retry after encountering PoolClearedErrors",
			Needs{retrying, [2]int{4, 4}},
			everyPolicy, func(k *stage) { k.poolCleared("insert", fails("insert", 91, writable)) }},
		{"writes-3", "3. Test that drivers return the original error after encountering a WriteConcernError " +
			"with a RetryableWriteError label", Needs{sets, [2]int{6, 0}}, everyPolicy,
			func(k *stage) {
				const first = `"failCommands": ["insert"], "errorLabels": ["` + writable + `"], ` +
					`"writeConcernError": {"code": 91, "errmsg": "Replication is being shut down"}`
				_, err := k.secondFailure(nil, "insert", first, once, fails("insert", 10107, writable, noWrites))
				k.code(err, 91)
			}},
		{"writes-4", "4. Test that in a sharded cluster writes are retried on a different mongos when one is available",
			Needs{clusters, [2]int{4, 4}}, everyPolicy, func(k *stage) {
				k.otherMongos("insert",
					fails("insert", 6, writable))
			}},
		{"writes-5", "5. Test that in a sharded cluster writes are retried on the same mongos when no others are available",
			Needs{clusters, [2]int{4, 4}}, everyPolicy,
			func(k *stage) { k.sameMongos("insert", fails("insert", 6, writable)+`, "closeConnection": true`) }},
		{"writes-6.1", "6. Case 1: Test that drivers return the correct error when receiving only errors without NoWritesPerformed",
			Needs{sets, [2]int{6, 0}}, []string{current, proposal},
			func(k *stage) {
				err := k.insertError(fails("insert", 91, retryable, overloaded), fails("insert", 10107, retryable, overloaded))
				k.code(err, 10107)
			}},
		{"writes-6.2", "6. Case 2: Test that drivers return the correct error when receiving only errors with NoWritesPerformed",
			Needs{sets, [2]int{6, 0}}, []string{current, proposal},
			func(k *stage) {
				first, second := fails("insert", 91, retryable, overloaded, noWrites), fails("insert", 10107, retryable,
					overloaded, noWrites)
				k.code(k.insertError(first, second), 91)
			}},
		{"writes-6.3", "6. Case 3: Test that drivers return the correct error when receiving some errors with NoWritesPerformed " +
			"and some without NoWritesPerformed", Needs{sets, [2]int{6, 0}}, []string{current, proposal},
			func(k *stage) {
				err := k.insertError(fails("insert", 91, retryable, overloaded),
					fails("insert", 91, retryable, overloaded, noWrites))
				k.code(err, 91)
				k.Require(!err.HasLabel(noWrites), "the error has the label %s", noWrites)
			}},
		{"writes-6.4", "6. Case 4: Test that drivers set the maximum number of retries for all retryable write errors " +
			"when an overload error is encountered", Needs{sets, [2]int{6, 0}}, []string{current, proposal},
			func(k *stage) { k.overloadedOnce(nil, "insert", writable, k.allAttempts) }},
		{"writes-6.5", "6. Case 5: Test that drivers do not apply backoff to non-overload errors", Needs{sets, [2]int{6, 0}},
			[]string{current, proposal}, func(k *stage) { k.overloadedOnce(jitter(1), "insert", writable, k.backedOffOnce) }},
	}
}

// insertError returns the error of an insert whose first attempt fails with the data first, and later ones with second.
func (k *stage) insertError(first, second string) *result.Error {
	_, err := k.secondFailure(nil, "insert", first, always, second)
	return err
}

// code requires a server error with a code.
func (k *stage) code(err *result.Error, code int32) {
	k.serverError(err)
	k.Require(err.Code == code, "the error has the code %d, not %d: %w", err.Code, code, err)
}

// withoutTransactionNumbers rejects a write like a storage engine without transaction numbers. No current server has
// one, so the test starts its own server.
func withoutTransactionNumbers(k *stage) {
	pipe, err := blackpipe.Listen(blackpipe.Options{Topology: blackpipe.ReplicaSet})
	k.Check(err)
	done := make(chan struct{})
	k.AtEnd(func(context.Context) error {
		err := pipe.Close()
		<-done
		return err
	})
	go func() {
		defer close(done)
		for {
			m, err := pipe.Next(k.ctx)
			if err != nil {
				return
			}
			_ = m.Reply(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 20}, {Key: "codeName", Value: "IllegalOperation"},
				{Key: "errmsg", Value: "Transaction numbers are only allowed on a replica set member or mongos"}})
		}
	}()
	const message = "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
	failed := k.client(pipe.URI(), "").perform("insert")
	k.code(failed, 20)
	k.Require(strings.HasPrefix(failed.Message, message), "the message is %q, not %q", failed.Message, message)
}
