package specs

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// operators are the special operators for matching assertions, with the operand of each.
var operators = map[string]struct {
	want  string
	ok    func(*source.Value) bool
	words []string // the possible operands, if they are words
}{
	"$$exists":          {"a boolean", func(v *source.Value) bool { return v.Kind == source.Bool }, nil},
	"$$type":            {"a BSON type's alias, or a list of them", isTypes, typeAliases},
	"$$matchesEntity":   {"the id of an entity", isString, nil},
	"$$matchesHexBytes": {"an even number of hexadecimal digits", isHexBytes, nil},
	"$$unsetOrMatches":  {"a value", func(*source.Value) bool { return true }, nil},
	"$$sessionLsid":     {"the id of a session", isString, nil},
	"$$lte":             {"a number", isNumber, nil},
	"$$matchAsDocument": {"a document", func(v *source.Value) bool { return v.Kind == source.Document }, nil},
	"$$matchAsRoot":     {"a document", func(v *source.Value) bool { return v.Kind == source.Document }, nil},
}

// inQuery matches the paths at which a server interprets operators whose name is one of the above with one dollar less.
var inQuery = regexp.MustCompile(`\.(filter|query|q|pipeline|validator|partialFilterExpression|arrayFilters|\$\w+)\b`)

// wrongElement returns the first invalid element of an operand that is a list, or the operand.
func wrongElement(operand *source.Value, ok func(*source.Value) bool) *source.Value {
	if i := slices.IndexFunc(operand.Items, func(v *source.Value) bool { return !ok(v) }); i >= 0 {
		return operand.Items[i]
	}
	return operand
}

// Operators returns the special operators for matching assertions.
func Operators() []string { return slices.Sorted(maps.Keys(operators)) }

func isString(v *source.Value) bool { return v.Kind == source.String }

// isNumber accepts Extended JSON numbers except Decimal128.
func isNumber(v *source.Value) bool {
	value, err := v.BSON()
	return err == nil && value.IsNumber() && value.Type != bson.TypeDecimal128
}

// typeAliases are the operands of the query operator $type that $$type accepts.
var typeAliases = []string{"double", "string", "object", "array", "binData", "undefined", "objectId", "bool", "date",
	"null", "regex",
	"dbPointer", "javascript", "symbol", "javascriptWithScope", "int", "timestamp", "long", "decimal", "minKey", "maxKey",
	"number"}

func isTypes(v *source.Value) bool {
	if v.Kind == source.Array {
		return len(v.Items) > 0 && !slices.ContainsFunc(v.Items,
			func(t *source.Value) bool { return t.Kind == source.Array || !isTypes(t) })
	}
	return v.Kind == source.String && slices.Contains(typeAliases, v.String)
}

// expectations are the lists of expectations of a test. In each element, expected is the key of what
// the client must do and extra the key of the option that ignores anything else.
var expectations = []struct{ key, expected, extra string }{
	{"expectEvents", "events", "ignoreExtraEvents"},
	{"expectLogMessages", "messages", "ignoreExtraMessages"},
	{"expectTracingMessages", "spans", "ignoreExtraSpans"},
}

// CheckMatched returns the problems of an expected value outside a suite: unknown or malformed special
// operators. Messages name the value by path.
func CheckMatched(v *source.Value, path string) []Problem {
	i := &inspection{}
	i.checkMatched(place{v, path})
	return i.problems
}

// checkMatched checks an expected value. Special Operators for Matching Assertions: a document whose
// first key starts with $$ is an operator.
func (i *inspection) checkMatched(matched place) {
	walk(matched, func(p place) bool {
		for k, f := range p.Fields {
			path := p.path + "." + f.Key
			operator, known := operators[f.Key]
			_, doubled := operators["$"+f.Key]
			switch {
			case doubled && len(p.Fields) == 1 && !inQuery.MatchString(p.path):
				i.reportAt("single-dollar", f.KeyPosition, path, "%s matches itself here; did you mean $%s?", f.Key, f.Key)
			case !strings.HasPrefix(f.Key, "$$") || f.Key == placeholder:
			case !known:
				i.reportAt("operator", f.KeyPosition, path, "unknown operator %s%s", f.Key, suggest.Hint(f.Key, Operators()))
			case len(p.Fields) > 1 && k == 0:
				i.reportAt("operator", f.KeyPosition, path, "operator %s must be the only key of its document", f.Key)
			case len(p.Fields) > 1:
				i.reportAt("operator", f.KeyPosition, path, "operator %s must be the first and only key of its document", f.Key)
			case (f.Key == "$$exists" || f.Key == "$$unsetOrMatches") && strings.HasSuffix(p.path, "]"):
				i.reportAt("operator", f.KeyPosition, path, "operator %s cannot be an array element", f.Key)
			case !operator.ok(f.Value):
				v := wrongElement(f.Value, operator.ok)
				i.reportAt("operator", v.Position, path, "operator %s needs %s, not %s%s", f.Key, operator.want, v.JSON(),
					suggest.Hint(v.Text(), operator.words))
			}
		}
		return true
	})
}

