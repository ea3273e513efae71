package matchers

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

func command(typ result.EventType, c result.CommandEvent) result.Event {
	if list, _ := elements(c.Command); c.CommandName == "" && len(list) > 0 {
		c.CommandName = list[0].key
	}
	c.DatabaseName = "db"
	return result.Event{Type: typ, Command: &c}
}

func started(t testing.TB, text string) result.Event {
	return command(result.CommandStarted, result.CommandEvent{Command: raw(t, text)})
}

func pool(typ result.EventType, p result.PoolEvent) result.Event {
	return result.Event{Type: typ, Pool: &p}
}
func sdam(typ result.EventType, s result.SDAMEvent) result.Event {
	return result.Event{Type: typ, SDAM: &s}
}
func state(typ string) *result.TopologyState { return &result.TopologyState{Type: typ} }

func TestEventFields(t *testing.T) {
	find := started(t, `{"find":"coll","filter":{"x":1},"lsid":{"id":1}}`)
	redacted := command(result.CommandStarted, result.CommandEvent{CommandName: "saslStart", Redacted: true})
	reply := command(result.CommandSucceeded, result.CommandEvent{CommandName: "find", Reply: raw(t, `{"ok":1.0,"cursor":{"id":0}}`)})
	id, zero := bson.NewObjectID(), bson.ObjectID{}
	connection := func(id int64) result.CommandEvent { return result.CommandEvent{ServerConnectionID: &id} }
	type row struct {
		reason, expected string
		actual           result.Event
		wrong            string
	}
	rows := []row{
		{"any event of a type", `{commandStartedEvent: {}}`, find, ""},
		{"another type", `{commandStartedEvent: {}}`, reply, "want a commandStartedEvent, got a commandSucceededEvent"},
		{"command, root-level", `{commandStartedEvent: {command: {find: coll, filter: {x: 1.0}}}}`, find, ""},
		{"command differs by a half", `{commandStartedEvent: {command: {find: coll, filter: {x: 1.5}}}}`, find, "commandStartedEvent.command.filter.x: the numbers differ"},
		{"command, nested documents", `{commandStartedEvent: {command: {filter: {}}}}`, find, `command.filter: unexpected key "x"`},
		{"command, a key that must not be", `{commandStartedEvent: {command: {lsid: {$$exists: false}}}}`, find, "want no value"},
		{"command redacted", `{commandStartedEvent: {command: {saslStart: 1}}}`, redacted, "the value is missing"},
		{"command redacted, as wanted", `{commandStartedEvent: {command: {saslStart: {$$exists: false}}}}`, redacted, ""},
		{"command is a document", `{commandStartedEvent: {command: 1}}`, find, "want a document"},
		{"databaseName is a string", `{commandStartedEvent: {databaseName: {$$type: string}}}`, find, "want a string"},
		{"no reply in a started event", `{commandStartedEvent: {reply: {}}}`, find, `unknown field "reply"`},

		{"reply, root-level", `{commandSucceededEvent: {reply: {ok: 1}}}`, reply, ""},
		{"reply differs", `{commandSucceededEvent: {reply: {ok: 0}}}`, reply, "reply.ok: the numbers differ"},
		{"no command in a succeeded event", `{commandSucceededEvent: {command: {}}}`, reply, `unknown field "command"`},

		{"no failure in a failed event", `{commandFailedEvent: {failure: {}}}`, command(result.CommandFailed, result.CommandEvent{}), `unknown field "failure"`},

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
	for _, typ := range []result.EventType{result.CommandStarted, result.CommandSucceeded, result.CommandFailed} {
		for _, r := range []struct {
			reason, expected string // several for one event between " | ", with what is wrong after " => "
			actual           result.CommandEvent
		}{
			{"commandName", `commandName: find | commandName: Find => commandName: the values differ`, result.CommandEvent{CommandName: "find"}},
			{"databaseName", `databaseName: db | databaseName: admin => databaseName: the values differ`, result.CommandEvent{}},
			{"a service", `hasServiceId: true | hasServiceId: false => serviceId is set`, result.CommandEvent{ServiceID: &id}},
			{"no service", `hasServiceId: false | hasServiceId: true => serviceId is not set`, result.CommandEvent{}},
			{"an empty service is none", `hasServiceId: false | hasServiceId: true => serviceId is not set`, result.CommandEvent{ServiceID: &zero}},
			{"a connection", `hasServerConnectionId: true | hasServerConnectionId: false => serverConnectionId is set`, connection(1<<31 - 1)},
			{"no connection", `hasServerConnectionId: false | hasServerConnectionId: true => serverConnectionId is not set`, result.CommandEvent{}},
			{"connection 0 is none", `hasServerConnectionId: false | hasServerConnectionId: true => not positive`, connection(0)},
			{"connection -1 is none", `hasServerConnectionId: false`, connection(-1)},
			{"connection 1", `hasServerConnectionId: false => serverConnectionId is set`, connection(1)},
			{"not an int32", `hasServerConnectionId: true => no 32-bit integer`, connection(1 << 31)},
		} {
			for one := range strings.SplitSeq(r.expected, " | ") {
				expected, wrong, _ := strings.Cut(one, " => ")
				rows = append(rows, row{string(typ) + ": " + r.reason, "{" + string(typ) + ": {" + expected + "}}", command(typ, r.actual), wrong})
			}
		}
	}
	for _, typ := range []result.EventType{result.ServerHeartbeatStarted, result.ServerHeartbeatSucceeded, result.ServerHeartbeatFailed} {
		awaited := "{" + string(typ) + ": {awaited: true}}"
		rows = append(rows,
			row{string(typ) + ": awaited", awaited, sdam(typ, result.SDAMEvent{Awaited: ptr(true)}), ""},
			row{string(typ) + ": not awaited", awaited, sdam(typ, result.SDAMEvent{Awaited: ptr(false)}), "awaited: the values differ"},
			row{string(typ) + ": unknown", awaited, sdam(typ, result.SDAMEvent{}), "does not have this field"})
	}
	covered := map[bool]map[string]bool{true: {}, false: {}}
	for _, row := range rows {
		v := yaml(t, row.expected)
		x := ExpectedEvents{Position: v.Position, EventType: string(eventKinds[row.actual.Type].monitor), Events: []*source.Value{v}}
		check(t, row.reason, New(nil).Events("expectEvents[0]", x, []result.Event{row.actual}), row.wrong)
		// Counting agrees, and tells faults from events that merely differ.
		n, faults := New(nil).Count("operations[0].arguments.event", v, []result.Event{row.actual, row.actual})
		if (n == 2) != (row.wrong == "") || n != 0 && n != 2 || len(faults) > 0 && n > 0 {
			t.Errorf("%s: counted %d, faults%s", row.reason, n, show(faults))
		}
		for _, e := range v.Fields {
			for _, f := range e.Value.Fields {
				covered[row.wrong == ""][e.Key+"."+f.Key] = true
			}
		}
	}
	for typ, kind := range eventKinds {
		for field := range kind.fields {
			if use := string(typ) + "." + field; !covered[true][use] || !covered[false][use] {
				t.Errorf("%s lacks a row that matches or one that must not", use)
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
	find, get := started(t, `{"find":"c","batchSize":2}`), started(t, `{"getMore":1}`)
	fail := command(result.CommandFailed, result.CommandEvent{CommandName: "find"})
	ok := command(result.CommandSucceeded, result.CommandEvent{CommandName: "find"})
	cleared := pool(result.PoolCleared, result.PoolEvent{})
	const (
		wantFind = `{commandStartedEvent: {commandName: find}}`
		wantGet  = `{commandStartedEvent: {commandName: getMore}}`
		wantFail = `{commandFailedEvent: {commandName: find}}`
		wantOK   = `{commandSucceededEvent: {commandName: find}}`
	)
	for _, row := range []struct {
		reason, typ string
		extra       bool
		want        []string
		got         []result.Event
		wrong       []string
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
	} {
		x := ExpectedEvents{Position: source.Position{File: "test.yml", Line: 1, Column: 1}, EventType: row.typ, IgnoreExtraEvents: row.extra}
		for _, s := range row.want {
			x.Events = append(x.Events, yaml(t, s))
		}
		for _, w := range append(row.wrong, make([]string, max(0, 1-len(row.wrong)))...) {
			check(t, row.reason, New(nil).Events("e", x, row.got), w)
		}
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
