package entities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// populated has one entity of every kind, named after it.
func populated(t *testing.T) *Map {
	t.Helper()
	m := new(Map)
	for _, add := range []error{
		m.AddObject(Client, "client", ""),
		m.AddObject(ClientEncryption, "clientEncryption", "client"),
		m.AddObject(Database, "database", "client"),
		m.AddObject(Collection, "collection", "database"),
		m.AddObject(Session, "session", "client"),
		m.AddObject(Bucket, "bucket", "database"),
		m.AddObject(Cursor, "cursor", "collection"),
		m.AddValue("value", bson.RawValue{Type: bson.TypeNull}),
		m.AddTopology("topology", result.TopologyState{Type: "Single"}),
	} {
		if add != nil {
			t.Fatal(add)
		}
	}
	thread := StartThread()
	t.Cleanup(thread.Stop)
	if err := m.AddThread("thread", thread); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestErrors(t *testing.T) {
	for _, row := range []struct {
		reason string
		do     func(*Map) error
		want   string // "" for no error
	}{
		{"a name may be used once", func(m *Map) error { return m.AddObject(Client, "client", "") },
			`duplicate entity name: there is already a client "client"`},
		{"a name is taken whatever the kind", func(m *Map) error { return m.AddValue("session", bson.RawValue{Type: bson.TypeNull}) },
			`duplicate entity name: there is already a session "session"`},
		{"a thread's name is taken too", func(m *Map) error { return m.AddObject(Session, "thread", "client") },
			`duplicate entity name: there is already a thread "thread"`},
		{"a parent must be there", func(m *Map) error { return m.AddObject(Session, "s", "client1") },
			`undefined entity: nothing is named "client1"`},
		{"a parent must be of the right kind", func(m *Map) error { return m.AddObject(Session, "s", "session") },
			`entity of unexpected type: "session" is a session, not a client`},
		{"a collection is made from a database, not from a client", func(m *Map) error { return m.AddObject(Collection, "c", "client") },
			`entity of unexpected type: "client" is a client, not a database`},
		{"a cursor may come from a client", func(m *Map) error { return m.AddObject(Cursor, "c", "client") }, ""},
		{"a cursor's creator must be there", func(m *Map) error { return m.AddObject(Cursor, "c", "nobody") },
			`undefined entity: nothing is named "nobody"`},
		{"a stream is no kind of entity", func(m *Map) error { return m.AddObject("stream", "s", "client") },
			`cannot save as entity "s": the entity map does not hold stream`},
		{"a name cannot be empty", func(m *Map) error { return m.AddObject(Client, "", "") }, "an entity needs a name"},
		{"an operation that returned nothing cannot be saved", func(m *Map) error { return m.AddValue("v", bson.RawValue{}) },
			`cannot save as entity "v": the entity map does not hold nothing`},
		{"0x14 is no BSON type", func(m *Map) error { return m.AddValue("v", bson.RawValue{Type: 0x14}) },
			`cannot save as entity "v": the entity map does not hold invalid`},
		{"lookup of a missing value", func(m *Map) error { _, err := m.Value("nobody"); return err },
			`undefined entity: there is no BSON value named "nobody"`},
		{"lookup of a value that is a client", func(m *Map) error { _, err := m.Value("client"); return err },
			`entity of unexpected type: "client" is a client, not a BSON value`},
		{"lookup of a thread that is a client", func(m *Map) error { _, err := m.Thread("client"); return err },
			`entity of unexpected type: "client" is a client, not a thread`},
		{"lookup of a topology that is a value", func(m *Map) error { _, err := m.Topology("value"); return err },
			`entity of unexpected type: "value" is a BSON value, not a topologyDescription`},
		{"several kinds may do", func(m *Map) error { return m.Demand("value", Client, Session) },
			`entity of unexpected type: "value" is a BSON value, not a client or session`},
		{"one of several kinds does", func(m *Map) error { return m.Demand("session", Client, Session) }, ""},
		{"a value descends from no client", func(m *Map) error { _, err := m.ClientOf("value"); return err },
			`entity of unexpected type: "value" is a BSON value, not a client or clientEncryption or database or collection or session or bucket or cursor`},
		{"kind of a missing entity", func(m *Map) error { _, err := m.Kind("nobody"); return err },
			`undefined entity: nothing is named "nobody"`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got := ""
			if err := row.do(populated(t)); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestErrorTypes(t *testing.T) {
	m := populated(t)
	var duplicate *DuplicateError
	if err := m.AddObject(Client, "client", ""); !errors.As(err, &duplicate) || duplicate.Kind != Client {
		t.Errorf("a taken name gives %#v", err)
	}
	var missing *MissingError
	if err := m.Demand("nobody", Client); !errors.As(err, &missing) || missing.ID != "nobody" {
		t.Errorf("a missing entity gives %#v", err)
	}
	var kind *TypeError
	if err := m.Demand("session", Client); !errors.As(err, &kind) || kind.Got != Session {
		t.Errorf("a session for a client gives %#v", err)
	}
	var unsupported *UnsupportedTypeError
	if err := m.AddValue("v", bson.RawValue{}); !errors.As(err, &unsupported) {
		t.Errorf("nothing for a value gives %#v", err)
	}
}

func TestSupportedTypes(t *testing.T) {
	for b := 0; b <= 0xFF; b++ {
		want := b >= 0x01 && b <= 0x13 || b == 0x7F || b == 0xFF
		if got := SupportedType(bson.Type(b)); got != want {
			t.Errorf("type %#02x: supported is %t, the format says %t", b, got, want)
		}
	}
}

func TestLookups(t *testing.T) {
	m := populated(t)
	for _, id := range []string{"client", "clientEncryption", "database", "collection", "session", "bucket", "cursor"} {
		if got, err := m.ClientOf(id); err != nil || got != "client" {
			t.Errorf("the client of %s is %q, %v", id, got, err)
		}
	}
	if v, err := m.Topology("topology"); err != nil || v.Type != "Single" {
		t.Errorf("the topology is %v, %v", v, err)
	}
	if diff := cmp.Diff(map[string]bool{"value": true}, keys(m.Values())); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
}

func keys[V any](m map[string]V) map[string]bool {
	out := make(map[string]bool)
	for k := range m {
		out[k] = true
	}
	return out
}

func TestClosingOrder(t *testing.T) {
	m := new(Map)
	for _, add := range []struct {
		kind       Kind
		id, parent string
	}{
		{Client, "client0", ""}, {Session, "session0", "client0"}, {Client, "client1", ""}, {Session, "session1", "client1"},
		{Database, "database0", "client0"}, {Cursor, "cursor0", "database0"}, {Cursor, "cursor1", "database0"},
		{ClientEncryption, "encryption0", "client0"},
	} {
		if err := m.AddObject(add.kind, add.id, add.parent); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"cursor1", "cursor0", "session1", "session0", "encryption0", "client1", "client0"}
	if diff := cmp.Diff(want, m.ClosingOrder()); diff != "" {
		t.Errorf("closing order (-want +got):\n%s", diff)
	}
	m.Remove("cursor1")
	m.Remove("nobody")
	if diff := cmp.Diff(want[1:], m.ClosingOrder()); diff != "" {
		t.Errorf("after removal (-want +got):\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := populated(t)
	var wg sync.WaitGroup
	won := make(chan int, 64)
	for i := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if m.AddValue("contested", bson.RawValue{Type: bson.TypeNull}) == nil {
				won <- i
			}
			if err := m.AddObject(Cursor, fmt.Sprint("c", i), "collection"); err != nil {
				t.Error(err)
			}
			m.ClosingOrder()
			if err := m.Demand("client", Client); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d goroutines were given the same name", len(won))
	}
	if n := len(m.Of(Cursor)); n != 65 {
		t.Errorf("%d cursors, want 65", n)
	}
}

func TestThread(t *testing.T) {
	thread := StartThread()
	var got []int
	release := make(chan struct{})
	for i := range 3 {
		if err := thread.Do(func() { <-release; got = append(got, i) }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("out of patience"))
	if err := thread.Wait(ctx); err == nil || err.Error() != "out of patience" {
		t.Errorf("waiting for a busy thread gives %v", err)
	}
	close(release)
	thread.Stop()
	thread.Stop()
	if err := thread.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
		t.Errorf("work was not done in order (-want +got):\n%s", diff)
	}
	if err := thread.Do(func() {}); !errors.Is(err, ErrStopped) {
		t.Errorf("a stopped thread takes work: %v", err)
	}
	if err := thread.Wait(ctx); err != nil {
		t.Errorf("a thread that is done need not be waited for: %v", err)
	}
}
