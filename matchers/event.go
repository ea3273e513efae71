package matchers

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// eventCheck holds one field of an expectedEvent against an event of the
// right type.
type eventCheck func(c *comparison, e *result.Event)

// eventReader reads a field of an expectedEvent.
type eventReader func(k *compiler, v *source.Value) eventCheck

// eventKind is a type of event: its monitor, and the fields that an
// expectation may have. A type without fields takes an empty document.
type eventKind struct {
	monitor result.Monitor
	fields  map[string]eventReader
}

// eventKinds are the sections "expectedCommandEvent", "expectedCmapEvent" and
// "expectedSdamEvent" of the format.
var eventKinds = map[result.EventType]eventKind{
	result.CommandStarted: {result.MonitorCommand, map[string]eventReader{
		"command": body(func(e *result.Event) bson.Raw { return e.Command.Command }), "commandName": commandName,
		"databaseName": databaseName, "hasServiceId": hasServiceID, "hasServerConnectionId": hasServerConnectionID,
	}},
	result.CommandSucceeded: {result.MonitorCommand, map[string]eventReader{
		"reply": body(func(e *result.Event) bson.Raw { return e.Command.Reply }), "commandName": commandName,
		"databaseName": databaseName, "hasServiceId": hasServiceID, "hasServerConnectionId": hasServerConnectionID,
	}},
	result.CommandFailed: {result.MonitorCommand, map[string]eventReader{
		"commandName": commandName, "databaseName": databaseName,
		"hasServiceId": hasServiceID, "hasServerConnectionId": hasServerConnectionID,
	}},

	result.PoolCreated: {result.MonitorCMAP, nil},
	result.PoolReady:   {result.MonitorCMAP, nil},
	result.PoolCleared: {result.MonitorCMAP, map[string]eventReader{
		"hasServiceId": hasServiceID, "interruptInUseConnections": interruptInUseConnections,
	}},
	result.PoolClosed:                {result.MonitorCMAP, nil},
	result.ConnectionCreated:         {result.MonitorCMAP, nil},
	result.ConnectionReady:           {result.MonitorCMAP, nil},
	result.ConnectionClosed:          {result.MonitorCMAP, map[string]eventReader{"reason": reason}},
	result.ConnectionCheckOutStarted: {result.MonitorCMAP, nil},
	result.ConnectionCheckOutFailed:  {result.MonitorCMAP, map[string]eventReader{"reason": reason}},
	result.ConnectionCheckedOut:      {result.MonitorCMAP, nil},
	result.ConnectionCheckedIn:       {result.MonitorCMAP, nil},

	result.ServerDescriptionChanged:   {result.MonitorSDAM, descriptions},
	result.ServerHeartbeatStarted:     {result.MonitorSDAM, map[string]eventReader{"awaited": awaited}},
	result.ServerHeartbeatSucceeded:   {result.MonitorSDAM, map[string]eventReader{"awaited": awaited}},
	result.ServerHeartbeatFailed:      {result.MonitorSDAM, map[string]eventReader{"awaited": awaited}},
	result.TopologyDescriptionChanged: {result.MonitorSDAM, descriptions},
	result.TopologyOpening:            {result.MonitorSDAM, nil},
	result.TopologyClosed:             {result.MonitorSDAM, nil},
}

// The fields of events, each as a reader.
var (
	commandName  = word(func(e *result.Event) string { return e.Command.CommandName })
	databaseName = word(func(e *result.Event) string { return e.Command.DatabaseName })
	reason       = word(func(e *result.Event) string { return e.Pool.Reason })

	awaited                   = flag(func(e *result.Event) *bool { return e.SDAM.Awaited })
	interruptInUseConnections = flag(func(e *result.Event) *bool { return e.Pool.InterruptInUseConnections })

	descriptions = map[string]eventReader{
		"previousDescription": description(func(e *result.Event) *result.TopologyState { return e.SDAM.Previous }),
		"newDescription":      description(func(e *result.Event) *result.TopologyState { return e.SDAM.New }),
	}
)

// word is a string that must be equal.
func word(get func(*result.Event) string) eventReader {
	return func(k *compiler, v *source.Value) eventCheck {
		want := k.string(v)
		return func(c *comparison, e *result.Event) {
			if got := get(e); got != want {
				c.say(v.Position, quote(want), quote(got), "the values differ")
			}
		}
	}
}

