package enginekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
)

// Test is what tests of engines have in common: an engine embeds it, sets the
// functions and adds Do. Methods may be called concurrently.
type Test struct {
	// Entities are those that the test has opened.
	Entities Entities
	// Fields lists what an entity's document may hold, by kind. What is not in it
	// is unsupported.
	Fields map[string][]string
	// Unsupported is the error that names something that the engine lacks.
	Unsupported func(what string) *result.Error
	// Make opens an entity; a plain error is one of its options.
	Make func(ctx context.Context, e engine.Entity) (any, error)
	// KindOf is the operations' kind of an entity.
	KindOf func(entity any) operations.Kind
	// CloseEntity closes an entity if it has an end. It may be called twice.
	CloseEntity func(ctx context.Context, entity any)
	// LogOf is the log of a client; false for any other entity.
	LogOf func(entity any) (*EventLog, bool)
	// Ended is called at the end.
	Ended func()
}

// Open creates an entity.
func (t *Test) Open(ctx context.Context, e engine.Entity) error {
	known := t.Fields[e.Kind]
	if known == nil {
		return t.Unsupported("entity " + e.Kind)
	}
	elements, err := e.Options.Elements()
	if err != nil {
		return fmt.Errorf("entity %q: %w", e.ID, err)
	}
	for _, el := range elements {
		if !slices.Contains(known, el.Key()) {
			return t.Unsupported("option " + el.Key() + " of a " + e.Kind)
		}
	}
	made, err := t.Make(ctx, e)
	if err != nil {
		var already *result.Error
		if errors.As(err, &already) {
			return already
		}
		return &result.Error{Message: fmt.Sprintf("entity %q: %v", e.ID, err), Client: true, Kind: "argument"}
	}
	if err := t.Entities.Put(e.ID, made); err != nil {
		t.CloseEntity(ctx, made)
		return err
	}
	return nil
}

// Client finds the log of a client.
func (t *Test) Client(id string) (entity any, log *EventLog, err error) {
	if entity, err = t.Entities.Get(id); err != nil {
		return nil, nil, err
	}
	log, ok := t.LogOf(entity)
	if !ok {
		return nil, nil, fmt.Errorf("entity %q is not a client", id)
	}
	return entity, log, nil
}

// Events reads the log of a client.
func (t *Test) Events(ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error) {
	_, log, err := t.Client(id)
	if err != nil {
		return nil, err
	}
	return log.After(ctx, after, wait)
}

// Close closes one entity. It stays known: closing again is not an error, and
// the events of a client can still be read.
func (t *Test) Close(ctx context.Context, id string) error {
	e, err := t.Entities.Get(id)
	if err != nil {
		return err
	}
	t.CloseEntity(ctx, e)
	return nil
}

// End closes cursors before sessions before clients.
func (t *Test) End(ctx context.Context) error {
	t.Entities.End(t.KindOf, func(e any) { t.CloseEntity(ctx, e) })
	t.Ended()
	return nil
}
