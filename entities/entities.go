// Package entities is the entity map of one test ("Entity Map"): it indexes
// drivers' objects, saved results, threads and topology descriptions by unique
// names, and returns the errors that the format requires when a name is taken,
// missing, or names something else.
//
// The driver's objects themselves live on the engine. The map knows their
// kind, their parent, and which client they descend from.
package entities

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Kind is what an entity is ("Supported Entity Types").
type Kind = operations.Kind

// objects lists the kinds of driver objects, in the order of messages.
var objects = []Kind{operations.Client, operations.ClientEncryption, operations.Database, operations.Collection,
	operations.Session, operations.Bucket, operations.Cursor}

type entry struct {
	kind     Kind
	client   string // that a driver object descends from
	value    bson.RawValue
	thread   *Thread
	topology result.TopologyState
}

// Map is the entity map of one test. The zero Map is empty and ready. It may
// be used concurrently: threads of a test share it.
type Map struct {
	mu      sync.RWMutex
	entries map[string]entry
	order   []string // ids as they were added
}

func (m *Map) add(id string, e entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.free(id); err != nil {
		return err
	}
	if m.entries == nil {
		m.entries = make(map[string]entry)
	}
	m.entries[id] = e
	m.order = append(m.order, id)
	return nil
}

// free reports why a name cannot be used; the caller holds the lock.
func (m *Map) free(id string) error {
	if id == "" {
		return errors.New("an entity needs a name")
	}
	if old, taken := m.entries[id]; taken {
		return fmt.Errorf("duplicate entity name: there is already a %s %q", old.kind, id)
	}
	return nil
}

// Free reports why a name cannot be given to an entity, nil if it can.
func (m *Map) Free(id string) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.free(id)
}

// AddObject stores a driver's object. Its parent must be there and of the
// right kind; for a cursor it is the entity whose operation created it. It is
// an error if the name is taken, if the parent does not fit, and if the kind
// is not that of a driver's object.
func (m *Map) AddObject(kind Kind, id, parent string) error {
	if !slices.Contains(objects, kind) {
		return unsupported(id, string(kind))
	}
	client := id
	if kind != operations.Client {
		e, err := m.get(parent)
		if err != nil {
			return err
		}
		if want := operations.Parents[kind].Kind; want != "" && e.kind != want {
			return unexpected(parent, e.kind, want)
		}
		client = e.client
	}
	return m.add(id, entry{kind: kind, client: client})
}

// AddValue saves a result. It is an error if the value is not of a BSON type
// that the format knows (0x01 to 0x13, 0x7F, 0xFF), which includes the zero
// RawValue of an operation that returned nothing.
func (m *Map) AddValue(id string, v bson.RawValue) error {
	switch {
	case v.Type == 0:
		return unsupported(id, "nothing")
	case v.Type > 0x13 && v.Type != 0x7F && v.Type != 0xFF:
		return unsupported(id, v.Type.String())
	}
	return m.add(id, entry{kind: operations.SavedValue, value: v})
}

// AddThread stores a thread.
func (m *Map) AddThread(id string, t *Thread) error {
	return m.add(id, entry{kind: operations.Thread, thread: t})
}

// AddTopology stores a topology description.
func (m *Map) AddTopology(id string, t result.TopologyState) error {
	return m.add(id, entry{kind: operations.Topology, topology: t})
}

// Remove forgets an entity whose creation failed after its name was taken.
func (m *Map) Remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, id)
	m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == id })
}

// get gives an entity, which must be of one of the kinds if there are any.
func (m *Map) get(id string, want ...Kind) (entry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, found := m.entries[id]
	switch {
	case !found && len(want) > 0:
		return entry{}, fmt.Errorf("undefined entity: there is no %s named %q", join(want), id)
	case !found:
		return entry{}, fmt.Errorf("undefined entity: nothing is named %q", id)
	case len(want) > 0 && !slices.Contains(want, e.kind):
		return entry{}, unexpected(id, e.kind, want...)
	}
	return e, nil
}

// Kind gives the kind of an entity.
func (m *Map) Kind(id string) (Kind, error) {
	e, err := m.get(id)
	return e.kind, err
}

// Demand reports that an entity is missing, or of none of the kinds.
func (m *Map) Demand(id string, want ...Kind) error {
	_, err := m.get(id, want...)
	return err
}

// ClientOf gives the id of the client that a driver's object descends from;
// a client descends from itself.
func (m *Map) ClientOf(id string) (string, error) {
	e, err := m.get(id)
	if err == nil && !slices.Contains(objects, e.kind) {
		err = unexpected(id, e.kind, objects...)
	}
	return e.client, err
}

// Value gives a saved BSON value.
func (m *Map) Value(id string) (bson.RawValue, error) {
	e, err := m.get(id, operations.SavedValue)
	return e.value, err
}

// Thread gives a thread.
func (m *Map) Thread(id string) (*Thread, error) {
	e, err := m.get(id, operations.Thread)
	return e.thread, err
}

// Topology gives a topology description.
func (m *Map) Topology(id string) (result.TopologyState, error) {
	e, err := m.get(id, operations.Topology)
	return e.topology, err
}

// Of lists the ids of one kind in the order in which they were added.
func (m *Map) Of(kind Kind) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var ids []string
	for _, id := range m.order {
		if m.entries[id].kind == kind {
			ids = append(ids, id)
		}
	}
	return ids
}

func unexpected(id string, got Kind, want ...Kind) error {
	return fmt.Errorf("entity of unexpected type: %q is a %s, not a %s", id, got, join(want))
}

func unsupported(id, what string) error {
	return fmt.Errorf("cannot save as entity %q: the entity map does not hold %s", id, what)
}

func join(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, " or ")
}
