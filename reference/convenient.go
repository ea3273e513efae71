package reference

import (
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// convenient is a call of withTransaction.
type convenient struct {
	*call
	s       *clientSession
	given   transactionOptions
	begun   time.Time
	allowed time.Duration
	last    *result.Error // the last error
	unknown *result.Error // the last commit error of the current transaction
}

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
	w := &convenient{call: c, s: s, given: o, begun: c.client.driver.options.Now(), allowed: retry.TransactionTime}
	if c.timeout {
		w.allowed = forever
		if at, ok := deadlineOf(c.ctx); ok {
			w.allowed, s.deadline = at.Sub(w.begun), at
		}
		s.callback = c.limit
	}
	defer func() { s.callback, s.deadline = nil, time.Time{} }()
	return w.run()
}

func (w *convenient) run() *result.Error {
	state := retry.TransactionState{Policy: w.client.driver.policy}
	in := retry.Input{Kind: retry.Begin}
	for {
		var d retry.Decision
		state, d = retry.NextTransaction(state, in)
		w.trace.decided(d, "", nil)
		switch d.Action {
		case retry.StartTransaction:
			w.unknown = nil
			if err := w.s.start(w.ctx, w.given); err != nil {
				return err
			}
			in = w.callBack()
		case retry.CommitTransaction:
			in = w.commit()
		case retry.BackOff:
			w.trace.took(w.client.driver.options.backOff(w.ctx, d.Delay))
			if w.base.Err() != nil { // the caller of the engine has given up
				return w.last
			}
			in = retry.Input{Kind: retry.BackedOff}
		case retry.ReturnResult:
			return nil
		default:
			if d.Expired {
				return w.late(w.last)
			}
			return w.last
		}
	}
}

// callBack calls the callback. If it fails, callBack aborts an open transaction, with a new timeout.
func (w *convenient) callBack() retry.Input {
	err := w.Operation.Callback(w.ctx)
	switch {
	case err != nil:
		if w.s.inTransaction() {
			ctx, cancel := w.client.driver.options.within(w.base, w.limit)
			defer cancel()
			_ = w.s.abort(ctx, w.timeout, &w.trace)
		}
		return w.failed(retry.CallbackFailed, err)
	case w.s.inTransaction():
		return retry.Input{Kind: retry.CallbackReturned}
	}
	return retry.Input{Kind: retry.CallbackEnded}
}

func (w *convenient) commit() retry.Input {
	err := w.s.commit(w.ctx, w.timeout, &w.trace)
	switch {
	case err == nil:
		return retry.Input{Kind: retry.Committed}
	case w.unknown != nil && err.Client && err.Kind == "timeout":
		// The deadline passed before the retry: use the error of the previous commit.
		in := w.failed(retry.CommitFailed, w.unknown)
		in.Left = min(in.Left, 0)
		return in
	}
	w.unknown = err
	return w.failed(retry.CommitFailed, err)
}

func (w *convenient) failed(kind retry.InputKind, err *result.Error) retry.Input {
	w.last = err
	clock := w.client.driver.options
	return retry.Input{Kind: kind, Failure: retry.Failure{Labels: err.Labels, Code: err.Code},
		Left: w.allowed - clock.Now().Sub(w.begun), Jitter: clock.Random()}
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
