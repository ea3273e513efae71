package matchers

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// fields compares each key of an expected error, event or log message.
func fields[T any](m *Matcher, want *source.Value, table map[string]func(*Matcher, *source.Value, T), got T) {
	for _, f := range want.Fields {
		m.atKey(f.Key, func() {
			if compare, known := table[f.Key]; known {
				compare(m, f.Value, got)
			} else {
				m.reject(f.Value, nothing, "unknown field %q", f.Key)
			}
		})
	}
}

// eventFields compares the keys of expected events ("expectedCommandEvent", "expectedCmapEvent",
// "expectedSdamEvent"). The schema defines which of them each type has.
var eventFields = map[string]func(*Matcher, *source.Value, *result.Event){
	"command":               func(m *Matcher, want *source.Value, e *result.Event) { m.matchBody(want, e.Body) },
	"reply":                 func(m *Matcher, want *source.Value, e *result.Event) { m.matchBody(want, e.Body) },
	"commandName":           func(m *Matcher, want *source.Value, e *result.Event) { m.word(want, e.CommandName) },
	"databaseName":          func(m *Matcher, want *source.Value, e *result.Event) { m.word(want, e.DatabaseName) },
	"hasServiceId":          hasServiceID,
	"hasServerConnectionId": hasServerConnectionID,

	"interruptInUseConnections": func(m *Matcher, want *source.Value,
		e *result.Event) {
		m.flag(want, e.InterruptInUseConnections)
	},
	"reason": func(m *Matcher, want *source.Value, e *result.Event) { m.word(want, e.Reason) },

	"awaited":             func(m *Matcher, want *source.Value, e *result.Event) { m.flag(want, e.Awaited) },
	"previousDescription": func(m *Matcher, want *source.Value, e *result.Event) { m.matchDescription(want, e.Previous) },
	"newDescription":      func(m *Matcher, want *source.Value, e *result.Event) { m.matchDescription(want, e.New) },
}

// matchEvent compares an event with an expected one. The only key of an expected event is its type.
func (m *Matcher) matchEvent(want *source.Value, e *result.Event) {
	for _, f := range want.Fields {
		if result.EventType(f.Key) != e.Type {
			m.reject(want, describeEvent(e), "expected a %s, got a %s", f.Key, e.Type)
			continue
		}
		m.atKey(f.Key, func() { fields(m, f.Value, eventFields, e) })
	}
}

// alikeEvents reports whether an event has the expected type and, if specified, command name.
func alikeEvents(want *source.Value, e *result.Event) bool {
	fields := want.Get(string(e.Type))
	name := fields.Get("commandName")
	return fields != nil && (name == nil || e.CommandName == name.Text())
}

// matchBody compares a command or a reply. If it was redacted, it is empty.
func (m *Matcher) matchBody(want *source.Value, got result.Document) {
	if len(got) == 0 {
		got = result.Document{5, 0, 0, 0, 0}
	}
	m.match(want, document(got), operations.RootDocument)
}

// matchDescription compares the type of a server or topology description.
func (m *Matcher) matchDescription(want *source.Value, got *result.TopologyState) {
	switch expected := want.Get("type"); {
	case got == nil:
		m.reject(want, nothing, "the event does not have this description")
	case expected != nil:
		m.atKey("type", func() { m.word(expected, got.Type) })
	}
}

func (m *Matcher) word(want *source.Value, got string) {
	if want.Text() != got {
		m.reject(want, source.Quote(got), "the values differ")
	}
}

func (m *Matcher) flag(want *source.Value, got *bool) {
	switch {
	case got == nil:
		m.reject(want, nothing, "this field is not set")
	case *got != want.Bool:
		m.reject(want, strconv.FormatBool(*got), "the values differ")
	}
}

// hasServiceID compares whether serviceId is set and not zero ("hasServiceId").
func hasServiceID(m *Matcher, want *source.Value, e *result.Event) {
	id := e.ServiceID
	got := nothing
	if id != nil {
		got = id.Hex()
	}
	if has := id != nil && !id.IsZero(); has != want.Bool {
		m.reject(want, got, "%s", either(want.Bool, "serviceId is not set", "serviceId is set"))
	}
}

