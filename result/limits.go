package result

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Limits bound what a verdict keeps for reports: a test that retries in a loop for a minute creates hundreds of
// thousands of events. Of a longer list, three quarters of the limit are kept from the start and a quarter from the
// end; a Gap records the omission.
type Limits struct {
	Mismatches int // of a test
	Events     int // of a client
	Operations int // of a test
	Decisions  int // of an operation
	LogLines   int // of the servers
	// Bytes of the mismatches, the events and the server log of a test.
	MismatchBytes, EventBytes, LogBytes int
	// Document is the maximum size in bytes of documents, which are replaced by
	// {leftOut: …}, and of texts. Longer texts are truncated.
	Document int
}

// DefaultLimits returns the limits of a run.
func DefaultLimits() Limits {
	return Limits{
		Mismatches: 200, Events: 2000, Operations: 500, Decisions: 500, LogLines: 60,
		MismatchBytes: 256 << 10, EventBytes: 1 << 20, LogBytes: 8 << 10, Document: 64 << 10,
	}
}

// Gap records that Count entries were omitted from a list after the first After entries. The zero value means none.
type Gap struct {
	After int `json:"after"`
	Count int `json:"count"`
}

// IsZero reports whether nothing was omitted.
func (g Gap) IsZero() bool { return g.Count == 0 }

// Trim reduces a verdict to the limits. It copies what it changes.
func (v *Verdict) Trim(l Limits) {
	v.Mismatches = slices.Clone(v.Mismatches)
	for i := range v.Mismatches {
		m := &v.Mismatches[i]
		for _, text := range []*string{&m.Message, &m.Want, &m.Got, &m.Diff} {
			*text = l.text(*text)
		}
	}
	v.Mismatches, v.OmittedMismatches = trimmed(v.Mismatches, v.OmittedMismatches, l.Mismatches, l.MismatchBytes,
		func(m *Mismatch) int {
			return len(m.Path) + len(m.Message) + len(m.Want) + len(m.Got) + len(m.Diff)
		})
	v.Operations, v.OmittedOperations = trimmed(v.Operations, v.OmittedOperations, l.Operations, l.EventBytes,
		func(*OperationLog) int { return 0 })
	for i := range v.Operations {
		o := &v.Operations[i]
		o.Decisions, o.Omitted = trimmed(o.Decisions, o.Omitted, l.Decisions, l.EventBytes, func(*Decision) int { return 0 })
		o.Value = l.value(o.Value)
		o.Err = l.error(o.Err)
	}
	v.Clients = slices.Clone(v.Clients)
	for i := range v.Clients {
		c := &v.Clients[i]
		c.Events = slices.Clone(c.Events)
		for j := range c.Events {
			e := &c.Events[j]
			e.Body, e.Failure = l.document(e.Body), l.error(e.Failure)
		}
		c.Events, c.Omitted = trimmed(c.Events, c.Omitted, l.Events, l.EventBytes/len(v.Clients), (*Event).size)
	}
	v.ServerLog, v.OmittedLog = trimmed(v.ServerLog, v.OmittedLog, l.LogLines, l.LogBytes,
		func(line *LogLine) int { return len(line.Text) })
}

// trimmed returns a trimmed copy of a list, never nil, and the gap, including entries that were omitted before. Each
// entry costs at least bytes/most, so that at most that many fit.
func trimmed[T any](list []T, before Gap, most, bytes int, size func(*T) int) ([]T, Gap) {
	cost := func(i int) int { return max(bytes/max(1, most), size(&list[i])) }
	all := 0
	for i := range list {
		all += cost(i)
	}
	if all <= bytes || len(list) < 2 {
		return append([]T{}, list...), before
	}
	head, tail := 1, len(list)-1
	for used := cost(0) + cost(1); used <= bytes*3/4; used += cost(head) {
		head++
	}
	for used := cost(tail) + cost(tail-1); used <= bytes/4 && tail > head; used += cost(tail - 1) {
		tail--
	}
	if tail == head {
		return slices.Clone(list), before
	}
	return slices.Concat(list[:head], list[tail:]), Gap{After: head, Count: tail - head + before.Count}
}

func (e *Event) size() int {
	n := len(e.Body)
	if e.Failure != nil {
		n += len(e.Failure.Response)
	}
	return n
}

// error returns e itself if it is within the limits.
func (l Limits) error(e *Error) *Error {
	if e == nil {
		return nil
	}
	long := func(d Document) bool { return len(d) > l.Document }
	writes := len(e.WriteErrors) > l.Operations || len(e.WriteConcernErrors) > l.Operations ||
		slices.ContainsFunc(e.WriteConcernErrors, long)
	for _, w := range e.WriteErrors {
		writes = writes || long(w)
	}
	if !writes && !long(e.Response) && len(e.Partial.Value) <= l.Document {
		return e
	}
	short := *e
	short.Response, short.Partial = l.document(e.Response), l.value(e.Partial)
	if writes {
		short.WriteErrors, short.WriteConcernErrors = nil, []Document{leftOut(count(len(e.WriteErrors), "write error") +
			" and " + count(len(e.WriteConcernErrors), "write concern error"))}
	}
	return &short
}

// text truncates a long string at a character boundary.
func (l Limits) text(s string) string {
	if len(s) <= l.Document {
		return s
	}
	return fmt.Sprintf("%s… %s left out", strings.ToValidUTF8(s[:l.Document], ""), count(len(s)-l.Document, "byte"))
}

func (l Limits) document(d Document) Document {
	if len(d) <= l.Document {
		return d
	}
	return leftOut(count(len(d), "byte"))
}

func (l Limits) value(v Value) Value {
	if len(v.Value) <= l.Document {
		return v
	}
	return Value{bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: leftOut(count(len(v.Value), "byte"))}}
}

// leftOut returns the replacement of an omitted document.
func leftOut(what string) Document {
	d, _ := bson.Marshal(bson.D{{Key: "leftOut", Value: what}}) // a string never fails
	return d
}

// count returns a number and a noun with a regular plural.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
