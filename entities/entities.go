// Package entities is the entity map of one test ("Entity Map"): it indexes
// drivers' objects, saved results, threads and topology descriptions by unique
// names, and gives the errors that the format demands when a name is taken,
// missing, or names something else.
//
// The driver's objects themselves live on the engine. The map knows their
// kind, their parent, and which client they descend from.
package entities

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Kind is what an entity is ("Supported Entity Types").
type Kind string

// The kinds. Cursor stands for change streams, find cursors and command
// cursors. Value is a saved BSON value.
const (
	Client           Kind = "client"
	ClientEncryption Kind = "clientEncryption"
	Database         Kind = "database"
	Collection       Kind = "collection"
	Session          Kind = "session"
	Bucket           Kind = "bucket"
	Cursor           Kind = "cursor"
	ThreadKind       Kind = "thread"
	Topology         Kind = "topologyDescription"
	Value            Kind = "BSON value"
)

// parents lists the kinds of driver objects, with the kind of what each is
// made from; "" for clients, and for cursors, which descend from whatever
// created them.
var parents = map[Kind]Kind{
	Client:           "",
	ClientEncryption: Client,
	Database:         Client,
	Collection:       Database,
	Session:          Client,
	Bucket:           Database,
	Cursor:           "",
}

// ParentOf gives the kind of entity that a driver object is made from, "" if
// it needs none.
func ParentOf(k Kind) Kind { return parents[k] }

// IsObject reports whether entities of a kind are driver objects, which live
// on the engine.
func IsObject(k Kind) bool {
	_, object := parents[k]
	return object
}

// An entry is an entity in the map.
type entry struct {
	id, client string
	kind       Kind
	value      bson.RawValue
	thread     *Thread
	topology   result.TopologyState
}

// Map is the entity map of one test. The zero Map is empty and ready. It may
// be used concurrently: threads of a test share it.
type Map struct {
	mu      sync.RWMutex
	entries map[string]*entry
	order   []string // ids as they were added
}

func (m *Map) add(e *entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.id == "" {
		return &NameError{}
	}
	if old, found := m.entries[e.id]; found {
		return &DuplicateError{ID: e.id, Kind: old.kind}
	}
	if m.entries == nil {
		m.entries = make(map[string]*entry)
	}
	m.entries[e.id] = e
	m.order = append(m.order, e.id)
	return nil
}

// AddObject stores a driver's object. Its parent is named as the format does
// it, and must be there and of the right kind; for a cursor it is the entity
// whose operation created it. Errors: *DuplicateError, *MissingError,
// *TypeError, *UnsupportedTypeError for a kind that is no driver's object.
func (m *Map) AddObject(kind Kind, id, parent string) error {
	want, known := parents[kind]
	if !known {
		return &UnsupportedTypeError{ID: id, Type: string(kind)}
	}
	client := id
	if kind != Client {
		e, err := m.get(parent)
		if err != nil {
			return err
		}
		if want != "" && e.kind != want {
			return &TypeError{ID: parent, Want: []Kind{want}, Got: e.kind}
		}
		client = e.client
	}
	return m.add(&entry{id: id, kind: kind, client: client})
}

// AddValue saves a result. Error: *UnsupportedTypeError if the value is not
// of a BSON type that the format knows (0x01 to 0x13, 0x7F, 0xFF), which
// includes the zero RawValue of an operation that returned nothing.
func (m *Map) AddValue(id string, v bson.RawValue) error {
	if !SupportedType(v.Type) {
		name := v.Type.String()
		if v.Type == 0 {
			name = "nothing"
		}
		return &UnsupportedTypeError{ID: id, Type: name}
	}
	return m.add(&entry{id: id, kind: Value, value: v})
}

// SupportedType reports whether the format knows a BSON type.
func SupportedType(t bson.Type) bool {
	return t >= 0x01 && t <= 0x13 || t == 0x7F || t == 0xFF
}

// AddThread stores a thread.
func (m *Map) AddThread(id string, t *Thread) error {
	return m.add(&entry{id: id, kind: ThreadKind, thread: t})
}

// AddTopology stores a topology description.
func (m *Map) AddTopology(id string, t result.TopologyState) error {
	return m.add(&entry{id: id, kind: Topology, topology: t})
}

// Remove forgets an entity whose creation failed after its name was taken.
func (m *Map) Remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, found := m.entries[id]; !found {
		return
	}
	delete(m.entries, id)
	m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == id })
}

