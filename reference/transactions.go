package reference

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

func sessionRows() []row {
	const on = entities.Session
	given := func(value func(*clientSession) any) func(*call) (any, *result.Error) {
		return func(c *call) (any, *result.Error) { return value(c.Entity.(*clientSession)), nil }
	}
	return []row{
		noResult(on, "abortTransaction", "", func(c *call) *result.Error {
			return c.Entity.(*clientSession).abort(c.ctx, c.timeout, &c.trace)
		}),
		noResult(on, "commitTransaction", "", func(c *call) *result.Error {
			return c.Entity.(*clientSession).commit(c.ctx, c.timeout, &c.trace)
		}),
		noResult(on, "endSession", "", func(c *call) *result.Error {
			c.Entity.(*clientSession).finish(c.ctx, &c.trace)
			return nil
		}),
		{on, "getSnapshotTime", "", func(c *call) (any, *result.Error) {
			if at := c.Entity.(*clientSession).snapshotTime; at != nil {
				return *at, nil
			}
			return nil, argument("the session has no snapshot time")
		}},
		noResult(on, "startTransaction", "", func(c *call) *result.Error {
			o, err := c.transactionOptions()
			if err != nil {
				return err
			}
			return c.Entity.(*clientSession).start(c.ctx, o)
		}),
		noResult(on, "withTransaction", "", withTransaction),
		{on, "$dirty", "", given(func(s *clientSession) any { return !s.ended && s.acquired().dirty })},
		{on, "$lsid", "", given(func(s *clientSession) any { return s.acquired().id })},
		{on, "$transactionState", "", given(func(s *clientSession) any { return s.state })},
		{on, "$pinnedServer", "", given(func(s *clientSession) any {
			switch {
			case s.pinned != "":
				return s.pinned
			case s.conn != nil:
				return s.conn.Address().String()
			}
			return nil
		})},
	}
}

func (c *call) transactionOptions() (transactionOptions, *result.Error) {
	o := c.Entity.(*clientSession).defaults
	given := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: c.Given}
	if err := o.fields().Read("arguments", given, func(string) error { return nil }); err != nil {
		return o, argument(err.Error())
	}
	return o, nil
}

// endCommand returns the command that ends a transaction.
func (s *clientSession) endCommand(name string, timeout bool) *command {
	concern := s.options.writeConcern
	if timeout {
		concern = withoutTimeout(concern)
	}
	return &command{body: document(name, int32(1)), db: "admin", op: retry.Lookup(name), write: true,
		writeConcern: concern, session: s, timeout: timeout}
}

// majority returns the write concern of a retried commit.
func majority(writeConcern bson.D) bson.D {
	out := document("w", "majority", "wtimeout", int32(10000))
	for _, e := range writeConcern {
		switch e.Key {
		case "w":
		case "wtimeout":
			out[1] = e
		default:
			out = append(out, e)
		}
	}
	return out
}

func (s *clientSession) commit(ctx context.Context, timeout bool, tr *trace) (err *result.Error) {
	end := s.traced(ctx, "commitTransaction", tr)
	defer func() { end(err) }()
	switch s.state {
	case txnNone:
		return argument("no transaction started")
	case txnAborted:
		return argument("cannot call commitTransaction after calling abortTransaction")
	case txnStarting:
		s.state, s.emptyCommit = txnCommitted, true
		return nil
	case txnCommitted:
		if s.emptyCommit {
			return nil
		}
	}
	s.state = txnCommitted
	cmd := s.endCommand("commitTransaction", timeout)
	if s.options.maxCommitTime != nil && !timeout {
		cmd.body = append(cmd.body, bson.E{Key: "maxTimeMS", Value: *s.options.maxCommitTime})
	}
	base := cmd.writeConcern
	cmd.uncertain, s.committed = s.committed, true
	cmd.adapt = func(*attempt) (bson.D, error) {
		if cmd.uncertain {
			cmd.writeConcern = majority(base)
		}
		return nil, nil
	}
	_, err = s.client.execute(ctx, cmd, tr)
	return err
}

func withoutTimeout(writeConcern bson.D) bson.D {
	return slices.DeleteFunc(slices.Clone(writeConcern), func(e bson.E) bool { return e.Key == "wtimeout" })
}

// abort aborts the transaction. It ignores errors of the command.
func (s *clientSession) abort(ctx context.Context, timeout bool, tr *trace) (err *result.Error) {
	end := s.traced(ctx, "abortTransaction", tr)
	defer func() { end(err) }()
	switch s.state {
	case txnNone:
		return argument("no transaction started")
	case txnAborted:
		return argument("cannot call abortTransaction twice")
	case txnCommitted:
		return argument("cannot call abortTransaction after calling commitTransaction")
	case txnStarting:
		s.state = txnAborted
		s.unpin()
		return nil
	}
	s.state = txnAborted
	_, _ = s.client.execute(ctx, s.endCommand("abortTransaction", timeout), tr)
	s.unpin()
	return nil
}

// finish aborts an open transaction and ends the session.
func (s *clientSession) finish(ctx context.Context, tr *trace) {
	if s.ended {
		return
	}
	if s.state == txnInProgress {
		limit := s.timeoutMS()
		ctx, cancel := s.client.driver.options.within(ctx, limit)
		defer cancel()
		_ = s.abort(ctx, limit != nil, tr)
	}
	s.end()
}
