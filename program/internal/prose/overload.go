package prose

import (
	"slices"
	"time"

	"github.com/unified-test-runner/utr/result"
)

func overloadTests() []Test {
	return []Test{
		{"backpressure-1", "Test 1: Operation Retry Uses Exponential Backoff", Needs{servers, [2]int{4, 4}},
			[]string{current, proposal}, exponentialBackoff},
		{"backpressure-2", "Test 2: Token Bucket Capacity is Enforced (2025-12, removed since)", Needs{servers, [2]int{4, 4}},
			[]string{proposal}, tokenBucket},
		{"backpressure-3", "Test 3: Overload Errors are Retried a Maximum of MAX_RETRIES times", Needs{servers, [2]int{4, 4}},
			[]string{current, proposal}, func(k *stage) { k.overloadedFind("", k.retries()) }},
		{"backpressure-4", "Test 4: Overload Errors are Retried a Maximum of maxAdaptiveRetries times when configured",
			Needs{servers, [2]int{4, 4}}, []string{current}, func(k *stage) { k.overloadedFind(`"maxAdaptiveRetries": 1`, 1) }},
		{"backpressure-5", "Test 5: Overload Errors with baseBackoffMS override base backoff", Needs{servers, [2]int{9, 0}},
			[]string{current}, baseBackoff},
	}
}

func jitter(f float64) *float64 { return &f }

// sum is the duration of all backoffs with jitter 1.
func (c Constants) sum() (sum time.Duration) {
	for _, d := range c.Backoffs {
		sum += d
	}
	return sum
}

// timedInsert returns the duration of an insert that must fail.
func (c *client) timedInsert() time.Duration {
	c.ping() // exclude discovery
	begun := time.Now()
	err := c.perform("insert")
	took := time.Since(begun)
	c.stage.serverError(err)
	return took
}

func exponentialBackoff(k *stage) {
	uri := k.setting.Deployment.SingleURI()
	never, longest := k.jittered(jitter(0), uri, ""), k.jittered(jitter(1), uri, "")
	never.failPoint(always, fails("insert", 2, overloaded, retryable))
	without, with := never.timedInsert(), longest.timedInsert()
	sum := k.setting.Constants.sum()
	// The window alone would accept a driver without backoff.
	k.Require(with >= sum, "with backoff it took %v, and the backoffs alone take %v", with, sum)
	window := min(sum, time.Second)
	off := (with - without - sum).Abs()
	k.Require(off < window, "with backoff %v, without %v: the difference is not %v ± %v", with, without, sum, window)
}

// overloadedFind fails all attempts of a read.
func (k *stage) overloadedFind(options string, retries int) {
	c := k.client(k.setting.Deployment.SingleURI(), options)
	c.failPoint(always, fails("find", 462, overloaded, retryable))
	err := c.perform("find")
	k.serverError(err)
	for _, label := range []string{overloaded, retryable} {
		k.Require(err.HasLabel(label), "the error lacks the label %s", label)
	}
	k.attempts(c, "find", retries+1)
}

// tokenBucket consumes all tokens of a client, without backoff.
func tokenBucket(k *stage) {
	c := k.jittered(jitter(0), k.setting.Deployment.SingleURI(), "")
	c.failPoint(always, fails("find", 462, overloaded, retryable))
	sent := 0
	for taken := 0; taken < k.setting.Constants.Tokens; taken += k.retries() {
		k.serverError(c.perform("find"))
		sent += 1 + k.retries()
	}
	k.attempts(c, "find", sent)
	k.serverError(c.perform("find"))
	k.attempts(c, "find", sent+1)
}

// baseBackoff sets the base backoff through the server.
func baseBackoff(k *stage) {
	c := k.jittered(jitter(1), k.setting.Deployment.SingleURI(), "")
	setting := func(value string) string {
		return `{"commandName": "setParameter", "command": {"setParameter": 1, "externalClientBaseBackoffMS": ` + value + `}}`
	}
	c.open("database", "admin", `{"client": "client", "databaseName": "admin"}`)
	c.failPoint(always, fails("insert", 462, overloaded, retryable))
	exponential := c.timedInsert()
	c.must("admin", "runCommand", setting("50"))
	c.atEnd("admin", "runCommand", setting("0"))
	given := c.timedInsert()
	said := slices.ContainsFunc(c.events("insert", result.CommandFailed), func(e result.Event) bool {
		return e.Failure != nil && !e.Failure.Response.Lookup("baseBackoffMS").IsZero()
	})
	sum := k.setting.Constants.sum()
	k.Require(said, "the server attached no baseBackoffMS to its errors")
	k.Require(exponential >= sum, "the default backoffs took %v, not %v or more", exponential, sum)
	k.Require(given >= sum/2 && given < sum, "the backoffs of 50 ms took %v, not %v to %v", given, sum/2, sum)
}
