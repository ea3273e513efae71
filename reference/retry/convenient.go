package retry

import (
	"math"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// The constants of the Convenient API for Transactions.
const (
	transactionBase   = 5 * time.Millisecond
	transactionGrowth = 1.5
	transactionCap    = 500 * time.Millisecond
	// TransactionTime is the timeout of withTransaction without timeoutMS.
	TransactionTime = 120 * time.Second
)

// TransactionState is the state of withTransaction. NextTransaction never modifies its argument.
type TransactionState struct {
	Policy  *Policy
	attempt int // number of times the transaction was started
}

// transactionRow is a rule of withTransaction.
type transactionRow struct {
	Rule
	on   []InputKind
	when func(TransactionState, Input) bool // nil: always
	then Decision
}

const sequence = "Convenient API for Transactions, Sequence of Actions"

// transactionTable lists the rules in the order in which they are applied. It is never modified.
var transactionTable = []transactionRow{
	{Rule{"T1", "Start the transaction and call the callback.", sequence, "2018-02-13",
		"first attempt of the transaction"},
		[]InputKind{Begin}, nil, Decision{Action: StartTransaction}},
	{Rule{"T2", "If the callback has ended the transaction, return.", sequence,
		"2018-02-13", "the callback ended the transaction"},
		[]InputKind{CallbackEnded}, nil, Decision{Action: ReturnResult}},
	{Rule{"T3", "If the callback has left the transaction open, commit it.", sequence, "2018-02-13",
		"the callback succeeded"},
		[]InputKind{CallbackReturned}, nil, Decision{Action: CommitTransaction}},
	{Rule{"T4", "A successful commit ends withTransaction.", sequence, "2018-02-13", "the transaction is committed"},
		[]InputKind{Committed}, nil, Decision{Action: ReturnResult}},
	{Rule{"T5", "A commit whose outcome is unknown is not retried after the timeout.", sequence,
		"2018-02-13", "there is no time left to commit again"},
		[]InputKind{CommitFailed}, func(s TransactionState, in Input) bool {
			return commitAgain(s, in) && in.Left <= 0
		}, Decision{Action: ReturnError, Expired: true}},
	{Rule{"T6", "A commit whose outcome is unknown is retried immediately, except after MaxTimeMSExpired.", sequence,
		"2019-04-24", "the outcome of the commit is unknown"},
		[]InputKind{CommitFailed}, commitAgain, Decision{Action: CommitTransaction}},
	{Rule{"T7", "An error without the label TransientTransactionError is raised.", sequence,
		"2018-02-13", "the error is not transient"},
		[]InputKind{CallbackFailed, CommitFailed}, func(_ TransactionState, in Input) bool {
			return !in.Failure.has(codes.TransientTransactionError)
		}, Decision{Action: ReturnError}},
	{Rule{"T8", "A backoff that would reach the timeout is not started.", sequence,
		"2025-11-20", "there is no time left for another transaction"},
		[]InputKind{CallbackFailed, CommitFailed}, func(s TransactionState, in Input) bool {
			return in.Left <= transactionBackoff(s, in)
		}, Decision{Action: ReturnError, Expired: true}},
	{Rule{"T9", "Before retrying the transaction, wait jitter · min(500 ms, 5 ms · 1.5^attempt).", sequence,
		"2026-07-08", "the error is transient"},
		[]InputKind{CallbackFailed, CommitFailed}, nil, Decision{Action: BackOff}},
	{Rule{"T10", "Start the transaction again after the backoff.", sequence, "2025-11-20", "the backoff is over"},
		[]InputKind{BackedOff}, nil, Decision{Action: StartTransaction}},
	{Rule{expiry, "An error that is raised because no time is left becomes a timeout that keeps its labels.",
		"Convenient API for Transactions, Timeout Error propagation", "2026-02-17", ""},
		nil, nil, Decision{}}, // NextTransaction adds it to the rule that raises the error
	{Rule{"T12", "After the timeout, the transaction is not retried.", sequence,
		"2018-02-13", "there is no time left for another transaction"},
		[]InputKind{CallbackFailed, CommitFailed}, func(_ TransactionState, in Input) bool {
			return in.Left <= 0
		}, Decision{Action: ReturnError}},
	{Rule{"T13", "Start the transaction again immediately.", sequence, "2018-02-13", "the error is transient"},
		[]InputKind{CallbackFailed, CommitFailed}, nil, Decision{Action: StartTransaction}},
}

// expiry is the rule that turns an error into a timeout.
const expiry = "T11"

var byExpiry = ruleOf(expiry)

func commitAgain(_ TransactionState, in Input) bool {
	return in.Failure.has(codes.UnknownTransactionCommitResult) && in.Failure.Code != codes.MaxTimeMSExpired
}

func transactionBackoff(s TransactionState, in Input) time.Duration {
	ceiling := float64(transactionBase) * math.Pow(transactionGrowth, float64(s.attempt+s.Policy.transactionExponent))
	return time.Duration(in.Jitter * math.Min(float64(transactionCap), ceiling))
}

// TransactionRules lists the rules of withTransaction in the order in which they are applied. The caller may modify
// the slice.
func TransactionRules() []Rule {
	out := make([]Rule, len(transactionTable))
	for i, r := range transactionTable {
		out[i] = r.Rule
	}
	return out
}

// NextTransaction returns the next state and decision of withTransaction. If Expired is true, the caller returns a
// timeout error that keeps the labels (Convenient API for Transactions, "Timeout Error propagation"). Raise is not
// set: the error of this input is raised.
func NextTransaction(s TransactionState, in Input) (TransactionState, Decision) {
	for i := range transactionTable {
		r := &transactionTable[i]
		fired := RuleSet{transactions: 1 << i}
		if !slices.Contains(r.on, in.Kind) || r.when != nil && !r.when(s, in) || !s.Policy.Rules.all(fired) {
			continue
		}
		d := r.then
		switch d.Action {
		case StartTransaction:
			s.attempt++
		case BackOff:
			d.Delay = transactionBackoff(s, in)
		}
		d.Attempt, d.Rules, d.Reason = s.attempt, fired, r.reason
		if d.Expired = d.Expired && s.Policy.Rules.all(byExpiry); d.Expired {
			d.Rules.transactions |= byExpiry.transactions
		}
		return s, d
	}
	return s, Decision{Action: ReturnError, Attempt: s.attempt, Reason: "no rule handles this input"}
}
