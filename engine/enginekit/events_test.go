package enginekit

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The transcript shows the log of each event of the driver.
func TestEvents(t *testing.T) {
	pool := func(e event.PoolEvent) func(*EventLog) {
		return func(l *EventLog) { PoolWriter(l)(&e) }
	}
	monitor := func(publish func(*event.ServerMonitor)) func(*EventLog) {
		return func(l *EventLog) { publish(ServerMonitor(l)) }
	}
	after := event.TopologyDescription{Kind: "Single",
		Servers: []event.ServerDescription{{Addr: address.Address("a:1"), Kind: "Standalone"}}}
	all := map[string]func(*EventLog){
		"connection created": pool(event.PoolEvent{Type: event.ConnectionCreated, Address: "a:1", ConnectionID: 7}),
		"connection closed":  pool(event.PoolEvent{Type: event.ConnectionClosed, Reason: "stale", Error: errors.New("gone")}),
		"pool of a service cleared, connections in use included": pool(event.PoolEvent{Type: event.ConnectionPoolCleared,
			ServiceID: &bson.ObjectID{1}, Interruption: true}),
		"pool cleared":       pool(event.PoolEvent{Type: event.ConnectionPoolCleared}),
		"connection painted": pool(event.PoolEvent{Type: "ConnectionPainted"}),
		"topology opening":   monitor(func(m *event.ServerMonitor) { m.TopologyOpening(nil) }),
		"topology closed":    monitor(func(m *event.ServerMonitor) { m.TopologyClosed(nil) }),
		"topology changed": monitor(func(m *event.ServerMonitor) {
			before := event.TopologyDescription{Kind: "Unknown"}
			m.TopologyDescriptionChanged(&event.TopologyDescriptionChangedEvent{PreviousDescription: before,
				NewDescription: after})
		}),
		"server changed": monitor(func(m *event.ServerMonitor) {
			unknown, primary := event.ServerDescription{Kind: "Unknown"}, event.ServerDescription{Kind: "RSPrimary"}
			m.ServerDescriptionChanged(&event.ServerDescriptionChangedEvent{Address: "a:1", PreviousDescription: unknown,
				NewDescription: primary})
		}),
		"first heartbeat": monitor(func(m *event.ServerMonitor) {
			m.ServerHeartbeatStarted(&event.ServerHeartbeatStartedEvent{ConnectionID: "0"})
		}),
		"heartbeat awaited": monitor(func(m *event.ServerMonitor) {
			m.ServerHeartbeatSucceeded(&event.ServerHeartbeatSucceededEvent{ConnectionID: "a:1[-2]", Awaited: true})
		}),
		"heartbeat failed": monitor(func(m *event.ServerMonitor) {
			m.ServerHeartbeatFailed(&event.ServerHeartbeatFailedEvent{ConnectionID: "a:1[-2]", Failure: errors.New("gone")})
		}),
	}
	testkit.Transcript(t, "testdata/events.txt", func(t *testing.T, name string) string {
		l := NewEventLog(noon)
		all[name](l)
		got, err := l.After(t.Context(), 0, 0)
		testkit.Check(t, err)
		text, err := json.Marshal(got)
		testkit.Check(t, err)
		return string(text)
	})
	for name, kind := range poolEvents() {
		// ConnectionPoolReady is poolReadyEvent, and so on.
		short := strings.Replace(name, "ConnectionPool", "Pool", 1)
		testkit.Equal(t, name, string(kind), strings.ToLower(short[:1])+short[1:]+"Event")
	}
	m := reflect.ValueOf(*ServerMonitor(NewEventLog(noon)))
	for i := range m.NumField() {
		// serverOpeningEvent and serverClosedEvent are not in the format.
		name := m.Type().Field(i).Name
		testkit.Equal(t, name+" is ignored", m.Field(i).IsNil(), name == "ServerOpening" || name == "ServerClosed")
	}
}
