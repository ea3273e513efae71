package enginekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Test is what tests of engines have in common: an engine embeds it, sets the
// functions and adds Do. Methods may be called concurrently.
type Test struct {
	// Entities are those that the test has opened.
	Entities Entities
	// ClientFields lists what the document of a client may hold beside what all
	// engines read. What is not in it is unsupported.
	ClientFields []string
	// Unsupported is the error that names something that the engine lacks.
	Unsupported func(what string) *result.Error
	// Make opens an entity: a client, or what belongs to a client or database.
	// A plain error is one of its options.
	Make func(ctx context.Context, e engine.Entity, parent any) (any, error)
	// CloseEntity closes an entity if it has an end. It may be called twice.
	CloseEntity func(ctx context.Context, entity any)
}

// Client is a client entity.
type Client interface{ Events() *EventLog }

// fields lists what an entity's document may hold, by kind. What the runner alone
// reads of a client (which events a test sees) has no effect here.
func (t *Test) fields(kind string) []string {
	return map[operations.Kind][]string{
		operations.Client: append(strings.Fields("awaitMinPoolSizeMS id ignoreCommandMonitoringEvents observeEvents "+
			"observeSensitiveCommands serverApi storeEventsAsEntities uriOptions useMultipleMongoses"), t.ClientFields...),
		operations.Database:   {"client", "databaseName", "databaseOptions", "id"},
		operations.Collection: {"collectionName", "collectionOptions", "database", "id"},
		operations.Session:    {"client", "id", "sessionOptions"},
		operations.Bucket:     {"bucketOptions", "database", "id"},
	}[operations.Kind(kind)]
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
	var parent, made any
	for _, kind := range []operations.Kind{operations.Client, operations.Database} {
		if err == nil && slices.Contains(known, string(kind)) {
			parent, err = t.Entities.Named(e.Options, string(kind), kind)
		}
	}
	if err == nil {
		made, err = t.Make(ctx, e, parent)
	}
	if err != nil {
		var already *result.Error
		if errors.As(err, &already) {
			return already
		}
		return &result.Error{Message: fmt.Sprintf("entity %q: %v", e.ID, err), Client: true, Kind: "argument"}
	}
	if err := t.Entities.Put(e.ID, operations.Kind(e.Kind), made); err != nil {
		t.CloseEntity(ctx, made)
		return err
	}
	return nil
}

// Client finds a client.
func (t *Test) Client(id string) (Client, error) {
	_, entity, err := t.Entities.Get(id)
	if err != nil {
		return nil, err
	}
	client, ok := entity.(Client)
	if !ok {
		return nil, fmt.Errorf("entity %q is not a client", id)
	}
	return client, nil
}

// Events reads the log of a client.
func (t *Test) Events(ctx context.Context, id string, after int64, wait time.Duration) ([]result.Event, error) {
	client, err := t.Client(id)
	if err != nil {
		return nil, err
	}
	return client.Events().After(ctx, after, wait)
}

// Close closes one entity. It stays known: closing again is not an error, and
// the events of a client can still be read.
func (t *Test) Close(ctx context.Context, id string) error {
	_, e, err := t.Entities.Get(id)
	if err != nil {
		return err
	}
	t.CloseEntity(ctx, e)
	return nil
}

// End closes cursors before sessions before clients.
func (t *Test) End(ctx context.Context) error {
	t.Entities.End(func(e any) { t.CloseEntity(ctx, e) })
	return nil
}

// ClusterTime gives what a session is to advance to as {$clusterTime: …}.
func ClusterTime(time bson.Raw) (bson.Raw, error) {
	if time.Lookup("$clusterTime").Type != 0 {
		return time, nil
	}
	return bson.Marshal(bson.D{{Key: "$clusterTime", Value: time}})
}
