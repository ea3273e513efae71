package matchers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// errorCheck holds one field of an expectedError against an error.
type errorCheck func(c *comparison, err *result.Error)

// errorFields reads each field of an expectedError ("expectedError").
var errorFields = map[string]func(k *compiler, v *source.Value, e Expectation) errorCheck{
	"isError":            readIsError,
	"isClientError":      readIsClientError,
	"isTimeoutError":     readIsTimeoutError,
	"errorContains":      readErrorContains,
	"errorCode":          readErrorCode,
	"errorCodeName":      readErrorCodeName,
	"errorLabelsContain": readErrorLabelsContain,
	"errorLabelsOmit":    readErrorLabelsOmit,
	"writeErrors":        readWriteErrors,
	"writeConcernErrors": readWriteConcernErrors,
	"errorResponse":      readErrorResponse,
	"expectResult":       readErrorResult,
}

// errorExpectation is a compiled expectedError.
type errorExpectation struct {
	at     source.Position
	text   string
	fields []errorField
}

type errorField struct {
	name  string
	check errorCheck
}

func (k *compiler) expectedError(v *source.Value, e Expectation) errorExpectation {
	x := errorExpectation{at: v.Position, text: text(v)}
	k.each(v, slices.Collect(maps.Keys(errorFields)), func(f source.Field) {
		x.fields = append(x.fields, errorField{f.Key, errorFields[f.Key](k, f.Value, e)})
	})
	if v.Kind == source.Document && len(v.Fields) == 0 {
		k.faultOf(v, "expectError needs at least one key")
	}
	return x
}

func (x errorExpectation) match(c *comparison, outcome result.Outcome) {
	if outcome.Err == nil {
		c.say(x.at, abridge(x.text), "success: "+abridge(extended(outcome.Value, false)), "want an error, but the operation succeeded")
		return
	}
	if outcome.Err.Unsupported != "" {
		c.say(x.at, abridge(x.text), describeError(outcome.Err), "the engine does not support this: %s", outcome.Err.Unsupported)
		return
	}
	for _, f := range x.fields {
		c.path.key(f.name)
		f.check(c, outcome.Err)
		c.path.pop()
	}
}

func readIsError(k *compiler, v *source.Value, _ Expectation) errorCheck {
	if !k.bool(v) {
		k.faultOf(v, "isError must not be false")
	}
	return func(*comparison, *result.Error) {} // that there is an error is known by now
}

func readIsClientError(k *compiler, v *source.Value, _ Expectation) errorCheck {
	want := k.bool(v)
	return func(c *comparison, err *result.Error) {
		if err.Client != want {
			c.say(v.Position, text(v), describeError(err), "want %s error", either(want, "a client-side", "a server-side"))
		}
	}
}

func readIsTimeoutError(k *compiler, v *source.Value, _ Expectation) errorCheck {
	want := k.bool(v)
	return func(c *comparison, err *result.Error) {
		if err.Timeout != want {
			c.say(v.Position, text(v), describeError(err), "want an error that is %s", either(want, "a timeout", "no timeout"))
		}
	}
}

// readErrorContains and readErrorCodeName examine the aggregated errors of a
// BulkWriteException too ("bulkWrite"), but not those of a client bulk write
// ("clientBulkWrite").
func readErrorContains(k *compiler, v *source.Value, e Expectation) errorCheck {
	want := strings.ToLower(k.string(v))
	return func(c *comparison, err *result.Error) {
		found := strings.Contains(strings.ToLower(err.Message), want)
		if e.Aggregates {
			found = found || anyString(err, "errmsg", func(s string) bool {
				return strings.Contains(strings.ToLower(s), want)
			})
		}
		if !found {
			c.say(v.Position, text(v), describeError(err), "the error message does not contain this")
		}
	}
}

func readErrorCodeName(k *compiler, v *source.Value, e Expectation) errorCheck {
	want := k.string(v)
	return func(c *comparison, err *result.Error) {
		is := func(s string) bool { return s != "" && strings.EqualFold(s, want) }
		if is(err.CodeName) || e.Aggregates && anyString(err, "codeName", is) {
			return
		}
		c.say(v.Position, text(v), describeError(err), "%s", either(err.CodeName == "",
			"the error has no code name", "the code names differ"))
	}
}

func readErrorCode(k *compiler, v *source.Value, _ Expectation) errorCheck {
	want := k.int(v)
	return func(c *comparison, err *result.Error) {
		switch {
		case !err.HasCode:
			c.say(v.Position, text(v), describeError(err), "the error has no code")
		case !want.equal(number{i: int64(err.Code)}):
			c.say(v.Position, text(v), describeError(err), "the codes differ: got %d", err.Code)
		}
	}
}

