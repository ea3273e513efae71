package matchers

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// logExpectation is a compiled expectedLogMessage.
type logExpectation struct {
	at        source.Position
	text      string
	level     *source.Value
	component *source.Value
	redacted  *source.Value // failureIsRedacted
	data      *node
}

func (k *compiler) expectedLogMessage(v *source.Value) *logExpectation {
	x := &logExpectation{at: v.Position, text: text(v)}
	read := map[string]func(*source.Value){
		"level":             func(v *source.Value) { k.string(v); x.level = v },
		"component":         func(v *source.Value) { k.string(v); x.component = v },
		"failureIsRedacted": func(v *source.Value) { k.bool(v); x.redacted = v },
		"data":              func(v *source.Value) { x.data = k.document(v) },
	}
	k.each(v, []string{"level", "component", "failureIsRedacted", "data"}, func(f source.Field) { read[f.Key](f.Value) })
	for _, required := range []string{"level", "component", "data"} {
		if v.Kind == source.Document && v.Get(required) == nil {
			k.faultOf(v, "an expected log message needs %s", required)
		}
	}
	return x
}

// match compares a message ("expectedLogMessage"); the path is at the
// expected one.
func (x *logExpectation) match(c *comparison, m *result.LogMessage) {
	x.word(c, "level", x.level, m.Level)
	x.word(c, "component", x.component, m.Component)
	if x.redacted != nil {
		c.path.key("failureIsRedacted")
		switch {
		case m.FailureRedacted == nil:
			c.say(x.redacted.Position, text(x.redacted), nothing, "the message has no failure")
		case *m.FailureRedacted != x.redacted.Bool:
			c.say(x.redacted.Position, text(x.redacted), either(*m.FailureRedacted, "true", "false"),
				"the failure is %s", either(*m.FailureRedacted, "redacted", "not redacted"))
		}
		c.path.pop()
	}
	c.path.key("data")
	c.match(x.data, present(m.Data), RootDocument)
	c.path.pop()
}

func (x *logExpectation) word(c *comparison, key string, want *source.Value, got string) {
	if want.String != got {
		c.path.key(key)
		c.say(want.Position, text(want), quote(got), "the values differ")
		c.path.pop()
	}
}

// alike reports whether a message is worth comparing: same component, and the
// same text if both have one.
func (x *logExpectation) alike(m *result.LogMessage) bool {
	if x.component.String != m.Component {
		return false
	}
	t, ok := x.data.test.(*fields)
	if !ok {
		return true
	}
	i, ok := t.byKey["message"]
	return !ok || holds(t.nodes[i], lookup(m.Data, "message"), Nested)
}

func lookup(raw bson.Raw, key string) bson.RawValue {
	list, err := elements(raw)
	if err != nil {
		return bson.RawValue{}
	}
	if i := indexOf(list).find(key); i >= 0 {
		return list[i].value
	}
	return bson.RawValue{}
}

func describeLog(m *result.LogMessage) string {
	return abridge(strings.Join([]string{m.Level, m.Component, extended(present(m.Data), false)}, " "))
}
