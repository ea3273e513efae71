// Package enginekit is shared by engines built on packages of the Go driver. It has tests and their entities by name,
// tables of operations, arguments, connection strings, the event log of a client, and conversions to the types of
// package result. It contains no rules of a driver: engines that are compared with each other must not share them.
package enginekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/result"
)

// Engine implements engine.Engine; an engine embeds it. The fields must be set
// before any method is called. Methods may be called concurrently.
type Engine struct {
	// Description is what Describe returns.
	Description engine.Description
	// NewTest returns a test without entities.
	NewTest func() engine.Test
}

// Describe implements engine.Engine.
func (e *Engine) Describe(context.Context) (engine.Description, error) { return e.Description, nil }

// Begin implements engine.Engine.
func (e *Engine) Begin(context.Context) (engine.Test, error) { return e.NewTest(), nil }

// Close does nothing: the engine has no resources except in its tests.
func (e *Engine) Close() error { return nil }

// Test implements engine.Test except for Do; the tests of an engine embed it. The functions must be set before any
// method is called. Methods may be called concurrently.
type Test struct {
	// Entities are the entities that the test has opened.
	Entities entities.Map
	// ClientFields lists fields of client documents that the engine supports, in
	// addition to those that all engines support.
	ClientFields []string
	// Unsupported returns the error for something that the engine does not support.
	Unsupported func(what string) *result.Error
	// Make creates an entity. parent is its client or database, nil for a client.
	// An error that is not a *result.Error is reported as an invalid option.
	Make func(ctx context.Context, e engine.Entity, parent any) (any, error)
	// CloseEntity closes an entity if it can be closed. It may be called twice.
	CloseEntity func(ctx context.Context, entity any)
}

// Client is a client entity.
type Client interface{ Events() *EventLog }

// fields lists the supported fields of entities of a kind. Fields of a client that
// only the runner uses (such as observeEvents) have no effect here.
func (t *Test) fields(kind string) []string {
	return map[entities.Kind][]string{
		entities.Client: append(strings.Fields("awaitMinPoolSizeMS id ignoreCommandMonitoringEvents observeEvents "+
			"observeSensitiveCommands serverApi storeEventsAsEntities uriOptions useMultipleMongoses"), t.ClientFields...),
		entities.Database:   {"client", "databaseName", "databaseOptions", "id"},
		entities.Collection: {"collectionName", "collectionOptions", "database", "id"},
		entities.Session:    {"client", "id", "sessionOptions"},
		entities.Bucket:     {"bucketOptions", "database", "id"},
	}[entities.Kind(kind)]
}

// Open creates an entity.
func (t *Test) Open(ctx context.Context, e engine.Entity) error {
	known := t.fields(e.Kind)
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
	var parent, created any
	for _, kind := range []entities.Kind{entities.Client, entities.Database} {
		if err == nil && slices.Contains(known, string(kind)) {
			parent, err = t.named(e.Options, string(kind), kind)
		}
	}
	if err == nil {
		created, err = t.Make(ctx, e, parent)
	}
	var raised *result.Error
	switch {
	case errors.As(err, &raised):
		return raised
	case err != nil:
		return Argument("entity %q: %v", e.ID, err)
	}
	if err := t.Entities.Add(entities.Entity{ID: e.ID, Kind: entities.Kind(e.Kind), Value: created}); err != nil {
		t.CloseEntity(ctx, created)
		return err
	}
	return nil
}

// named returns the entity of a kind whose id is in a field of a document.
func (t *Test) named(doc bson.Raw, field string, kind entities.Kind) (any, error) {
	id, ok := doc.Lookup(field).StringValueOK()
	if !ok {
		return nil, fmt.Errorf("%s is not the name of an entity", field)
	}
	e, err := t.Entities.Get(id)
	if err == nil && e.Kind != kind {
		err = fmt.Errorf("%s: entity %q is not a %s", field, id, kind)
	}
	return e.Value, err
}

// Client returns the client with an id.
func (t *Test) Client(id string) (Client, error) {
	entity, err := t.Entities.Get(id)
	if err != nil {
		return nil, err
	}
	client, ok := entity.Value.(Client)
	if !ok {
		return nil, fmt.Errorf("entity %q is not a client", id)
	}
	return client, nil
}

// Events implements engine.Test.
func (t *Test) Events(ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error) {
	client, err := t.Client(id)
	if err != nil {
		return nil, err
	}
	return client.Events().After(ctx, after, wait)
}

// Close implements engine.Test.
func (t *Test) Close(ctx context.Context, id string) error {
	e, err := t.Entities.Get(id)
	if err != nil {
		return err
	}
	t.CloseEntity(ctx, e.Value)
	return nil
}

// Logs implements engine.Test, for engines without FeatureLogging.
func (*Test) Logs(context.Context, string) ([]result.LogMessage, error) { return nil, nil }

// Spans implements engine.Test, for engines without FeatureTracing.
func (*Test) Spans(context.Context, string) ([]result.Span, error) { return nil, nil }

// End implements engine.Test.
func (t *Test) End(ctx context.Context) error {
	t.Entities.End(func(e any) { t.CloseEntity(ctx, e) })
	return nil
}

// ClusterTime wraps a cluster time as {$clusterTime: …} if it is not wrapped.
func ClusterTime(time bson.Raw) (bson.Raw, error) {
	if time.Lookup("$clusterTime").Type != 0 {
		return time, nil
	}
	return bson.Marshal(bson.D{{Key: "$clusterTime", Value: time}})
}