func (m *Map) get(id string, want ...Kind) (*entry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, found := m.entries[id]
	if !found {
		return nil, &MissingError{ID: id, Want: want}
	}
	if len(want) > 0 && !slices.Contains(want, e.kind) {
		return nil, &TypeError{ID: id, Want: want, Got: e.kind}
	}
	return e, nil
}

// Kind tells what an entity is. Error: *MissingError.
func (m *Map) Kind(id string) (Kind, error) {
	e, err := m.get(id)
	if err != nil {
		return "", err
	}
	return e.kind, nil
}

// Demand checks that an entity is there and of one of the kinds. Errors:
// *MissingError, *TypeError.
func (m *Map) Demand(id string, want ...Kind) error {
	_, err := m.get(id, want...)
	return err
}

// ClientOf gives the id of the client that a driver's object descends from;
// a client descends from itself.
func (m *Map) ClientOf(id string) (string, error) {
	e, err := m.get(id)
	if err != nil {
		return "", err
	}
	if _, object := parents[e.kind]; !object {
		return "", &TypeError{ID: id, Want: objectKinds(), Got: e.kind}
	}
	return e.client, nil
}

// objectKinds lists the kinds of driver objects.
func objectKinds() []Kind {
	return []Kind{Client, ClientEncryption, Database, Collection, Session, Bucket, Cursor}
}

// Value gives a saved BSON value. Errors: *MissingError, *TypeError.
func (m *Map) Value(id string) (bson.RawValue, error) {
	e, err := m.get(id, Value)
	if err != nil {
		return bson.RawValue{}, err
	}
	return e.value, nil
}

// Thread gives a thread. Errors: *MissingError, *TypeError.
func (m *Map) Thread(id string) (*Thread, error) {
	e, err := m.get(id, ThreadKind)
	if err != nil {
		return nil, err
	}
	return e.thread, nil
}

// Topology gives a topology description. Errors: *MissingError, *TypeError.
func (m *Map) Topology(id string) (result.TopologyState, error) {
	e, err := m.get(id, Topology)
	if err != nil {
		return result.TopologyState{}, err
	}
	return e.topology, nil
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

// closing is the order in which driver objects are closed: what holds a
// server's resources before what it needs for giving them back.
var closing = []Kind{Cursor, Session, ClientEncryption, Client}

// ClosingOrder lists the ids of everything that has to be closed at the end
// of a test: cursors, then sessions, then clients, the youngest of a kind
// first.
func (m *Map) ClosingOrder() []string {
	var ids []string
	for _, kind := range closing {
		of := m.Of(kind)
		slices.Reverse(of)
		ids = append(ids, of...)
	}
	return ids
}

// Values gives all saved BSON values by name: the access from outside that
// the format demands before the map is cleared. The map is a copy.
func (m *Map) Values() map[string]bson.RawValue {
	m.mu.RLock()
	defer m.mu.RUnlock()
	values := make(map[string]bson.RawValue)
	for id, e := range m.entries {
		if e.kind == Value {
			values[id] = e.value
		}
	}
	return values
}

// NameError refuses an entity without a name.
type NameError struct{}

func (*NameError) Error() string { return "an entity needs a name" }

// DuplicateError refuses a name that is taken.
type DuplicateError struct {
	ID   string
	Kind Kind // of what has the name
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate entity name: there is already %s %q", withArticle(e.Kind), e.ID)
}

// MissingError tells that nothing has a name.
type MissingError struct {
	ID   string
	Want []Kind // what was looked for, empty if anything
}

func (e *MissingError) Error() string {
	if len(e.Want) > 0 {
		return fmt.Sprintf("undefined entity: there is no %s named %q", joinKinds(e.Want), e.ID)
	}
	return fmt.Sprintf("undefined entity: nothing is named %q", e.ID)
}

// TypeError tells that a name belongs to an entity of another kind.
type TypeError struct {
	ID   string
	Want []Kind
	Got  Kind
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("entity of unexpected type: %q is %s, not %s", e.ID, withArticle(e.Got), withArticle(Kind(joinKinds(e.Want))))
}

// UnsupportedTypeError refuses a value that the format does not allow in the
// entity map.
type UnsupportedTypeError struct {
	ID   string
	Type string // BSON type or kind; "nothing" if there was no value
}

func (e *UnsupportedTypeError) Error() string {
	return fmt.Sprintf("cannot save as entity %q: the entity map does not hold %s", e.ID, e.Type)
}

func withArticle(k Kind) string { return "a " + string(k) }

func joinKinds(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, " or ")
}
