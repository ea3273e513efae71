package enginekit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// thing is an entity in these tests.
type thing struct {
	name string
	kind operations.Kind
}

func kindOfThing(e any) operations.Kind { return e.(thing).kind }

func TestEntitiesByName(t *testing.T) {
	var e Entities
	for i, id := range []string{"a", "", "", "a"} {
		testkit.Equal(t, "a name that is taken is refused", e.Put(id, thing{name: id}) != nil, i == 3)
	}
	_, err := e.Get("")
	testkit.Fails(t, err)
	doc := bson.Raw(value(t, bson.D{{Key: "it", Value: "a"}, {Key: "other", Value: "b"}, {Key: "number", Value: 1}}).Value)
	got, err := Named[thing](&e, doc, "it")
	testkit.Equal(t, "an entity", []any{got.name, err}, []any{"a", nil})
	for _, field := range []string{"other", "number", "absent"} {
		_, err := Named[thing](&e, doc, field)
		testkit.Fails(t, err)
	}
	_, err = Named[*thing](&e, doc, "it") // of another kind
	testkit.Fails(t, err)
}

// Cursors need their sessions to be closed, and both need their clients. Each
// client takes a second to close: together they take one.
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
			testkit.Check(t, e.Put(x.id, x.thing))
		}
		named := []string{"the first cursor", "the last cursor", "a session", "a client", "another client"}
		for _, want := range [][]string{append([]string{"a cursor without a name"}, named...), named} { // then it is forgotten
			var mu sync.Mutex
			var closed []string
			began := time.Now()
			e.End(kindOfThing, func(entity any) {
				if kindOfThing(entity) == operations.Client {
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

// ending is a test that leaves its engine when it ends, as tests do.
type ending struct {
	engine.Test
	of    *Tests
	ended int
}

func (e *ending) End(context.Context) error {
	e.ended++
	e.of.Forget(e)
	return errors.New("of no interest")
}

func TestTests(t *testing.T) {
	var open Tests
	open.End(t.Context())
	a, b := &ending{of: &open}, &ending{of: &open}
	open.Add(a)
	open.Add(b)
	_ = a.End(t.Context())
	for range 2 {
		open.End(t.Context())
	}
	testkit.Equal(t, "each is ended once", []int{a.ended, b.ended}, []int{1, 1})
}
