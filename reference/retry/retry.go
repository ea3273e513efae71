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
	"slices"
	"time"
)

// Kind is a kind of failure.
type Kind uint8

// The kinds of failure.
const (
	// Network is a socket error, a closed connection or a socket timeout.
	Network Kind = iota + 1
	// Server is an error reply.
	Server
	// PoolCleared is a check-out that fails because the pool is cleared or paused (Connection Monitoring and Pooling,
	// "Connection Pool Errors").
	PoolCleared
	// Checkout is any other client-side check-out error, such as a wait queue timeout.
	Checkout
	// NotBuilt means that the command cannot be built for the selected server.
	NotBuilt
	// Client is any other client-side error.
	Client
	// Selection is a server selection error.
	Selection
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"", "network error", "server error", "pool cleared", "check-out error",
		"command not built", "client error", "server selection error"}[k]
}

// Failure holds the properties of a failed attempt that the rules depend on.
type Failure struct {
	Kind Kind
	// Handshake is true for a failure during the handshake, including authentication.
	Handshake bool
	// Code is the code of a server error, or 0.
	Code   int32
	Labels []string
	// WriteConcern is true if Code is the code of a write concern error.
	WriteConcern bool
	// Message is the server's error message, for policies without error labels.
	Message string
	// BaseBackoff is the server's baseBackoffMS, or 0.
	BaseBackoff time.Duration
	// Server is the address of the failed server.
	Server string
	// Attempt is the number of the failed attempt, from 1. Next sets it, and the caller uses it to find its own error.
	Attempt int
}

// Has reports whether the failure has an error label.
func (f Failure) Has(label string) bool { return slices.Contains(f.Labels, label) }

// Settings are the options of the client, the session and the operation.
type Settings struct {
	Operation
	RetryReads    bool
	RetryWrites   bool
	InTransaction bool
	// Timeout is true if timeoutMS is set: retries continue until the deadline (Client Side Operations Timeout,
	// "Retryability").
	Timeout bool
	// MaxAdaptiveRetries, if not nil, replaces the policy's limit of retries after an overload error.
	MaxAdaptiveRetries *int
	// OverloadRetargeting is the client option enableOverloadRetargeting.
	OverloadRetargeting bool
}

// State is the state of an operation. Next never modifies its argument.
type State struct {
	Policy *Policy
	Settings
	// Attempt is the number of the current attempt, from 1, or 0 before the first decision.
	Attempt int
	// Chosen is the server of the current attempt.
	Chosen Chosen
	// Deprioritized lists the addresses of deprioritized servers, in the order in which they failed.
	Deprioritized []string
	// Raise is the error to raise if no attempt succeeds. Kind 0 means none.
	Raise Failure
	// Overloaded is true after an overload error: the limit of overload retries applies.
	Overloaded bool
	// Numbered is true after a write failed with an error other than a retryable overload error. The write may have
	// been executed, so it may only be sent to servers that recognize its transaction number.
	Numbered bool
	// Done is true after a result or an error was returned.
	Done bool
}

// Chosen describes a selected server.
type Chosen struct {
	Address string
	// Sharded is true if the topology is a sharded cluster.
	Sharded bool
	// Mongos is true if the server is a mongos, in any topology.
	Mongos bool
	// Wire is the server's maxWireVersion, 0 if unknown.
	Wire int32
	// RetryableWrites is true if the server supports sessions and is not a standalone.
	RetryableWrites bool
}

// InputKind distinguishes inputs.
type InputKind uint8

// The inputs.
const (
	// Begin starts the operation.
	Begin InputKind = iota + 1
	// Selected follows a Select decision: Chosen is set.
	Selected
	// Succeeded follows a Send decision.
	Succeeded
	// Failed follows a Select or Send decision: Failure is set.
	Failed
	// BackedOff follows a BackOff decision.
	BackedOff
)

// Input is an event since the last decision.
type Input struct {
	Kind    InputKind
	Chosen  Chosen
	Failure Failure
	// Left is the time until the deadline, if Settings.Timeout is true.
	Left time.Duration
	// Jitter is a random number in [0, 1), for failures.
	Jitter float64
	// Tokens is the number of tokens in the client's bucket, if the policy has one.
	Tokens Tokens
}

// Action tells the caller what to do.
type Action uint8

// The actions.
const (
	// Select a server, with Deprioritized.
	Select Action = iota + 1
	// Send the command, built for the selected server.
	Send
	// BackOff waits for Delay. The BackedOff input follows.
	BackOff
	// ReturnResult ends the operation with the result of the last attempt.
	ReturnResult
	// ReturnError ends the operation with the error of the attempt Raise.Attempt.
	ReturnError
	// StartTransaction and CommitTransaction are actions of NextTransaction.
	StartTransaction
	CommitTransaction
)

// String returns the name of the action in reports.
func (a Action) String() string {
	return [...]string{"", "select", "send", "back off", "return result", "return error",
		"start transaction", "commit transaction"}[a]
}

// Decision is the result of Next.
type Decision struct {
	Action Action
	// Attempt is the number of the attempt.
	Attempt int
	// Deprioritized belongs to Select.
	Deprioritized []string
	// Delay belongs to BackOff.
	Delay time.Duration
	// Raise belongs to ReturnError.
	Raise Failure
	// Expired is true if the error is returned because no time is left for another attempt.
	Expired bool
	// Tokens is the new number of tokens in the client's bucket.
	Tokens Tokens
	// Rules that fired, in order.
	Rules []string
	// Reason explains the decision to a person.
	Reason string
}

// Start returns the state before the first attempt.
func Start(p *Policy, s Settings) State { return State{Policy: p, Settings: s} }

// Next returns the next state and decision. It never modifies its arguments. An unexpected input ends the operation
// with a client error, so that a faulty caller cannot loop.
func Next(s State, in Input) (State, Decision) {
	st := &step{in: in, State: s, tokens: in.Tokens}
	if s.Done {
		return s, Decision{Action: ReturnError, Attempt: s.Attempt, Raise: s.Raise, Tokens: in.Tokens, Reason: "the operation has already ended"}
	}
	if in.Kind == Failed {
		st.f = in.Failure
		st.f.Attempt = max(s.Attempt, 1)
		if st.f.Server == "" && st.f.Kind != Selection {
			st.f.Server = s.Chosen.Address
		}
	}
	for _, r := range table {
		if st.done {
			break
		}
		// The policy is checked last, because that costs more than most conditions.
		if r.on == in.Kind && r.when(st) && s.Policy.has(r.ID) {
			st.fired = append(st.fired, r.ID)
			if r.Reason != "" {
				st.reason = r.Reason
			}
			r.then(st)
		}
	}
	if !st.done {
		st.finish(Decision{Action: ReturnError, Raise: Failure{Kind: Client, Attempt: s.Attempt}})
		st.reason = "no rule handles this input"
	}
	st.d.Attempt = st.Attempt
	st.d.Tokens = st.tokens
	st.d.Rules = st.fired
	st.d.Reason = st.reason
	return st.State, st.d
}
