package prose

import (
	"context"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/blackpipe"
	"github.com/unified-test-runner/utr/result"
)

func writeTests() []Test {
	all := []Test{
		{Name: "writes-1", Section: "1. Test that retryable writes raise an exception when using the MMAPv1 storage engine",
			Policies: []string{current, reads26, reads24, proposal}, run: withoutTransactionNumbers},
		{Name: "writes-2", Section: "2. Test that drivers properly retry after encountering PoolClearedErrors", Needs: Needs{retrying, [2]int{4, 4}},
			Policies: []string{current, reads26, reads24, proposal},
			run:      func(k *stage) { k.poolCleared("insert", fails("insert", 91, writable)) }},
		{Name: "writes-3", Section: "3. Test that drivers return the original error after encountering a WriteConcernError with a RetryableWriteError label",
			Needs: Needs{sets, [2]int{6, 0}}, Policies: []string{current, reads26, reads24, proposal},
			run: func(k *stage) {
				_, err := k.secondFailure(nil, "insert", `"failCommands": ["insert"], "errorLabels": ["`+writable+`"], "writeConcernError": {"code": 91, "errmsg": "Replication is being shut down"}`,
					once, fails("insert", 10107, writable, noWrites))
				k.code(err, 91)
			}},
		{Name: "writes-4", Section: "4. Test that in a sharded cluster writes are retried on a different mongos when one is available",
			Needs: Needs{clusters, [2]int{4, 4}}, Policies: []string{current, reads26, reads24, proposal},
			run: func(k *stage) { k.otherMongos("insert", fails("insert", 6, writable)) }},
		{Name: "writes-5", Section: "5. Test that in a sharded cluster writes are retried on the same mongos when no others are available",
			Needs: Needs{clusters, [2]int{4, 4}}, Policies: []string{current, reads26, reads24, proposal},
			run: func(k *stage) { k.sameMongos("insert", fails("insert", 6, writable)+`, "closeConnection": true`) }},
	}
	for i, c := range []struct {
		title         string
		first, second string
		judge         func(k *stage, c *client, err *result.Error)
	}{
		{"Test that drivers return the correct error when receiving only errors without NoWritesPerformed",
			fails("insert", 91, retryable, overloaded), fails("insert", 10107, retryable, overloaded),
			func(k *stage, _ *client, err *result.Error) { k.code(err, 10107) }},
		{"Test that drivers return the correct error when receiving only errors with NoWritesPerformed",
			fails("insert", 91, retryable, overloaded, noWrites), fails("insert", 10107, retryable, overloaded, noWrites),
			func(k *stage, _ *client, err *result.Error) { k.code(err, 91) }},
		{"Test that drivers return the correct error when receiving some errors with NoWritesPerformed and some without NoWritesPerformed",
			fails("insert", 91, retryable, overloaded), fails("insert", 91, retryable, overloaded, noWrites),
			func(k *stage, _ *client, err *result.Error) {
				k.code(err, 91)
				k.require(!err.HasLabel(noWrites), "the error has the label %s", noWrites)
			}},
		{"Test that drivers set the maximum number of retries for all retryable write errors when an overload error is encountered",
			fails("insert", 91, retryable, overloaded), fails("insert", 91, retryable, writable),
			func(k *stage, c *client, err *result.Error) {
				k.serverError(err)
				k.attempts(c, "insert", k.setting.Constants.MaxRetries+1)
			}},
		{"Test that drivers do not apply backoff to non-overload errors",
			fails("insert", 91, retryable, overloaded), fails("insert", 91, retryable, writable),
			func(k *stage, c *client, err *result.Error) {
				k.serverError(err)
				k.backedOffOnce(c, "insert")
			}},
	} {
		var fixed *float64
		if strings.Contains(c.title, "backoff") {
			fixed = jitter(1)
		}
		all = append(all, Test{Name: fmt.Sprintf("writes-6.%d", i+1), Section: fmt.Sprintf("6. Case %d: %s", i+1, c.title),
			Needs: Needs{sets, [2]int{6, 0}}, Policies: []string{current, proposal}, run: func(k *stage) {
				client, err := k.secondFailure(fixed, "insert", c.first, always, c.second)
				c.judge(k, client, err)
			}})
	}
	return all
}

// code requires a server error with a code.
func (k *stage) code(err *result.Error, code int32) {
	k.serverError(err)
	k.require(err.Code == code, "the error has the code %d, not %d: %w", err.Code, code, err)
}

// withoutTransactionNumbers rejects a write like a storage engine without transaction numbers. No current server has
// one, so the test starts its own server.
func withoutTransactionNumbers(k *stage) {
	pipe, err := blackpipe.Listen(blackpipe.Options{Topology: blackpipe.ReplicaSet})
	k.check(err)
	done := make(chan struct{})
	k.atEnd(func(context.Context) error {
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
	k.require(strings.HasPrefix(failed.Message, message), "the message is %q, not %q", failed.Message, message)
}
