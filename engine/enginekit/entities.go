package enginekit

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Entities are what a test has made. The zero value has none. It may be used
// concurrently.
type Entities struct {
	mu      sync.Mutex
	named   map[string]entity
	unnamed []entity
}

// entity is an entity of an engine with the kind of its operations.
type entity struct {
	kind  operations.Kind
	value any
}

// Put remembers an entity. One without a name (id "") lives until End. The error
// is that the name is taken.
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

// Get finds an entity. It stays known when it is closed.
func (e *Entities) Get(id string) (operations.Kind, any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found, known := e.named[id]; known {
		return found.kind, found.value, nil
	}
	return "", nil, fmt.Errorf("entity %q does not exist", id)
}

// Named finds an entity of a kind by the name that a field of a document gives.
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

// End has everything closed that has an end: cursors and then sessions, in the
// order of their names, and then all clients at once (see engine.Test). Those
// without a name come first of their kind, and are forgotten. It returns when
// all is closed.
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
