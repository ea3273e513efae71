package reference

import (
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// withTransaction executes the decisions of retry.NextTransaction (Convenient API for Transactions).
func withTransaction(c *call) *result.Error {
	s := c.Entity.(*clientSession)
	if c.Operation.Callback == nil {
		return argument("withTransaction requires a callback")
	}
	o, err := c.transactionOptions()
	if err != nil {
		return err
	}
	clock := c.client.driver.options
	begun := clock.Now()
	state := retry.TransactionState{Policy: c.client.driver.policy, Timeout: retry.TransactionTime}
	if c.timeout {
		state.Timeout = forever
		if at, ok := deadlineOf(c.ctx); ok {
			state.Timeout, s.deadline = at.Sub(begun), at
		}
		s.callback = c.limit
	}
	defer func() { s.callback, s.deadline = nil, time.Time{} }()

	in := retry.TransactionInput{Kind: retry.TransactionBegin}
	var last, unknown *result.Error // unknown is the last commit error of the current transaction
	failed := func(kind retry.TransactionInputKind, err *result.Error) retry.TransactionInput {
		last = err
		return retry.TransactionInput{Kind: kind, Labels: err.Labels, Code: err.Code,
			Elapsed: clock.Now().Sub(begun), Jitter: clock.Random()}
	}
	for {
		var d retry.Decision
		state, d = retry.NextTransaction(state, in)
		c.trace.decided(d, "", nil)
		switch d.Action {
		case retry.StartTransaction:
			unknown = nil
			if err := s.start(c.ctx, o); err != nil {
				return err
			}
			err := c.Operation.Callback(c.ctx)
			switch {
			case err != nil:
				if s.inTransaction() {
					ctx, cancel := clock.within(c.base, c.limit) // abort has a new timeout
					_ = s.abort(ctx, c.timeout, &c.trace)
					cancel()
				}
				in = failed(retry.CallbackFailed, err)
			case s.inTransaction():
				in = retry.TransactionInput{Kind: retry.CallbackReturned}
			default:
				in = retry.TransactionInput{Kind: retry.CallbackEnded}
			}
		case retry.CommitTransaction:
			in = retry.TransactionInput{Kind: retry.Committed}
			err := s.commit(c.ctx, c.timeout, &c.trace)
			switch {
			case err == nil:
			case unknown != nil && err.Client && err.Kind == "timeout":
				// The deadline passed before the retry: use the error of the previous commit.
				in = failed(retry.CommitFailed, unknown)
				in.Elapsed = max(in.Elapsed, state.Timeout)
			default:
				in, unknown = failed(retry.CommitFailed, err), err
			}
		case retry.BackOff:
			c.trace.took(clock.backOff(c.ctx, d.Delay))
			if c.base.Err() != nil { // the caller of the engine has given up
				return last
			}
			in = retry.TransactionInput{Kind: retry.TransactionBackedOff}
		case retry.ReturnResult:
			return nil
		default:
			if d.Expired {
				return c.late(last)
			}
			return last
		}
	}
}

// late returns a timeout error that exposes the message, labels, code and reply of its cause (Convenient API for
// Transactions, "Timeout Error propagation"). It is a timeout error of Client Side Operations Timeout only with
// timeoutMS.
func (c *call) late(cause *result.Error) *result.Error {
	if cause.Timeout {
		return cause
	}
	out := *cause
	out.Kind, out.Timeout = "timeout", c.timeout
	out.Message = "no time is left to retry the transaction: " + cause.Message
	return &out
}
