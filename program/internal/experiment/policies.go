package experiment

import (
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
)

// Policy is a policy of the retry core with client options.
type Policy struct {
	Name   string
	What   string // short description
	rules  *retry.Policy
	set    retry.Settings
	always bool // every retryable error counts as an overload error
}

// operation is the operation of all clients: a write that every revision retries, since
// its errors have the label RetryableWriteError.
const operation = "insert"

// settings returns the settings of a client.
func settings(retries, timeout bool) retry.Settings {
	return retry.Settings{Operation: retry.Lookup(operation), RetryReads: retries, RetryWrites: retries, Timeout: timeout}
}

// Policies lists all policies, from the fewest retries on.
func Policies() []Policy {
	current := retry.Policies()[0]
	before := named("retryable-reads@2026")
	hasty := *current
	hasty.Name = "current without backoff"
	hasty.Rules = current.Rules.Without("B5", "B6")
	return []Policy{
		{Name: "none", What: "no retry: retryReads and retryWrites are false", rules: current, set: settings(false, true)},
		{Name: "once", What: "one retry at once: drivers before client backpressure, without timeoutMS", rules: before,
			set: settings(true, false)},
		{Name: "naive", What: "retries at once until the deadline: drivers before client backpressure, with timeoutMS",
			rules: before,
			set:   settings(true, true)},
		{Name: "hasty", What: "two retries at once: the final policy without its backoff", rules: &hasty,
			set: settings(true, true)},
		{Name: "bucket", What: "five retries with backoff and jitter, each for a token of the client's bucket: client-backpressure@2025-12",
			rules: named("client-backpressure@2025-12"), set: settings(true, true)},
		{Name: "final", What: "two retries with backoff and jitter: client-backpressure@2026-07-08", rules: current,
			set: settings(true, true)},
	}
}

// named returns a policy of the retry core.
func named(name string) *retry.Policy {
	p, _ := retry.Named(name) // a test checks that all names exist
	return p
}

// Question is a question from the review of a specification.
type Question struct {
	Name, Asks string
	// Set configures the experiment that answers it, including policies.
	Set func(*Config)
}

// Questions lists the questions.
func Questions() []Question {
	return []Question{
		{"exponent", "is the exponent of the first backoff 0, as in prose of 2025-12, or 1, as in its pseudocode?",
			func(c *Config) {
				c.Policies = []Policy{variant("one", "the first backoff is up to 200 ms: client-backpressure@2026-07-08",
					func(*retry.Overload) {}),
					variant("zero", "the first backoff is up to 100 ms", func(o *retry.Overload) { o.Exponent = -1 })}
			}},
		{"base", "should backoffs double, or grow by half as the backoffs of withTransaction do?", func(c *Config) {
			c.Policies = []Policy{variant("double", "five retries, each backoff up to twice as long as the one before",
				retries(5)),
				variant("half", "five retries, each backoff up to one and a half times as long",
					func(o *retry.Overload) { o.MaxRetries, o.Growth = 5, 1.5 })}
		}},
		{"retries", "what do further retries gain?", func(c *Config) {
			c.Policies = nil
			for n := range 6 {
				c.Policies = append(c.Policies, variant(fmt.Sprintf("retries-%d", n), fmt.Sprintf("MAX_RETRIES %d", n), retries(n)))
			}
		}},
		{"backoff", "should retries after other errors wait as well?", func(c *Config) {
			c.Spike, c.Fault, c.Duration = c.Load, Unreachable, 12*time.Second
			patient := variant("patient", "a backoff before each retry, until the deadline", retries(1000))
			patient.always = true
			c.Policies = []Policy{Policies()[5], patient}
			c.Policies[0].Name, c.Policies[0].What = "at-once",
				"at once until the deadline: client-backpressure@2026-07-08 with timeoutMS"
		}},
		{"restart", "is one retry enough in a rolling restart?", func(c *Config) {
			// Operations that wait for a primary arrive together. Admit them all: this is not about overload.
			c.Spike, c.Fault, c.Rate, c.Queue = c.Load, Restarts, 0, c.Capacity
			all := Policies()
			c.Policies = []Policy{all[0], all[1], all[5]}
			c.Policies[2].Name, c.Policies[2].What = "csot",
				"retries until the deadline: client-backpressure@2026-07-08 with timeoutMS"
		}},
	}
}

// retries sets the number of retries.
func retries(n int) func(*retry.Overload) { return func(o *retry.Overload) { o.MaxRetries = n } }

// variant returns the final policy with other constants.
func variant(name, what string, change func(*retry.Overload)) Policy {
	rules := *retry.Policies()[0]
	overload := *rules.Overload
	change(&overload)
	rules.Name, rules.Overload = "current, "+name, &overload
	return Policy{Name: name, What: what, rules: &rules, set: settings(true, true)}
}