// flag is a boolean that must be set and equal.
func flag(get func(*result.Event) *bool) eventReader {
	return func(k *compiler, v *source.Value) eventCheck {
		want := k.bool(v)
		return func(c *comparison, e *result.Event) {
			switch got := get(e); {
			case got == nil:
				c.say(v.Position, text(v), nothing, "the event does not have this field")
			case *got != want:
				c.say(v.Position, text(v), either(*got, "true", "false"), "the values differ")
			}
		}
	}
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
		var want *source.Value
		k.each(v, []string{"type"}, func(f source.Field) {
			k.string(f.Value)
			want = f.Value
		})
		return func(c *comparison, e *result.Event) {
			got := get(e)
			switch {
			case got == nil:
				c.say(v.Position, text(v), nothing, "the event does not have this description")
			case want != nil && got.Type != want.String:
				c.path.key("type")
				c.say(want.Position, quote(want.String), quote(got.Type), "the values differ")
				c.path.pop()
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
			c.say(v.Position, text(v), got, "%s", either(want, "serviceId is not set", "serviceId is set"))
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
				c.say(v.Position, text(v), nothing, "serverConnectionId is not set")
			}
		case *id < math.MinInt32 || *id > math.MaxInt32:
			c.say(v.Position, text(v), strconv.FormatInt(*id, 10), "serverConnectionId is no 32-bit integer")
		case (*id > 0) != want:
			c.say(v.Position, text(v), strconv.FormatInt(*id, 10), "%s",
				either(want, "serverConnectionId is not positive", "serverConnectionId is set"))
		}
	}
}

// eventExpectation is a compiled expectedEvent.
type eventExpectation struct {
	at     source.Position
	typ    result.EventType
	text   string
	fields []eventField
}

type eventField struct {
	name  string
	check eventCheck
}

// expectedEvent compiles an event. monitor "" takes events of all monitors.
func (k *compiler) expectedEvent(v *source.Value, monitor result.Monitor) *eventExpectation {
	if v == nil || v.Kind != source.Document || len(v.Fields) != 1 {
		at := source.Position{}
		if v != nil {
			at = v.Position
		}
		k.fault(at, text(v), "an expected event has exactly one key, the event type")
		return nil
	}
	f := v.Fields[0]
	x := &eventExpectation{at: v.Position, typ: result.EventType(f.Key), text: text(v)}
	kind, known := eventKinds[x.typ]
	switch {
	case !known:
		k.fault(f.KeyPosition, f.Key, "unknown event type %q", f.Key)
		return nil
	case monitor != "" && kind.monitor != monitor:
		k.fault(f.KeyPosition, f.Key, "a %s is a %s event, and only %s events are allowed here", f.Key, kind.monitor, monitor)
		return nil
	}
	names := make([]string, 0, len(kind.fields))
	for name := range kind.fields {
		names = append(names, name)
	}
	k.path.key(f.Key)
	k.each(f.Value, names, func(field source.Field) {
		x.fields = append(x.fields, eventField{field.Key, kind.fields[field.Key](k, field.Value)})
	})
	k.path.pop()
	return x
}

// match compares an event; the path is at the expected event.
func (x *eventExpectation) match(c *comparison, e *result.Event) {
	if e.Type != x.typ {
		c.say(x.at, abridge(x.text), describeEvent(e), "want a %s, got a %s", x.typ, e.Type)
		return
	}
	c.path.key(string(x.typ))
	if !wellFormed(e) {
		c.say(x.at, abridge(x.text), string(e.Type), "the observed event lacks its fields")
	} else {
		for _, f := range x.fields {
			c.path.key(f.name)
			f.check(c, e)
			c.path.pop()
		}
	}
	c.path.pop()
}

// alike reports whether an event is of the same type, and of the same command
// if the expectation names one.
func (x *eventExpectation) alike(e *result.Event) bool {
	if e.Type != x.typ || !wellFormed(e) {
		return false
	}
	c := comparison{quiet: true}
	for _, f := range x.fields {
		if f.name == "commandName" {
			f.check(&c, e)
		}
	}
	return !c.failed
}

// wellFormed reports whether an event carries the fields of its monitor.
func wellFormed(e *result.Event) bool {
	switch eventKinds[e.Type].monitor {
	case result.MonitorCommand:
		return e.Command != nil
	case result.MonitorCMAP:
		return e.Pool != nil
	case result.MonitorSDAM:
		return e.SDAM != nil
	default:
		return false
	}
}

// describeEvent gives an event in one line.
func describeEvent(e *result.Event) string {
	parts := []string{string(e.Type)}
	if e.Command != nil {
		parts = append(parts, e.Command.CommandName, "on", e.Command.DatabaseName)
		for _, raw := range []bson.Raw{e.Command.Command, e.Command.Reply} {
			if len(raw) > 0 {
				parts = append(parts, extended(document(raw), false))
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
		kind, known := eventKinds[events[i].Type]
		switch {
		case !known:
			unknown = append(unknown, &events[i])
		case kind.monitor == monitor:
			of = append(of, &events[i])
		}
	}
	return of, unknown
}

var monitors = []result.Monitor{result.MonitorCommand, result.MonitorCMAP, result.MonitorSDAM}

// monitorOf reads an eventType; the default is command.
func monitorOf(name string) (result.Monitor, bool) {
	if name == "" {
		return result.MonitorCommand, true
	}
	return result.Monitor(name), slices.Contains(monitors, result.Monitor(name))
}
