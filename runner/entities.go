package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/specs/operations"
)

// entityMap is the entity map of a test ("Entity Map"): objects of the driver, which the engine holds, saved results,
// threads and topology descriptions by name. It may be used concurrently.
type entityMap struct {
	mu   sync.RWMutex
	byID map[string]entity
	ids  []string // in order of creation
}

type entity struct {
	kind    operations.Kind
	client  string // of an object of the driver
	content any    // of other entities: a bson.RawValue, *thread or result.TopologyState
}

func (m *entityMap) add(id string, e entity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, taken := m.byID[id]; taken {
		return duplicate(id, old)
	}
	if m.byID == nil {
		m.byID = make(map[string]entity)
	}
	m.byID[id] = e
	m.ids = append(m.ids, id)
	return nil
}

func duplicate(id string, old entity) error {
	return fmt.Errorf("duplicate entity name: there is already a %s %q", old.kind, id)
}

// addObject adds an object of the driver. The parent of a cursor is the entity whose operation created it.
func (m *entityMap) addObject(kind operations.Kind, id, parent string) error {
	client := id
	if kind != operations.Client {
		e, err := m.get(parent)
		if err != nil {
			return err
		}
		client = e.client
	}
	return m.add(id, entity{kind: kind, client: client})
}

func (m *entityMap) remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, id)
	m.ids = slices.DeleteFunc(m.ids, func(other string) bool { return other == id })
}

func (m *entityMap) get(id string) (entity, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, found := m.byID[id]
	if !found {
		return entity{}, fmt.Errorf("undefined entity: nothing is named %q", id)
	}
	return e, nil
}

// of returns the ids of entities of a kind in order of creation.
func (m *entityMap) of(kind operations.Kind) (ids []string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, id := range m.ids {
		if m.byID[id].kind == kind {
			ids = append(ids, id)
		}
	}
	return ids
}

// contentOf returns the content of an entity that is not an object of the driver.
func contentOf[T any](m *entityMap, id string, kind operations.Kind) (content T, err error) {
	e, err := m.get(id)
	if err != nil {
		return content, err
	}
	content, ok := e.content.(T)
	if !ok {
		return content, fmt.Errorf("entity of unexpected type: %q is a %s, not a %s", id, e.kind, kind)
	}
	return content, nil
}

var errStopped = errors.New("the thread has been told that no more operations are forthcoming")

// thread is a test runner thread ("thread"), which performs work in order. The
// zero thread is ready to use, also concurrently.
type thread struct {
	mu      sync.Mutex
	last    chan struct{} // closed when all work is done; nil before the first
	stopped bool
}

// do queues work, which must not panic, unless the thread is stopped.
func (t *thread) do(work func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return errStopped
	}
	before, done := t.last, make(chan struct{})
	t.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		work()
	}()
	return nil
}

func (t *thread) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// wait waits until all work is done or the context ends, whose cause it returns.
func (t *thread) wait(ctx context.Context) error {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last == nil {
		return nil
	}
	select {
	case <-last:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-last: // also done
		return nil
	default:
		return context.Cause(ctx)
	}
}
