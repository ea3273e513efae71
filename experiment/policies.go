package experiment

import (
	"slices"

	"github.com/unified-test-runner/utr/reference/retry"
)

// Policy is how clients handle errors: a policy of the retry core, and the
// options of the client.
type Policy struct {
	Name string
	// What describes it in a few words.
	What  string
	rules *retry.Policy
	set   retry.Settings
}

// operation is what the clients do: a write that is retryable
// under every revision. The server gives its error the label
// RetryableWriteError, so that drivers older than backpressure retry as well.
const operation = "insert"

// Policies lists all policies, beginning with the one that does least.
func Policies() []Policy {
	settings := func(retries, timeout bool) retry.Settings {
		return retry.Settings{Operation: retry.Lookup(operation), RetryReads: retries, RetryWrites: retries, Timeout: timeout}
	}
	current := retry.Policies()[0]
	before := named("retryable-reads@2026")
	hasty := *current
	hasty.Name = "current without backoff"
	hasty.Rules = slices.DeleteFunc(slices.Clone(current.Rules), func(id string) bool { return id == "B5" || id == "B6" })
	return []Policy{
		{"none", "no retry: retryReads and retryWrites are false", current, settings(false, true)},
		{"once", "one retry at once: drivers before client backpressure, without timeoutMS", before, settings(true, false)},
		{"naive", "retries at once until the deadline: drivers before client backpressure, with timeoutMS", before, settings(true, true)},
		{"hasty", "two retries at once: the final policy without its backoff", &hasty, settings(true, true)},
		{"bucket", "five retries with backoff and jitter, each for a token of the client's bucket: client-backpressure@2025-12",
			named("client-backpressure@2025-12"), settings(true, true)},
		{"final", "two retries with backoff and jitter: client-backpressure@2026-07-08", current, settings(true, true)},
	}
}

// named is a policy that the retry core has.
func named(name string) *retry.Policy {
	p, err := retry.Named(name)
	if err != nil {
		return retry.Policies()[0] // a test sees to it that there is one
	}
	return p
}
