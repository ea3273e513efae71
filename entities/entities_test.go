package entities

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// populated has one entity of every kind, named after it.
func populated(t *testing.T) *Map {
	t.Helper()
	m := new(Map)
	for _, add := range []error{
		m.AddObject(operations.Client, "client", ""),
		m.AddObject(operations.ClientEncryption, "clientEncryption", "client"),
		m.AddObject(operations.Database, "database", "client"),
		m.AddObject(operations.Collection, "collection", "database"),
		m.AddObject(operations.Session, "session", "client"),
		m.AddObject(operations.Bucket, "bucket", "database"),
		m.AddObject(operations.Cursor, "cursor", "collection"),
		m.AddValue("value", bson.RawValue{Type: bson.TypeNull}),
		m.AddTopology("topology", result.TopologyState{Type: "Single"}),
	} {
		testkit.Check(t, add)
	}
	testkit.Check(t, m.AddThread("thread", new(Thread)))
	return m
}

// second is the error of a look-up.
func second[T any](_ T, err error) error { return err }

func TestErrors(t *testing.T) {
	m := populated(t)
	null := bson.RawValue{Type: bson.TypeNull}
	for _, row := range []struct {
		reason string
		err    error
		want   string // the error contains it; "" if there is none
	}{
		{"a name may be used once", m.AddObject(operations.Client, "client", ""), `duplicate entity name: there is already a client "client"`},
		{"a name is taken whatever the kind", m.AddValue("thread", null), `there is already a thread "thread"`},
		{"a parent must be there", m.AddObject(operations.Session, "s", "client1"), `undefined entity: nothing is named "client1"`},
		{"a parent must be of the right kind", m.AddObject(operations.Session, "s", "session"), `unexpected type: "session" is a session, not a client`},
		{"a collection is not made from a client", m.AddObject(operations.Collection, "c", "client"), `"client" is a client, not a database`},
		{"a cursor may come from a client", m.AddObject(operations.Cursor, "c", "client"), ""},
		{"a cursor's creator must be there", m.AddObject(operations.Cursor, "c", "nobody"), `nothing is named "nobody"`},
		{"a stream is not a kind of entity", m.AddObject("stream", "s", "client"), `save as entity "s": the entity map does not hold stream`},
		{"a name cannot be empty", m.AddObject(operations.Client, "", ""), "an entity needs a name"},
		{"an operation that returned nothing cannot be saved", m.AddValue("v", bson.RawValue{}), `the entity map does not hold nothing`},
		{"0x14 is not a BSON type", m.AddValue("v", bson.RawValue{Type: 0x14}), `the entity map does not hold invalid`},
		{"a value that is not there", second(m.Value("nobody")), `undefined entity: there is no BSON value named "nobody"`},
		{"a value that is a client", second(m.Value("client")), `"client" is a client, not a BSON value`},
		{"a thread that is a client", second(m.Thread("client")), `"client" is a client, not a thread`},
		{"a topology that is a value", second(m.Topology("value")), `"value" is a BSON value, not a topologyDescription`},
		{"several kinds may do", m.Demand("value", operations.Client, operations.Session), `"value" is a BSON value, not a client or session`},
		{"one of several kinds does", m.Demand("session", operations.Client, operations.Session), ""},
		{"a value does not descend from a client", second(m.ClientOf("value")), `not a client or clientEncryption or database or collection or session`},
		{"the client of a missing entity", second(m.ClientOf("nobody")), `nothing is named "nobody"`},
		{"the kind of a missing entity", second(m.Kind("nobody")), `nothing is named "nobody"`},
	} {
		err := row.err
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v\nwant %s", row.reason, err, row.want)
		}
	}
}

func TestSupportedTypes(t *testing.T) {
	for b := 0; b <= 0xFF; b++ {
		want := b >= 0x01 && b <= 0x13 || b == 0x7F || b == 0xFF
		if got := new(Map).AddValue("v", bson.RawValue{Type: bson.Type(b)}) == nil; got != want {
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
	topology, noTopology := m.Topology("topology")
	thread, noThread := m.Thread("thread")
	value, noValue := m.Value("value")
	if noTopology != nil || noThread != nil || noValue != nil || thread == nil || topology.Type != "Single" || value.Type != bson.TypeNull {
		t.Errorf("%v, %v; %v, %v; %v", topology, noTopology, thread, noThread, value)
	}
}

func TestOrder(t *testing.T) {
	m := new(Map)
	for _, id := range []string{"b", "a", "c"} {
		testkit.Check(t, m.AddObject(operations.Client, id, ""))
	}
	m.Remove("a")
	m.Remove("nobody")
	testkit.Equal(t, "clients", m.Of(operations.Client), []string{"b", "c"})
	testkit.Check(t, m.AddObject(operations.Client, "a", ""))
}

// Whoever reads or writes waits for the one who writes.
func TestLocks(t *testing.T) {
	null := bson.RawValue{Type: bson.TypeNull}
	for reason, use := range map[string]func(*Map){
		"Of":       func(m *Map) { m.Of(operations.Client) },
		"Free":     func(m *Map) { _ = m.Free("client") },
		"Kind":     func(m *Map) { _, _ = m.Kind("client") },
		"AddValue": func(m *Map) { _ = m.AddValue("v", null) },
		"Remove":   func(m *Map) { m.Remove("client") },
	} {
		m := populated(t)
		m.mu.Lock()
		done := make(chan struct{})
		go func() { use(m); close(done) }()
		testkit.Until(t, reason+" waits for the lock", func() bool {
			select {
			case <-done:
				t.Errorf("%s does not wait for the lock", reason)
				return true
			default:
				stacks := make([]byte, 1<<18)
				return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("sync.(*RWMutex)."))
			}
		})
		m.mu.Unlock()
		testkit.Receive(t, reason, done)
	}
}

func TestThread(t *testing.T) {
	thread := new(Thread)
	var got []int
	release := make(chan struct{})
	for i := range 3 {
		testkit.Check(t, thread.Do(func() { <-release; got = append(got, i) }))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("out of patience"))
	if err := thread.Wait(ctx); err == nil || err.Error() != "out of patience" {
		t.Errorf("waiting for a busy thread gives %v", err)
	}
	close(release)
	thread.Stop()
	thread.Stop()
	testkit.Check(t, thread.Wait(context.Background()))
	testkit.Equal(t, "the order of work", got, []int{0, 1, 2})
	if err := thread.Do(func() {}); !errors.Is(err, errStopped) {
		t.Errorf("a stopped thread takes work: %v", err)
	}
	testkit.Check(t, thread.Wait(ctx)) // nothing has to be waited for
}
