package reference

import (
	"context"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func sessionRows() []row {
	options := []string{"maxCommitTimeMS", "readConcern", "readPreference", "timeoutMS", "writeConcern"}
	return []row{
		{operations.Session, "abortTransaction", []string{"timeoutMS"}, func(c *call) (any, *result.Error) {
			return enginekit.Nothing{}, c.entity.(*clientSession).abort(c.ctx, c.timeout, &c.trace)
		}},
		{operations.Session, "advanceClusterTime", []string{"clusterTime"}, func(c *call) (any, *result.Error) {
			raw, err := bson.Marshal(bson.D{{Key: "$clusterTime", Value: c.Arg("clusterTime")}})
			if err != nil {
				return nil, argument(err.Error())
			}
			c.entity.(*clientSession).advance(raw, nil)
			return enginekit.Nothing{}, nil
		}},
		{operations.Session, "commitTransaction", []string{"timeoutMS"}, func(c *call) (any, *result.Error) {
			return enginekit.Nothing{}, c.entity.(*clientSession).commit(c.ctx, c.timeout, &c.trace)
		}},
		{operations.Session, "endSession", nil, func(c *call) (any, *result.Error) {
			c.entity.(*clientSession).finish(c.ctx, &c.trace)
			return enginekit.Nothing{}, nil
		}},
		{operations.Session, "getSnapshotTime", nil, func(c *call) (any, *result.Error) {
			if at := c.entity.(*clientSession).snapshotTime; at != nil {
				return *at, nil
			}
			return nil, argument("the session has no snapshot time")
		}},
		{operations.Session, "startTransaction", options, func(c *call) (any, *result.Error) {
			o, err := c.transactionOptions()
			if err != nil {
				return nil, err
			}
			return enginekit.Nothing{}, c.entity.(*clientSession).start(o)
		}},
		{operations.Session, "withTransaction", append([]string{"callback"}, options...), withTransaction},
		{operations.Session, "$dirty", nil, func(c *call) (any, *result.Error) {
			s := c.entity.(*clientSession)
			return s.server != nil && s.server.dirty, nil
		}},
		{operations.Session, "$lsid", nil, func(c *call) (any, *result.Error) {
			return c.entity.(*clientSession).lsid(), nil
		}},
		{operations.Session, "$pinnedServer", nil, func(c *call) (any, *result.Error) {
			s := c.entity.(*clientSession)
			switch {
			case s.pinned != "":
				return s.pinned, nil
			case s.conn != nil:
				return s.conn.Address().String(), nil
			}
			return nil, nil
		}},
		{operations.Session, "$transactionState", nil, func(c *call) (any, *result.Error) {
			return c.entity.(*clientSession).state, nil
		}},
	}
}

func (c *call) transactionOptions() (transactionOptions, *result.Error) {
	var o transactionOptions
	given := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: c.Given}
	if err := o.fields().Read("arguments", given, func(string) error { return nil }); err != nil {
		return o, argument(err.Error())
	}
	if e := c.entity.(*clientSession); o.timeout == nil && e.defaults.timeout == nil {
		o.timeout = e.timeout
	}
	return o, nil
}

// ending makes the command that ends a transaction.
func (s *clientSession) ending(name string, timeout bool) *command {
	build := func(target) (bson.D, error) {
		d := bson.D{{Key: name, Value: int32(1)}}
		if name == "commitTransaction" && s.options.maxCommitTime != nil && !timeout {
			d = append(d, bson.E{Key: "maxTimeMS", Value: *s.options.maxCommitTime})
		}
		if s.recovery != nil {
			d = append(d, bson.E{Key: "recoveryToken", Value: s.recovery})
		}
		return d, nil
	}
	concern := s.options.writeConcern
	if timeout {
		concern = withoutTimeout(concern)
	}
	return &command{name: name, db: "admin", op: retry.Lookup(name), build: build, write: true,
		writeConcern: concern, session: s, timeout: timeout}
}

// majority is the write concern of a commit that is tried again.
func majority(writeConcern bson.D) bson.D {
	out := bson.D{{Key: "w", Value: "majority"}}
	timeout := false
	for _, e := range writeConcern {
		if e.Key != "w" {
			out = append(out, e)
		}
		timeout = timeout || e.Key == "wtimeout"
	}
	if !timeout {
		out = append(out, bson.E{Key: "wtimeout", Value: int32(10000)})
	}
	return out
}

func (s *clientSession) commit(ctx context.Context, timeout bool, tr *trace) *result.Error {
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
	cmd := s.ending("commitTransaction", timeout)
	base := cmd.writeConcern
	if s.committed > 0 {
		cmd.writeConcern = majority(base)
	}
	s.committed++
	build, shed := cmd.build, s.client.driver.policy.Overload != nil
	cmd.build = func(t target) (bson.D, error) {
		if cmd.failed != nil && !(shed && cmd.failed.HasLabel(labelOverloaded) && cmd.failed.HasLabel(labelRetryable)) {
			cmd.writeConcern = majority(base)
		}
		return build(t)
	}
	r, err := s.client.execute(ctx, cmd, tr)
	if err == nil && r.write != nil {
		err = r.write.err
		cmd.labelTransaction(err)
		cmd.unpin(err)
	}
	return err
}

func withoutTimeout(writeConcern bson.D) bson.D {
	var out bson.D
	for _, e := range writeConcern {
		if e.Key != "wtimeout" {
			out = append(out, e)
		}
	}
	return out
}

// abort ignores the errors of the command.
func (s *clientSession) abort(ctx context.Context, timeout bool, tr *trace) *result.Error {
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
	_, _ = s.client.execute(ctx, s.ending("abortTransaction", timeout), tr)
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
		if limit != nil && *limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = s.client.driver.options.within(ctx, *limit)
			defer cancel()
		}
		_ = s.abort(ctx, limit != nil, tr)
	}
	s.end()
}
