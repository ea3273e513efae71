package reference

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var _ engine.LogReader = (*test)(nil)

// The components of the Logging specification ("Components").
const (
	componentCommand    = "command"
	componentTopology   = "topology"
	componentSelection  = "serverSelection"
	componentConnection = "connection"
)

// severities are the levels of the Logging specification, the most severe one
// first ("Log Severity Levels").
func severities() []string {
	return []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug", "trace"}
}

// messageLog holds the structured log messages of one client. Messages about
// topologies and connections are the Go driver's own; those about commands and
// server selection are written where the engine does it. Documents are never
// truncated. A nil log observes nothing.
type messageLog struct {
	now func() time.Time
	// least is the place in severities of the least severe level observed, by
	// component.
	least map[string]int
	// pool are the options of connection pools that were given.
	pool bson.D

	mu       sync.Mutex
	messages []result.LogMessage
	paused   map[string]bool     // pools, by host and port
	events   map[string][]func() // that wait for their message, by its text and place
	failed   map[string][]func() // messages of failed check-outs that wait for their event, by pool
}

// newMessageLog reads observeLogMessages; without any the log is nil.
func newMessageLog(now func() time.Time, v bson.RawValue) (*messageLog, error) {
	if v.Type == 0 {
		return nil, nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, fmt.Errorf("observeLogMessages is not a document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, fmt.Errorf("observeLogMessages: %w", err)
	}
	l := &messageLog{now: now, least: map[string]int{}, paused: map[string]bool{}, failed: map[string][]func(){},
		events: map[string][]func(){}}
	for _, e := range elements {
		level, _ := e.Value().StringValueOK()
		place := slices.Index(severities(), level)
		if place < 0 {
			return nil, fmt.Errorf("observeLogMessages.%s: there is no level %v", e.Key(), e.Value())
		}
		switch e.Key() {
		case componentCommand, componentTopology, componentSelection, componentConnection:
			l.least[e.Key()] = place
		default:
			return nil, fmt.Errorf("observeLogMessages: there is no component %q", e.Key())
		}
	}
	return l, nil
}

func (l *messageLog) observes(component, level string) bool {
	if l == nil {
		return false
	}
	least, ok := l.least[component]
	return ok && slices.Index(severities(), level) <= least
}

// add writes a message, if it is observed.
func (l *messageLog) add(component, level string, data bson.D, redacted *bool) {
	if !l.observes(component, level) {
		return
	}
	raw, err := bson.Marshal(data)
	if err != nil {
		return // all values are made here, or passed through logged
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = append(l.messages, result.LogMessage{Sequence: int64(len(l.messages)) + 1, Time: l.now(),
		Level: level, Component: component, Data: raw, FailureRedacted: redacted})
}

func (l *messageLog) all() []result.LogMessage {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.messages)
}

// Logs returns the log messages of a client.
func (t *test) Logs(_ context.Context, id string) ([]result.LogMessage, error) {
	c, err := t.Client(id)
	if err != nil {
		return nil, err
	}
	return c.(*client).messages.all(), nil
}

// attach has the Go driver write its messages here.
func (l *messageLog) attach(o *options.ClientOptions, s settings) {
	if l == nil {
		return
	}
	logger := options.Logger().SetSink(l)
	for component, at := range map[string]options.LogComponent{
		componentTopology: options.LogComponentTopology, componentConnection: options.LogComponentConnection} {
		if l.observes(component, "debug") {
			logger.SetComponentLevel(at, options.LogLevelDebug)
		} else if l.observes(component, "info") {
			logger.SetComponentLevel(at, options.LogLevelInfo)
		}
	}
	o.SetLoggerOptions(logger)
	if o.MaxConnIdleTime != nil {
		l.pool = append(l.pool, bson.E{Key: "maxIdleTimeMS", Value: o.MaxConnIdleTime.Milliseconds()})
	}
	for _, option := range []struct {
		name  string
		value *uint64
	}{{"minPoolSize", o.MinPoolSize}, {"maxPoolSize", o.MaxPoolSize}, {"maxConnecting", o.MaxConnecting}} {
		if option.value != nil {
			l.pool = append(l.pool, bson.E{Key: option.name, Value: int64(*option.value)})
		}
	}
	if s.waitQueueTimeout > 0 {
		l.pool = append(l.pool, bson.E{Key: "waitQueueTimeoutMS", Value: s.waitQueueTimeout.Milliseconds()})
	}
}

// Info implements options.LogSink: what the Go driver says of topologies and
// connections. Only the former have a topologyId.
func (l *messageLog) Info(level int, text string, keysAndValues ...any) {
	data := bson.D{{Key: "message", Value: text}}
	created := text == "Connection pool created"
	component := componentConnection
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		key, _ := keysAndValues[i].(string)
		switch key {
		case "message":
			continue
		case "topologyId":
			component = componentTopology
		case "maxIdleTimeMS", "minPoolSize", "maxPoolSize", "maxConnecting":
			if created {
				continue // there with its default, too
			}
		}
		if value, ok := logged(keysAndValues[i+1]); ok {
			data = append(data, bson.E{Key: key, Value: value})
		}
	}
	if created {
		data = append(data, l.pool...)
	}
	name := "debug"
	if level == 0 {
		name = "info"
	}
	if !l.news(text, name, data) {
		return
	}
	l.add(component, name, data, nil)
	if component == componentTopology {
		l.next(l.events, eventKey(text, hostAndPort(data)))
	}
}

// next does what has waited longest in a queue.
func (l *messageLog) next(queues map[string][]func(), key string) {
	tell := func() {}
	l.mu.Lock()
	if waiting := queues[key]; len(waiting) > 0 {
		tell, queues[key] = waiting[0], waiting[1:]
	}
	l.mu.Unlock()
	tell()
}

