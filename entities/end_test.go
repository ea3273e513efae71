package entities

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// thing is an entity in these tests.
type thing struct {
	name string
	kind Kind
}

// Closing a cursor needs its session, and closing either needs its client. Each
// client takes a second to close, and so do both together.
func TestEndOfEntities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Map
		for _, x := range []struct {
			id string
			thing
		}{
			{"d", thing{"a client", Client}},
			{"c", thing{"a session", Session}},
			{"z", thing{"the last cursor", Cursor}},
			{"", thing{"a cursor without a name", Cursor}},
			{"b", thing{"a collection", Collection}},
			{"a", thing{"the first cursor", Cursor}},
			{"e", thing{"another client", Client}},
		} {
			testkit.Check(t, m.Add(Entity{ID: x.id, Kind: x.kind, Value: x.thing}))
		}
		named := []string{"the first cursor", "the last cursor", "a session", "a client", "another client"}
		for _, want := range [][]string{append([]string{"a cursor without a name"}, named...), named} {
			// the first End removes it
			var mu sync.Mutex
			var closed []string
			began := time.Now()
			m.End(func(entity any) {
				if entity.(thing).kind == Client {
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
