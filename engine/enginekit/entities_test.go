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
	if _, err := e.Get("a"); err == nil {
		t.Error("an entity is there before it is put")
	}
	for i, id := range []string{"a", "", "", "a"} {
		if err := e.Put(id, thing{name: id}); (err != nil) != (i == 3) {
			t.Errorf("%q is put: %v, want only a name that is taken twice to be refused", id, err)
		}
	}
	if _, err := e.Get(""); err == nil {
		t.Error("an entity without a name is found")
	}
	doc := bson.Raw(value(t, bson.D{{Key: "it", Value: "a"}, {Key: "other", Value: "b"}, {Key: "number", Value: 1}}).Value)
	if got, err := Named[thing](&e, doc, "it"); err != nil || got.name != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	for reason, field := range map[string]string{"no such entity": "other", "not a name": "number", "no such field": "absent"} {
		if got, err := Named[thing](&e, doc, field); err == nil {
			t.Errorf("%s: got %v", reason, got)
		}
	}
	if got, err := Named[*thing](&e, doc, "it"); err == nil {
		t.Errorf("of another kind: got %v", got)
	}
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
			if err := e.Put(x.id, x.thing); err != nil {
				t.Fatal(err)
			}
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
			if took := time.Since(began); took != time.Second || !slices.Equal(closed, want) {
				t.Errorf("closed are, in %s,\n%q, want\n%q", took, closed, want)
			}
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
	if a.ended != 1 || b.ended != 1 {
		t.Errorf("a was ended %d times and b %d times", a.ended, b.ended)
	}
}