// hasServerConnectionID compares whether serverConnectionId is a positive Int32.
// Otherwise it must be unset or an Int32 ("hasServerConnectionId").
func hasServerConnectionID(m *Matcher, want *source.Value, e *result.Event) {
	id := e.ServerConnectionID
	switch {
	case id == nil:
		if want.Bool {
			m.reject(want, nothing, "serverConnectionId is not set")
		}
	case *id < math.MinInt32 || *id > math.MaxInt32:
		m.reject(want, strconv.FormatInt(*id, 10), "serverConnectionId is not a 32-bit integer")
	case (*id > 0) != want.Bool:
		m.reject(want, strconv.FormatInt(*id, 10), "%s",
			either(want.Bool, "serverConnectionId is not positive", "serverConnectionId is set"))
	}
}

func describeEvent(e *result.Event) string {
	parts := []string{string(e.Type)}
	if e.Type.Monitor() == result.MonitorCommand {
		parts = append(parts, e.CommandName, "on", e.DatabaseName)
		if len(e.Body) > 0 {
			parts = append(parts, ExtendedJSON(present(e.Body), false))
		}
		if e.Failure != nil {
			parts = append(parts, describeError(e.Failure))
		}
	}
	if e.Reason != "" {
		parts = append(parts, "("+e.Reason+")")
	}
	if e.New != nil {
		parts = append(parts, "to", e.New.Type)
	}
	if e.Address != "" {
		parts = append(parts, "at", e.Address)
	}
	return abridge(strings.Join(parts, " "))
}

// wantedEvent and observedEvent describe events in a few words, for lists that are shown side by side.
func wantedEvent(want *source.Value) string {
	if len(want.Fields) == 0 {
		return want.JSON()
	}
	kind, fields := want.Fields[0].Key, want.Fields[0].Value
	name := fields.Get("commandName").Text()
	if command := fields.Get("command"); name == "" && command != nil && len(command.Fields) > 0 {
		name = command.Fields[0].Key
	}
	return joined([]string{kind, name, fields.Get("reason").Text(), fields.Get("newDescription").Get("type").Text()})
}

func observedEvent(e *result.Event) string {
	words := []string{string(e.Type), e.CommandName, e.Reason}
	if e.New != nil {
		words = append(words, e.New.Type)
	}
	return joined(words)
}

func wantedLog(want *source.Value) string {
	data := want.Get("data")
	return joined([]string{want.Get("level").Text(), want.Get("component").Text(), data.Get("message").Text(),
		data.Get("commandName").Text()})
}

func observedLog(l *result.LogMessage) string {
	of := func(key string) string { s, _ := l.Data.Lookup(key).StringValueOK(); return s }
	return joined([]string{l.Level, l.Component, of("message"), of("commandName")})
}

func joined(words []string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

var logFields = map[string]func(*Matcher, *source.Value, *result.LogMessage){
	"level":             func(m *Matcher, want *source.Value, l *result.LogMessage) { m.word(want, l.Level) },
	"component":         func(m *Matcher, want *source.Value, l *result.LogMessage) { m.word(want, l.Component) },
	"failureIsRedacted": func(m *Matcher, want *source.Value, l *result.LogMessage) { m.flag(want, l.FailureRedacted) },
	"data": func(m *Matcher, want *source.Value, l *result.LogMessage) {
		m.match(want, present(l.Data), operations.RootDocument)
	},
}

func (m *Matcher) matchLog(want *source.Value, l *result.LogMessage) { fields(m, want, logFields, l) }

// alikeLogs reports whether a message has the expected component and, if specified, text.
func (m *Matcher) alikeLogs(want *source.Value, l *result.LogMessage) bool {
	text := want.Get("data").Get("message")
	return want.Get("component").Text() == l.Component &&
		(text == nil || m.holds(func() { m.match(text, l.Data.Lookup("message"), operations.Value) }))
}

func describeLog(l *result.LogMessage) string {
	return abridge(strings.Join([]string{l.Level, l.Component, ExtendedJSON(present(l.Data), false)}, " "))
}
