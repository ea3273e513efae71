package matchers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// events returns named events, or one written in YAML.
func events(t testing.TB, text string) (all []result.Event) {
	t.Helper()
	named := map[string]string{
		"find": `{type: commandStartedEvent, command: find, database: db,
			body: {find: coll, batchSize: 2, filter: {x: 1}, lsid: {id: 1}}}`,
		"getMore":        `{type: commandStartedEvent, command: getMore, body: {getMore: 1}}`,
		"redacted":       `{type: commandStartedEvent, command: saslStart, redacted: true}`,
		"find-succeeded": `{type: commandSucceededEvent, command: find, body: {ok: 1.0, cursor: {id: 0}}}`,
		"find-failed":    `{type: commandFailedEvent, command: find}`,
		"cleared":        `{type: poolClearedEvent}`,
		"foo":            `{type: fooEvent}`,
	}
	list := strings.Fields(text)
	if strings.HasPrefix(text, "{") {
		list = []string{text}
	}
	for _, one := range list {
		raw, err := yaml(t, cmp.Or(named[one], one)).Raw()
		testkit.Check(t, err)
		var e result.Event
		text, err := bson.MarshalExtJSON(raw, false, false)
		testkit.Check(t, err)
		testkit.Check(t, json.Unmarshal(text, &e))
		all = append(all, e)
	}
	return all
}

func started(t testing.TB, name string) result.Event {
	return events(t, "{type: commandStartedEvent, command: "+name+"}")[0]
}

// expecting returns an expectedEventsForClient, without eventType if it is "".
func expecting(eventType string, more bool, events ...*source.Value) *source.Value {
	at := source.Position{File: "test.yml", Line: 1, Column: 1}
	x := (&source.Value{Position: at, Kind: source.Document}).
		With("events", &source.Value{Position: at, Kind: source.Array, Items: events}).
		With("ignoreExtraEvents", &source.Value{Position: at, Kind: source.Bool, Bool: more})
	if eventType != "" {
		x = x.With("eventType", &source.Value{Position: at, Kind: source.String, String: eventType})
	}
	return x
}

func TestEventFields(t *testing.T) {
	covered := map[bool]map[string]bool{true: {}, false: {}}
	transcript(t, "events.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		v, e := yaml(t, expected), events(t, actual)
		x := expecting(string(e[0].Type.Monitor()), false, v)
		got := New(nil).Events("", x, e)
		n, faults := New(nil).Count("", v, []result.Event{e[0], e[0]}) // agrees
		if (n == 2) != (len(got) == 0) || n != 0 && n != 2 || len(faults) > 0 && n > 0 {
			t.Errorf("counted %d, faults%s", n, show(faults))
		}
		for _, e := range v.Fields {
			for _, f := range e.Value.Fields {
				covered[len(got) == 0][f.Key] = true
			}
		}
		return got
	})
	for field := range eventFields {
		if !covered[true][field] || !covered[false][field] {
			t.Errorf("%s lacks a case that matches or one that does not", field)
		}
	}
}

var eventTypes = slices.Concat(result.EventTypes(result.MonitorCommand), result.EventTypes(result.MonitorCMAP),
	result.EventTypes(result.MonitorSDAM))

// An observed event is described in one line.
func TestDescribe(t *testing.T) {
	for _, r := range []struct{ reason, got, want string }{
		{"a command", describeEvent(&events(t, "find-failed")[0]), "commandFailedEvent find on "},
		{"a reason", describeEvent(&result.Event{Type: result.ConnectionClosed, Reason: "idle"}),
			"connectionClosedEvent (idle)"},
		{"a code with its name", describeError(&result.Error{Code: 6, CodeName: "HostUnreachable", Message: "m"}),
			"server-side error, code 6 HostUnreachable: m"},
		{"a code alone", describeError(&result.Error{Code: 6, Message: "m"}), "server-side error, code 6: m"},
		{"a name alone", describeError(&result.Error{CodeName: "HostUnreachable", Message: "m"}),
			"server-side error HostUnreachable: m"},
		{"no code", describeError(&result.Error{Client: true, Message: "m"}), "client-side error: m"},
		{"a document", New(nil).Collection("", source.Position{}, nil, []bson.Raw{raw(t, `{"_id":1}`)})[1].Got, `{"_id":1}`},
	} {
		testkit.Equal(t, r.reason, r.got, r.want)
	}
}

