package matchers

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

func started(t testing.TB, command string) result.Event {
	d := raw(t, command)
	list, _ := elements(d)
	return result.Event{Type: result.CommandStarted, Command: &result.CommandEvent{
		CommandName: list[0].key, DatabaseName: "db", Command: d,
	}}
}

func succeeded(name string) result.Event {
	return result.Event{Type: result.CommandSucceeded, Command: &result.CommandEvent{CommandName: name, DatabaseName: "db"}}
}

func failed(name string) result.Event {
	return result.Event{Type: result.CommandFailed, Command: &result.CommandEvent{CommandName: name, DatabaseName: "db"}}
}

func with(e result.Event, change func(*result.CommandEvent)) result.Event {
	c := *e.Command
	change(&c)
	e.Command = &c
	return e
}

func pool(typ result.EventType, p result.PoolEvent) result.Event {
	return result.Event{Type: typ, Pool: &p}
}
func sdam(typ result.EventType, s result.SDAMEvent) result.Event {
	return result.Event{Type: typ, SDAM: &s}
}
func state(typ string) *result.TopologyState { return &result.TopologyState{Type: typ} }

func serviceID(id *bson.ObjectID) func(*result.CommandEvent) {
	return func(c *result.CommandEvent) { c.ServiceID = id }
}

func connectionID(id *int64) func(*result.CommandEvent) {
	return func(c *result.CommandEvent) { c.ServerConnectionID = id }
}

