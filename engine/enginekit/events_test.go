package enginekit

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
)

func TestAddressOf(t *testing.T) {
	for connection, want := range map[string]string{"localhost:27017[-3]": "localhost:27017", "[::1]:27017[-12]": "[::1]:27017", "0": ""} {
		testkit.Equal(t, connection, AddressOf(connection), want) // 0: there is no connection yet, in the driver's words
	}
}

// wrote fails if something else than the wanted event is written to a log.
func wrote(t *testing.T, reason string, want *result.Event, write func(*EventLog)) {
	t.Helper()
	l := NewEventLog(noon)
	write(l)
	got, _ := l.After(t.Context(), 0, 0)
	var all []result.Event
	if want != nil {
		want.Sequence, want.Time = 1, noon()
		all = append(all, *want)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", reason, diff)
	}
}

func TestPoolWriter(t *testing.T) {
	service, yes, no := bson.NewObjectID(), true, false
	for _, row := range []struct {
		reason string
		event  event.PoolEvent
		want   result.EventType // "": none is written
		pool   result.PoolEvent
	}{
		{"a connection", event.PoolEvent{Type: event.ConnectionCreated, ConnectionID: 7}, result.ConnectionCreated, result.PoolEvent{ConnectionID: 7}},
		{"one that is closed, and why", event.PoolEvent{Type: event.ConnectionClosed, Reason: "stale", Error: errors.New("gone")},
			result.ConnectionClosed, result.PoolEvent{Reason: "stale", Err: "gone"}},
		{"the pool of a service is cleared, connections in use included",
			event.PoolEvent{Type: event.ConnectionPoolCleared, ServiceID: &service, Interruption: true},
			result.PoolCleared, result.PoolEvent{ServiceID: &service, InterruptInUseConnections: &yes}},
		{"a clearing says that nothing is interrupted", event.PoolEvent{Type: event.ConnectionPoolCleared},
			result.PoolCleared, result.PoolEvent{InterruptInUseConnections: &no}},
		{"an event that the format does not know", event.PoolEvent{Type: "ConnectionPainted"}, "", result.PoolEvent{}},
	} {
		var want *result.Event
		if row.event.Address = "a:1"; row.want != "" {
			want = &result.Event{Type: row.want, Address: "a:1", Pool: &row.pool}
		}
		wrote(t, row.reason, want, func(l *EventLog) { PoolWriter(l)(&row.event) })
	}
	for name, kind := range poolEvents() {
		// ConnectionPoolReady is poolReadyEvent, and so on.
		short := strings.Replace(name, "ConnectionPool", "Pool", 1)
		testkit.Equal(t, name, kind, strings.ToLower(short[:1])+short[1:]+"Event")
	}
}

func TestServerMonitor(t *testing.T) {
	yes, no := true, false
	before := event.TopologyDescription{Kind: "Unknown"}
	after := event.TopologyDescription{Kind: "Single", Servers: []event.ServerDescription{{Addr: address.Address("a:1"), Kind: "Standalone"}}}
	unknown, primary := event.ServerDescription{Kind: "Unknown"}, event.ServerDescription{Kind: "RSPrimary"}
	single := &result.TopologyState{Type: "Single", Servers: []result.ServerState{{Address: "a:1", Type: "Standalone"}}}
	for _, row := range []struct {
		tell    func(*event.ServerMonitor)
		want    result.EventType
		address string
		sdam    result.SDAMEvent
	}{
		{func(m *event.ServerMonitor) { m.TopologyOpening(nil) }, result.TopologyOpening, "", result.SDAMEvent{}},
		{func(m *event.ServerMonitor) { m.TopologyClosed(nil) }, result.TopologyClosed, "", result.SDAMEvent{}},
		{func(m *event.ServerMonitor) {
			m.TopologyDescriptionChanged(&event.TopologyDescriptionChangedEvent{PreviousDescription: before, NewDescription: after})
		}, result.TopologyDescriptionChanged, "", result.SDAMEvent{Previous: &result.TopologyState{Type: "Unknown"}, New: single}},
		{func(m *event.ServerMonitor) {
			m.ServerDescriptionChanged(&event.ServerDescriptionChangedEvent{Address: "a:1", PreviousDescription: unknown, NewDescription: primary})
		}, result.ServerDescriptionChanged, "a:1",
			result.SDAMEvent{Previous: &result.TopologyState{Type: "Unknown"}, New: &result.TopologyState{Type: "RSPrimary"}}},
		{func(m *event.ServerMonitor) { // the first heartbeat has no connection yet
			m.ServerHeartbeatStarted(&event.ServerHeartbeatStartedEvent{ConnectionID: "0"})
		}, result.ServerHeartbeatStarted, "", result.SDAMEvent{Awaited: &no}},
		{func(m *event.ServerMonitor) {
			m.ServerHeartbeatSucceeded(&event.ServerHeartbeatSucceededEvent{ConnectionID: "a:1[-2]", Awaited: true})
		}, result.ServerHeartbeatSucceeded, "a:1", result.SDAMEvent{Awaited: &yes}},
		{func(m *event.ServerMonitor) {
			m.ServerHeartbeatFailed(&event.ServerHeartbeatFailedEvent{ConnectionID: "a:1[-2]", Failure: errors.New("gone")})
		}, result.ServerHeartbeatFailed, "a:1", result.SDAMEvent{Awaited: &no, Err: "gone"}},
	} {
		want := result.Event{Type: row.want, Address: row.address, SDAM: &row.sdam}
		wrote(t, string(row.want), &want, func(l *EventLog) { row.tell(ServerMonitor(l)) })
	}
	m := reflect.ValueOf(*ServerMonitor(NewEventLog(noon)))
	for i := range m.NumField() {
		// The format has no events for the opening and closing of servers.
		name := m.Type().Field(i).Name
		testkit.Equal(t, name+" is not heard", m.Field(i).IsNil(), name == "ServerOpening" || name == "ServerClosed")
	}
}
