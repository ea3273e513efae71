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
	Attempt int           // number of times the transaction was started
	Timeout time.Duration // timeoutMS, or TransactionTime
}

// TransactionInputKind distinguishes inputs.
type TransactionInputKind uint8

// The inputs of withTransaction.
const (
	TransactionBegin TransactionInputKind = iota + 1 // the first input
	// an error of the callback; the caller has aborted an open transaction
	CallbackFailed
	CallbackEnded        // the callback itself committed or aborted the transaction
	CallbackReturned     // the callback left the transaction open
	CommitFailed         // an error of commitTransaction
	Committed            // a successful commitTransaction
	TransactionBackedOff // follows a BackOff decision
)

// TransactionInput is an event since the last decision.
type TransactionInput struct {
	Kind    TransactionInputKind
	Labels  []string      // of the error
	Code    int32         // of the error
	Elapsed time.Duration // since withTransaction was called
	Jitter  float64       // a random number in [0, 1)
}

func (in TransactionInput) has(label string) bool { return slices.Contains(in.Labels, label) }

// transactionRow is a rule of withTransaction.
type transactionRow struct {
	Rule
	on   []TransactionInputKind
	when func(TransactionState, TransactionInput) bool // nil: always
	then Decision
}

const sequence = "Convenient API for Transactions, Sequence of Actions"

// transactionTable lists the rules in the order in which they are applied. It is never modified.
var transactionTable = []transactionRow{
	{Rule{"T1", "Start the transaction and call the callback.", sequence, "2018-02-13",
		"first attempt of the transaction"},
		[]TransactionInputKind{TransactionBegin}, nil, Decision{Action: StartTransaction}},
	{Rule{"T2", "If the callback has ended the transaction, return.", sequence,
		"2018-02-13", "the callback ended the transaction"},
		[]TransactionInputKind{CallbackEnded}, nil, Decision{Action: ReturnResult}},
	{Rule{"T3", "If the callback has left the transaction open, commit it.", sequence, "2018-02-13",
		"the callback succeeded"},
		[]TransactionInputKind{CallbackReturned}, nil, Decision{Action: CommitTransaction}},
	{Rule{"T4", "A successful commit ends withTransaction.", sequence, "2018-02-13", "the transaction is committed"},
		[]TransactionInputKind{Committed}, nil, Decision{Action: ReturnResult}},
	{Rule{"T5", "A commit whose outcome is unknown is not retried after the timeout.", sequence,
		"2018-02-13", "there is no time left to commit again"},
		[]TransactionInputKind{CommitFailed}, func(s TransactionState, in TransactionInput) bool {
			return commitAgain(s, in) && in.Elapsed >= s.Timeout
		}, Decision{Action: ReturnError, Expired: true}},
	{Rule{"T6", "A commit whose outcome is unknown is retried immediately, except after MaxTimeMSExpired.", sequence,
		"2019-04-24", "the outcome of the commit is unknown"},
		[]TransactionInputKind{CommitFailed}, commitAgain, Decision{Action: CommitTransaction}},
	{Rule{"T7", "An error without the label TransientTransactionError is raised.", sequence,
		"2018-02-13", "the error is not transient"},
		[]TransactionInputKind{CallbackFailed, CommitFailed}, func(_ TransactionState, in TransactionInput) bool {
			return !in.has(codes.TransientTransactionError)
		}, Decision{Action: ReturnError}},
	{Rule{"T8", "A backoff that would reach the timeout is not started.", sequence,
		"2025-11-20", "there is no time left for another transaction"},
		[]TransactionInputKind{CallbackFailed, CommitFailed}, func(s TransactionState, in TransactionInput) bool {
			return in.Elapsed+transactionBackoff(s, in) >= s.Timeout
		}, Decision{Action: ReturnError, Expired: true}},
	{Rule{"T9", "Before retrying the transaction, wait jitter · min(500 ms, 5 ms · 1.5^attempt).", sequence,
		"2026-07-08", "the error is transient"},
		[]TransactionInputKind{CallbackFailed, CommitFailed}, nil, Decision{Action: BackOff}},
	{Rule{"T10", "Start the transaction again after the backoff.", sequence, "2025-11-20", "the backoff is over"},
		[]TransactionInputKind{TransactionBackedOff}, nil, Decision{Action: StartTransaction}},
	{Rule{expiry, "An error that is raised because no time is left becomes a timeout that keeps its labels.",
		"Convenient API for Transactions, Timeout Error propagation", "2026-02-17", ""},
		nil, nil, Decision{}}, // NextTransaction adds it to the rule that raises the error
	{Rule{"T12", "After the timeout, the transaction is not retried.", sequence,
		"2018-02-13", "there is no time left for another transaction"},
		[]TransactionInputKind{CallbackFailed, CommitFailed}, func(s TransactionState, in TransactionInput) bool {
			return in.Elapsed >= s.Timeout
		}, Decision{Action: ReturnError}},
	{Rule{"T13", "Start the transaction again immediately.", sequence, "2018-02-13", "the error is transient"},
		[]TransactionInputKind{CallbackFailed, CommitFailed}, nil, Decision{Action: StartTransaction}},
}

// expiry is the rule that turns an error into a timeout.
const expiry = "T11"

var byExpiry = ruleOf(expiry)

func commitAgain(_ TransactionState, in TransactionInput) bool {
	return in.has(codes.UnknownTransactionCommitResult) && in.Code != codes.MaxTimeMSExpired
}

func transactionBackoff(s TransactionState, in TransactionInput) time.Duration {
	ceiling := float64(transactionBase) * math.Pow(transactionGrowth, float64(s.Attempt+s.Policy.TransactionExponent))
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
func NextTransaction(s TransactionState, in TransactionInput) (TransactionState, Decision) {
	for i := range transactionTable {
		r := &transactionTable[i]
		fired := RuleSet{transactions: 1 << i}
		if !slices.Contains(r.on, in.Kind) || r.when != nil && !r.when(s, in) || !s.Policy.Rules.all(fired) {
			continue
		}
		d := r.then
		switch d.Action {
		case StartTransaction:
			s.Attempt++
		case BackOff:
			d.Delay = transactionBackoff(s, in)
		}
		d.Attempt, d.Rules, d.Reason = s.Attempt, fired, r.Reason
		if d.Expired = d.Expired && s.Policy.Rules.all(byExpiry); d.Expired {
			d.Rules.transactions |= byExpiry.transactions
		}
		return s, d
	}
	return s, Decision{Action: ReturnError, Attempt: s.Attempt, Reason: "no rule handles this input"}
}
