package retry

import (
	"testing"
	"time"
)

func TestNextTransaction(t *testing.T) {
	transient, unknown := []string{labelTransient}, []string{labelUnknownCommit}
	for _, c := range []struct {
		why     string
		attempt int
		in      TransactionInput
		action  Action
		delay   time.Duration
		expired bool
		rule    string
	}{
		{"first", 0, TransactionInput{Kind: TransactionBegin}, StartTransaction, 0, false, "T1"},
		{"the callback ended it", 1, TransactionInput{Kind: CallbackEnded}, ReturnResult, 0, false, "T2"},
		{"the callback left it open", 1, TransactionInput{Kind: CallbackReturned}, CommitTransaction, 0, false, "T3"},
		{"committed", 1, TransactionInput{Kind: Committed}, ReturnResult, 0, false, "T4"},
		{"unknown commit, too late", 1, TransactionInput{Kind: CommitFailed, Labels: unknown, Elapsed: time.Minute}, ReturnError, 0, true, "T5"},
		{"unknown commit, just in time", 1, TransactionInput{Kind: CommitFailed, Labels: unknown, Elapsed: time.Minute - 1}, CommitTransaction, 0, false, "T6"},
		{"unknown commit, but MaxTimeMSExpired", 1, TransactionInput{Kind: CommitFailed, Labels: unknown, Code: 50}, ReturnError, 0, false, "T7"},
		{"unknown and transient commit: commit again", 1, TransactionInput{Kind: CommitFailed, Labels: append(unknown, labelTransient)}, CommitTransaction, 0, false, "T6"},
		{"a callback's unknown commit is raised", 1, TransactionInput{Kind: CallbackFailed, Labels: unknown}, ReturnError, 0, false, "T7"},
		{"no label", 1, TransactionInput{Kind: CallbackFailed, Elapsed: time.Hour}, ReturnError, 0, false, "T7"},
		{"transient, too late without delay", 1, TransactionInput{Kind: CallbackFailed, Labels: transient, Elapsed: time.Minute}, ReturnError, 0, true, "T8"},
		{"transient, the delay ends at the deadline", 1, TransactionInput{Kind: CallbackFailed, Labels: transient, Jitter: 1,
			Elapsed: time.Minute - 7500*time.Microsecond}, ReturnError, 0, true, "T8"},
		{"transient, the delay ends just before", 1, TransactionInput{Kind: CallbackFailed, Labels: transient, Jitter: 1,
			Elapsed: time.Minute - 7500*time.Microsecond - 1}, BackOff, 7500 * time.Microsecond, false, "T9"},
		{"transient, half the jitter", 2, TransactionInput{Kind: CommitFailed, Labels: transient, Jitter: 0.5}, BackOff, 5625 * time.Microsecond, false, "T9"},
		{"500 ms at most", 100, TransactionInput{Kind: CommitFailed, Labels: transient, Jitter: 1}, BackOff, 500 * time.Millisecond, false, "T9"},
		{"nothing overflows", 1 << 30, TransactionInput{Kind: CommitFailed, Labels: transient, Jitter: 1}, BackOff, 500 * time.Millisecond, false, "T9"},
		{"waited", 1, TransactionInput{Kind: TransactionBackedOff}, StartTransaction, 0, false, "T10"},
		{"no such input", 1, TransactionInput{Kind: 99}, ReturnError, 0, false, ""},
	} {
		s, d := NextTransaction(TransactionState{Attempt: c.attempt, Timeout: time.Minute}, c.in)
		rule := ""
		if len(d.Rules) == 1 {
			rule = d.Rules[0]
		}
		if d.Action != c.action || d.Delay != c.delay || d.Expired != c.expired || rule != c.rule || d.Reason == "" {
			t.Errorf("%s: %v after %v, expired %v, by %v (%s)", c.why, d.Action, d.Delay, d.Expired, d.Rules, d.Reason)
		}
		if started := s.Attempt - c.attempt; (started == 1) != (c.action == StartTransaction) {
			t.Errorf("%s: %d transactions were started", c.why, started)
		}
	}
	seen := map[string]bool{}
	for _, r := range append(Rules(), TransactionRules()...) {
		if seen[r.ID] || r.Statement == "" || r.Section == "" || r.Revision == "" {
			t.Errorf("rule %q stands twice, or lacks something", r.ID)
		}
		seen[r.ID] = true
	}
}
