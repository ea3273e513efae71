package enginekit

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
)

func TestAddressOf(t *testing.T) {
	for _, row := range []struct{ reason, connection, want string }{
		{"a name", "localhost:27017[-3]", "localhost:27017"},
		{"an address of IPv6 has brackets of its own", "[::1]:27017[-12]", "[::1]:27017"},
		{"no connection yet, as the driver says it", "0", ""},
		{"nothing", "", ""},
	} {
		if got := AddressOf(row.connection); got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}

func TestPoolWriter(t *testing.T) {
	service, yes, no := bson.NewObjectID(), true, false
	for _, row := range []struct {
		reason string
		event  event.PoolEvent
		want   *result.Event // nil: none is written
	}{
		{"a connection", event.PoolEvent{Type: event.ConnectionCreated, Address: "a:1", ConnectionID: 7},
			&result.Event{Type: result.ConnectionCreated, Address: "a:1", Pool: &result.PoolEvent{ConnectionID: 7}}},
		{"one that is closed, and why", event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", ConnectionID: 7, Reason: "stale", Error: errors.New("gone")},
			&result.Event{Type: result.ConnectionClosed, Address: "a:1", Pool: &result.PoolEvent{ConnectionID: 7, Reason: "stale", Err: "gone"}}},
		{"the clearing of one service, connections in use included", event.PoolEvent{Type: event.ConnectionPoolCleared, Address: "a:1", ServiceID: &service, Interruption: true},
			&result.Event{Type: result.PoolCleared, Address: "a:1", Pool: &result.PoolEvent{ServiceID: &service, InterruptInUseConnections: &yes}}},
		{"a clearing says that nothing is interrupted", event.PoolEvent{Type: event.ConnectionPoolCleared, Address: "a:1"},
			&result.Event{Type: result.PoolCleared, Address: "a:1", Pool: &result.PoolEvent{InterruptInUseConnections: &no}}},
		{"an event that the format does not know", event.PoolEvent{Type: "ConnectionPainted"}, nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			wrote(t, func(l *EventLog) { PoolWriter(l)(&row.event) }, row.want)
		})
	}
}

func TestPoolWriterKnowsAll(t *testing.T) {
	for name, want := range poolEvents() {
		l := NewEventLog(noon)
		PoolWriter(l)(&event.PoolEvent{Type: name})
		if got, _ := l.After(t.Context(), 0, 0); len(got) != 1 || got[0].Type != want {
			t.Errorf("%s: written are %v, want %s", name, got, want)
		}
	}
}

func TestServerMonitor(t *testing.T) {
	yes, no := true, false
	before := event.TopologyDescription{Kind: "Unknown"}
	after := event.TopologyDescription{Kind: "Single", Servers: []event.ServerDescription{{Addr: address.Address("a:1"), Kind: "Standalone"}}}
	for _, row := range []struct {
		reason string
		tell   func(*event.ServerMonitor)
		want   result.Event
	}{
		{"a topology opens", func(m *event.ServerMonitor) { m.TopologyOpening(&event.TopologyOpeningEvent{}) },
			result.Event{Type: result.TopologyOpening, SDAM: &result.SDAMEvent{}}},
		{"a topology closes", func(m *event.ServerMonitor) { m.TopologyClosed(&event.TopologyClosedEvent{}) },
			result.Event{Type: result.TopologyClosed, SDAM: &result.SDAMEvent{}}},
		{"a topology changes", func(m *event.ServerMonitor) {
			m.TopologyDescriptionChanged(&event.TopologyDescriptionChangedEvent{PreviousDescription: before, NewDescription: after})
		}, result.Event{Type: result.TopologyDescriptionChanged, SDAM: &result.SDAMEvent{
			Previous: &result.TopologyState{Type: "Unknown"},
			New:      &result.TopologyState{Type: "Single", Servers: []result.ServerState{{Address: "a:1", Type: "Standalone"}}}}}},
		{"a server changes", func(m *event.ServerMonitor) {
			m.ServerDescriptionChanged(&event.ServerDescriptionChangedEvent{Address: "a:1",
				PreviousDescription: event.ServerDescription{Kind: "Unknown"}, NewDescription: event.ServerDescription{Kind: "RSPrimary"}})
		}, result.Event{Type: result.ServerDescriptionChanged, Address: "a:1", SDAM: &result.SDAMEvent{
			Previous: &result.TopologyState{Type: "Unknown"}, New: &result.TopologyState{Type: "RSPrimary"}}}},
		{"the first heartbeat has no connection yet", func(m *event.ServerMonitor) {
			m.ServerHeartbeatStarted(&event.ServerHeartbeatStartedEvent{ConnectionID: "0"})
		}, result.Event{Type: result.ServerHeartbeatStarted, SDAM: &result.SDAMEvent{Awaited: &no}}},
		{"a heartbeat succeeds", func(m *event.ServerMonitor) {
			m.ServerHeartbeatSucceeded(&event.ServerHeartbeatSucceededEvent{ConnectionID: "a:1[-2]", Awaited: true})
		}, result.Event{Type: result.ServerHeartbeatSucceeded, Address: "a:1", SDAM: &result.SDAMEvent{Awaited: &yes}}},
		{"a heartbeat fails", func(m *event.ServerMonitor) {
			m.ServerHeartbeatFailed(&event.ServerHeartbeatFailedEvent{ConnectionID: "a:1[-2]", Failure: errors.New("gone")})
		}, result.Event{Type: result.ServerHeartbeatFailed, Address: "a:1", SDAM: &result.SDAMEvent{Awaited: &no, Err: "gone"}}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			wrote(t, func(l *EventLog) { row.tell(ServerMonitor(l)) }, &row.want)
		})
	}
	m := reflect.ValueOf(*ServerMonitor(NewEventLog(noon)))
	for i := range m.NumField() {
		// The format has no events for the opening and closing of servers.
		if name := m.Type().Field(i).Name; m.Field(i).IsNil() != (name == "ServerOpening" || name == "ServerClosed") {
			t.Errorf("%s is heard: %t", name, !m.Field(i).IsNil())
		}
	}
}

// wrote fails if what is written to a log is not the event that is wanted.
func wrote(t *testing.T, write func(*EventLog), want *result.Event) {
	t.Helper()
	l := NewEventLog(noon)
	write(l)
	got, _ := l.After(t.Context(), 0, 0)
	if want == nil {
		if len(got) > 0 {
			t.Errorf("written are %v", got)
		}
		return
	}
	numbered := *want
	numbered.Sequence, numbered.Time = 1, noon()
	if diff := cmp.Diff([]result.Event{numbered}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
