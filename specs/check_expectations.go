package specs

import (
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// operators are the special operators for matching assertions, each with what
// its value must be.
var operators = map[string]struct {
	want string
	ok   func(*source.Value) bool
}{
	"$$exists":          {"a boolean", func(v *source.Value) bool { return v.Kind == source.Bool }},
	"$$type":            {"a BSON type's alias, or a list of them", isTypes},
	"$$matchesEntity":   {"the id of an entity", isString},
	"$$matchesHexBytes": {"an even number of hexadecimal digits", isHexBytes},
	"$$unsetOrMatches":  {"a value", func(*source.Value) bool { return true }},
	"$$sessionLsid":     {"the id of a session", isString},
	"$$lte":             {"a number", isNumber},
	"$$matchAsDocument": {"a document", func(v *source.Value) bool { return v.Kind == source.Document }},
	"$$matchAsRoot":     {"a document", func(v *source.Value) bool { return v.Kind == source.Document }},
}

func isString(v *source.Value) bool { return v.Kind == source.String }

// isNumber accepts Extended JSON numbers but for Decimal128.
func isNumber(v *source.Value) bool {
	value, err := v.BSON()
	return err == nil && value.IsNumber() && value.Type != bson.TypeDecimal128
}

// typeAliases are those of the query operator $type, which $$type takes.
var typeAliases = []string{"double", "string", "object", "array", "binData", "undefined", "objectId", "bool", "date", "null", "regex",
	"dbPointer", "javascript", "symbol", "javascriptWithScope", "int", "timestamp", "long", "decimal", "minKey", "maxKey", "number"}

func isTypes(v *source.Value) bool {
	if v.Kind == source.Array {
		return len(v.Items) > 0 && !slices.ContainsFunc(v.Items, func(t *source.Value) bool { return t.Kind == source.Array || !isTypes(t) })
	}
	return v.Kind == source.String && slices.Contains(typeAliases, v.String)
}

// Special Operators for Matching Assertions: where values are matched, a
// document whose first key starts with $$ is an operator.
func checkOperators(i *inspection) {
	i.eachMatched(func(matched place) {
		walk(matched, func(p place) bool {
			for k, f := range p.Fields {
				if !strings.HasPrefix(f.Key, "$$") || f.Key == placeholder {
					continue
				}
				path := p.path + "." + f.Key
				operator, known := operators[f.Key]
				switch {
				case !known:
					i.reportAt(f.KeyPosition, path, "there is no operator %s", f.Key)
				case len(p.Fields) > 1 && k == 0:
					i.reportAt(f.KeyPosition, path, "operator %s must be the only key of its document", f.Key)
				case len(p.Fields) > 1:
					i.reportAt(f.KeyPosition, path, "operator %s must be the first and only key of its document", f.Key)
				case (f.Key == "$$exists" || f.Key == "$$unsetOrMatches") && strings.HasSuffix(p.path, "]"):
					i.reportAt(f.KeyPosition, path, "operator %s stands for the value of a key, not for an array element", f.Key)
				case !operator.ok(f.Value):
					i.reportAt(f.Value.Position, path, "operator %s needs %s", f.Key, operator.want)
				}
			}
			return true
		})
	})
}

// eachMatched visits the expected values that are matched with operators.
func (i *inspection) eachMatched(visit func(place)) {
	some := func(p place) {
		if p.exists() {
			visit(p)
		}
	}
	for _, s := range i.steps {
		some(s.get("expectResult"))
		some(s.get("expectError"))
		if s.Kind == operations.TestRunner {
			some(s.get("arguments").get("event"))
		}
	}
	i.eachTest(func(t place) {
		for _, key := range []string{"expectEvents", "expectLogMessages", "expectTracingMessages"} {
			some(t.get(key))
		}
	})
}

const placeholder = "$$placeholder"

// Special Placeholder Value: an error in an unexpected context.
func checkPlaceholders(i *inspection) {
	i.everywhere(func(p place) bool {
		if strings.HasSuffix(p.path, ".uriOptions") || strings.HasSuffix(p.path, ".kmsProviders") {
			return false
		}
		if f := p.Field(placeholder); f != nil {
			i.reportAt(f.KeyPosition, p.path+"."+f.Key, "%s is for uriOptions and kmsProviders", placeholder)
		}
		return true
	})
}

// entity.client, observeEvents: other events are ignored by the client's
// listeners, so that they are never seen.
func checkObservedEvents(i *inspection) {
	check := func(event place, client string, observed map[string]map[string]bool) {
		types, isClient := observed[client]
		if !isClient || !event.exists() || event.Kind != source.Document {
			return
		}
		for _, f := range event.Fields {
			if !types[f.Key] {
				i.reportAt(f.KeyPosition, event.path+"."+f.Key, "client %q does not observe %s", client, f.Key)
			}
		}
	}
	for _, s := range i.steps {
		if s.Kind == operations.TestRunner {
			arguments := s.get("arguments")
			check(arguments.get("event"), s.Arguments.Get("client").Text(), s.observed)
		}
	}
	i.eachTest(func(t place) {
		observed := i.ends[t.Value]
		t.get("expectEvents").each(func(e place) {
			client := e.Value.Get("client").Text()
			e.get("events").each(func(event place) { check(event, client, observed) })
			types, isClient := observed[client]
			if events := e.get("events"); isClient && len(events.Value.Elements()) == 0 && !observesAny(types, e.Value.Get("eventType").Text()) {
				i.report(events, "client %q does not observe events of this type, so that their absence means nothing", client)
			}
		})
		t.get("expectLogMessages").each(func(e place) {
			client := e.Value.Get("client").Text()
			types, isClient := observed[client]
			messages := e.get("messages")
			if isClient && len(messages.Value.Elements()) == 0 && !observesAny(types, logOf) {
				i.report(messages, "client %q does not observe log messages, so that their absence means nothing", client)
			}
			messages.each(func(m place) {
				if c := m.get("component"); isClient && c.exists() && !types[logOf+c.String] {
					i.report(c, "client %q does not observe log messages of component %s", client, c.String)
				}
			})
		})
	})
}

// observesAny reports whether a client observes an event of an eventType, or
// log messages.
func observesAny(types map[string]bool, eventType string) bool {
	beginnings := map[string][]string{logOf: {logOf}, "": {"command"}, "command": {"command"}, "cmap": {"pool", "connection"}, "sdam": {"server", "topology"}}
	for t := range types {
		if slices.ContainsFunc(beginnings[eventType], func(b string) bool { return strings.HasPrefix(t, b) }) {
			return true
		}
	}
	return false
}

// test, expectEvents and expectLogMessages: no more than one for a client and
// type of event.
func checkRepeatedExpectations(i *inspection, t place) {
	for _, list := range []string{"expectEvents", "expectLogMessages", "expectTracingMessages"} {
		seen := map[[2]string]bool{}
		t.get(list).each(func(e place) {
			eventType := e.Value.Get("eventType").Text()
			if list == "expectEvents" && eventType == "" {
				eventType = "command"
			}
			key := [2]string{e.Value.Get("client").Text(), eventType}
			if seen[key] {
				i.report(e, "%s of client %q is given before in this test%s", list, key[0], ofType(eventType))
			}
			seen[key] = true
		})
	}
}

func ofType(eventType string) string {
	if eventType == "" {
		return ""
	}
	return " for eventType " + eventType
}

// A test that cannot fail proves nothing: it has no operation whose error or
// result matters, and no expectation that anything could break.
func checkVacuous(i *inspection, t place) {
	if t.Value.Get("outcome") != nil {
		return
	}
	for _, o := range t.Value.Get("operations").Elements() {
		if !o.Get("ignoreResultAndError").IsTrue() {
			return
		}
	}
	for _, list := range []struct{ list, expected, extra string }{
		{"expectEvents", "events", "ignoreExtraEvents"},
		{"expectLogMessages", "messages", "ignoreExtraMessages"},
		{"expectTracingMessages", "spans", "ignoreExtraSpans"},
	} {
		for _, e := range t.Value.Get(list.list).Elements() {
			if len(e.Get(list.expected).Elements()) > 0 || !e.Get(list.extra).IsTrue() {
				return
			}
		}
	}
	i.report(t, "the test asserts nothing: only the creation of its entities could fail")
}
