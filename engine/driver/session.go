package driver

import (
	"context"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/result"
)

// session is a session entity.
type session struct {
	*mongo.Session
	client *client

	ended sync.Once
}

func openSession(c *client, entity engine.Entity) (*session, error) {
	o, err := section[options.SessionOptions](entity.Options, "sessionOptions")
	if err != nil {
		return nil, err
	}
	s, err := c.StartSession(given(o))
	if err != nil {
		return nil, err
	}
	if entity.ClusterTime != nil {
		clusterTime, err := enginekit.ClusterTime(entity.ClusterTime)
		if err == nil {
			err = s.AdvanceClusterTime(clusterTime)
		}
		if err != nil {
			return nil, err
		}
	}
	return &session{Session: s, client: c}, nil
}

// end ends the session once: each EndSession would return the server session to the pool.
func (s *session) end(ctx context.Context) { s.ended.Do(func() { s.EndSession(ctx) }) }

// callbackError is an error of the callback. The driver reads its labels.
type callbackError struct{ err *result.Error }

func (e callbackError) Error() string                   { return e.err.Error() }
func (e callbackError) Unwrap() error                   { return e.err }
func (e callbackError) HasErrorLabel(label string) bool { return e.err.HasLabel(label) }

var _ mongo.LabeledError = callbackError{}

func sessionRows() []row {
	const on = entities.Session
	type transaction = *filled[options.TransactionOptions]
	return []row{
		silently(on, "abortTransaction", "", func(c *call) error { return c.session().AbortTransaction(c.ctx) }),
		silently(on, "commitTransaction", "", func(c *call) error { return c.session().CommitTransaction(c.ctx) }),
		silently(on, "endSession", "", func(c *call) error { c.session().end(c.ctx); return nil }),
		plainly(on, "getSnapshotTime", "", func(c *call) (any, error) {
			t := c.session().SnapshotTime()
			if t.IsZero() {
				return nil, errors.New("the session has no snapshot time")
			}
			return t, nil
		}),
		with(on, "startTransaction", "", func(c *call, o transaction) (any, error) {
			return enginekit.Nothing{}, c.session().StartTransaction(o)
		}),
		with(on, "withTransaction", "", func(c *call, o transaction) (any, error) {
			if c.Operation.Callback == nil {
				return nil, enginekit.Argument("withTransaction requires a callback")
			}
			_, err := c.session().WithTransaction(c.ctx, func(ctx context.Context) (any, error) {
				if err := c.Operation.Callback(ctx); err != nil {
					return nil, callbackError{err}
				}
				return nil, nil
			}, o)
			return enginekit.Nothing{}, err
		}),
		plainly(on, "$lsid", "", func(c *call) (any, error) { return c.session().ID(), nil }),
	}
}
