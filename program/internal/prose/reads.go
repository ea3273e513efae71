package prose

import (
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/result"
)

func readTests() []Test {
	return []Test{
		{"reads-1", "1. PoolClearedError Retryability Test", Needs{servers, [2]int{4, 2}}, everyPolicy,
			func(k *stage) { k.poolCleared("find", fails("find", 91)) }},
		{"reads-2.1", "2.1 Retryable Reads Are Retried on a Different mongos When One is Available",
			Needs{clusters, [2]int{4, 2}}, everyPolicy, func(k *stage) { k.otherMongos("find", fails("find", 6)) }},
		{"reads-2.2", "2.2 Retryable Reads Are Retried on the Same mongos When No Others are Available",
			Needs{clusters, [2]int{4, 2}}, everyPolicy, func(k *stage) { k.sameMongos("find", fails("find", 6)) }},
		{"reads-3.1", "3.1 Retryable Reads Caused by Overload Errors Are Retried on a Different Replicaset Server " +
			"When One is Available and enableOverloadRetargeting is enabled", Needs{sets,
			[2]int{4, 4}}, []string{current, reads26},
			func(k *stage) { k.retargeted(`, "enableOverloadRetargeting": true`, true, retryable, overloaded) }},
		{"reads-3.2", "3.2 Retryable Reads Caused by Non-Overload Errors Are Retried on the Same Replicaset Server",
			Needs{sets, [2]int{4, 4}}, []string{current, reads26,
				reads24}, func(k *stage) { k.retargeted("", false, retryable) }},
		{"reads-3.3", "3.3 Retryable Reads Caused by Overload Errors Are Retried on Same Replicaset Server " +
			"When enableOverloadRetargeting is disabled", Needs{sets, [2]int{4, 4}}, []string{current, reads24},
			func(k *stage) { k.retargeted("", false, retryable, overloaded) }},
		{"reads-4", "4. Test that drivers set the maximum number of retries for all retryable read errors " +
			"when an overload error is encountered", Needs{servers, [2]int{4, 4}}, []string{current, proposal},
			func(k *stage) { k.overloadedOnce(nil, "find", retryable, k.allAttempts) }},
		{"reads-5", "5. Test that drivers do not apply backoff to non-overload errors", Needs{servers, [2]int{4, 4}},
			[]string{current, proposal}, func(k *stage) { k.overloadedOnce(jitter(1), "find", retryable, k.backedOffOnce) }},
	}
}

// retries are the options that enable retries, whatever the default.
const retries = `"retryReads": true, "retryWrites": true`

// Error labels.
const (
	retryable  = codes.RetryableError
	overloaded = codes.SystemOverloadedError
	writable   = codes.RetryableWriteError
	noWrites   = codes.NoWritesPerformed
)

// poolCleared starts two operations on a pool of one connection. The first clears the pool while the second waits.
func (k *stage) poolCleared(command, data string) {
	setup := k.client(k.setting.Deployment.SingleURI(), "")
	c := k.client(k.setting.Deployment.SingleURI(), `"maxPoolSize": 1, `+retries)
	c.ping()
	before := len(c.events("", poolTypes...))
	setup.failPoint(once, data+`, "blockConnection": true, "blockTimeMS": 1000`)
	var both sync.WaitGroup
	perform := func() { k.Try(func() { k.succeeded(command, c.perform(command)) }) }
	defer both.Wait()
	both.Go(perform)
	for deadline := time.Now().Add(limit / 6); c.started(command) == 0; time.Sleep(time.Millisecond) {
		k.Require(time.Now().Before(deadline), "waited %s for the first %s to be sent", limit/6, command)
	}
	both.Go(perform)
	both.Wait()
	pool := c.events("", poolTypes...)
	pool = pool[min(before, len(pool)):]
	var seen []string
	for _, e := range pool {
		seen = append(seen, string(e.Type))
	}
	// The retry of the first operation may check out before the second operation publishes its failed check-out.
	cleared := false
	pool = slices.DeleteFunc(pool, func(e result.Event) bool {
		cleared = cleared || e.Type == result.PoolCleared
		return cleared && e.Type == result.ConnectionCheckedOut
	})
	want := []result.EventType{result.ConnectionCheckedOut, result.PoolCleared, result.ConnectionCheckOutFailed}
	for i, w := range want {
		k.Require(i < len(pool) && pool[i].Type == w, "event %d of the pool is not %s: %v", i+1, w, seen)
	}
	reason := pool[2].Reason
	k.Require(reason == "connectionError", "the check-out failed with the reason %q, not connectionError", reason)
	k.attempts(c, command, 3)
}

var poolTypes = []result.EventType{result.ConnectionCheckedOut, result.ConnectionCheckOutFailed, result.PoolCleared}