// Each event type matches only itself, and only for its monitor.
func TestEventTypes(t *testing.T) {
	if len(eventTypes) != 21 {
		t.Errorf("%d types of events", len(eventTypes))
	}
	for _, want := range eventTypes {
		for _, typ := range eventTypes {
			e := result.Event{Type: typ}
			v := yaml(t, "{"+string(want)+": {}}")
			if n, faults := New(nil).Count("", v, []result.Event{e}); len(faults) > 0 || (n == 1) != (want == typ) {
				t.Errorf("%s against %s: %d%s", want, typ, n, show(faults))
			}
			x := expecting(string(typ.Monitor()), false, v)
			if got := New(nil).Events("", x, []result.Event{e}); (len(got) == 0) != (want == typ) {
				t.Errorf("%s against %s:%s", want, typ, show(got))
			}
		}
	}
}

// Cases of testdata/sequences.txt name the monitor and events; "and more" ignores
// extra events.
func TestEventSequences(t *testing.T) {
	wanted := map[string]string{
		"find":           `{commandStartedEvent: {commandName: find}}`,
		"find-3":         `{commandStartedEvent: {command: {find: coll, batchSize: 3}}}`,
		"getMore":        `{commandStartedEvent: {commandName: getMore}}`,
		"find-failed":    `{commandFailedEvent: {commandName: find}}`,
		"find-succeeded": `{commandSucceededEvent: {commandName: find}}`,
		"cleared":        `{poolClearedEvent: {}}`,
	}
	transcript(t, "sequences.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		monitor, names, _ := strings.Cut(expected, ": ")
		names, more := strings.CutSuffix(names, " and more")
		var list []*source.Value
		for _, name := range strings.Fields(strings.TrimSuffix(names, "nothing")) {
			list = append(list, yaml(t, wanted[name]))
		}
		return New(nil).Events("", expecting(strings.TrimSuffix(monitor, "default"), more, list...), events(t, actual))
	})
}

// If the first event is missing, only that is reported.
func TestAlignment(t *testing.T) {
	var list []*source.Value
	var seen []result.Event
	for _, name := range []string{"insert", "find", "getMore", "getMore", "killCursors"} {
		list = append(list, yaml(t, `{commandStartedEvent: {commandName: `+name+`}}`))
		seen = append(seen, started(t, name))
	}
	x := expecting("", false, list...)
	got := New(nil).Events("e", x, seen[1:])
	if len(got) != 2 || !strings.Contains(show(got), "e.events[0]") {
		t.Errorf("want the count and events[0], got%s", show(got))
	}
	// Lists that are too long to align are reported, too.
	for len(seen) < maxAlignment {
		seen = append(seen, seen[4])
	}
	if got := New(nil).Events("e", x, seen); len(got) < maxAlignment-5 {
		t.Errorf("%d mismatches", len(got))
	}
}

func TestLogMessages(t *testing.T) {
	messages := map[string]string{
		"started":  `{"level":"debug","component":"command","data":{"message":"Command started","command":"{\"ping\":1,\"x\":2}"}}`,
		"failed":   `{"level":"debug","component":"command","data":{"message":"Command failed","failure":"x"},"failureredacted":true}`,
		"plain":    `{"level":"debug","component":"command","data":{},"failureredacted":false}`,
		"topology": `{"level":"info","component":"topology","data":{"message":"Changed"}}`,
	}
	wanted := strings.NewReplacer("STARTED", `{level: debug, component: command, data: {message: Command started}}`,
		"FAILED", `{level: debug, component: command, failureIsRedacted: true, data: {message: Command failed}}`)
	transcript(t, "logs.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		got := make([]result.LogMessage, len(strings.Fields(actual)))
		for i, name := range strings.Fields(actual) {
			testkit.Check(t, bson.Unmarshal(raw(t, messages[name]), &got[i]))
		}
		return New(nil).LogMessages("", yaml(t, wanted.Replace(expected)), got)
	})
}

