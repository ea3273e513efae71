package entities

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Entity is an entity of a test.
type Entity struct {
	ID     string // "" for one without a name
	Kind   Kind
	Client string // the id of its client; "" if it is not an object of a client or if that does not matter
	Value  any
}

// Map is the entity map of a test. The zero value is empty. Its methods may be called concurrently; End must not run
// while entities are added.
type Map struct {
	mu  sync.RWMutex
	all []Entity // in order of creation
}

// Add adds an entity. An id that is in use is an error. An entity without an id cannot be found, but is closed.
func (m *Map) Add(e Entity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, taken := m.find(e.ID); taken {
		return Duplicate(old)
	}
	m.all = append(m.all, e)
	return nil
}

// Duplicate is the error for an entity whose id is in use.
func Duplicate(other Entity) error {
	return fmt.Errorf("duplicate entity name: there is already a %s %q", other.Kind, other.ID)
}

// AddObject adds an object without a value. It has the client of its parent, or is a client. The parent of a cursor is
// the entity whose operation created it.
func (m *Map) AddObject(kind Kind, id, parent string) error {
	client := id
	if kind != Client {
		e, err := m.Get(parent)
		if err != nil {
			return err
		}
		client = e.Client
	}
	return m.Add(Entity{ID: id, Kind: kind, Client: client})
}

// Remove removes an entity, if there is one with the id.
func (m *Map) Remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(e Entity) bool { return e.ID == id && id != "" })
}

// Get returns the entity with an id, even if it is closed.
func (m *Map) Get(id string) (Entity, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, found := m.find(id)
	if !found {
		return e, fmt.Errorf("undefined entity: nothing is named %q", id)
	}
	return e, nil
}

func (m *Map) find(id string) (Entity, bool) {
	i := slices.IndexFunc(m.all, func(e Entity) bool { return e.ID == id })
	if id == "" || i < 0 {
		return Entity{}, false
	}
	return m.all[i], true
}

// Of returns the ids of entities of a kind in order of creation.
func (m *Map) Of(kind Kind) (ids []string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, e := range m.all {
		if e.Kind == kind && e.ID != "" {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Value returns the value of an entity, as a T. kind is the kind of such entities, for the error.
func Value[T any](m *Map, id string, kind Kind) (value T, err error) {
	e, err := m.Get(id)
	if err != nil {
		return value, err
	}
	value, ok := e.Value.(T)
	if !ok {
		return value, fmt.Errorf("entity of unexpected type: %q is a %s, not a %s", id, e.Kind, kind)
	}
	return value, nil
}

// End closes cursors, then sessions, and then all clients concurrently, and waits for them: closing a cursor needs its
// session, and closing either needs the client. Within a kind, entities without an id come first, and are removed; the
// others follow in the order of their ids.
func (m *Map) End(closeEntity func(value any)) {
	m.mu.Lock()
	all := slices.Clone(m.all)
	m.all = slices.DeleteFunc(m.all, func(e Entity) bool { return e.ID == "" })
	m.mu.Unlock()
	slices.SortStableFunc(all, func(a, b Entity) int { return strings.Compare(a.ID, b.ID) })
	var clients sync.WaitGroup
	for _, kind := range []Kind{Cursor, Session, Client} {
		for _, e := range all {
			switch {
			case e.Kind != kind:
			case kind == Client:
				clients.Go(func() { closeEntity(e.Value) })
			default:
				closeEntity(e.Value)
			}
		}
	}
	clients.Wait()
}