// attempts requires a number of attempts of a command.
func (k *stage) attempts(c *client, command string, want int) {
	got := c.started(command)
	k.Require(got == want, "%s was sent %s, not %d", command, plural.Of(got, "time"), want)
}

// retries is the maximum number of retries after an overload error.
func (k *stage) retries() int { return len(k.setting.Constants.Backoffs) }

// allAttempts requires the maximum number of attempts of a command.
func (k *stage) allAttempts(c *client, command string) { k.attempts(c, command, k.retries()+1) }

// serverError requires an error from a server.
func (k *stage) serverError(err *result.Error) {
	k.Require(err != nil, "the operation succeeded")
	k.Require(err.Code != 0, "the error is not one of the server: %w", err)
}

// otherMongos fails an operation once on each of two mongoses.
func (k *stage) otherMongos(command, data string) {
	c := k.client(k.setting.Deployment.URI(), retries)
	for _, address := range c.discovered(2, "Mongos")[:2] {
		k.client(k.setting.Deployment.DirectURI(address), "").failPoint(once, data)
	}
	k.serverError(c.perform(command))
	failed := c.events(command, result.CommandFailed)
	k.Require(len(failed) == 2, "%s failed, not 2", plural.Of(len(failed), "command"))
	k.Require(failed[0].Address != failed[1].Address, "both failed on %s", failed[0].Address)
}

// sameMongos fails an operation once on the only mongos of the client.
func (k *stage) sameMongos(command, data string) {
	uri := k.setting.Deployment.SingleURI()
	k.client(uri, "").failPoint(once, data)
	c := k.client(uri, retries)
	k.succeeded(command, c.perform(command))
	k.twoServers(c, command, false)
}

// twoServers requires a failed and a successful attempt, on different servers or on the same.
func (k *stage) twoServers(c *client, command string, different bool) {
	failed, succeeded := c.events(command, result.CommandFailed), c.events(command, result.CommandSucceeded)
	one := len(failed) == 1 && len(succeeded) == 1
	k.Require(one, "%s failed and %d succeeded, not 1 and 1", plural.Of(len(failed), "attempt"), len(succeeded))
	k.Require((failed[0].Address != succeeded[0].Address) == different, "the attempts ran on %s and %s", failed[0].Address,
		succeeded[0].Address)
}

// retargeted fails a read once on the primary.
func (k *stage) retargeted(option string, different bool, labels ...string) {
	c := k.client(k.setting.Deployment.URI(), `"readPreference": "primaryPreferred", `+retries+option)
	c.discovered(1, "RSPrimary")
	c.discovered(1, "RSSecondary")
	c.failPoint(once, fails("find", 6, labels...))
	k.succeeded("find", c.perform("find"))
	k.twoServers(c, "find", different)
}

// secondFailure performs an operation whose first attempt fails with the data first, and later attempts with second and
// mode. It sets the second fail point after the first reply, before the client receives it.
func (k *stage) secondFailure(jitter *float64, command, first, mode, second string) (*client, *result.Error) {
	setup := k.client(k.setting.Deployment.SingleURI(), "")
	address := setup.discovered(1, "RSPrimary", "Mongos", "Standalone")[0]
	uri := k.between(address, command, func() { setup.failPoint(mode, second) })
	c := k.jittered(jitter, uri, retries)
	setup.failPoint(once, first)
	return c, c.perform(command)
}

// overloadedOnce performs an operation whose first attempt fails with an overload error, and later attempts with an
// error that has the label. It judges the attempts.
func (k *stage) overloadedOnce(jitter *float64, command, label string, judge func(c *client, command string)) {
	first, second := fails(command, 91, retryable, overloaded), fails(command, 91, label)
	c, err := k.secondFailure(jitter, command, first, always, second)
	k.serverError(err)
	judge(c, command)
}

// backedOffOnce requires a backoff only before the second attempt.
func (k *stage) backedOffOnce(c *client, command string) {
	started, failed := c.events(command, result.CommandStarted), c.events(command, result.CommandFailed)
	n := k.retries() + 1
	all := len(started) == n && len(failed) == n
	k.Require(all, "%s began and %d failed, not %d", plural.Of(len(started), "attempt"), len(failed), n)
	wait := func(i int) time.Duration { return started[i+1].Time.Sub(failed[i].Time) }
	backoffs := k.setting.Constants.Backoffs
	k.Require(wait(0) >= backoffs[0], "the second attempt came %v after the overload error, not %v or more", wait(0),
		backoffs[0])
	for i := 1; i+1 < n; i++ { // a backoff here would belong to this attempt
		k.Require(wait(i) < backoffs[i], "attempt %d came %v after an error without the label", i+2, wait(i))
	}
}
