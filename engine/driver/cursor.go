package driver

import (
	"context"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

// stepper is the interface of the driver's cursors and change streams.
type stepper interface {
	Next(context.Context) bool
	TryNext(context.Context) bool
	Decode(document any) error
	Err() error
	Close(context.Context) error
}

// entityCursor is a cursor or change stream entity. The driver's cursors must not be used and closed concurrently.
type entityCursor struct {
	stepper
	client *client

	mu sync.Mutex
}

// next returns the next document, or nil. With wait it iterates until there is a
// document or an error, or the cursor is exhausted; otherwise it tries once.
func (k *entityCursor) next(ctx context.Context, wait bool) (bson.Raw, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	step := k.TryNext
	if wait {
		step = k.Next
	}
	if !step(ctx) {
		return nil, k.Err()
	}
	var doc bson.Raw
	return doc, k.Decode(&doc)
}

func (k *entityCursor) close(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Close(ctx)
}

func (k *entityCursor) owner() *client { return k.client }

// save stores an entity that the operation created.
func (c *call) save(kind entities.Kind, entity any) (any, error) {
	if err := c.Save(c.ctx, kind, entity); err != nil {
		return nil, err
	}
	return enginekit.Nothing{}, nil
}

func cursorRows() []row {
	next := func(wait bool) func(*call) (any, error) {
		return func(c *call) (any, error) {
			doc, err := c.Entity.(*entityCursor).next(c.ctx, wait)
			if doc == nil {
				return enginekit.Nothing{}, err
			}
			return doc, err
		}
	}
	return []row{
		silently(entities.Cursor, "close", "", func(c *call) error { return c.Entity.(*entityCursor).close(c.ctx) }),
		plainly(entities.Cursor, "iterateOnce", "", next(false)),
		plainly(entities.Cursor, "iterateUntilDocumentOrError", "", next(true)),
	}
}