func readErrorLabelsContain(k *compiler, v *source.Value, _ Expectation) errorCheck {
	return readLabels(k, v, true)
}

func readErrorLabelsOmit(k *compiler, v *source.Value, _ Expectation) errorCheck {
	return readLabels(k, v, false)
}

func readLabels(k *compiler, v *source.Value, want bool) errorCheck {
	k.list(v, func(label *source.Value) { k.string(label) })
	return func(c *comparison, err *result.Error) {
		for i, label := range v.Items {
			if err.HasLabel(label.String) != want {
				c.path.index(i)
				c.say(label.Position, text(label), describeError(err), "the error %s this label", either(want, "lacks", "has"))
				c.path.pop()
			}
		}
	}
}

func readWriteErrors(k *compiler, v *source.Value, _ Expectation) errorCheck {
	want := map[int]*node{}
	keys := map[int]string{}
	if v.Kind != source.Document {
		k.faultOf(v, "want a document")
	}
	for _, f := range v.Fields {
		k.path.key(f.Key)
		i, err := strconv.Atoi(f.Key)
		if _, twice := want[i]; err != nil || i < 0 || twice {
			k.fault(f.KeyPosition, f.Key, "want the index of a write, once")
		}
		want[i], keys[i] = k.document(f.Value), f.Key
		k.path.pop()
	}
	return func(c *comparison, err *result.Error) {
		for _, i := range slices.Sorted(maps.Keys(want)) {
			c.path.key(keys[i])
			c.match(want[i], present(err.WriteErrors[i]), RootDocument)
			c.path.pop()
		}
		for _, i := range slices.Sorted(maps.Keys(err.WriteErrors)) {
			if want[i] == nil {
				c.say(v.Position, abridge(text(v)), abridge(extended(present(err.WriteErrors[i]), false)), "unexpected write error for index %d", i)
			}
		}
	}
}

func readWriteConcernErrors(k *compiler, v *source.Value, _ Expectation) errorCheck {
	var want []*node
	k.list(v, func(item *source.Value) { want = append(want, k.document(item)) })
	return func(c *comparison, err *result.Error) {
		for i, n := range want {
			var got bson.Raw
			if i < len(err.WriteConcernErrors) {
				got = err.WriteConcernErrors[i]
			}
			c.path.index(i)
			c.match(n, present(got), RootDocument)
			c.path.pop()
		}
		if len(err.WriteConcernErrors) != len(want) {
			c.say(v.Position, abridge(text(v)), describeError(err), "want %s, got %d",
				count(len(want), "write concern error"), len(err.WriteConcernErrors))
		}
	}
}

func readErrorResponse(k *compiler, v *source.Value, _ Expectation) errorCheck {
	want := k.document(v)
	return func(c *comparison, err *result.Error) {
		c.match(want, present(err.Response), RootDocument)
	}
}

func readErrorResult(k *compiler, v *source.Value, e Expectation) errorCheck {
	want := k.value(v, atTop)
	return func(c *comparison, err *result.Error) { c.match(want, err.Partial, e.Shape) }
}

// present is a document as a value: a missing one if there is none.
func present(raw bson.Raw) bson.RawValue {
	if raw == nil {
		return bson.RawValue{}
	}
	return document(raw)
}

// anyString reports whether a field of any write error or write concern error
// is a string that satisfies ok.
func anyString(err *result.Error, key string, ok func(string) bool) bool {
	all := slices.AppendSeq(slices.Clone(err.WriteConcernErrors), maps.Values(err.WriteErrors))
	return slices.ContainsFunc(all, func(raw bson.Raw) bool {
		list, e := elements(raw)
		return e == nil && slices.ContainsFunc(list, func(e element) bool {
			s, isString := e.value.StringValueOK()
			return e.key == key && isString && ok(s)
		})
	})
}

// describeError gives an error in one line.
func describeError(err *result.Error) string {
	var b strings.Builder
	b.WriteString(either(err.Client, "client-side error", "server-side error"))
	if err.Kind != "" {
		b.WriteString(" (" + err.Kind + ")")
	}
	if err.Timeout {
		b.WriteString(", a timeout")
	}
	if err.HasCode || err.CodeName != "" {
		fmt.Fprintf(&b, ", code %d %s", err.Code, err.CodeName)
	}
	if len(err.Labels) > 0 {
		b.WriteString(", labels " + strings.Join(err.Labels, ", "))
	}
	if err.Server != "" {
		b.WriteString(", from " + err.Server)
	}
	b.WriteString(": " + err.Message)
	return abridge(b.String())
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
