package enginekit

import (
	"slices"
	"sync"
	"testing"
	"time"

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
	if err := e.Put("a", thing{name: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Put("a", thing{name: "second"}); err == nil {
		t.Error("a name is taken twice")
	}
	if got, err := e.Get("a"); err != nil || got.(thing).name != "first" {
		t.Errorf("got %v, %v", got, err)
	}
	for range 2 {
		if err := e.Put("", thing{}); err != nil {
			t.Errorf("entities without a name: %v", err)
		}
	}
	if _, err := e.Get(""); err == nil {
		t.Error("an entity without a name is found")
	}
}

func TestNamed(t *testing.T) {
	var e Entities
	if err := e.Put("a", thing{name: "it"}); err != nil {
		t.Fatal(err)
	}
	doc, err := bson.Marshal(bson.D{{Key: "it", Value: "a"}, {Key: "other", Value: "b"}, {Key: "number", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Named[thing](&e, doc, "it"); err != nil || got.name != "it" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, row := range []struct{ reason, field string }{
		{"no such entity", "other"},
		{"no name", "number"},
		{"no such field", "absent"},
	} {
		if got, err := Named[thing](&e, doc, row.field); err == nil {
			t.Errorf("%s: got %v", row.reason, got)
		}
	}
	if got, err := Named[*thing](&e, doc, "it"); err == nil {
		t.Errorf("of another kind: got %v", got)
	}
}

// Cursors need their sessions to be closed, and both need their clients. Clients
// take a while to close, each on its own.
func TestEndOfEntities(t *testing.T) {
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
	var mu sync.Mutex
	var closed []string
	var met sync.WaitGroup
	met.Add(2)
	note := func(entity any) {
		mu.Lock()
		closed = append(closed, entity.(thing).name)
		mu.Unlock()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.End(kindOfThing, func(entity any) {
			note(entity)
			if kindOfThing(entity) == operations.Client {
				met.Done()
				met.Wait() // for the other client
			}
		})
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("clients are closed one after the other")
	}
	slices.Sort(closed[len(closed)-2:])
	if want := []string{"a cursor without a name", "the first cursor", "the last cursor", "a session", "a client", "another client"}; !slices.Equal(closed, want) {
		t.Errorf("closed are\n%q, want\n%q", closed, want)
	}
	closed = nil
	e.End(kindOfThing, note)
	if len(closed) != 5 || slices.Contains(closed, "a cursor without a name") {
		t.Errorf("once more: %q", closed)
	}
}
