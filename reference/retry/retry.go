// Package retry decides what a driver does next while it performs one command
// under the retry specifications: select a server, send, back off, return a
// result, return an error. It is pure. Next takes a state and what happened,
// and gives the following state and a decision; sockets, clocks and randomness
// belong to the caller, who passes in what they said.
//
// The rules are numbered and stand in one table (Rules). A Policy names the
// rules of a dated state of the specifications, with its constants; each
// decision names the rules that led to it.
//
// Values of this package are plain data. Nothing in it is shared between
// calls, so everything may be used concurrently.
package retry

import (
	"slices"
	"time"
)

// Kind is what an attempt ran into.
type Kind uint8

// The kinds of failure.
const (
	// Network is a socket that broke, closed or timed out.
	Network Kind = iota + 1
	// Server is an error reply.
	Server
	// PoolCleared is a check-out refused because the pool was cleared or is
	// paused (Connection Monitoring and Pooling, "Connection Pool Errors").
	PoolCleared
	// Checkout is any other failure to get a connection that is the driver's
	// own, such as a wait queue timeout.
	Checkout
	// NotBuilt says that the command cannot be built for the chosen server.
	NotBuilt
	// Client is any other error that the driver raised by itself.
	Client
	// Selection says that no server could be selected.
	Selection
)

// String gives the kind in the words of the specifications.
func (k Kind) String() string {
	return [...]string{"", "network error", "server error", "pool cleared", "check-out error",
		"command not built", "client error", "server selection error"}[k]
}

// Failure describes an error of an attempt, as far as the rules look at it.
type Failure struct {
	Kind Kind
	// Handshake is true if it happened while a connection was established or
	// authenticated.
	Handshake bool
	// Code is the code of a server error, 0 if there is none.
	Code   int32
	Labels []string
	// WriteConcern is true if the code is that of a write concern error.
	WriteConcern bool
	// Message is the server's. Policies from before error labels look at it.
	Message string
	// BaseBackoff is the server's baseBackoffMS, 0 if there is none.
	BaseBackoff time.Duration
	// Server is the address of the server that it came from.
	Server string
	// Attempt is the number of the attempt that failed, from 1. Next fills
	// it in; the caller finds its own error again by it.
	Attempt int
}

// Has reports whether the failure carries an error label.
func (f Failure) Has(label string) bool { return slices.Contains(f.Labels, label) }

// Settings are what the client, the session and the operation say before the
// first attempt.
type Settings struct {
	Operation
	RetryReads  bool
	RetryWrites bool
	// InTransaction is true if the session is in a transaction.
	InTransaction bool
	// Timeout is true if timeoutMS is set: retries go on until the deadline
	// (Client Side Operations Timeout, "Retryability").
	Timeout bool
	// MaxAdaptiveRetries replaces the policy's limit of retries after an
	// overload error; nil leaves it.
	MaxAdaptiveRetries *int
	// OverloadRetargeting is the client option enableOverloadRetargeting.
	OverloadRetargeting bool
}

// State is how far an operation has come. It is a value: Next never changes
// the one that it is given.
type State struct {
	Policy *Policy
	Settings
	// Attempt is the number of the attempt under way, from 1; 0 before the
	// first decision.
	Attempt int
	// Chosen is the server of the attempt under way.
	Chosen Chosen
	// Deprioritized holds the addresses for the next selection, in order.
	Deprioritized []string
	// Raise is the error to raise if nothing succeeds any more; Kind 0 means
	// that there is none yet.
	Raise Failure
	// Overloaded is true once an overload error was seen: the limit of
	// retries then is the policy's.
	Overloaded bool
	// Numbered is true once a write failed with another error than a retryable
	// overload error: it may be done already, and no server may do it again
	// that does not know it by its transaction number.
	Numbered bool
	// Done is true after a result or an error was returned.
	Done bool
}

// Chosen is what is known of a selected server.
type Chosen struct {
	Address string
	// Sharded is true if it was selected from a sharded cluster.
	Sharded bool
	// Mongos is true if it is one, whatever it was selected from.
	Mongos bool
	// Wire is its maxWireVersion, 0 if unknown.
	Wire int32
	// RetryableWrites is true if it supports sessions and is no standalone.
	RetryableWrites bool
}

// InputKind distinguishes inputs.
type InputKind uint8

// The inputs.
const (
	// Begin starts the operation.
	Begin InputKind = iota + 1
	// Selected answers a Select decision: Chosen is set.
	Selected
	// Succeeded answers a Send decision.
	Succeeded
	// Failed answers a Select or Send decision: Failure is set.
	Failed
	// BackedOff answers a BackOff decision.
	BackedOff
)

// Input is what happened since the last decision.
type Input struct {
	Kind    InputKind
	Chosen  Chosen
	Failure Failure
	// Left is the time until the deadline. It is looked at only if
	// Settings.Timeout is true.
	Left time.Duration
	// Jitter is a random number in [0, 1), for failures.
	Jitter float64
	// Tokens is what is in the client's token bucket. It is looked at only if
	// the policy has one.
	Tokens Tokens
}

// Action is what the caller has to do.
type Action uint8

// The actions.
const (
	// Select a server, giving the deprioritized ones to server selection.
	Select Action = iota + 1
	// Send the command, built afresh for the chosen server.
	Send
	// BackOff waits for Delay and then gives the BackedOff input.
	BackOff
	// ReturnResult ends the operation with the result of the last attempt.
	ReturnResult
	// ReturnError ends it with the error named by Raise.
	ReturnError
	// StartTransaction and CommitTransaction are what withTransaction does:
	// see NextTransaction.
	StartTransaction
	CommitTransaction
)

// String gives the action in the words of the reports.
func (a Action) String() string {
	return [...]string{"", "select", "send", "back off", "return result", "return error",
		"start transaction", "commit transaction"}[a]
}

// Decision is one step.
type Decision struct {
	Action Action
	// Attempt is the number of the attempt that the step belongs to.
	Attempt int
	// Deprioritized belongs to Select.
	Deprioritized []string
	// Delay belongs to BackOff.
	Delay time.Duration
	// Raise belongs to ReturnError.
	Raise Failure
	// Expired is true if an error is returned because there was no time left
	// for another attempt.
	Expired bool
	// Tokens is what is in the client's token bucket after the step.
	Tokens Tokens
	// Rules that fired, in order.
	Rules []string
	// Reason says why, in a person's words.
	Reason string
}

// Start gives the state before the first attempt.
func Start(p *Policy, s Settings) State { return State{Policy: p, Settings: s} }

// Next decides. It never modifies its arguments. An input that does not
// answer the last decision ends the operation with a client error, so that a
// mistaken caller cannot loop.
func Next(s State, in Input) (State, Decision) {
	st := &step{in: in, State: s, tokens: in.Tokens}
	if s.Done {
		return s, Decision{Action: ReturnError, Attempt: s.Attempt, Raise: s.Raise, Tokens: in.Tokens, Reason: "the operation has ended already"}
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
		// The policy is asked last: to look for the name costs more than most conditions.
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
