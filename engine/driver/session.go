package driver

import (
	"context"
	"errors"
	"sync"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// session is a session entity.
type session struct {
	*mongo.Session
	client *client

	ended sync.Once
}

// openSession starts a session.
func openSession(c *client, sessionOptions bson.RawValue, clusterTime bson.Raw) (*session, error) {
	var o options.SessionOptions
	if sessionOptions.Type != 0 {
		doc, ok := sessionOptions.DocumentOK()
		if !ok {
			return nil, errors.New("sessionOptions is no document")
		}
		rest, defaults, err := without(doc, "defaultTransactionOptions")
		if err != nil {
			return nil, err
		}
		if err := fill(&o, "sessionOptions", rest); err != nil {
			return nil, err
		}
		if defaults.Type != 0 {
			set, err := checked[options.TransactionOptions]("defaultTransactionOptions", defaults)
			if err != nil {
				return nil, err
			}
			o.DefaultTransactionOptions = &options.TransactionOptionsBuilder{Opts: set.List()}
		}
	}
	s, err := c.StartSession(given(o))
	if err != nil {
		return nil, err
	}
	if clusterTime != nil {
		if clusterTime.Lookup("$clusterTime").Type == 0 {
			if clusterTime, err = bson.Marshal(bson.D{{Key: "$clusterTime", Value: clusterTime}}); err != nil {
				return nil, err
			}
		}
		if err := s.AdvanceClusterTime(clusterTime); err != nil {
			return nil, err
		}
	}
	return &session{Session: s, client: c}, nil
}

// end ends the session, once: the driver gives its server session back each
// time.
func (s *session) end(ctx context.Context) { s.ended.Do(func() { s.EndSession(ctx) }) }

// callbackError carries an error of the callback through the driver, which
// looks at its labels.
type callbackError struct{ err *result.Error }

func (e callbackError) Error() string                   { return e.err.Error() }
func (e callbackError) Unwrap() error                   { return e.err }
func (e callbackError) HasErrorLabel(label string) bool { return e.err.HasLabel(label) }

var _ mongo.LabeledError = callbackError{}

func sessionRows() []row {
	transactionOptions := optionsFor[options.TransactionOptions]()
	return []row{
		{operations.Session, "abortTransaction", "", nil, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.session().AbortTransaction(c.ctx)
		}},
		{operations.Session, "commitTransaction", "", nil, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.session().CommitTransaction(c.ctx)
		}},
		{operations.Session, "endSession", "", nil, func(c *call) (any, error) {
			c.session().end(c.ctx)
			return enginekit.Nothing{}, nil
		}},
		{operations.Session, "getSnapshotTime", "", nil, func(c *call) (any, error) {
			t := c.session().SnapshotTime()
			if t.IsZero() {
				return nil, errors.New("the session has no snapshot time")
			}
			return t, nil
		}},
		{operations.Session, "startTransaction", "", transactionOptions, func(c *call) (any, error) {
			return enginekit.Nothing{}, c.session().StartTransaction(optionsOf[options.TransactionOptions](c))
		}},
		{operations.Session, "withTransaction", "", transactionOptions, func(c *call) (any, error) {
			if c.op.Callback == nil {
				return nil, argument("withTransaction needs a callback")
			}
			_, err := c.session().WithTransaction(c.ctx, func(ctx context.Context) (any, error) {
				if err := c.op.Callback(ctx); err != nil {
					return nil, callbackError{err}
				}
				return nil, nil
			}, optionsOf[options.TransactionOptions](c))
			return enginekit.Nothing{}, err
		}},
		{operations.Session, "$lsid", "", nil, func(c *call) (any, error) { return c.session().ID(), nil }},
	}
}
