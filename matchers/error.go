package matchers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

type raised struct {
	*result.Error
	operation Expectation
}

// errorFields compares the keys of an expectedError.
var errorFields = map[string]func(*Matcher, *source.Value, raised){
	"isError": func(*Matcher, *source.Value, raised) {}, // always true here
	"isClientError": func(m *Matcher, want *source.Value, err raised) {
		if err.Client != want.Bool {
			m.reject(want, strconv.FormatBool(err.Client), "%s",
				either(want.Bool, "expected a client-side error", "expected a server-side error"))
		}
	},
	"isTimeoutError": func(m *Matcher, want *source.Value, err raised) {
		if err.Timeout != want.Bool {
			m.reject(want, strconv.FormatBool(err.Timeout), "%s",
				either(want.Bool, "expected a timeout", "expected an error other than a timeout"))
		}
	},
	"errorContains": func(m *Matcher, want *source.Value, err raised) {
		contains := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(want.String)) }
		if !err.has("errmsg", err.Message, contains) {
			m.reject(want, abridge(source.Quote(err.Message)), "the error message does not contain this")
		}
	},
	"errorCode": matchErrorCode,
	"errorCodeName": func(m *Matcher, want *source.Value, err raised) {
		if !err.has("codeName", err.CodeName, func(s string) bool { return s != "" && strings.EqualFold(s, want.String) }) {
			m.reject(want, either(err.CodeName == "", nothing, source.Quote(err.CodeName)), "%s",
				either(err.CodeName == "", "the error has no code name", "the code names differ"))
		}
	},
	"errorLabelsContain": labels(true, "the error lacks this label"),
	"errorLabelsOmit":    labels(false, "the error has this label"),
	"writeErrors":        matchWriteErrors,
	"writeConcernErrors": matchWriteConcernErrors,
	"errorResponse": func(m *Matcher, want *source.Value,
		err raised) {
		m.match(want, present(err.Response), operations.RootDocument)
	},
	"expectResult": func(m *Matcher, want *source.Value, err raised) {
		m.match(want, err.Partial.RawValue, err.operation.Shape)
	},
}

// matchError compares the outcome of an operation with expectError.
func (m *Matcher) matchError(operation Expectation, outcome result.Outcome) {
	switch err := outcome.Err; {
	case err == nil:
		m.reject(operation.Error, "success: "+abridge(ExtendedJSON(outcome.Value.RawValue, false)),
			"expected an error, but the operation succeeded")
	case err.Unsupported != "":
		m.reject(operation.Error, describeError(err), "the engine does not support this: %s", err.Unsupported)
	default:
		fields(m, operation.Error, errorFields, raised{err, operation})
	}
}

// has reports whether a string of the error is acceptable or, for a
// BulkWriteException, the field of any of its errors ("bulkWrite").
func (err raised) has(key, own string, ok func(string) bool) bool {
	if ok(own) || !err.operation.Aggregates {
		return ok(own)
	}
	all := slices.AppendSeq(slices.Clone(err.WriteConcernErrors), maps.Values(err.WriteErrors))
	return slices.ContainsFunc(all, func(raw result.Document) bool {
		s, isString := raw.Lookup(key).StringValueOK()
		return isString && ok(s)
	})
}

func matchErrorCode(m *Matcher, want *source.Value, err raised) {
	code, whole := want.Integer()
	switch {
	case err.Code == 0:
		m.reject(want, nothing, "the error has no code")
	case !whole || code != int64(err.Code):
		m.reject(want, joined([]string{strconv.Itoa(int(err.Code)), err.CodeName}), "the codes differ")
	}
}

func labels(must bool, otherwise string) func(*Matcher, *source.Value, raised) {
	return func(m *Matcher, want *source.Value, err raised) {
		for i, label := range want.Items {
			if err.HasLabel(label.String) != must {
				m.atIndex(i, func() {
					m.reject(label, "["+strings.Join(mapped(err.Labels, source.Quote), ",")+"]", "%s",
						otherwise)
				})
			}
		}
	}
}

func matchWriteErrors(m *Matcher, want *source.Value, err raised) {
	for _, f := range want.Fields {
		m.atKey(f.Key, func() {
			if i, malformed := strconv.Atoi(f.Key); malformed != nil || f.Key != strconv.Itoa(i) {
				m.reject(f.Value, nothing, "expected the index of a write")
			} else {
				m.match(f.Value, present(err.WriteErrors[i]), operations.RootDocument)
			}
		})
	}
	for _, i := range slices.Sorted(maps.Keys(err.WriteErrors)) {
		if want.Get(strconv.Itoa(i)) == nil {
			m.reject(want, abridge(ExtendedJSON(present(err.WriteErrors[i]), false)), "unexpected write error for index %d", i)
		}
	}
}

func matchWriteConcernErrors(m *Matcher, want *source.Value, err raised) {
	for i, item := range want.Items {
		var got result.Document
		if i < len(err.WriteConcernErrors) {
			got = err.WriteConcernErrors[i]
		}
		m.atIndex(i, func() { m.match(item, present(got), operations.RootDocument) })
	}
	if len(err.WriteConcernErrors) != len(want.Items) {
		m.reject(want, describeError(err.Error), "expected %s, got %d", plural.Of(len(want.Items), "write concern error"),
			len(err.WriteConcernErrors))
	}
}

func mapped(list []string, convert func(string) string) (all []string) {
	for _, s := range list {
		all = append(all, convert(s))
	}
	return all
}

func describeError(err *result.Error) string {
	var b strings.Builder
	b.WriteString(either(err.Client, "client-side error", "server-side error"))
	add := func(say bool, format string, args ...any) {
		if say {
			fmt.Fprintf(&b, format, args...)
		}
	}
	add(err.Kind != "", " (%s)", err.Kind)
	add(err.Timeout, ", a timeout")
	add(err.Code != 0, ", code %d", err.Code)
	add(err.CodeName != "", " %s", err.CodeName)
	add(len(err.Labels) > 0, ", labels %s", strings.Join(err.Labels, ", "))
	add(err.Server != "", ", from %s", err.Server)
	add(true, ": %s", err.Message)
	return abridge(b.String())
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