func TestEventFields(t *testing.T) {
	find := started(t, `{"find":"coll","filter":{"x":1},"lsid":{"id":1}}`)
	reply := with(succeeded("find"), func(c *result.CommandEvent) { c.Reply = raw(t, `{"ok":1.0,"cursor":{"id":0}}`) })
	id, zero := bson.NewObjectID(), bson.ObjectID{}
	rows := []struct {
		reason   string
		expected string
		actual   result.Event
		wrong    string
	}{
		{"any event of a type", `{commandStartedEvent: {}}`, find, ""},
		{"another type", `{commandStartedEvent: {}}`, succeeded("find"), "want a commandStartedEvent, got a commandSucceededEvent"},
		{"command, root-level", `{commandStartedEvent: {command: {find: coll, filter: {x: 1.0}}}}`, find, ""},
		{"command differs by a half", `{commandStartedEvent: {command: {find: coll, filter: {x: 1.5}}}}`, find, "commandStartedEvent.command.filter.x: the numbers differ"},
		{"command, nested documents", `{commandStartedEvent: {command: {filter: {}}}}`, find, `command.filter: unexpected key "x"`},
		{"command, a key that must not be", `{commandStartedEvent: {command: {lsid: {$$exists: false}}}}`, find, "want no value"},
		{"command redacted", `{commandStartedEvent: {command: {saslStart: 1}}}`, with(find, func(c *result.CommandEvent) { c.Command, c.Redacted = nil, true }), "the value is missing"},
		{"command redacted, as wanted", `{commandStartedEvent: {command: {saslStart: {$$exists: false}}}}`, with(find, func(c *result.CommandEvent) { c.Command, c.Redacted = nil, true }), ""},
		{"command is a document", `{commandStartedEvent: {command: 1}}`, find, "want a document"},
		{"commandName", `{commandStartedEvent: {commandName: find}}`, find, ""},
		{"commandName differs", `{commandStartedEvent: {commandName: Find}}`, find, "commandName: the values differ"},
		{"databaseName", `{commandStartedEvent: {databaseName: db}}`, find, ""},
		{"databaseName differs", `{commandStartedEvent: {databaseName: admin}}`, find, "databaseName: the values differ"},
		{"databaseName is a string", `{commandStartedEvent: {databaseName: {$$type: string}}}`, find, "want a string"},
		{"hasServiceId", `{commandStartedEvent: {hasServiceId: true}}`, with(find, serviceID(&id)), ""},
		{"hasServiceId, not set", `{commandStartedEvent: {hasServiceId: true}}`, find, "serviceId is not set"},
		{"hasServiceId, empty", `{commandStartedEvent: {hasServiceId: true}}`, with(find, serviceID(&zero)), "serviceId is not set"},
		{"hasServiceId false, not set", `{commandStartedEvent: {hasServiceId: false}}`, find, ""},
		{"hasServiceId false, empty", `{commandStartedEvent: {hasServiceId: false}}`, with(find, serviceID(&zero)), ""},
		{"hasServiceId false, set", `{commandStartedEvent: {hasServiceId: false}}`, with(find, serviceID(&id)), "serviceId is set"},
		{"hasServerConnectionId", `{commandStartedEvent: {hasServerConnectionId: true}}`, with(find, connectionID(ptr[int64](5))), ""},
		{"hasServerConnectionId, not set", `{commandStartedEvent: {hasServerConnectionId: true}}`, find, "serverConnectionId is not set"},
		{"hasServerConnectionId, zero", `{commandStartedEvent: {hasServerConnectionId: true}}`, with(find, connectionID(ptr[int64](0))), "not positive"},
		{"hasServerConnectionId, no int32", `{commandStartedEvent: {hasServerConnectionId: true}}`, with(find, connectionID(ptr[int64](1<<31))), "no 32-bit integer"},
		{"hasServerConnectionId false, not set", `{commandStartedEvent: {hasServerConnectionId: false}}`, find, ""},
		{"hasServerConnectionId false, -1", `{commandStartedEvent: {hasServerConnectionId: false}}`, with(find, connectionID(ptr[int64](-1))), ""},
		{"hasServerConnectionId false, 0", `{commandStartedEvent: {hasServerConnectionId: false}}`, with(find, connectionID(ptr[int64](0))), ""},
		{"hasServerConnectionId false, set", `{commandStartedEvent: {hasServerConnectionId: false}}`, with(find, connectionID(ptr[int64](1))), "serverConnectionId is set"},
		{"no reply in a started event", `{commandStartedEvent: {reply: {}}}`, find, `unknown field "reply"`},

		{"reply, root-level", `{commandSucceededEvent: {reply: {ok: 1}}}`, reply, ""},
		{"reply differs", `{commandSucceededEvent: {reply: {ok: 0}}}`, reply, "reply.ok: the numbers differ"},
		{"succeeded commandName", `{commandSucceededEvent: {commandName: find}}`, reply, ""},
		{"succeeded commandName differs", `{commandSucceededEvent: {commandName: count}}`, reply, "commandName: the values differ"},
		{"succeeded databaseName", `{commandSucceededEvent: {databaseName: db}}`, reply, ""},
		{"succeeded databaseName differs", `{commandSucceededEvent: {databaseName: x}}`, reply, "databaseName: the values differ"},
		{"succeeded hasServiceId", `{commandSucceededEvent: {hasServiceId: true}}`, with(reply, serviceID(&id)), ""},
		{"succeeded hasServiceId not", `{commandSucceededEvent: {hasServiceId: true}}`, reply, "serviceId is not set"},
		{"succeeded hasServerConnectionId", `{commandSucceededEvent: {hasServerConnectionId: false}}`, reply, ""},
		{"succeeded hasServerConnectionId not", `{commandSucceededEvent: {hasServerConnectionId: true}}`, reply, "serverConnectionId is not set"},
		{"no command in a succeeded event", `{commandSucceededEvent: {command: {}}}`, reply, `unknown field "command"`},

		{"failed commandName", `{commandFailedEvent: {commandName: find}}`, failed("find"), ""},
		{"failed commandName differs", `{commandFailedEvent: {commandName: count}}`, failed("find"), "commandName: the values differ"},
		{"failed databaseName", `{commandFailedEvent: {databaseName: db}}`, failed("find"), ""},
		{"failed databaseName differs", `{commandFailedEvent: {databaseName: x}}`, failed("find"), "databaseName: the values differ"},
		{"failed hasServiceId", `{commandFailedEvent: {hasServiceId: false}}`, failed("find"), ""},
		{"failed hasServiceId not", `{commandFailedEvent: {hasServiceId: true}}`, failed("find"), "serviceId is not set"},
		{"failed hasServerConnectionId", `{commandFailedEvent: {hasServerConnectionId: false}}`, failed("find"), ""},
		{"failed hasServerConnectionId not", `{commandFailedEvent: {hasServerConnectionId: true}}`, failed("find"), "serverConnectionId is not set"},
		{"no failure in a failed event", `{commandFailedEvent: {failure: {}}}`, failed("find"), `unknown field "failure"`},

		{"pool cleared", `{poolClearedEvent: {}}`, pool(result.PoolCleared, result.PoolEvent{}), ""},
		{"pool cleared hasServiceId", `{poolClearedEvent: {hasServiceId: true}}`, pool(result.PoolCleared, result.PoolEvent{ServiceID: &id}), ""},
		{"pool cleared hasServiceId not", `{poolClearedEvent: {hasServiceId: true}}`, pool(result.PoolCleared, result.PoolEvent{}), "serviceId is not set"},
		{"interruptInUseConnections", `{poolClearedEvent: {interruptInUseConnections: true}}`, pool(result.PoolCleared, result.PoolEvent{InterruptInUseConnections: ptr(true)}), ""},
		{"interruptInUseConnections differs", `{poolClearedEvent: {interruptInUseConnections: false}}`, pool(result.PoolCleared, result.PoolEvent{InterruptInUseConnections: ptr(true)}), "the values differ"},
		{"interruptInUseConnections false must be set", `{poolClearedEvent: {interruptInUseConnections: false}}`, pool(result.PoolCleared, result.PoolEvent{}), "does not have this field"},
		{"reason of a closed connection", `{connectionClosedEvent: {reason: error}}`, pool(result.ConnectionClosed, result.PoolEvent{Reason: "error"}), ""},
		{"reason of a closed connection differs", `{connectionClosedEvent: {reason: stale}}`, pool(result.ConnectionClosed, result.PoolEvent{Reason: "error"}), "reason: the values differ"},
		{"reason of a failed check-out", `{connectionCheckOutFailedEvent: {reason: timeout}}`, pool(result.ConnectionCheckOutFailed, result.PoolEvent{Reason: "timeout"}), ""},
		{"reason of a failed check-out differs", `{connectionCheckOutFailedEvent: {reason: timeout}}`, pool(result.ConnectionCheckOutFailed, result.PoolEvent{}), "reason: the values differ"},
		{"pool ready has no fields", `{poolReadyEvent: {hasServiceId: true}}`, pool(result.PoolReady, result.PoolEvent{}), "unknown field"},

		{"awaited", `{serverHeartbeatStartedEvent: {awaited: true}}`, sdam(result.ServerHeartbeatStarted, result.SDAMEvent{Awaited: ptr(true)}), ""},
		{"awaited differs", `{serverHeartbeatStartedEvent: {awaited: true}}`, sdam(result.ServerHeartbeatStarted, result.SDAMEvent{Awaited: ptr(false)}), "awaited: the values differ"},
		{"awaited must be set", `{serverHeartbeatStartedEvent: {awaited: false}}`, sdam(result.ServerHeartbeatStarted, result.SDAMEvent{}), "does not have this field"},
		{"awaited, succeeded", `{serverHeartbeatSucceededEvent: {awaited: false}}`, sdam(result.ServerHeartbeatSucceeded, result.SDAMEvent{Awaited: ptr(false)}), ""},
		{"awaited, succeeded, differs", `{serverHeartbeatSucceededEvent: {awaited: true}}`, sdam(result.ServerHeartbeatSucceeded, result.SDAMEvent{Awaited: ptr(false)}), "the values differ"},
		{"awaited, failed", `{serverHeartbeatFailedEvent: {awaited: false}}`, sdam(result.ServerHeartbeatFailed, result.SDAMEvent{Awaited: ptr(false)}), ""},
		{"awaited, failed, differs", `{serverHeartbeatFailedEvent: {awaited: true}}`, sdam(result.ServerHeartbeatFailed, result.SDAMEvent{Awaited: ptr(false)}), "the values differ"},
		{"server descriptions", `{serverDescriptionChangedEvent: {previousDescription: {type: Unknown}, newDescription: {type: RSPrimary}}}`, sdam(result.ServerDescriptionChanged, result.SDAMEvent{Previous: state("Unknown"), New: state("RSPrimary")}), ""},
		{"new server description differs", `{serverDescriptionChangedEvent: {newDescription: {type: RSSecondary}}}`, sdam(result.ServerDescriptionChanged, result.SDAMEvent{New: state("RSPrimary")}), "newDescription.type: the values differ"},
		{"previous server description differs", `{serverDescriptionChangedEvent: {previousDescription: {type: RSPrimary}}}`, sdam(result.ServerDescriptionChanged, result.SDAMEvent{Previous: state("Unknown")}), "previousDescription.type: the values differ"},
		{"no description", `{serverDescriptionChangedEvent: {previousDescription: {}}}`, sdam(result.ServerDescriptionChanged, result.SDAMEvent{}), "does not have this description"},
		{"unknown field of a description", `{serverDescriptionChangedEvent: {newDescription: {address: x}}}`, sdam(result.ServerDescriptionChanged, result.SDAMEvent{New: state("x")}), `unknown field "address"`},
		{"topology descriptions", `{topologyDescriptionChangedEvent: {previousDescription: {type: Unknown}, newDescription: {type: Sharded}}}`, sdam(result.TopologyDescriptionChanged, result.SDAMEvent{Previous: state("Unknown"), New: state("Sharded")}), ""},
		{"topology description differs", `{topologyDescriptionChangedEvent: {newDescription: {type: Single}}}`, sdam(result.TopologyDescriptionChanged, result.SDAMEvent{New: state("Sharded")}), "newDescription.type: the values differ"},
		{"previous topology description differs", `{topologyDescriptionChangedEvent: {previousDescription: {type: Single}}}`, sdam(result.TopologyDescriptionChanged, result.SDAMEvent{Previous: state("Sharded")}), "previousDescription.type: the values differ"},

		{"an unknown event type", `{commandStarted: {}}`, find, `unknown event type "commandStarted"`},
		{"two types", `{commandStartedEvent: {}, commandFailedEvent: {}}`, find, "exactly one key"},
		{"no type", `{}`, find, "exactly one key"},
		{"no document", `commandStartedEvent`, find, "exactly one key"},
		{"fields that are no document", `{commandStartedEvent: null}`, find, "want a document"},
		{"an unknown field", `{commandStartedEvent: {requestId: 1}}`, find, `unknown field "requestId"`},
		{"a flag that is none", `{commandStartedEvent: {hasServiceId: 1}}`, find, "want true or false"},
		{"an event without its fields", `{commandStartedEvent: {commandName: find}}`, result.Event{Type: result.CommandStarted}, "lacks its fields"},
	}
	type use struct {
		typ   result.EventType
		field string
	}
	covered := map[use]int{}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			v := yaml(t, row.expected)
			x := ExpectedEvents{EventType: string(eventKinds[row.actual.Type].monitor), Events: []*source.Value{v}}
			check(t, New(nil).Events("expectEvents[0]", x, []result.Event{row.actual}), row.wrong)

			// Counting agrees, and tells faults from events that merely differ.
			n, faults := New(nil).Count("operations[0].arguments.event", v, []result.Event{row.actual, row.actual})
			if (n == 2) != (row.wrong == "") || n != 0 && n != 2 || len(faults) > 0 && n > 0 {
				t.Errorf("counted %d, faults%s", n, show(faults))
			}
			if v.Kind == source.Document && len(v.Fields) == 1 {
				for _, f := range v.Fields[0].Value.Fields {
					bit := 2
					if row.wrong == "" {
						bit = 1
					}
					covered[use{result.EventType(v.Fields[0].Key), f.Key}] |= bit
				}
			}
		})
	}
	for typ, kind := range eventKinds {
		for field := range kind.fields {
			if covered[use{typ, field}] != 3 {
				t.Errorf("%s.%s lacks a row that matches or one that must not", typ, field)
			}
		}
	}
}

