// Package retry implements the retry specifications as a pure state machine. Next maps a state and an input to the
// next state and a decision: select a server, send, back off, return a result, or return an error. The caller does
// the I/O and passes in times and random numbers.
//
// Rules returns the table of numbered rules. A Policy is a dated revision of the specifications: a set of rules and
// constants. Each decision lists the rules that led to it.
//
// Values of this package are plain data and share nothing, so they may be used concurrently.
package retry

import (
	"math/bits"
	"slices"
	"sync"
	"time"
)

// Kind is a kind of failure.
type Kind uint8

// The kinds of failure.
const (
	Network Kind = iota + 1 // a socket error, a closed connection or a socket timeout
	Server                  // an error reply
	// the pool is cleared or paused (Connection Monitoring and Pooling, "Connection Pool Errors")
	PoolCleared
	Checkout  // any other client-side check-out error, such as a wait queue timeout
	NotBuilt  // the command cannot be built for the selected server
	Client    // any other client-side error
	Selection // a server selection error
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"", "network error", "server error", "pool cleared", "check-out error",
		"command not built", "client error", "server selection error"}[k]
}

// Failure holds the properties of a failed attempt that the rules depend on.
type Failure struct {
	Kind         Kind
	Handshake    bool  // during the handshake, including authentication
	Connecting   bool  // a network error before authentication: the server may be overloaded
	Code         int32 // of a server error, or 0
	Labels       []string
	WriteConcern bool          // Code is the code of a write concern error
	Message      string        // of the server, for policies without error labels
	BaseBackoff  time.Duration // the server's baseBackoffMS, or 0
	Server       string        // address of the failed server
	// Attempt is the number of the failed attempt, from 1. Next sets it, and the caller uses it to find its own error.
	Attempt int
}

// has reports whether the failure has an error label.
func (f Failure) has(label string) bool { return slices.Contains(f.Labels, label) }

// Settings are the options of the client, the session and the operation.
type Settings struct {
	Operation
	RetryReads    bool
	RetryWrites   bool
	InTransaction bool
	// Timeout is true if timeoutMS is set: retries continue until the deadline (Client Side Operations Timeout,
	// "Retryability").
	Timeout             bool
	MaxAdaptiveRetries  *int // if not nil, replaces the policy's limit of retries after an overload error
	OverloadRetargeting bool // enableOverloadRetargeting
}

// State is the state of an operation. Next never modifies its argument.
type State struct {
	Policy *Policy
	Settings
	Attempt       int      // number of the current attempt, from 1, or 0 before the first decision
	Chosen        Chosen   // server of the current attempt
	deprioritized []string // addresses, in the order in which they failed
	raised        Failure  // the error to raise if no attempt succeeds; Kind 0: none
	overloaded    bool     // after an overload error: the limit of overload retries applies
	// Numbered is true after a write failed with an error other than a retryable overload error. The write may have
	// been executed, so it may only be sent to servers that recognize its transaction number.
	numbered bool
	ended    bool // a result or an error was returned
}

// Chosen describes a selected server.
type Chosen struct {
	Address         string
	Sharded         bool  // the topology is a sharded cluster
	Mongos          bool  // the server is a mongos, in any topology
	Wire            int32 // maxWireVersion, 0 if unknown
	RetryableWrites bool  // the server supports sessions and is not a standalone
}

// InputKind distinguishes inputs.
type InputKind uint8

// The inputs.
const (
	Begin     InputKind = iota + 1 // starts the operation
	Selected                       // follows a Select decision: Chosen is set
	Succeeded                      // follows a Send decision
	Failed                         // follows a Select or Send decision: Failure is set
	BackedOff                      // follows a BackOff decision

	// Only of NextTransaction, which also has Begin and BackedOff.
	CallbackFailed   // an error of the callback; the caller has aborted an open transaction
	CallbackEnded    // the callback itself committed or aborted the transaction
	CallbackReturned // the callback left the transaction open
	CommitFailed     // an error of commitTransaction
	Committed        // a successful commitTransaction
)

// Input is an event since the last decision.
type Input struct {
	Kind    InputKind
	Chosen  Chosen
	Failure Failure
	Left    time.Duration // time until the deadline, if Settings.Timeout is true; of withTransaction, always
	Jitter  float64       // a random number in [0, 1), for failures
	Tokens  Tokens        // number of tokens in the client's bucket, if the policy has one
}

// Action is what the caller must do next.
type Action uint8

// The actions.
const (
	Select            Action = iota + 1 // a server, with Deprioritized
	Send                                // the command, built for the selected server
	BackOff                             // for Delay; the BackedOff input follows
	ReturnResult                        // of the last attempt: ends the operation
	ReturnError                         // of the attempt Raise.Attempt: ends the operation
	StartTransaction                    // only of NextTransaction
	CommitTransaction                   // only of NextTransaction
)

// String returns the name of the action in reports.
func (a Action) String() string {
	return [...]string{"", "select", "send", "back off", "return result", "return error",
		"start transaction", "commit transaction"}[a]
}

// Decision is the result of Next.
type Decision struct {
	Action        Action
	Attempt       int           // number of the attempt
	Deprioritized []string      // of Select
	Delay         time.Duration // of BackOff
	Raise         Failure       // of ReturnError
	Expired       bool          // the error is returned because no time is left for another attempt
	Tokens        Tokens        // new number of tokens in the client's bucket
	Rules         RuleSet       // that fired
	Reason        string        // explains the decision to a person
}

// Start returns the state before the first attempt.
func Start(p *Policy, s Settings) State { return State{Policy: p, Settings: s} }

// steps keeps the memory of calls of Next, so that they allocate nothing.
var steps = sync.Pool{New: func() any { return new(step) }}

// byLabel is the rule by which labels determine the kind of an error of a write.
var byLabel = ruleOf("W10")

// byInput has the rules of table for each kind of input.
var byInput = func() (out [BackedOff + 1]uint64) {
	for i := range table {
		out[table[i].on] |= 1 << i
	}
	return out
}()

// rulesFor returns the rules for a kind of input. It returns 0 for an unknown kind.
func rulesFor(kind InputKind) uint64 {
	if int(kind) < len(byInput) {
		return byInput[kind]
	}
	return 0
}

// Next returns the next state and decision. It never modifies its arguments. An unexpected input ends the operation
// with a client error, so that a faulty caller cannot loop.
func Next(s State, in Input) (State, Decision) {
	if s.ended {
		return s, Decision{Action: ReturnError, Attempt: s.Attempt, Raise: s.raised, Tokens: in.Tokens,
			Reason: "the operation has already ended"}
	}
	st := steps.Get().(*step)
	defer func() {
		*st = step{}
		steps.Put(st)
	}()
	st.in, st.State, st.tokens, st.labels = in, s, in.Tokens, s.Policy.Rules.all(byLabel)
	if in.Kind == Failed {
		st.f = in.Failure
		st.f.Attempt = max(s.Attempt, 1)
		if st.f.Server == "" && st.f.Kind != Selection {
			st.f.Server = s.Chosen.Address
		}
	}
	for rest := s.Policy.Rules.retries & rulesFor(in.Kind); rest != 0 && !st.done; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if r := &table[i]; r.when(st) {
			st.fired.retries |= 1 << i
			if r.reason != "" {
				st.reason = r.reason
			}
			r.then(st)
		}
	}
	if !st.done {
		st.reason = "no rule handles this input"
		st.finish(Decision{Action: ReturnError, Raise: Failure{Kind: Client, Attempt: s.Attempt}})
	}
	return st.State, st.d
}
