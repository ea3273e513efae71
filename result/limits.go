package result

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Limits bound what a verdict keeps for reports: a test that goes round in
// circles for a minute makes hundreds of thousands of events. Of a list that
// is longer the first three quarters of the limit are kept and, as the last
// quarter, the last ones; a Gap says how many are missing between.
type Limits struct {
	Mismatches int // of a test
	Events     int // of a client
	Operations int // of a test
	Decisions  int // of an operation
	LogLines   int // of the servers
	// Bytes of all mismatches of a test together, of all its events, and of its
	// excerpt of the servers' logs.
	MismatchBytes, EventBytes, LogBytes int
	// Document is the longest document, in bytes. A longer one is replaced by
	// one that says how long it was, and a longer text loses its end.
	Document int
}

// DefaultLimits are those of a run.
func DefaultLimits() Limits {
	return Limits{
		Mismatches: 200, Events: 2000, Operations: 500, Decisions: 500, LogLines: 60,
		MismatchBytes: 256 << 10, EventBytes: 1 << 20, LogBytes: 8 << 10, Document: 64 << 10,
	}
}

// NoLimits keep everything.
func NoLimits() Limits {
	const all = math.MaxInt / 4 // parts of it are multiplied
	return Limits{
		Mismatches: all, Events: all, Operations: all, Decisions: all, LogLines: all,
		MismatchBytes: all, EventBytes: all, LogBytes: all, Document: all,
	}
}

// Gap says what is missing in a list: Count entries, behind the first After
// ones that were kept. The zero value is that nothing is.
type Gap struct {
	After int `json:"after"`
	Count int `json:"count"`
}

// IsZero reports that nothing is missing.
func (g Gap) IsZero() bool { return g.Count == 0 }

// Trim leaves of a verdict what the limits allow. What the verdict refers to
// is not changed.
func (v *Verdict) Trim(l Limits) {
	v.Mismatches = slices.Clone(v.Mismatches)
	for i := range v.Mismatches {
		m := &v.Mismatches[i]
		for _, text := range []*string{&m.Message, &m.Want, &m.Got, &m.Diff} {
			*text = l.text(*text)
		}
	}
	v.Mismatches, v.OmittedMismatches = trimmed(v.Mismatches, v.OmittedMismatches, l.Mismatches, l.MismatchBytes, func(m *Mismatch) int {
		return len(m.Path) + len(m.Message) + len(m.Want) + len(m.Got) + len(m.Diff)
	})
	v.Operations, v.OmittedOperations = trimmed(v.Operations, v.OmittedOperations, l.Operations, l.EventBytes, func(*OperationLog) int { return 0 })
	for i := range v.Operations {
		o := &v.Operations[i]
		o.Outcome.Decisions, o.Omitted = trimmed(o.Outcome.Decisions, o.Omitted, l.Decisions, l.EventBytes, func(*Decision) int { return 0 })
		o.Outcome.Value = l.value(o.Outcome.Value)
		o.Outcome.Err = l.error(o.Outcome.Err)
	}
	v.Clients = slices.Clone(v.Clients)
	for i := range v.Clients {
		c := &v.Clients[i]
		c.Events = slices.Clone(c.Events)
		for j := range c.Events {
			c.Events[j].Command = l.command(c.Events[j].Command)
		}
		c.Events, c.Omitted = trimmed(c.Events, c.Omitted, l.Events, l.EventBytes/len(v.Clients), (*Event).size)
	}
	v.ServerLog, v.OmittedLog = trimmed(v.ServerLog, v.OmittedLog, l.LogLines, l.LogBytes, func(line *LogLine) int { return len(line.Text) })
}

// trimmed gives what is kept of a list, as a copy, and what is missing, with
// what was missing before. An entry counts for so many bytes at least that no
// more than most of them fit.
func trimmed[T any](list []T, before Gap, most, bytes int, size func(*T) int) ([]T, Gap) {
	cost := func(i int) int { return max(bytes/max(1, most), size(&list[i])) }
	all := 0
	for i := range list {
		all += cost(i)
	}
	if all <= bytes || len(list) < 2 {
		return slices.Clone(list), before
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
	if e.Command == nil {
		return 0
	}
	n := len(e.Command.Command) + len(e.Command.Reply)
	if f := e.Command.Failure; f != nil {
		n += len(f.Response)
	}
	return n
}

func (l Limits) command(c *CommandEvent) *CommandEvent {
	if c == nil || len(c.Command) <= l.Document && len(c.Reply) <= l.Document && (c.Failure == nil || l.error(c.Failure) == c.Failure) {
		return c
	}
	short := *c
	short.Command, short.Reply, short.Failure = l.document(c.Command), l.document(c.Reply), l.error(c.Failure)
	return &short
}

// error gives the error itself if nothing of it is too long.
func (l Limits) error(e *Error) *Error {
	if e == nil {
		return nil
	}
	long := func(d bson.Raw) bool { return len(d) > l.Document }
	writes := len(e.WriteErrors) > l.Operations || len(e.WriteConcernErrors) > l.Operations || slices.ContainsFunc(e.WriteConcernErrors, long)
	for _, w := range e.WriteErrors {
		writes = writes || long(w)
	}
	if !writes && !long(e.Response) && len(e.Partial.Value) <= l.Document {
		return e
	}
	short := *e
	short.Response, short.Partial = l.document(e.Response), l.value(e.Partial)
	if writes {
		short.WriteErrors, short.WriteConcernErrors = nil, []bson.Raw{leftOut(fmt.Sprintf("%d write errors and %d write concern errors", len(e.WriteErrors), len(e.WriteConcernErrors)))}
	}
	return &short
}

// text cuts what is too long, between two characters.
func (l Limits) text(s string) string {
	if len(s) <= l.Document {
		return s
	}
	return fmt.Sprintf("%s… %d bytes left out", strings.ToValidUTF8(s[:l.Document], ""), len(s)-l.Document)
}

func (l Limits) document(d bson.Raw) bson.Raw {
	if len(d) <= l.Document {
		return d
	}
	return leftOut(fmt.Sprintf("%d bytes", len(d)))
}

func (l Limits) value(v bson.RawValue) bson.RawValue {
	if len(v.Value) <= l.Document {
		return v
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: leftOut(fmt.Sprintf("%d bytes", len(v.Value)))}
}

// LeftOut is the only field of a document that stands for one that was left
// out; its value says what that was.
const LeftOut = "leftOut"

func leftOut(what string) bson.Raw {
	d, err := bson.Marshal(bson.D{{Key: LeftOut, Value: what}})
	if err != nil {
		return nil // a string is always written
	}
	return d
}
