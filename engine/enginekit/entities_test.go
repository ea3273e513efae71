package enginekit

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs/operations"
)

// thing is an entity in these tests.
type thing struct {
	name string
	kind operations.Kind
}

func TestEntitiesByName(t *testing.T) {
	var e Entities
	for i, id := range []string{"a", "", "", "a"} {
		testkit.Equal(t, "an id in use is an error", e.Put(id, operations.Session, thing{name: id}) != nil, i == 3)
	}
	_, _, err := e.Get("")
	testkit.ErrorContains(t, err)
	doc := testkit.Raw(t, testkit.D("it", "a", "other", "b", "number", 1))
	got, err := e.Named(doc, "it", operations.Session)
	testkit.Equal(t, "an entity", []any{got, err}, []any{any(thing{name: "a"}), nil})
	for _, field := range []string{"other", "number", "absent"} {
		_, err := e.Named(doc, field, operations.Session)
		testkit.ErrorContains(t, err)
	}
	_, err = e.Named(doc, "it", operations.Client) // of another kind
	testkit.ErrorContains(t, err)
}

// Closing a cursor needs its session, and closing either needs its client. Each
// client takes a second to close, and so do both together.
func TestEndOfEntities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Entities
		for _, x := range []struct {
			id string
			thing
		}{
			{"d", thing{"a client", operations.Client}},
			{"c", thing{"a session", operations.Session}},
			{"z", thing{"the last cursor", operations.Cursor}},
			{"", thing{"a cursor without a name", operations.Cursor}},
			{"b", thing{"a collection", operations.Collection}},
			{"a", thing{"the first cursor", operations.Cursor}},
			{"e", thing{"another client", operations.Client}},
		} {
			testkit.Check(t, e.Put(x.id, x.kind, x.thing))
		}
		named := []string{"the first cursor", "the last cursor", "a session", "a client", "another client"}
		for _, want := range [][]string{append([]string{"a cursor without a name"}, named...), named} { // the first End removes it
			var mu sync.Mutex
			var closed []string
			began := time.Now()
			e.End(func(entity any) {
				if entity.(thing).kind == operations.Client {
					time.Sleep(time.Second)
				}
				mu.Lock()
				defer mu.Unlock()
				closed = append(closed, entity.(thing).name)
			})
			slices.Sort(closed[len(closed)-2:])
			testkit.Equal(t, "closed are", []any{time.Since(began), closed}, []any{time.Second, want})
		}
	})
}
