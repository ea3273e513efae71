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

// raised is an error, with what the operation that raised it says of it.
type raised struct {
	*result.Error
	operation Expectation
}

// errorFields are the keys of an expectedError ("expectedError"). Messages and
// code names of the aggregated errors of a BulkWriteException count too
// ("bulkWrite"), but not those of a client bulk write ("clientBulkWrite").
var errorFields = map[string]reader[raised]{
	"isError": func(k *compiler, v *source.Value) check[raised] {
		if !k.bool(v) {
			k.faultOf(v, "isError must not be false")
		}
		return func(*comparison, raised) {} // that there is an error is known by now
	},
	"isClientError": class("expected a client-side error", "expected a server-side error",
		func(err raised) bool { return err.Client }),
	"isTimeoutError": class("expected a timeout", "expected an error other than a timeout",
		func(err raised) bool { return err.Timeout }),
	"errorContains":      readErrorContains,
	"errorCode":          readErrorCode,
	"errorCodeName":      readErrorCodeName,
	"errorLabelsContain": labels(true, "the error lacks this label"),
	"errorLabelsOmit":    labels(false, "the error has this label"),
	"writeErrors":        readWriteErrors,
	"writeConcernErrors": readWriteConcernErrors,
	"errorResponse": func(k *compiler, v *source.Value) check[raised] {
		want := k.document(v)
		return func(c *comparison, err raised) { c.match(want, present(err.Response), RootDocument) }
	},
	"expectResult": func(k *compiler, v *source.Value) check[raised] {
		want := k.value(v, atTop)
		return func(c *comparison, err raised) { c.match(want, err.Partial, err.operation.Shape) }
	},
}

func (k *compiler) expectedError(v *source.Value) record[raised] {
	x := readRecord(k, v, errorFields)
	if v.Kind == source.Document && len(v.Fields) == 0 {
		k.faultOf(v, "expectError requires at least one key")
	}
	return x
}

// matchError compares the outcome of an operation with its expectError.
func matchError(c *comparison, x record[raised], outcome result.Outcome, operation Expectation) {
	switch err := outcome.Err; {
	case err == nil:
		c.reject(x.source, "success: "+abridge(Extended(outcome.Value, false)), "expected an error, but the operation succeeded")
	case err.Unsupported != "":
		c.reject(x.source, describeError(err), "the engine does not support this: %s", err.Unsupported)
	default:
		x.match(c, raised{err, operation})
	}
}

// class reads whether an error must be of a class, and says otherwise what it
// should have been.
func class(yes, no string, is func(raised) bool) reader[raised] {
	return func(k *compiler, v *source.Value) check[raised] {
		want := k.bool(v)
		return func(c *comparison, err raised) {
			if is(err) != want {
				c.reject(v, describeError(err.Error), "%s", either(want, yes, no))
			}
		}
	}
}

func readErrorContains(k *compiler, v *source.Value) check[raised] {
	want := strings.ToLower(k.string(v))
	return func(c *comparison, err raised) {
		if !err.has("errmsg", err.Message, func(s string) bool { return strings.Contains(strings.ToLower(s), want) }) {
			c.reject(v, describeError(err.Error), "the error message does not contain this")
		}
	}
}

func readErrorCodeName(k *compiler, v *source.Value) check[raised] {
	want := k.string(v)
	return func(c *comparison, err raised) {
		if !err.has("codeName", err.CodeName, func(s string) bool { return s != "" && strings.EqualFold(s, want) }) {
			c.reject(v, describeError(err.Error), "%s", either(err.CodeName == "", "the error has no code name", "the code names differ"))
		}
	}
}

// has reports whether a string of the error is acceptable, or the field of any
// write error or write concern error that the error aggregates.
func (err raised) has(key, own string, ok func(string) bool) bool {
	if ok(own) || !err.operation.Aggregates {
		return ok(own)
	}
	all := slices.AppendSeq(slices.Clone(err.WriteConcernErrors), maps.Values(err.WriteErrors))
	return slices.ContainsFunc(all, func(raw bson.Raw) bool {
		s, isString := lookup(raw, key).StringValueOK()
		return isString && ok(s)
	})
}

func readErrorCode(k *compiler, v *source.Value) check[raised] {
	want := k.int(v)
	return func(c *comparison, err raised) {
		switch {
		case !err.HasCode:
			c.reject(v, describeError(err.Error), "the error has no code")
		case !want.equal(whole(int64(err.Code))):
			c.reject(v, describeError(err.Error), "the codes differ: got %d", err.Code)
		}
	}
}

// labels reads labels that an error must have, or must not have.
func labels(want bool, otherwise string) reader[raised] {
	return func(k *compiler, v *source.Value) check[raised] {
		k.list(v, func(label *source.Value) { k.string(label) })
		return func(c *comparison, err raised) {
			for i, label := range v.Items {
				if err.HasLabel(label.String) != want {
					c.path.atIndex(i, func() { c.reject(label, describeError(err.Error), "%s", otherwise) })
				}
			}
		}
	}
}

func readWriteErrors(k *compiler, v *source.Value) check[raised] {
	want := map[int]*node{}
	keys := map[int]string{}
	k.each(v, func(f source.Field) bool {
		i, err := strconv.Atoi(f.Key)
		if _, twice := want[i]; err != nil || i < 0 || twice {
			k.fault(f.KeyPosition, f.Key, "expected the index of a write, once")
		}
		want[i], keys[i] = k.document(f.Value), f.Key
		return true
	})
	return func(c *comparison, err raised) {
		for _, i := range slices.Sorted(maps.Keys(want)) {
			c.path.atKey(keys[i], func() { c.match(want[i], present(err.WriteErrors[i]), RootDocument) })
		}
		for _, i := range slices.Sorted(maps.Keys(err.WriteErrors)) {
			if want[i] == nil {
				c.reject(v, abridge(Extended(present(err.WriteErrors[i]), false)), "unexpected write error for index %d", i)
			}
		}
	}
}

func readWriteConcernErrors(k *compiler, v *source.Value) check[raised] {
	var want []*node
	k.list(v, func(item *source.Value) { want = append(want, k.document(item)) })
	return func(c *comparison, err raised) {
		for i, n := range want {
			var got bson.Raw
			if i < len(err.WriteConcernErrors) {
				got = err.WriteConcernErrors[i]
			}
			c.path.atIndex(i, func() { c.match(n, present(got), RootDocument) })
		}
		if len(err.WriteConcernErrors) != len(want) {
			c.reject(v, describeError(err.Error), "expected %s, got %d", count(len(want), "write concern error"), len(err.WriteConcernErrors))
		}
	}
}

// present is a document as a value: a missing one if there is none.
func present(raw bson.Raw) bson.RawValue {
	if raw == nil {
		return bson.RawValue{}
	}
	return document(raw)
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
	add(err.HasCode || err.CodeName != "", ", code %d %s", err.Code, err.CodeName)
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