// Each type of event matches itself alone, under its monitor alone.
func TestEventTypes(t *testing.T) {
	if len(eventKinds) != 21 {
		t.Errorf("%d types of events", len(eventKinds))
	}
	for want := range eventKinds {
		for typ, kind := range eventKinds {
			e := result.Event{Type: typ, Command: &result.CommandEvent{}, Pool: &result.PoolEvent{}, SDAM: &result.SDAMEvent{}}
			v := yaml(t, "{"+string(want)+": {}}")
			if n, faults := New(nil).Count("", v, []result.Event{e}); len(faults) > 0 || (n == 1) != (want == typ) {
				t.Errorf("%s against %s: %d%s", want, typ, n, show(faults))
			}
			x := ExpectedEvents{EventType: string(kind.monitor), Events: []*source.Value{v}}
			if got := New(nil).Events("", x, []result.Event{e}); (len(got) == 0) != (want == typ) {
				t.Errorf("%s against %s:%s", want, typ, show(got))
			}
		}
	}
}

// A fault is one even where nothing was observed: a count of zero would hold.
func TestCountFaultsWithoutEvents(t *testing.T) {
	for _, s := range []string{
		`{fooEvent: {}}`, `{commandStartedEvent: {foo: 1}}`, `{commandStartedEvent: {command: {x: {$$foo: 1}}}}`,
		`{commandStartedEvent: {command: {x: {$$matchesEntity: foo}}}}`, `{}`, `{poolClearedEvent: {}, poolReadyEvent: {}}`,
	} {
		if _, faults := New(testEntities{}).Count("event", yaml(t, s), nil); len(faults) == 0 {
			t.Errorf("%s has no fault", s)
		}
	}
}

