package reference

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/net/shared"
	"github.com/unified-test-runner/utr/result"
)

// The components of the Logging specification ("Components").
const (
	componentCommand    = "command"
	componentTopology   = "topology"
	componentSelection  = "serverSelection"
	componentConnection = "connection"
)

// severities lists the levels of the Logging specification, most severe first ("Log Severity Levels").
var severities = []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug", "trace"}

// messageLog holds the structured log messages of one client. The Go driver writes the messages of component topology,
// the engine all others. Documents are never truncated. A nil log observes nothing.
type messageLog struct {
	now     func() time.Time
	least   map[string]int // index in severities of the least severe observed level, by component
	options bson.D         // connection pool options that were set

	shared   shared.State
	messages []result.LogMessage
	pending  int // messages that the Go driver writes after events that were already received
}

// newMessageLog reads observeLogMessages. If it is not set, the log is nil.
func newMessageLog(now func() time.Time, v bson.RawValue) (*messageLog, error) {
	if v.Type == 0 {
		return nil, nil
	}
	l := &messageLog{now: now, least: map[string]int{}}
	components := enginekit.Fields{}
	for _, name := range []string{componentCommand, componentTopology, componentSelection, componentConnection} {
		components[name] = func(v bson.RawValue) error {
			level, _ := v.StringValueOK()
			l.least[name] = slices.Index(severities, level)
			if l.least[name] < 0 {
				return fmt.Errorf("unknown level %v", v)
			}
			return nil
		}
	}
	return l, components.Read("observeLogMessages", v, invalidField)
}

func (l *messageLog) observes(component, level string) bool {
	if l == nil {
		return false
	}
	least, ok := l.least[component]
	return ok && slices.Index(severities, level) <= least
}

// add adds a message, if it is observed.
func (l *messageLog) add(component, level string, data bson.D, redacted *bool) {
	if !l.observes(component, level) {
		return
	}
	raw, err := bson.Marshal(data)
	if err != nil {
		return // cannot happen: all values can be encoded
	}
	l.shared.Update(func() {
		l.messages = append(l.messages, result.LogMessage{Sequence: int64(len(l.messages)) + 1, Time: l.now(),
			Level: level, Component: component, Data: raw, FailureRedacted: redacted})
	})
}

// all returns the messages, including the messages of all received topology events.
func (l *messageLog) all() (messages []result.LogMessage) {
	if l == nil {
		return nil
	}
	l.shared.Await(context.Background(), monitorTimeout, func() bool {
		messages = slices.Clone(l.messages)
		return l.pending <= 0
	})
	return messages
}

// expect records a topology event that the Go driver writes a message for.
func (l *messageLog) expect() {
	if l.observes(componentTopology, "debug") {
		l.shared.Update(func() { l.pending++ })
	}
}

// Logs returns the log messages of a client.
func (t *test) Logs(_ context.Context, id string) ([]result.LogMessage, error) {
	c, err := t.Client(id)
	if err != nil {
		return nil, err
	}
	return c.(*client).messages.all(), nil
}

// attach makes the Go driver write its topology messages to the log, and records the pool options.
func (l *messageLog) attach(o *options.ClientOptions, s settings) {
	if l == nil {
		return
	}
	if l.observes(componentTopology, "info") {
		o.SetLoggerOptions(options.Logger().SetSink(l).SetComponentLevel(options.LogComponentTopology, options.LogLevelDebug))
	}
	if o.MaxConnIdleTime != nil {
		l.options = document("maxIdleTimeMS", o.MaxConnIdleTime.Milliseconds())
	}
	l.options = addIf(l.options, o.MinPoolSize != nil, "minPoolSize", o.MinPoolSize)
	l.options = addIf(l.options, o.MaxPoolSize != nil, "maxPoolSize", o.MaxPoolSize)
	l.options = addIf(l.options, o.MaxConnecting != nil, "maxConnecting", o.MaxConnecting)
	l.options = addIf(l.options, s.waitQueueTimeout > 0, "waitQueueTimeoutMS", s.waitQueueTimeout.Milliseconds())
}