// The messages that follow an event of the topology at once. Whoever has seen
// the event may expect the message.
const (
	heartbeatSucceeded = "Server heartbeat succeeded"
	heartbeatFailed    = "Server heartbeat failed"
	topologyChanged    = "Topology description changed"
)

// with reports an event when the message about it is written, and now if there
// will be none. A message of the topology as a whole has no address.
func (l *messageLog) with(text, address string, tell func()) {
	if !l.observes(componentTopology, "debug") {
		tell()
		return
	}
	key := eventKey(text, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[key] = append(l.events[key], tell)
}

func eventKey(text, address string) string {
	if text == topologyChanged {
		address = ""
	}
	return text + " " + address
}

// hostAndPort is the address that a message names.
func hostAndPort(data bson.D) string {
	var host, port any
	for _, e := range data {
		switch e.Key {
		case "serverHost":
			host = e.Value
		case "serverPort":
			port = e.Value
		}
	}
	return net.JoinHostPort(fmt.Sprint(host), fmt.Sprint(port))
}

// checkOutFailed writes the message of a check-out whose event has come: the Go
// driver writes it first.
func (l *messageLog) checkOutFailed(address string) {
	if l != nil {
		l.next(l.failed, address)
	}
}

// news reports whether a message is to be written now. The Go driver says that a
// pool was cleared even if it was paused before; pools behind load balancers are
// cleared for a service, and never paused. That a check-out failed is written by
// checkOutFailed.
func (l *messageLog) news(text, level string, data bson.D) bool {
	service := slices.ContainsFunc(data, func(e bson.E) bool { return e.Key == "serviceId" })
	pool := hostAndPort(data)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch text {
	case "Connection checkout failed":
		l.failed[pool] = append(l.failed[pool], func() { l.add(componentConnection, level, data, nil) })
		return false
	case "Connection pool ready":
		l.paused[pool] = false
	case "Connection pool cleared":
		again := l.paused[pool]
		l.paused[pool] = !service
		return !again
	}
	return true
}

// Error implements options.LogSink. The specifications have no such message.
func (l *messageLog) Error(error, string, ...any) {}

// logged gives a value as messages carry it; false leaves it out (Logging,
// "Omitting Null Values from Log Messages").
func logged(v any) (any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, false
	case *bson.ObjectID:
		if v == nil {
			return nil, false
		}
		return v.Hex(), true
	case bson.ObjectID:
		return v.Hex(), true
	case string, bool, int32, int64, float64:
		return v, true
	case int:
		return int64(v), true
	case uint64:
		return int64(v), true
	}
	return fmt.Sprint(v), true
}

// place gives the fields that name a server.
func place(address string) bson.D {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return bson.D{{Key: "serverHost", Value: address}}
	}
	n, _ := strconv.ParseInt(port, 10, 32)
	return bson.D{{Key: "serverHost", Value: host}, {Key: "serverPort", Value: n}}
}

// say writes a message about the command (Command Logging and Monitoring, "Log
// Messages").
func (w eventWriter) say(message string, redacted *bool, more func() bson.D) {
	if w.cmd.hidden || !w.c.messages.observes(componentCommand, "debug") {
		return
	}
	data := append(bson.D{
		{Key: "message", Value: message},
		{Key: "commandName", Value: w.cmd.name},
		{Key: "databaseName", Value: w.cmd.db},
		{Key: "requestId", Value: w.id},
		{Key: "operationId", Value: w.operation},
		{Key: "driverConnectionId", Value: w.conn.DriverConnectionID()},
	}, place(w.address)...)
	if id := w.conn.ServerConnectionID(); id != nil {
		data = append(data, bson.E{Key: "serverConnectionId", Value: *id})
	}
	if w.service != nil {
		data = append(data, bson.E{Key: "serviceId", Value: w.service.Hex()})
	}
	w.c.messages.add(componentCommand, "debug", append(data, more()...), redacted)
}

// json writes a document into a message; that of a sensitive command is left
// empty.
func (w eventWriter) json(key string, doc bson.Raw) bson.E {
	text := []byte("{}")
	if !w.secret {
		var err error
		if text, err = bson.MarshalExtJSON(doc, false, false); err != nil {
			text = []byte(doc.String())
		}
	}
	return bson.E{Key: key, Value: string(text)}
}

func (w eventWriter) lasted(d time.Duration) bson.E {
	return bson.E{Key: "durationMS", Value: float64(d) / float64(time.Millisecond)}
}

// selecting writes messages about one selection of a server (Server Selection,
// "Logging").
type selecting struct {
	c *client
	w want
}

func (s selecting) say(level, message string, more bson.D) {
	if s.w.quiet || !s.c.messages.observes(componentSelection, level) {
		return
	}
	s.c.messages.add(componentSelection, level, append(bson.D{
		{Key: "message", Value: message},
		{Key: "selector", Value: selectorText(s.w)},
		{Key: "operationId", Value: s.w.operationID},
		{Key: "operation", Value: s.w.operation},
		{Key: "topologyDescription", Value: s.c.topology.Description().String()},
	}, more...), nil)
}

// selectorText shows what a server is selected by.
func selectorText(w want) string {
	var parts []string
	if w.write {
		parts = append(parts, "writable server")
	} else {
		if text, err := bson.MarshalExtJSON(w.preference.Document(), false, false); err == nil {
			parts = append(parts, "read preference "+string(text))
		}
	}
	if len(w.deprioritized) > 0 {
		parts = append(parts, "deprioritized "+strings.Join(w.deprioritized, ", "))
	}
	return strings.Join(parts, ", ")
}