// Cases of testdata/spans.txt name trees of spans; "extra" ignores extra spans.
func TestSpans(t *testing.T) {
	wanted := strings.NewReplacer(
		"FIND", `{name: find db.c, attributes: {n: 1}, nested: [{name: find, attributes: {}}, {name: find, attributes: {}}]}`,
		"INSERT", `{name: insert db.c, attributes: {}}`)
	transcript(t, "spans.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		expected, extra := strings.CutPrefix(expected, "extra ")
		spans := yaml(t, fmt.Sprintf("{client: c, ignoreExtraSpans: %t, spans: %s}", extra, wanted.Replace(expected)))
		return New(testEntities{}).Spans("", spans, spansOf(t, strings.Fields(strings.TrimSuffix(actual, "nothing"))...))
	})
}

// spansOf returns spans by name, a find with two attempts.
func spansOf(t *testing.T, names ...string) (all []result.Span) {
	add := func(parent, name, attributes string) string {
		id := fmt.Sprint(len(all) + 1)
		all = append(all, result.Span{ID: id, Parent: parent, Name: name, Attributes: raw(t, attributes)})
		return id
	}
	for _, name := range names {
		switch name {
		case "find":
			find := add("of the application", "find db.c", `{"n":1,"more":1}`)
			add(find, "find", `{"text":"{\"find\":\"c\",\"more\":1}","db.response.status_code":"89"}`)
			add(find, "find", `{}`)
		case "insert":
			add("", "insert db.c", `{}`)
		case "transaction":
			add("", "transaction", `{"lsid":"30313233-3435-3637-3839-616263646566"}`)
		case "another":
			add("", "transaction", `{"lsid":"00000000-3435-3637-3839-616263646566"}`)
		case "document":
			add("", "transaction", `{"lsid":"{\"id\":{\"$binary\":{\"base64\":\"MDEyMzQ1Njc4OWFiY2RlZg==\",\"subType\":\"04\"}}}"}`)
		case "other":
			add("", "transaction", `{"lsid":"{\"id\":{\"$binary\":{\"base64\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"subType\":\"04\"}}}"}`)
		case "short":
			add("", "transaction", `{"lsid":"{\"id\":{\"$binary\":{\"base64\":\"MDEyMw==\",\"subType\":\"04\"}}}"}`)
		}
	}
	return all
}

// The list of a mismatch is the aligned tree.
func TestSpanTree(t *testing.T) {
	spans := yaml(t, `{client: c, spans: [{name: insert db.c, attributes: {}}, {name: find db.c, attributes: {}, nested: [
		{name: find, attributes: {}}]}, {name: find db.c, attributes: {}, nested: [{name: find, attributes: {}}]}]}`)
	got := New(nil).Spans("", spans, spansOf(t, "find", "transaction"))
	var rows []string
	for _, r := range got[0].List.Rows {
		rows = append(rows, fmt.Sprintf("%t %s|%s", r.Differs, r.Want, r.Got))
	}
	testkit.Equal(t, "the rows", rows,
		[]string{"true insert db.c|", "false find db.c|find db.c", "false   find|  find error 89", "true |  find",
			"true find db.c|", "false   find|", "true |transaction"})
}

func TestCollection(t *testing.T) {
	transcript(t, "collections.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		var got []bson.Raw
		values, err := seen(t, actual).Array().Values()
		testkit.Check(t, err)
		for _, v := range values {
			got = append(got, v.Document())
		}
		return New(nil).Collection("", source.Position{File: "test.yml", Line: 1}, yaml(t, expected).Items, got)
	})
}
