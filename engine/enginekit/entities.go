package enginekit

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Entities holds the entities of a test. The zero value is empty. Methods may be
// called concurrently.
type Entities struct {
	mu      sync.Mutex
	named   map[string]entity
	unnamed []entity
}

// entity is an entity of an engine and its kind.
type entity struct {
	kind  operations.Kind
	value any
}

// Put adds an entity. One with an empty id is kept until End. An id that is in use
// is an error.
func (e *Entities) Put(id string, kind operations.Kind, value any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id == "" {
		e.unnamed = append(e.unnamed, entity{kind, value})
		return nil
	}
	if _, taken := e.named[id]; taken {
		return fmt.Errorf("entity %q exists already", id)
	}
	if e.named == nil {
		e.named = make(map[string]entity)
	}
	e.named[id] = entity{kind, value}
	return nil
}

// Get returns the entity with an id, even if it is closed.
func (e *Entities) Get(id string) (operations.Kind, any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found, known := e.named[id]; known {
		return found.kind, found.value, nil
	}
	return "", nil, fmt.Errorf("entity %q does not exist", id)
}

// Named returns the entity of a kind whose id is in a field of a document.
func (e *Entities) Named(doc bson.Raw, field string, kind operations.Kind) (any, error) {
	id, ok := doc.Lookup(field).StringValueOK()
	if !ok {
		return nil, fmt.Errorf("%s is not the name of an entity", field)
	}
	got, value, err := e.Get(id)
	if err == nil && got != kind {
		err = fmt.Errorf("%s: entity %q is not a %s", field, id, kind)
	}
	return value, err
}

// End closes cursors, then sessions, and then all clients concurrently (see
// engine.Test), and waits for them. Within a kind, entities without an id come
// first, and are removed; the others follow in the order of their ids.
func (e *Entities) End(closeEntity func(entity any)) {
	e.mu.Lock()
	all := e.unnamed
	e.unnamed = nil
	for _, id := range slices.Sorted(maps.Keys(e.named)) {
		all = append(all, e.named[id])
	}
	e.mu.Unlock()
	var clients sync.WaitGroup
	for _, kind := range []operations.Kind{operations.Cursor, operations.Session, operations.Client} {
		for _, entity := range all {
			switch {
			case entity.kind != kind:
			case kind == operations.Client:
				clients.Go(func() { closeEntity(entity.value) })
			default:
				closeEntity(entity.value)
			}
		}
	}
	clients.Wait()
}
