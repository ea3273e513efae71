package matchers

import (
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// check compares one field of an error, an event or a log message with what
// the file expects of it.
type check[T any] func(c *comparison, got T)

// reader compiles the expectation about one field. Its argument is the value
// of a key that the table of readers knows.
type reader[T any] func(k *compiler, v *source.Value) check[T]

// record is an expectation about an error, an event or a log message: a
// document with one check for each of its keys.
type record[T any] struct {
	source *source.Value
	fields []field[T]
}

type field[T any] struct {
	name  string
	check check[T]
}

// readRecord compiles a document whose keys must be in the table of readers.
func readRecord[T any](k *compiler, v *source.Value, readers map[string]reader[T]) record[T] {
	x := record[T]{source: v}
	k.each(v, func(f source.Field) bool {
		read, known := readers[f.Key]
		if known {
			x.fields = append(x.fields, field[T]{f.Key, read(k, f.Value)})
		}
		return known
	})
	return x
}

func (x record[T]) match(c *comparison, got T) {
	for _, f := range x.fields {
		c.path.atKey(f.name, func() { f.check(c, got) })
	}
}

// agrees reports whether one field matches, or is not expected at all.
func (x record[T]) agrees(name string, got T) bool {
	return !slices.ContainsFunc(x.fields, func(f field[T]) bool {
		return f.name == name && !passes(func(c *comparison) { f.check(c, got) })
	})
}

// at and text are for the report of an expectation without a counterpart.
func (x record[T]) at() source.Position { return x.source.Position }
func (x record[T]) text() string        { return abridge(x.source.JSON()) }

// word reads a string that must be equal.
func word[T any](get func(T) string) reader[T] {
	return func(k *compiler, v *source.Value) check[T] {
		want := k.string(v)
		return func(c *comparison, seen T) {
			if got := get(seen); got != want {
				c.reject(v, source.Quote(got), "the values differ")
			}
		}
	}
}

// flag reads a boolean that must be set and equal.
func flag[T any](get func(T) *bool) reader[T] {
	return func(k *compiler, v *source.Value) check[T] {
		want := k.bool(v)
		return func(c *comparison, seen T) {
			switch got := get(seen); {
			case got == nil:
				c.reject(v, nothing, "this field is not set")
			case *got != want:
				c.reject(v, either(*got, "true", "false"), "the values differ")
			}
		}
	}
}

var messageFields = map[string]reader[*result.LogMessage]{
	"level":             word(func(m *result.LogMessage) string { return m.Level }),
	"component":         word(func(m *result.LogMessage) string { return m.Component }),
	"failureIsRedacted": flag(func(m *result.LogMessage) *bool { return m.FailureRedacted }),
	"data": func(k *compiler, v *source.Value) check[*result.LogMessage] {
		want := k.document(v)
		return func(c *comparison, m *result.LogMessage) { c.match(want, present(m.Data), RootDocument) }
	},
}

type logExpectation struct {
	record[*result.LogMessage]
	message *node // of data; nil if any will do
}

func (k *compiler) expectedLogMessage(v *source.Value) logExpectation {
	x := logExpectation{record: readRecord(k, v, messageFields)}
	for _, required := range []string{"level", "component", "data"} {
		if v.Kind == source.Document && v.Get(required) == nil {
			k.faultOf(v, "an expected log message requires %s", required)
		}
	}
	if message := v.Get("data").Get("message"); message != nil && len(k.faults) == 0 {
		x.message = k.value(message, atKey)
	}
	return x
}

// alike reports whether a message is worth comparing: the same component, and
// the same text if one is expected.
func (x logExpectation) alike(m *result.LogMessage) bool {
	return x.agrees("component", m) && (x.message == nil || holds(x.message, lookup(m.Data, "message"), Nested))
}

func describeLog(m *result.LogMessage) string {
	return abridge(strings.Join([]string{m.Level, m.Component, Extended(present(m.Data), false)}, " "))
}
