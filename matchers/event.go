package matchers

import (
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

type (
	eventReader = reader[*result.Event]
	eventCheck  = check[*result.Event]
)

// eventFields are the keys that an expectation of each type of event may have:
// the sections "expectedCommandEvent", "expectedCmapEvent" and
// "expectedSdamEvent" of the format. A type that is not listed has none.
var eventFields = map[result.EventType]map[string]eventReader{
	result.CommandStarted:   commandFields("command", func(e *result.Event) bson.Raw { return e.Command.Command }),
	result.CommandSucceeded: commandFields("reply", func(e *result.Event) bson.Raw { return e.Command.Reply }),
	result.CommandFailed:    commandFields("", nil),

	result.PoolCleared: {
		"hasServiceId":              hasServiceID,
		"interruptInUseConnections": flag(func(e *result.Event) *bool { return e.Pool.InterruptInUseConnections }),
	},
	result.ConnectionClosed:         {"reason": reason},
	result.ConnectionCheckOutFailed: {"reason": reason},

	result.ServerDescriptionChanged:   descriptions,
	result.ServerHeartbeatStarted:     {"awaited": awaited},
	result.ServerHeartbeatSucceeded:   {"awaited": awaited},
	result.ServerHeartbeatFailed:      {"awaited": awaited},
	result.TopologyDescriptionChanged: descriptions,
}

// Fields that several types of events have.
var (
	reason  = word(func(e *result.Event) string { return e.Pool.Reason })
	awaited = flag(func(e *result.Event) *bool { return e.SDAM.Awaited })

	descriptions = map[string]eventReader{
		"previousDescription": description(func(e *result.Event) *result.TopologyState { return e.SDAM.Previous }),
		"newDescription":      description(func(e *result.Event) *result.TopologyState { return e.SDAM.New }),
	}
)

// commandFields are the keys of a command event, with that of its document if
// it has one.
func commandFields(key string, get func(*result.Event) bson.Raw) map[string]eventReader {
	fields := map[string]eventReader{
		"commandName":           word(func(e *result.Event) string { return e.Command.CommandName }),
		"databaseName":          word(func(e *result.Event) string { return e.Command.DatabaseName }),
		"hasServiceId":          hasServiceID,
		"hasServerConnectionId": hasServerConnectionID,
	}
	if key != "" {
		fields[key] = body(get)
	}
	return fields
}

// body is a root-level document. A redacted one is empty.
func body(get func(*result.Event) bson.Raw) eventReader {
	empty := bson.Raw{5, 0, 0, 0, 0}
	return func(k *compiler, v *source.Value) eventCheck {
		want := k.document(v)
		return func(c *comparison, e *result.Event) {
			got := get(e)
			if len(got) == 0 {
				got = empty
			}
			c.match(want, document(got), RootDocument)
		}
	}
}

// description is a server or topology description, of which the format knows
// the type.
func description(get func(*result.Event) *result.TopologyState) eventReader {
	return func(k *compiler, v *source.Value) eventCheck {
		want := readRecord(k, v, map[string]reader[*result.TopologyState]{
			"type": word(func(s *result.TopologyState) string { return s.Type }),
		})
		return func(c *comparison, e *result.Event) {
			if got := get(e); got != nil {
				want.match(c, got)
			} else {
				c.reject(v, nothing, "the event does not have this description")
			}
		}
	}
}

// hasServiceID: the field is set and not all zero, or else not ("hasServiceId").
func hasServiceID(k *compiler, v *source.Value) eventCheck {
	want := k.bool(v)
	return func(c *comparison, e *result.Event) {
		var id *bson.ObjectID
		if e.Command != nil {
			id = e.Command.ServiceID
		} else {
			id = e.Pool.ServiceID
		}
		got := nothing
		if id != nil {
			got = id.Hex()
		}
		if has := id != nil && !id.IsZero(); has != want {
			c.reject(v, got, "%s", either(want, "serviceId is not set", "serviceId is set"))
		}
	}
}

// hasServerConnectionID: the field is a positive Int32, or else it is not set
// or a nonpositive Int32 ("hasServerConnectionId").
func hasServerConnectionID(k *compiler, v *source.Value) eventCheck {
	want := k.bool(v)
	return func(c *comparison, e *result.Event) {
		id := e.Command.ServerConnectionID
		switch {
		case id == nil:
			if want {
				c.reject(v, nothing, "serverConnectionId is not set")
			}
		case *id < math.MinInt32 || *id > math.MaxInt32:
			c.reject(v, strconv.FormatInt(*id, 10), "serverConnectionId is not a 32-bit integer")
		case (*id > 0) != want:
			c.reject(v, strconv.FormatInt(*id, 10), "%s", either(want, "serverConnectionId is not positive", "serverConnectionId is set"))
		}
	}
}

type eventExpectation struct {
	typ    result.EventType
	whole  *source.Value // of which fields are those below the type
	fields record[*result.Event]
}

// expectedEvent compiles an event. monitor "" takes events of all monitors.
func (k *compiler) expectedEvent(v *source.Value, monitor result.Monitor) eventExpectation {
	if v.Kind != source.Document || len(v.Fields) != 1 {
		k.faultOf(v, "an expected event has exactly one key, the event type")
		return eventExpectation{}
	}
	f := v.Fields[0]
	x := eventExpectation{typ: result.EventType(f.Key), whole: v}
	switch of := x.typ.Monitor(); {
	case of == "":
		k.fault(f.KeyPosition, f.Key, "unknown event type %q", f.Key)
	case monitor != "" && of != monitor:
		k.fault(f.KeyPosition, f.Key, "a %s is a %s event, and only %s events are allowed here", f.Key, of, monitor)
	default:
		k.path.atKey(f.Key, func() { x.fields = readRecord(k, f.Value, eventFields[x.typ]) })
	}
	return x
}

// match compares an event; the path is at the expected event.
func (x eventExpectation) match(c *comparison, e *result.Event) {
	if e.Type != x.typ {
		c.reject(x.whole, describeEvent(e), "expected a %s, got a %s", x.typ, e.Type)
		return
	}
	c.path.key(string(x.typ))
	if !wellFormed(e) {
		c.reject(x.whole, string(e.Type), "the observed event lacks its fields")
	} else {
		x.fields.match(c, e)
	}
	c.path.pop()
}

// alike reports whether an event is of the same type, and of the same command
// if the expectation names one.
func (x eventExpectation) alike(e *result.Event) bool {
	return e.Type == x.typ && wellFormed(e) && x.fields.agrees("commandName", e)
}

func (x eventExpectation) at() source.Position { return x.whole.Position }
func (x eventExpectation) text() string        { return abridge(x.whole.JSON()) }

// wellFormed reports whether an event carries the fields of its monitor.
func wellFormed(e *result.Event) bool {
	switch e.Type.Monitor() {
	case result.MonitorCommand:
		return e.Command != nil
	case result.MonitorCMAP:
		return e.Pool != nil
	default:
		return e.SDAM != nil
	}
}

func describeEvent(e *result.Event) string {
	parts := []string{string(e.Type)}
	if e.Command != nil {
		parts = append(parts, e.Command.CommandName, "on", e.Command.DatabaseName)
		for _, raw := range []bson.Raw{e.Command.Command, e.Command.Reply} {
			if len(raw) > 0 {
				parts = append(parts, Extended(document(raw), false))
			}
		}
		if e.Command.Failure != nil {
			parts = append(parts, describeError(e.Command.Failure))
		}
	}
	if e.Pool != nil && e.Pool.Reason != "" {
		parts = append(parts, "("+e.Pool.Reason+")")
	}
	if e.SDAM != nil && e.SDAM.New != nil {
		parts = append(parts, "to", e.SDAM.New.Type)
	}
	if e.Address != "" {
		parts = append(parts, "at", e.Address)
	}
	return abridge(strings.Join(parts, " "))
}

// observed gives the events of one monitor, in order. Events of a type that
// the format does not know belong to none and are returned apart.
func observed(events []result.Event, monitor result.Monitor) (of []*result.Event, unknown []*result.Event) {
	for i := range events {
		switch events[i].Type.Monitor() {
		case "":
			unknown = append(unknown, &events[i])
		case monitor:
			of = append(of, &events[i])
		}
	}
	return of, unknown
}
