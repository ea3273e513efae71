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
	named   map[string]any
	unnamed []any
}

// Put remembers an entity. One without a name (id "") lives until End. The error
// is that the name is taken.
func (e *Entities) Put(id string, entity any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id == "" {
		e.unnamed = append(e.unnamed, entity)
		return nil
	}
	if _, there := e.named[id]; there {
		return fmt.Errorf("entity %q is there already", id)
	}
	if e.named == nil {
		e.named = make(map[string]any)
	}
	e.named[id] = entity
	return nil
}

// Get finds an entity. It stays known when it is closed.
func (e *Entities) Get(id string) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if entity, there := e.named[id]; there {
		return entity, nil
	}
	return nil, fmt.Errorf("there is no entity %q", id)
}

// Named finds an entity of a type by the name that a field of a document gives.
func Named[T any](e *Entities, doc bson.Raw, field string) (T, error) {
	var none T
	id, ok := doc.Lookup(field).StringValueOK()
	if !ok {
		return none, fmt.Errorf("%s is no entity's name", field)
	}
	entity, err := e.Get(id)
	if err != nil {
		return none, err
	}
	found, ok := entity.(T)
	if !ok {
		return none, fmt.Errorf("entity %q is of another kind than %s asks for", id, field)
	}
	return found, nil
}

// End has everything closed that has an end: cursors and then sessions, in the
// order of their names, and then all clients at once (see engine.Test). Those
// without a name come first of their kind, and are forgotten. It returns when
// all is closed.
func (e *Entities) End(kindOf func(entity any) operations.Kind, closeEntity func(entity any)) {
	e.mu.Lock()
	all := e.unnamed
	e.unnamed = nil
	for _, id := range slices.Sorted(maps.Keys(e.named)) {
		all = append(all, e.named[id])
	}
	e.mu.Unlock()
	var clients []any
	for _, kind := range []operations.Kind{operations.Cursor, operations.Session, operations.Client} {
		for _, entity := range all {
			switch {
			case kindOf(entity) != kind:
			case kind == operations.Client:
				clients = append(clients, entity)
			default:
				closeEntity(entity)
			}
		}
	}
	var closing sync.WaitGroup
	for _, c := range clients {
		closing.Go(func() { closeEntity(c) })
	}
	closing.Wait()
}
