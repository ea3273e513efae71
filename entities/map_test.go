package entities

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestEntityMap(t *testing.T) {
	m := new(Map)
	add := func(kind Kind, id, parent string) error { return m.AddObject(kind, id, parent) }
	value := func(id string) error {
		_, err := Value[bson.RawValue](m, id, SavedValue)
		return err
	}
	for _, row := range []struct {
		reason string
		err    error
		want   string // suffix of the error, "" without one
	}{
		{"a client", add(Client, "client", ""), ""},
		{"a thread", m.Add(Entity{ID: "thread", Kind: Thread, Value: new(Queue)}), ""},
		{"a saved result", m.Add(Entity{ID: "value", Kind: SavedValue, Value: bson.RawValue{}}), ""},
		{"a name that is used", add(Client, "client", ""), `duplicate entity name: there is already a client "client"`},
		{"a name that another kind uses", add(Client, "thread", ""), `there is already a thread "thread"`},
		{"an undefined parent", add(Session, "s", "client1"), `undefined entity: nothing is named "client1"`},
		{"a session", add(Session, "session", "client"), ""},
		{"a cursor of a session", add(Cursor, "cursor", "session"), ""},
		{"an undefined value", value("nobody"), `undefined entity: nothing is named "nobody"`},
		{"a value that is a client", value("client"), `entity of unexpected type: "client" is a client, not a BSON value`},
		{"a value", value("value"), ""},
	} {
		testkit.WantError(t, row.reason, row.err, row.want)
	}
	cursor, err := m.Get("cursor")
	testkit.Check(t, err)
	testkit.Equal(t, "the client of a cursor", cursor.Client, "client")
	for _, id := range []string{"b", "a", "c"} {
		testkit.Check(t, add(Database, id, "client"))
	}
	for range 2 {
		testkit.Check(t, m.Add(Entity{Kind: Cursor})) // without a name
	}
	_, err = m.Get("")
	testkit.ErrorContains(t, err)
	m.Remove("a")
	m.Remove("nobody")
	m.Remove("")
	testkit.Equal(t, "cursors with names", m.Of(Cursor), []string{"cursor"})
	testkit.Equal(t, "databases", m.Of(Database), []string{"b", "c"})
	testkit.Check(t, add(Database, "a", "client"))
}

// Listing entities waits for the lock.
func TestEntityMapLocks(t *testing.T) {
	m := new(Map)
	m.mu.Lock()
	done := make(chan struct{})
	go func() { m.Of(Client); close(done) }()
	select {
	case <-done:
		t.Error("of does not wait for the lock")
	case <-time.After(20 * time.Millisecond):
	}
	m.mu.Unlock()
	testkit.Receive(t, "the list", done)
}

func TestThread(t *testing.T) {
	thread := new(Queue)
	var got []int
	release := make(chan struct{})
	for i := range 3 {
		testkit.Check(t, thread.Do(func() { <-release; got = append(got, i) }))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("timeout"))
	if err := thread.Wait(ctx); err == nil || err.Error() != "timeout" {
		t.Errorf("waiting for a busy thread returns %v", err)
	}
	close(release)
	thread.Stop()
	thread.Stop()
	testkit.Check(t, thread.Wait(context.Background()))
	testkit.Equal(t, "the order of work", got, []int{0, 1, 2})
	if err := thread.Do(func() {}); !errors.Is(err, errStopped) {
		t.Errorf("a stopped thread accepts work: %v", err)
	}
	testkit.Check(t, thread.Wait(ctx)) // already done
}
