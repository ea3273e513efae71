package enginekit

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Entities holds the entities of a test. The zero value is empty. Methods may be called concurrently.
type Entities struct {
	mu  sync.Mutex
	all []entity
}

// entity is an entity of an engine.
type entity struct {
	id    string // may be empty
	kind  operations.Kind
	value any
}

// Put adds an entity. One with an empty id is kept until End. An id that is in use is an error.
func (e *Entities) Put(id string, kind operations.Kind, value any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id != "" && e.index(id) >= 0 {
		return fmt.Errorf("entity %q exists already", id)
	}
	e.all = append(e.all, entity{id, kind, value})
	return nil
}

func (e *Entities) index(id string) int {
	return slices.IndexFunc(e.all, func(one entity) bool { return one.id == id })
}

// Get returns the entity with an id, even if it is closed.
func (e *Entities) Get(id string) (operations.Kind, any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.index(id); id != "" && i >= 0 {
		return e.all[i].kind, e.all[i].value, nil
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

// End closes cursors, then sessions, and then all clients concurrently (see engine.Test), and waits for them. Within
// a kind, entities without an id come first, and are removed; the others follow in the order of their ids.
func (e *Entities) End(closeEntity func(entity any)) {
	e.mu.Lock()
	slices.SortStableFunc(e.all, func(a, b entity) int { return strings.Compare(a.id, b.id) })
	all := slices.Clone(e.all)
	e.all = slices.DeleteFunc(e.all, func(one entity) bool { return one.id == "" })
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
