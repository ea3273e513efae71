package reference

import (
	"context"
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

// The first check that times out clears the pool and interrupts what is in use.
// It needs the topology's monitor to be known by the dialer, which goes by the
// name of a function of the driver.
func TestMonitorTimeoutInterrupts(t *testing.T) {
	d, err := embedded.Start(t.Context(), embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	test, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = test.End(context.Background()) }()
	b := &bench{Test: test, t: t}
	open := func(kind, id string, o bson.D) {
		t.Helper()
		if err := test.Open(t.Context(), engine.Entity{Kind: kind, ID: id, URI: d.URI(),
			Options: raw(t, append(bson.D{{Key: "id", Value: id}}, o...))}); err != nil {
			t.Fatal(err)
		}
	}
	open("client", "client", bson.D{{Key: "uriOptions", Value: bson.D{{Key: "retryReads", Value: false}, {Key: "appname", Value: "late"},
		{Key: "connectTimeoutMS", Value: 100}, {Key: "heartbeatFrequencyMS", Value: 100}}}})
	open("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
	open("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
	open("client", "other", nil)
	b.must("collection", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}})
	failPoint := func(mode any) {
		b.must("other", "$configureFailPoint", bson.D{{Key: "command", Value: bson.D{{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: mode}, {Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"hello"}},
				{Key: "appName", Value: "late"}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 400}}}}}})
	}
	failPoint("alwaysOn")
	out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{{Key: "$where", Value: "sleep(600000)"}}}})
	if out.Err == nil || out.Err.Kind != "network" {
		t.Errorf("a find in use: %v", out.Err)
	}
	failPoint("off")
	b.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})

	events, err := test.Events(t.Context(), "client", 0, 0)
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
