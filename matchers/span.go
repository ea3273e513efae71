package matchers

import (
	"bytes"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// Spans matches the tracing spans of a client against an expectedTracingMessagesForClient. Siblings are compared in
// the order in which they began. With ignoreExtraSpans, other spans may be before, between and after the expected ones
// at every level; otherwise a span without "nested" has no nested spans.
func (m *Matcher) Spans(path string, expected *source.Value, actual []result.Span) []result.Mismatch {
	return m.found(path, "spans", func() {
		top := spanList(m, "span", expected.Get("spans"), trees(actual), expected.Get("ignoreExtraSpans").IsTrue(), "")
		top.of = expected.Get("client").Text()
		matchList(m, top)
	})
}

// spanTree is a span with its nested spans.
type spanTree struct {
	*result.Span
	nested []*spanTree
}

// trees returns the roots of a list of spans.
func trees(spans []result.Span) (roots []*spanTree) {
	earlier := make(map[string]*spanTree, len(spans))
	for i := range spans {
		t := &spanTree{Span: &spans[i]}
		if parent := earlier[t.Parent]; parent != nil {
			parent.nested = append(parent.nested, t)
		} else {
			roots = append(roots, t)
		}
		earlier[t.ID] = t
	}
	return roots
}

// spanList compares the spans of one level. want is an array of spans.
func spanList(m *Matcher, what string, want *source.Value, got []*spanTree, extra bool, indent string) list[*spanTree] {
	return list[*spanTree]{
		what: what, at: want.Position, want: want.Items, got: got, allowExtra: extra, anywhere: extra,
		match: m.matchSpan, alike: alikeSpans, describe: describeSpan,
		wanted:   func(want *source.Value) string { return indent + wantedSpan(want) },
		observed: func(got *spanTree) string { return indent + observedSpan(got) },
		below: func(want *source.Value, got *spanTree) []result.Row {
			return m.nestedSpans(want, got, extra, indent+"  ")
		},
	}
}

// nestedSpans compares the spans inside two paired spans, and returns their rows. If one of the two is missing or their
// names differ, that is the difference, and the spans inside are only listed.
func (m *Matcher) nestedSpans(want *source.Value, got *spanTree, extra bool, indent string) (rows []result.Row) {
	if want != nil && got != nil && alikeSpans(want, got) {
		inside := want.Get("nested")
		if inside == nil {
			inside = &source.Value{Position: want.Position, Kind: source.Array}
		}
		m.atKey("nested", func() { rows = pairs(m, spanList(m, "nested span", inside, got.nested, extra, indent)) })
		return rows
	}
	for _, inside := range want.Get("nested").Elements() {
		rows = append(rows, result.Row{Want: indent + wantedSpan(inside)})
		rows = append(rows, m.nestedSpans(inside, nil, extra, indent+"  ")...)
	}
	if got != nil {
		for _, inside := range got.nested {
			rows = append(rows, result.Row{Got: indent + observedSpan(inside)})
			rows = append(rows, m.nestedSpans(nil, inside, extra, indent+"  ")...)
		}
	}
	return rows
}

func (m *Matcher) matchSpan(want *source.Value, got *spanTree) {
	if !alikeSpans(want, got) {
		m.atKey("name", func() { m.word(want.Get("name"), got.Name) })
		return
	}
	m.atKey("attributes", func() { m.match(want.Get("attributes"), document(got.Attributes), operations.RootDocument) })
}

func alikeSpans(want *source.Value, got *spanTree) bool { return want.Get("name").Text() == got.Name }

func describeSpan(got *spanTree) string {
	text := got.Name + " " + ExtendedJSON(document(got.Attributes), false)
	if n := len(got.nested); n > 0 {
		text += " with " + plural.Of(n, "nested span")
	}
	return abridge(text)
}

// statusCode is the attribute that distinguishes a failed attempt from its retry.
const statusCode = "db.response.status_code"

func wantedSpan(want *source.Value) string {
	return spanWords(want.Get("name").Text(), want.Get("attributes").Get(statusCode).Text())
}

func observedSpan(got *spanTree) string {
	code, _ := got.Attributes.Lookup(statusCode).StringValueOK()
	return spanWords(got.Name, code)
}

func spanWords(name, code string) string {
	if code == "" {
		return name
	}
	return strings.Join([]string{name, "error", code}, " ")
}

// matchSessionText compares the attribute db.mongodb.lsid, a string, with a logical session id: the text of its UUID,
// or the document in Extended JSON. OpenTelemetry, "Command Span Attributes", does not prescribe a form.
func (m *Matcher) matchSessionText(want, lsid *source.Value, actual bson.RawValue) {
	raw, err := lsid.Raw()
	_, id, ok := raw.Lookup("id").BinaryOK()
	if err != nil || !ok || len(id) != 16 {
		m.differ(want, actual, "the id of the session is not a UUID")
		return
	}
	text := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if text == actual.StringValue() {
		return
	}
	var document bson.Raw
	err = bson.UnmarshalExtJSON([]byte(actual.StringValue()), false, &document)
	if _, other, _ := document.Lookup("id").BinaryOK(); err != nil || !bytes.Equal(other, id) {
		m.differ(want, actual, "the session has the id %s", text)
	}
}
