package retry

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestTransactionRules has a row for every rule of withTransaction.
func TestTransactionRules(t *testing.T) {
	transient, unknown := []string{labelTransient}, []string{labelUnknownCommit}
	const late, backoff = 120 * time.Second, 3750 * time.Microsecond
	p, _ := Named("")
	var seen []string
	for _, c := range []struct {
		why     string
		attempt int
		in      TransactionInput
		rule    string
		action  Action
		delay   time.Duration
		expired bool
	}{
		{"it begins", 0, TransactionInput{Kind: TransactionBegin}, "T1", StartTransaction, 0, false},
		{"the callback has committed by itself", 1, TransactionInput{Kind: CallbackEnded}, "T2", ReturnResult, 0, false},
		{"the callback left the transaction open", 1, TransactionInput{Kind: CallbackReturned}, "T3", CommitTransaction, 0, false},
		{"however late", 1, TransactionInput{Kind: CallbackReturned, Elapsed: late}, "T3", CommitTransaction, 0, false},
		{"committed", 1, TransactionInput{Kind: Committed}, "T4", ReturnResult, 0, false},
		{"the outcome is not known, and it is late", 1,
			TransactionInput{Kind: CommitFailed, Labels: unknown, Elapsed: late}, "T5", ReturnError, 0, true},
		{"the outcome is not known", 1, TransactionInput{Kind: CommitFailed, Labels: unknown, Elapsed: late - 1}, "T6", CommitTransaction, 0, false},
		{"MaxTimeMSExpired is raised", 1, TransactionInput{Kind: CommitFailed, Labels: unknown, Code: 50}, "T7", ReturnError, 0, false},
		{"an error of the callback's own", 1, TransactionInput{Kind: CallbackFailed}, "T7", ReturnError, 0, false},
		{"a commit that the label does not make transient", 1, TransactionInput{Kind: CommitFailed, Code: 42}, "T7", ReturnError, 0, false},
		{"a callback does not fail with an unknown commit", 1, TransactionInput{Kind: CallbackFailed, Labels: unknown}, "T7", ReturnError, 0, false},
		{"transient, and late", 1, TransactionInput{Kind: CallbackFailed, Labels: transient, Elapsed: late}, "T8", ReturnError, 0, true},
		{"transient, and the backoff ends too late", 1,
			TransactionInput{Kind: CommitFailed, Labels: transient, Elapsed: late - backoff, Jitter: 0.5}, "T8", ReturnError, 0, true},
		{"transient", 1, TransactionInput{Kind: CallbackFailed, Labels: transient, Jitter: 0.5}, "T9", BackOff, backoff, false},
		{"transient again", 2, TransactionInput{Kind: CommitFailed, Labels: transient, Jitter: 0.5}, "T9", BackOff, backoff * 3 / 2, false},
		{"never more than 500 ms", 100,
			TransactionInput{Kind: CallbackFailed, Labels: transient, Jitter: 0.5}, "T9", BackOff, 250 * time.Millisecond, false},
		{"after the backoff", 1, TransactionInput{Kind: TransactionBackedOff}, "T10", StartTransaction, 0, false},
	} {
		s, d := NextTransaction(TransactionState{Policy: p, Attempt: c.attempt, Timeout: TransactionTime}, c.in)
		rules, attempt := []string{c.rule}, c.attempt
		if c.expired {
			rules = append(rules, "T11")
		}
		if c.action == StartTransaction {
			attempt++
		}
		testkit.Equal(t, c.why, []any{d.Rules, d.Action, d.Delay, d.Expired, s.Attempt}, []any{rules, c.action, c.delay, c.expired, attempt})
		seen = append(seen, rules...)
	}
	for _, r := range TransactionRules() {
		if p.has(r.ID) && !slices.Contains(seen, r.ID) {
			t.Errorf("no row has %s", r.ID)
		}
	}
}

// TestTransactionsOfPolicies: how a transient error is answered has changed twice,
// and so has what is raised when the time is over.
func TestTransactionsOfPolicies(t *testing.T) {
	for policy, want := range map[string]string{
		"current":                     "back off 7.5ms [T9] false, back off 11.25ms [T9] false, return error 0s [T8 T11] true",
		"retryable-reads@2026":        "back off 5ms [T9] false, back off 7.5ms [T9] false, return error 0s [T8 T11] true",
		"client-backpressure@2025-12": "back off 5ms [T9] false, back off 7.5ms [T9] false, return error 0s [T8] false",
		"retryable-reads@2024":        "start transaction 0s [T13] false, start transaction 0s [T13] false, return error 0s [T12] false",
		"retryable-writes@2018-03-14": "start transaction 0s [T13] false, start transaction 0s [T13] false, return error 0s [T12] false",
	} {
		p, err := Named(policy)
		testkit.Check(t, err)
		fail := func(attempt int, elapsed time.Duration) string {
			_, d := NextTransaction(TransactionState{Policy: p, Attempt: attempt, Timeout: TransactionTime},
				TransactionInput{Kind: CallbackFailed, Labels: []string{labelTransient}, Jitter: 1, Elapsed: elapsed})
			return fmt.Sprint(d.Action, " ", d.Delay, " ", d.Rules, " ", d.Expired)
		}
		testkit.Equal(t, policy, fail(1, 0)+", "+fail(2, 0)+", "+fail(1, TransactionTime), want)
	}
}