// checkEntitiesOfOperators checks the entities that $$matchesEntity and $$sessionLsid name.
func (i *inspection) checkEntitiesOfOperators(matched place, s scope) {
	walk(matched, func(p place) bool {
		if len(p.Fields) == 1 {
			i.refer(p.get("$$matchesEntity"), s, entities.SavedValue)
			i.refer(p.get("$$sessionLsid"), s, entities.Session)
		}
		return true
	})
}

// logOf is the prefix of the components of log messages in a set of event types.
const logOf = "log "

// tracing stands for the spans in a set of event types.
const tracing = "tracing"

// observed returns the event types and the log components that a client observes, and whether it observes spans.
func observed(client place) map[string]bool {
	types := map[string]bool{}
	for _, e := range client.Value.Get("observeEvents").Elements() {
		types[e.Text()] = true
	}
	for _, component := range client.get("observeLogMessages").fields() {
		types[logOf+component.Key] = true
	}
	types[tracing] = client.get("observeTracingMessages").exists()
	return types
}

// checkObservedEvent checks an event expected of a client. entity.client, observeEvents: a client
// ignores all other events.
func (i *inspection) checkObservedEvent(event place, client string, observed map[string]map[string]bool) {
	types, isClient := observed[client]
	for _, f := range event.fields() {
		if isClient && !types[f.Key] {
			i.reportAt("unobserved-event", f.KeyPosition, event.path+"."+f.Key, "client %q does not observe %s", client, f.Key)
		}
	}
}

func (i *inspection) checkObserved(t place, s scope) {
	t.get("expectEvents").each(func(e place) {
		client := e.Value.Get("client").Text()
		e.get("events").each(func(event place) { i.checkObservedEvent(event, client, s.observed) })
		types, isClient := s.observed[client]
		if events := e.get("events"); isClient && len(events.Items) == 0 &&
			!observesAny(types, e.Value.Get("eventType").Text()) {
			i.report("unobserved-event", events,
				"client %q does not observe events of this type, so their absence proves nothing", client)
		}
	})
	t.get("expectLogMessages").each(func(e place) {
		client := e.Value.Get("client").Text()
		types, isClient := s.observed[client]
		messages := e.get("messages")
		if isClient && len(messages.Items) == 0 && !observesAny(types, logOf) {
			i.report("unobserved-event", messages, "client %q does not observe log messages, so their absence proves nothing",
				client)
		}
		messages.each(func(m place) {
			if c := m.get("component"); isClient && c.exists() && !types[logOf+c.String] {
				i.report("unobserved-event", c, "client %q does not observe log messages of component %s", client, c.String)
			}
		})
	})
	t.get("expectTracingMessages").each(func(e place) {
		client := e.Value.Get("client").Text()
		if types, isClient := s.observed[client]; isClient && !types[tracing] {
			i.report("unobserved-event", e.get("spans"), "client %q does not have observeTracingMessages", client)
		}
	})
}

// observesAny reports whether a client observes any event of an eventType, or any log message (logOf).
func observesAny(types map[string]bool, eventType string) bool {
	prefixes := map[string][]string{logOf: {logOf}, "": {"command"}, "command": {"command"},
		"cmap": {"pool", "connection"}, "sdam": {"server", "topology"}}
	for t := range types {
		if slices.ContainsFunc(prefixes[eventType], func(p string) bool { return strings.HasPrefix(t, p) }) {
			return true
		}
	}
	return false
}

// test, expectEvents, expectLogMessages and expectTracingMessages: at most one element for each client and event type.
func (i *inspection) checkRepeatedExpectations(t place) {
	for _, list := range expectations {
		seen := map[[2]string]bool{}
		t.get(list.key).each(func(e place) {
			client, eventType, of := e.Value.Get("client").Text(), "", ""
			if list.key == "expectEvents" {
				eventType = cmp.Or(e.Value.Get("eventType").Text(), "command")
				of = " and eventType " + eventType
			}
			key := [2]string{client, eventType}
			if seen[key] {
				i.report("repeated-expectation", e, "this test already has %s for client %q%s", list.key, client, of)
			}
			seen[key] = true
		})
	}
}

// A test that cannot fail is useless. It ignores the result and error of every operation, and its expectations hold
// whatever the client does.
func (i *inspection) checkVacuous(t place) {
	if t.Value.Get("outcome") != nil {
		return
	}
	for _, o := range t.Value.Get("operations").Elements() {
		if !o.Get("ignoreResultAndError").IsTrue() {
			return
		}
	}
	for _, list := range expectations {
		for _, e := range t.Value.Get(list.key).Elements() {
			if len(e.Get(list.expected).Elements()) > 0 || !e.Get(list.extra).IsTrue() {
				return
			}
		}
	}
	i.report("vacuous", t, "the test asserts nothing: only the creation of its entities could fail")
}
