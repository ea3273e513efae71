package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestEntityMap(t *testing.T) {
	m := new(entityMap)
	add := func(kind operations.Kind, id, parent string) error { return m.addObject(kind, id, parent) }
	value := func(id string) error {
		_, err := contentOf[bson.RawValue](m, id, operations.SavedValue)
		return err
	}
	for _, row := range []struct {
		reason string
		err    error
		want   string // suffix of the error, "" without one
	}{
		{"a client", add(operations.Client, "client", ""), ""},
		{"a thread", m.add("thread", entity{kind: operations.Thread, content: new(thread)}), ""},
		{"a saved result", m.add("value", entity{kind: operations.SavedValue, content: bson.RawValue{}}), ""},
		{"a name that is used", add(operations.Client, "client", ""), `duplicate entity name: there is already a client "client"`},
		{"a name that another kind uses", add(operations.Client, "thread", ""), `there is already a thread "thread"`},
		{"an undefined parent", add(operations.Session, "s", "client1"), `undefined entity: nothing is named "client1"`},
		{"a session", add(operations.Session, "session", "client"), ""},
		{"a cursor of a session", add(operations.Cursor, "cursor", "session"), ""},
		{"an undefined value", value("nobody"), `undefined entity: nothing is named "nobody"`},
		{"a value that is a client", value("client"), `entity of unexpected type: "client" is a client, not a BSON value`},
		{"a value", value("value"), ""},
	} {
		testkit.WantError(t, row.reason, row.err, row.want)
	}
	cursor, err := m.get("cursor")
	testkit.Check(t, err)
	testkit.Equal(t, "the client of a cursor", cursor.client, "client")
	for _, id := range []string{"b", "a", "c"} {
		testkit.Check(t, add(operations.Database, id, "client"))
	}
	m.remove("a")
	m.remove("nobody")
	testkit.Equal(t, "databases", m.of(operations.Database), []string{"b", "c"})
	testkit.Check(t, add(operations.Database, "a", "client"))
}

// Listing entities waits for the lock.
func TestEntityMapLocks(t *testing.T) {
	m := new(entityMap)
	m.mu.Lock()
	done := make(chan struct{})
	go func() { m.of(operations.Client); close(done) }()
	select {
	case <-done:
		t.Error("of does not wait for the lock")
	case <-time.After(20 * time.Millisecond):
	}
	m.mu.Unlock()
	testkit.Receive(t, "the list", done)
}

func TestThread(t *testing.T) {
	thread := new(thread)
	var got []int
	release := make(chan struct{})
	for i := range 3 {
		testkit.Check(t, thread.do(func() { <-release; got = append(got, i) }))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("timeout"))
	if err := thread.wait(ctx); err == nil || err.Error() != "timeout" {
		t.Errorf("waiting for a busy thread returns %v", err)
	}
	close(release)
	thread.stop()
	thread.stop()
	testkit.Check(t, thread.wait(context.Background()))
	testkit.Equal(t, "the order of work", got, []int{0, 1, 2})
	if err := thread.do(func() {}); !errors.Is(err, errStopped) {
		t.Errorf("a stopped thread accepts work: %v", err)
	}
	testkit.Check(t, thread.wait(ctx)) // already done
}
