package reference

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// onEmbedded opens a client, with a database and a collection, and another one
// for fail points.
func onEmbedded(t *testing.T, o embedded.Options, uri bson.D) *bench {
	t.Helper()
	d, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	test, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		kind, id string
		options  bson.D
	}{
		{"client", "client", bson.D{{Key: "uriOptions", Value: append(bson.D{{Key: "appname", Value: "ours"}, {Key: "retryReads", Value: false}}, uri...)}}},
		{"database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}}},
		{"collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}}},
		{"client", "other", nil},
	} {
		if err := test.Open(t.Context(), engine.Entity{Kind: e.kind, ID: e.id, URI: d.URI(),
			Options: raw(t, append(bson.D{{Key: "id", Value: e.id}}, e.options...))}); err != nil {
			t.Fatal(err)
		}
	}
	return &bench{Test: test, t: t}
}

// failPoint sets failCommand for the client, not for the other one.
func (b *bench) failPoint(mode any, data ...bson.E) {
	b.t.Helper()
	b.must("other", "$configureFailPoint", bson.D{{Key: "command", Value: bson.D{{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: mode}, {Key: "data", Value: append(bson.D{{Key: "appName", Value: "ours"}}, data...)}}}})
}

// A monitor whose check was cancelled does not tell that a pool is ready until
// an operation wants it.
func TestMonitorRestsAfterCancelledCheck(t *testing.T) {
	b := onEmbedded(t, embedded.Options{Users: []embedded.User{{Name: "u", Password: "p"}}}, bson.D{{Key: "heartbeatFrequencyMS", Value: 3600000}})
	b.failPoint(bson.D{{Key: "times", Value: 1}}, bson.E{Key: "failCommands", Value: bson.A{"saslContinue"}}, bson.E{Key: "closeConnection", Value: true})
	story := func() (told string) {
		t.Helper()
		events, err := b.Events(t.Context(), "client", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch e.Type {
			case result.PoolReady:
				told += "ready "
			case result.PoolCleared:
				told += "cleared "
			}
		}
		return told
	}
	find := bson.D{{Key: "filter", Value: bson.D{}}}
	if out := b.do("collection", "find", find); out.Err == nil {
		t.Error("the handshake did not fail")
	}
	if got := story(); got != "ready cleared " {
		t.Errorf("after the failure: %s", got)
	}
	b.must("collection", "find", find)
	if got := story(); got != "ready cleared ready " {
		t.Errorf("after another operation: %s", got)
	}
}

// The first check that times out clears the pool and interrupts what is in use.
// It needs the topology's monitor to be known by the dialer, which goes by the
// name of a function of the driver.
func TestMonitorTimeoutInterrupts(t *testing.T) {
	b := onEmbedded(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1},
		bson.D{{Key: "connectTimeoutMS", Value: 100}, {Key: "heartbeatFrequencyMS", Value: 100}})
	b.must("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
	hello := []bson.E{{Key: "failCommands", Value: bson.A{"hello"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 400}}
	b.failPoint("alwaysOn", hello...)
	out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{{Key: "$where", Value: "sleep(600000)"}}}})
	if out.Err == nil || out.Err.Kind != "network" {
		t.Errorf("a find in use: %v", out.Err)
	}
	b.failPoint("off")
	b.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})

	events, err := b.Events(t.Context(), "client", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	cleared, failed := 0, 0
	for _, e := range events {
		switch {
		case e.Type == result.ServerHeartbeatFailed && cleared == 0:
			failed++
		case e.Type == result.PoolCleared:
			cleared++
			told = append(told, string(e.Type))
			if !*e.Pool.InterruptInUseConnections {
				t.Error("what is in use is not interrupted")
			}
		case cleared == 1 && (e.Type == result.ConnectionCheckedIn || e.Type == result.ConnectionClosed) && e.Pool.ConnectionID == 1:
			told = append(told, string(e.Type))
		}
	}
	want := []string{string(result.PoolCleared), string(result.ConnectionCheckedIn), string(result.ConnectionClosed)}
	if diff := cmp.Diff(want, told); diff != "" || failed != 1 {
		t.Errorf("%d heartbeats had failed when the pool was cleared, want 1; (-want +got)\n%s", failed, diff)
	}
}

func TestChecksThatTimeOut(t *testing.T) {
	late, other := os.ErrDeadlineExceeded, net.ErrClosed
	const address = "a:1"
	for _, row := range []struct {
		reason  string
		read    error
		repeats bool
	}{
		{"a time-out is repeated", late, true},
		{"another error is not: the topology acts on it at once", other, false},
		{"nor is a success", nil, false},
	} {
		s := newSockets()
		s.timedOut(address, row.read)
		if began := s.checks(address); began == row.repeats {
			t.Errorf("%s: the next check begins: %t", row.reason, began)
		}
		err := s.again(address)
		if repeated := errors.As(err, new(repeated)); repeated != row.repeats || repeated && !errors.Is(err, row.read) {
			t.Errorf("%s: the second check fails with %v", row.reason, err)
		}
		if s.cancelled(address) != row.repeats || s.cancelled("") != row.repeats || s.cancelled("b:1") {
			t.Errorf("%s: what it changes must not be told", row.reason)
		}
		if err := s.again(address); err != nil {
			t.Errorf("%s: the third fails with %v", row.reason, err)
		}
		if !s.checks(address) || s.cancelled(address) {
			t.Errorf("%s: it is not over with the third check", row.reason)
		}
	}
}

func TestOrderOfPoolEvents(t *testing.T) {
	out := &event.PoolEvent{Type: event.ConnectionCheckedOut, Address: "a:1", ConnectionID: 1}
	in := &event.PoolEvent{Type: event.ConnectionCheckedIn, Address: "a:1", ConnectionID: 1}
	stale := &event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", ConnectionID: 1, Reason: event.ReasonStale}
	failed := &event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", ConnectionID: 1, Reason: event.ReasonError}
	other := &event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", ConnectionID: 2, Reason: event.ReasonStale}
	cleared := &event.PoolEvent{Type: event.ConnectionPoolCleared, Address: "a:1"}
	type list = []*event.PoolEvent
	for _, row := range []struct {
		reason      string
		come, want  list
		interrupted bool
	}{
		{"an interrupted connection is checked in first", list{out, cleared, stale, other, in}, list{out, cleared, other, in, stale}, false},
		{"and known meanwhile", list{out, stale}, list{out}, true},
		{"one that is checked in before is no matter", list{out, in, stale}, list{out, in, stale}, false},
		{"one that is idle is closed at once", list{stale}, list{stale}, false},
		{"one that failed, too", list{out, failed}, list{out, failed}, false},
		{"it is told once", list{out, stale, in, out, in}, list{out, in, stale, out, in}, false},
	} {
		u := newInUse()
		var got list
		for _, e := range row.come {
			got = append(got, u.order(e)...)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", row.reason, diff)
		}
		if u.interrupted("a:1", 1) != row.interrupted {
			t.Errorf("%s: interrupted is %t", row.reason, !row.interrupted)
		}
	}
}
