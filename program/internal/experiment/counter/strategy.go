package counter

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Strategy is how an application counts one event.
type Strategy struct {
	Name, What string

	retryWrites bool
	tries       int // of "always"
	// durable is the command that faults affect. second is the number of such commands
	// before the second step, 0 for strategies of one step.
	durable string
	second  int
	count   func(context.Context, *application) error
}

// Strategies lists the strategies in the order of the document.
func Strategies() []Strategy {
	return []Strategy{
		{Name: "none", What: "the application does not retry", durable: "update", count: once},
		{Name: "always", What: "it tries again five times, whatever the error", durable: "update", tries: 5, count: always},
		{Name: "once", What: "it tries again once, after a network error", durable: "update", count: twice},
		{Name: "idempotent", What: "the same, in two idempotent steps: a pending token, then the increment; pending tokens are added nightly",
			durable: "update", second: 1, count: idempotent},
		{Name: "retryable-writes", What: "the driver tries again, with retryWrites", durable: "update", retryWrites: true,
			count: once},
		{Name: "transaction", What: "the driver tries again, with withTransaction", durable: "commitTransaction",
			retryWrites: true, count: transaction},
	}
}

// application is a client that counts one event.
type application struct {
	client   *mongo.Client
	counters *mongo.Collection
	id       string
	tries    int
	attempts int
	sessions bson.A // logical session ids
}

func (a *application) update(ctx context.Context, filter, update bson.D, upsert bool) error {
	a.attempts++
	return sent(ctx, func() error {
		_, err := a.counters.UpdateOne(ctx, append(bson.D{{Key: "_id", Value: a.id}}, filter...), update,
			options.UpdateOne().SetUpsert(upsert))
		return err
	})
}

// sent repeats a call while the driver sends nothing because it has just cleared its
// pool. How often that happens depends on the machine, not on the strategy.
func sent(ctx context.Context, call func() error) error {
	for {
		err := call()
		var cleared interface { // a RetryablePoolError of the driver
			error
			Retryable() bool
		}
		if ctx.Err() != nil || !errors.As(err, &cleared) {
			return err
		}
	}
}

// updateTwice retries once after a network error or a NotWritablePrimary error.
func (a *application) updateTwice(ctx context.Context, filter, update bson.D, upsert bool) error {
	err := a.update(ctx, filter, update, upsert)
	var server mongo.ServerError
	if mongo.IsNetworkError(err) || errors.As(err, &server) && server.HasErrorCode(codes.NotWritablePrimary) {
		err = a.update(ctx, filter, update, upsert)
	}
	return err
}

func increment() bson.D { return bson.D{{Key: "$inc", Value: bson.D{{Key: "counter", Value: 1}}}} }

func once(ctx context.Context, a *application) error { return a.update(ctx, nil, increment(), true) }

func twice(ctx context.Context, a *application) error {
	return a.updateTwice(ctx, nil, increment(), true)
}

func always(ctx context.Context, a *application) (err error) {
	for range 1 + a.tries {
		if err = a.update(ctx, nil, increment(), true); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func idempotent(ctx context.Context, a *application) error {
	token := bson.E{Key: "pending", Value: bson.NewObjectID()}
	add, move := steps(token)
	if err := a.updateTwice(ctx, nil, add, true); err != nil {
		return err
	}
	return a.updateTwice(ctx, bson.D{token}, move, false)
}

// steps returns the updates that add a token, and that replace it by an increment.
func steps(token bson.E) (add, move bson.D) {
	pending := bson.D{token}
	return bson.D{{Key: "$addToSet", Value: pending}}, append(bson.D{{Key: "$pull", Value: pending}}, increment()...)
}

func transaction(ctx context.Context, a *application) error {
	session, err := a.client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	a.sessions = append(a.sessions, session.ID())
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, once(ctx, a) })
	return err
}
