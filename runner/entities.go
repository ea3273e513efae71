package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/specs/operations"
)

// entityMap is the entity map of one test ("Entity Map"): drivers' objects, saved
// results, threads and topology descriptions by unique names. The driver's
// objects themselves live on the engine; the map knows which client they
// descend from. Threads of a test use it concurrently.
type entityMap struct {
	mu   sync.RWMutex
	byID map[string]entity
	ids  []string // as they were added
}

type entity struct {
	kind    operations.Kind
	client  string // that a driver's object descends from
	content any    // of the others: a bson.RawValue, *thread or result.TopologyState
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

// free reports why a name cannot be given to an entity, nil if it can.
func (m *entityMap) free(id string) error {
	if old, err := m.get(id); err == nil {
		return duplicate(id, old)
	}
	return nil
}

func duplicate(id string, old entity) error {
	return fmt.Errorf("duplicate entity name: there is already a %s %q", old.kind, id)
}

// addObject stores a driver's object. Its parent must be there; for a cursor it
// is the entity whose operation created it.
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

// remove forgets an entity whose creation failed after its name was taken.
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

// of lists the ids of one kind in the order in which they were added.
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

// contentOf gives an entity that is not a driver's object.
func contentOf[T any](m *entityMap, id string, kind operations.Kind) (content T, err error) {
	e, err := m.get(id)
	if err != nil {
		return content, err
	}
	content, is := e.content.(T)
	if !is {
		return content, fmt.Errorf("entity of unexpected type: %q is a %s, not a %s", id, e.kind, kind)
	}
	return content, nil
}

// errStopped refuses work for a thread that was told that no more is
// forthcoming.
var errStopped = errors.New("the thread has been told that no more operations are forthcoming")

// thread is a test runner thread ("thread"): it does work in the order in
// which it was given, beside the main thread. The zero thread is ready. It may
// be used concurrently.
type thread struct {
	mu      sync.Mutex
	last    chan struct{} // closed once all work so far is done; nil before the first
	stopped bool
}

// do gives the thread work, which must not panic. A stopped thread refuses it.
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

// stop says that no more work is forthcoming. It may be called again.
func (t *thread) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// wait waits until the thread has done the work that it was given, or returns
// the cause of the context's end.
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
		select {
		case <-last: // it was done all the same
			return nil
		default:
			return context.Cause(ctx)
		}
	}
}