// Info implements options.LogSink for topology messages.
func (l *messageLog) Info(level int, text string, keysAndValues ...any) {
	data := document("message", text)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if key := fmt.Sprint(keysAndValues[i]); key != "message" {
			data = append(data, bson.E{Key: key, Value: keysAndValues[i+1]})
		}
	}
	name := "debug"
	if level == 0 {
		name = "info"
	}
	l.add(componentTopology, name, data, nil)
	switch text {
	case "Topology description changed", "Server heartbeat succeeded", "Server heartbeat failed":
		l.shared.Update(func() { l.pending-- })
	}
}

// Error implements options.LogSink. The specifications have no error messages.
func (l *messageLog) Error(error, string, ...any) {}

// pool writes the message for a pool event (Connection Monitoring and Pooling, "Connection Pool Logging").
func (l *messageLog) pool(e *event.PoolEvent) {
	if !l.observes(componentConnection, "debug") {
		return
	}
	text := map[string]string{
		event.ConnectionPoolCreated:     "Connection pool created",
		event.ConnectionPoolReady:       "Connection pool ready",
		event.ConnectionPoolCleared:     "Connection pool cleared",
		event.ConnectionPoolClosed:      "Connection pool closed",
		event.ConnectionCreated:         "Connection created",
		event.ConnectionReady:           "Connection ready",
		event.ConnectionClosed:          "Connection closed",
		event.ConnectionCheckOutStarted: "Connection checkout started",
		event.ConnectionCheckOutFailed:  "Connection checkout failed",
		event.ConnectionCheckedOut:      "Connection checked out",
		event.ConnectionCheckedIn:       "Connection checked in",
	}[e.Type]
	data := append(document("message", text), serverFields(e.Address)...)
	switch e.Type {
	case event.ConnectionPoolCreated:
		data = append(data, l.options...)
	case event.ConnectionReady, event.ConnectionCheckOutFailed, event.ConnectionCheckedOut:
		data = append(data, bson.E{Key: "durationMS", Value: e.Duration.Milliseconds()})
	}
	data = addIf(data, e.ConnectionID != 0, "driverConnectionId", e.ConnectionID)
	if e.ServiceID != nil {
		data = append(data, bson.E{Key: "serviceId", Value: e.ServiceID.Hex()})
	}
	if e.Type == event.ConnectionClosed || e.Type == event.ConnectionCheckOutFailed {
		data = append(data, bson.E{Key: "reason", Value: map[string]string{
			event.ReasonStale:             "Connection became stale because the pool was cleared",
			event.ReasonIdle:              "Connection has been available but unused for longer than the configured max idle time",
			event.ReasonError:             "An error occurred while using the connection",
			event.ReasonPoolClosed:        "Connection pool was closed",
			event.ReasonTimedOut:          "Wait queue timeout elapsed without a connection becoming available",
			event.ReasonConnectionErrored: "An error occurred while trying to establish a new connection",
		}[e.Reason]})
		if e.Error != nil {
			data = append(data, bson.E{Key: "error", Value: e.Error.Error()})
		}
	}
	l.add(componentConnection, "debug", data, nil)
}

// serverFields returns serverHost and serverPort.
func serverFields(address string) bson.D {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return document("serverHost", address)
	}
	n, _ := strconv.ParseInt(port, 10, 32)
	return document("serverHost", host, "serverPort", n)
}

// logSelection writes a server selection message (Server Selection, "Logging").
func (c *client) logSelection(w want, level, message string, more bson.D) {
	if w.quiet || !c.messages.observes(componentSelection, level) {
		return
	}
	data := document("message", message, "selector", selectorText(w), "operationId", w.operationID,
		"operation", w.operation, "topologyDescription", c.topology.Description().String())
	c.messages.add(componentSelection, level, append(data, more...), nil)
}

// selectorText describes a selection.
func selectorText(w want) string {
	text := "writable server"
	if !w.write {
		preference, _ := bson.MarshalExtJSON(w.preference.Document(), false, false)
		text = "read preference " + string(preference)
	}
	if len(w.deprioritized) > 0 {
		text += ", deprioritized " + strings.Join(w.deprioritized, ", ")
	}
	return text
}
