package retry

import (
	"slices"
	"testing"
	"time"
)

// TestTransactionRules has a row for every rule of withTransaction.
func TestTransactionRules(t *testing.T) {
	transient, unknown := []string{labelTransient}, []string{labelUnknownCommit}
	const late, backoff = 120 * time.Second, 3750 * time.Microsecond
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
		s, d := NextTransaction(TransactionState{Attempt: c.attempt, Timeout: TransactionTime}, c.in)
		if !slices.Equal(d.Rules, []string{c.rule}) || d.Action != c.action || d.Delay != c.delay || d.Expired != c.expired {
			t.Errorf("%s: %+v, want %s", c.why, d, c.rule)
		}
		if want := c.attempt + map[Action]int{StartTransaction: 1}[c.action]; s.Attempt != want {
			t.Errorf("%s: attempt %d, want %d", c.why, s.Attempt, want)
		}
		seen = append(seen, c.rule)
	}
	for _, r := range TransactionRules() {
		if !slices.Contains(seen, r.ID) {
			t.Errorf("no row has %s", r.ID)
		}
	}
}
