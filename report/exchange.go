package report

import (
	"encoding/json"
	"math"
	"time"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// direction is the direction of a conversion between records of a JSON report and verdicts. The functions below name
// each field once and serve both directions, so that reading and writing a report reproduces it.
type direction bool

const (
	writing direction = false // from a verdict to its record
	reading direction = true  // from a record to its verdict
)

// move copies a field that has the same type in both.
func move[T any](d direction, record, value *T) {
	if d == reading {
		*value = *record
	} else {
		*record = *value
	}
}

func convert[R, V any](d direction, record *R, value *V, write func(V) R, read func(R) V) {
	if d == reading {
		*value = read(*record)
	} else {
		*record = write(*value)
	}
}

// pointers moves an optional value.
func pointers[R, V any](d direction, record **R, value **V, move func(direction, *R, *V)) {
	switch {
	case d == reading && *record != nil:
		*value = new(V)
	case d == writing && *value != nil:
		*record = new(R)
	default:
		return
	}
	move(d, *record, *value)
}

func lists[R, V any](d direction, records *[]R, values *[]V, move func(direction, *R, *V)) {
	switch {
	case d == reading && len(*records) > 0:
		*values = make([]V, len(*records))
	case d == writing && len(*values) > 0:
		*records = make([]R, len(*values))
	default:
		return
	}
	for i := range *records {
		move(d, &(*records)[i], &(*values)[i])
	}
}

// milliseconds converts a duration, rounded down to microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func fromMilliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

func (d direction) duration(ms *float64, value *time.Duration) {
	convert(d, ms, value, milliseconds, fromMilliseconds)
}

func (d direction) document(text *json.RawMessage, raw *bson.Raw) {
	convert(d, text, raw, document, documentOf)
}

func (d direction) value(text *json.RawMessage, v *bson.RawValue) {
	convert(d, text, v, value, valueOf)
}

func (d direction) record(r *record, v *result.Verdict) {
	move(d, &r.File, &v.Test.File)
	move(d, &r.Suite, &v.Test.Suite)
	move(d, &r.Test, &v.Test.Description)
	move(d, &r.Deployment, &v.Test.Deployment)
	move(d, &r.Iteration, &v.Test.Iteration)
	move(d, &r.Cell, &v.Test.Cell)
	move(d, &r.Line, &v.Position.Line)
	move(d, &r.Column, &v.Position.Column)
	move(d, &r.SkipKind, &v.SkipKind)
	move(d, &r.Rerun, &v.Rerun)
	switch {
	case d == writing:
		r.Iteration = max(1, r.Iteration)
		if len(v.Rerun) > 0 {
			r.RerunQuoted = Quote(v.Rerun)
		}
	case r.Line > 0:
		v.Position.File = r.File
	}
	d.attempt(&r.attemptRecord, v)
	lists(d, &r.Attempts, &v.Attempts, func(d direction, r *attemptRecord, attempt **result.Verdict) {
		if d == reading {
			*attempt = &result.Verdict{Test: v.Test, Position: v.Position}
		}
		d.attempt(r, *attempt)
	})
}

// attempt moves the fields that attempts and verdicts share.
func (d direction) attempt(r *attemptRecord, v *result.Verdict) {
	move(d, &r.Status, &v.Status)
	move(d, &r.Reason, &v.Reason)
	move(d, &r.Time, &v.Started)
	d.duration(&r.DurationMS, &v.Duration)
	d.duration(&r.Timings.SetupMS, &v.Timings.Setup)
	d.duration(&r.Timings.EngineMS, &v.Timings.Engine)
	d.duration(&r.Timings.ServerMS, &v.Timings.Server)
	d.duration(&r.Timings.WaitingMS, &v.Timings.Waiting)
	d.duration(&r.Timings.CleanupMS, &v.Timings.Cleanup)
	d.evidence(&r.evidenceRecord, v)
}

// evidence moves mismatches, operations, events and logs.
func (d direction) evidence(e *evidenceRecord, v *result.Verdict) {
	move(d, &e.Mismatches, &v.Mismatches)
	lists(d, &e.Operations, &v.Operations, direction.operation)
	lists(d, &e.Clients, &v.Clients, direction.client)
	move(d, &e.ServerLog, &v.ServerLog)
	move(d, &e.OmittedMismatches, &v.OmittedMismatches)
	move(d, &e.OmittedOperations, &v.OmittedOperations)
	move(d, &e.OmittedLog, &v.OmittedLog)
}

func (d direction) operation(r *operationRecord, o *result.OperationLog) {
	move(d, &r.Name, &o.Name)
	move(d, &r.Object, &o.Object)
	move(d, &r.Place, &o.Position)
	d.duration(&r.DurationMS, &o.Duration)
	move(d, &r.Server, &o.Outcome.Server)
	d.value(&r.Result, &o.Outcome.Value)
	pointers(d, &r.Error, &o.Outcome.Err, direction.error)
	move(d, &r.Decisions, &o.Outcome.Decisions)
	move(d, &r.Omitted, &o.Omitted)
}

func (d direction) error(r *errorRecord, e *result.Error) {
	move(d, &r.Kind, &e.Kind)
	move(d, &r.Message, &e.Message)
	move(d, &r.Client, &e.Client)
	move(d, &r.Timeout, &e.Timeout)
	move(d, &r.CodeName, &e.CodeName)
	move(d, &r.Labels, &e.Labels)
	move(d, &r.Server, &e.Server)
	d.document(&r.Response, &e.Response)
	d.value(&r.PartialResult, &e.Partial)
	lists(d, &r.WriteConcernError, &e.WriteConcernErrors, direction.document)
	switch {
	case d == writing && e.HasCode:
		r.Code = &e.Code
	case d == reading && r.Code != nil:
		e.Code, e.HasCode = *r.Code, true
	}
	switch {
	case d == writing && len(e.WriteErrors) > 0:
		r.WriteErrors = map[int]json.RawMessage{}
		for i, w := range e.WriteErrors {
			r.WriteErrors[i] = document(w)
		}
	case d == reading && len(r.WriteErrors) > 0:
		e.WriteErrors = map[int]bson.Raw{}
		for i, text := range r.WriteErrors {
			e.WriteErrors[i] = documentOf(text)
		}
	}
}

func (d direction) client(r *clientRecord, c *result.ClientLog) {
	move(d, &r.Client, &c.Client)
	if d == writing {
		r.Events = []eventRecord{} // not null
	}
	lists(d, &r.Events, &c.Events, direction.event)
	move(d, &r.Omitted, &c.Omitted)
}

func (d direction) event(r *eventRecord, e *result.Event) {
	move(d, &r.Sequence, &e.Sequence)
	move(d, &r.Time, &e.Time)
	move(d, &r.Type, &e.Type)
	move(d, &r.Address, &e.Address)
	if d == reading {
		switch r.Type.Monitor() {
		case result.MonitorCommand:
			e.Command = &result.CommandEvent{}
		case result.MonitorCMAP:
			e.Pool = &result.PoolEvent{}
		default:
			e.SDAM = &result.SDAMEvent{}
		}
	}
	if c := e.Command; c != nil {
		body := &c.Reply
		if r.Type == result.CommandStarted {
			body = &c.Command
		}
		move(d, &r.Command, &c.CommandName)
		move(d, &r.Database, &c.DatabaseName)
		move(d, &r.RequestID, &c.RequestID)
		move(d, &r.OperationID, &c.OperationID)
		move(d, &r.Connection, &c.ConnectionID)
		move(d, &r.ServerConnectionID, &c.ServerConnectionID)
		move(d, &r.Redacted, &c.Redacted)
		move(d, &r.ServiceID, &c.ServiceID)
		d.duration(&r.DurationMS, &c.Duration)
		d.document(&r.Body, body)
		pointers(d, &r.Failure, &c.Failure, direction.error)
	}
	if p := e.Pool; p != nil {
		move(d, &r.ConnectionID, &p.ConnectionID)
		move(d, &r.Reason, &p.Reason)
		move(d, &r.InterruptInUseConnections, &p.InterruptInUseConnections)
		move(d, &r.Err, &p.Err)
		move(d, &r.ServiceID, &p.ServiceID)
	}
	if s := e.SDAM; s != nil {
		move(d, &r.Awaited, &s.Awaited)
		move(d, &r.Err, &s.Err)
		move(d, &r.Previous, &s.Previous)
		move(d, &r.New, &s.New)
	}
}