func TestEventSequences(t *testing.T) {
	find, get, fail, ok := started(t, `{"find":"c","batchSize":2}`), started(t, `{"getMore":1}`), failed("find"), succeeded("find")
	cleared := pool(result.PoolCleared, result.PoolEvent{})
	const (
		wantFind = `{commandStartedEvent: {commandName: find}}`
		wantGet  = `{commandStartedEvent: {commandName: getMore}}`
		wantFail = `{commandFailedEvent: {commandName: find}}`
		wantOK   = `{commandSucceededEvent: {commandName: find}}`
	)
	rows := []struct {
		reason string
		typ    string
		extra  bool
		want   []string
		got    []result.Event
		wrong  []string
	}{
		{"in order", "command", false, []string{wantFind, wantGet}, []result.Event{find, get}, nil},
		{"command is the default", "", false, []string{wantFind}, []result.Event{find}, nil},
		{"out of order", "command", false, []string{wantGet, wantFind}, []result.Event{find, get}, []string{"e.events[0].commandStartedEvent.commandName: the values differ", "e.events[1].commandStartedEvent.commandName: the values differ"}},
		{"order across types (Go's runner keeps three queues)", "command", false, []string{wantFind, wantFail, wantOK}, []result.Event{find, ok, fail}, []string{"e.events[1]: want a commandFailedEvent", "e.events[2]: want a commandSucceededEvent"}},
		{"none wanted, none seen", "command", false, nil, nil, nil},
		{"none wanted, one seen", "command", false, nil, []result.Event{find}, []string{"e.events: want 0 events, got 1", "e.events: unexpected: the observed event 0"}},
		{"none wanted, extra ignored", "command", true, nil, []result.Event{find}, nil},
		{"events of other monitors do not count", "command", false, []string{wantFind}, []result.Event{cleared, find, cleared}, nil},
		{"cmap", "cmap", false, []string{`{poolClearedEvent: {}}`}, []result.Event{find, cleared}, nil},
		{"none of the monitor", "cmap", false, nil, []result.Event{find}, nil},
		{"one too many", "command", false, []string{wantFind}, []result.Event{find, get}, []string{"want 1 event, got 2", "the observed event 1 has no counterpart"}},
		{"one too many at the start", "command", false, []string{wantGet}, []result.Event{find, get}, []string{"want 1 event, got 2", "the observed event 0 has no counterpart"}},
		{"one too many, ignored", "command", true, []string{wantFind}, []result.Event{find, get}, nil},
		{"extra events only after the expected ones", "command", true, []string{wantGet}, []result.Event{find, get}, []string{"e.events[0].commandStartedEvent.commandName: the values differ"}},
		{"one too few", "command", false, []string{wantFind, wantGet}, []result.Event{find}, []string{"want 2 events, got 1", "e.events[1]: missing: the expected event 1"}},
		{"one too few, extra ignored", "command", true, []string{wantFind, wantGet}, []result.Event{find}, []string{"want at least 2 events, got 1", "e.events[1]: missing"}},
		{"the middle one is missing", "command", false, []string{wantFind, wantFail, wantGet}, []result.Event{find, get}, []string{"want 3 events, got 2", "e.events[1]: missing"}},
		{"one missing and one that differs", "command", false, []string{wantFind, `{commandStartedEvent: {command: {find: c, batchSize: 3}}}`, wantGet}, []result.Event{find, get}, []string{"want 3 events, got 2"}},
		{"an event of another monitor is not allowed", "command", false, []string{`{poolClearedEvent: {}}`}, []result.Event{cleared}, []string{"only command events are allowed"}},
		{"an unknown eventType", "foo", false, nil, nil, []string{"e.eventType: unknown eventType"}},
		{"an unknown observed type", "command", false, nil, []result.Event{{Type: "fooEvent"}}, []string{"unknown type \"fooEvent\""}},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			x := ExpectedEvents{Position: source.Position{File: "f", Line: 1, Column: 1}, EventType: row.typ, IgnoreExtraEvents: row.extra}
			for _, s := range row.want {
				x.Events = append(x.Events, yaml(t, s))
			}
			got := New(nil).Events("e", x, row.got)
			if len(row.wrong) == 0 {
				check(t, got, "")
			}
			for _, w := range row.wrong {
				check(t, got, w)
			}
		})
	}
}

// With one event missing at the start, every later place would differ; the
// alignment keeps the report to what is wrong.
func TestAlignment(t *testing.T) {
	var x ExpectedEvents
	var seen []result.Event
	for _, name := range []string{"insert", "find", "getMore", "getMore", "killCursors"} {
		x.Events = append(x.Events, yaml(t, `{commandStartedEvent: {commandName: `+name+`}}`))
		seen = append(seen, started(t, `{"`+name+`":1}`))
	}
	got := New(nil).Events("e", x, seen[1:])
	if len(got) != 2 || !strings.Contains(show(got), "e.events[0]") {
		t.Errorf("want the count and events[0], got%s", show(got))
	}
	// A runaway list is not aligned, but reported all the same.
	for len(seen) < alignUpTo {
		seen = append(seen, seen[4])
	}
	if got := New(nil).Events("e", x, seen); len(got) < alignUpTo-5 {
		t.Errorf("%d mismatches", len(got))
	}
}
