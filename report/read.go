package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Past is a run as a JSON report tells it.
type Past struct {
	Name     string // of the report, for messages
	Verdicts []*result.Verdict
	// Shard is the part of a run that this is, such as "2/5"; "" if whole.
	Shard string
	// Cell is the cell of a matrix that this is; "" if it is none, or several.
	Cell string
	// Run tells of the run itself; nil where the report does not. That of a
	// shard or a cell does, unless it was cut off.
	Run *PastRun
}

// PastRun is what a report of a shard or a cell says of its run.
type PastRun struct {
	Started     time.Time
	Engine      string
	Servers     []string // versions that its deployments have
	Files       int
	Kept        map[string]time.Time // cells of an earlier run, and when they began
	Duration    time.Duration
	Interrupted bool
	Problems    []string
}

// Read reads a JSON report. What it gives makes, reported anew, the same
// report. An error names the line; a record with a field that is not known is
// one of another version, and refused.
func Read(name string, from io.Reader) (*Past, error) {
	p := &Past{Name: name}
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		end := err == io.EOF
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := p.add(line); err != nil {
				return nil, fmt.Errorf("%s:%d: no record of a test: %w", name, n, err)
			}
		}
		if end {
			return p, nil
		}
	}
}

func (p *Past) add(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var r struct {
		record
		Run *runRecord `json:"run"`
	}
	if err := d.Decode(&r); err != nil {
		return err
	}
	switch {
	case r.Run != nil:
		p.Shard, p.Cell = r.Run.Shard, r.Run.Cell
		p.Run = &PastRun{
			Started: r.Run.Time, Engine: r.Run.Engine, Servers: r.Run.Servers, Files: r.Run.Files, Kept: r.Run.Kept, Duration: fromMilliseconds(r.Run.DurationMS),
			Interrupted: r.Run.Interrupted, Problems: r.Run.Problems,
		}
		return nil
	case !slices.Contains(result.Statuses(), r.Status):
		return fmt.Errorf("the status is %q", r.Status)
	}
	if r.Shard != "" {
		p.Shard = r.Shard
	}
	p.Verdicts = append(p.Verdicts, r.verdict())
	return nil
}

// fromMilliseconds undoes milliseconds, which tells microseconds.
func fromMilliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

func (r *record) verdict() *result.Verdict {
	v := &result.Verdict{
		Test:   result.TestID{File: r.File, Suite: r.Suite, Description: r.Test, Deployment: r.Deployment, Iteration: r.Iteration, Cell: r.Cell},
		Status: r.Status, SkipKind: r.SkipKind, Reason: r.Reason,
		Began: orZero(r.Time), Duration: fromMilliseconds(r.DurationMS), Timings: r.Timings.timings(), Rerun: r.Rerun,
	}
	if r.Line > 0 {
		v.Position = source.Position{File: r.File, Line: r.Line, Column: r.Column}
	}
	r.evidenceRecord.into(v)
	for _, a := range r.Attempts {
		t := &result.Verdict{
			Test: v.Test, Position: v.Position, Status: a.Status, Reason: a.Reason,
			Began: orZero(a.Time), Duration: fromMilliseconds(a.DurationMS), Timings: a.Timings.timings(),
		}
		a.into(t)
		v.Attempts = append(v.Attempts, t)
	}
	return v
}

func (t timingsRecord) timings() result.Timings {
	return result.Timings{
		Setup: fromMilliseconds(t.SetupMS), Engine: fromMilliseconds(t.EngineMS), Server: fromMilliseconds(t.ServerMS),
		Waiting: fromMilliseconds(t.WaitingMS), Cleanup: fromMilliseconds(t.CleanupMS),
	}
}

func (e *evidenceRecord) into(v *result.Verdict) {
	for _, m := range e.Mismatches {
		v.Mismatches = append(v.Mismatches, result.Mismatch{Path: m.Path, Position: m.Place.position(), Message: m.Message, Want: m.Want, Got: m.Got, Diff: m.Diff})
	}
	for _, o := range e.Operations {
		log := result.OperationLog{Name: o.Name, Object: o.Object, Position: o.Place.position(), Duration: fromMilliseconds(o.DurationMS), Omitted: o.Omitted.gap()}
		log.Outcome = result.Outcome{Server: o.Server, Value: valueOf(o.Result), Err: o.Error.error()}
		for _, d := range o.Decisions {
			log.Outcome.Decisions = append(log.Outcome.Decisions, result.Decision(d))
		}
		v.Operations = append(v.Operations, log)
	}
	for _, c := range e.Clients {
		log := result.ClientLog{Client: c.Client, Omitted: c.Omitted.gap()}
		for i := range c.Events {
			log.Events = append(log.Events, c.Events[i].event())
		}
		v.Clients = append(v.Clients, log)
	}
	for _, l := range e.ServerLog {
		v.ServerLog = append(v.ServerLog, result.LogLine(l))
	}
	v.OmittedMismatches, v.OmittedOperations, v.OmittedLog = e.OmittedMismatches.gap(), e.OmittedOperations.gap(), e.OmittedLog.gap()
}

func (g *gapRecord) gap() result.Gap {
	if g == nil {
		return result.Gap{}
	}
	return result.Gap(*g)
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (p *placeRecord) position() source.Position {
	if p == nil {
		return source.Position{}
	}
	return source.Position{File: p.File, Line: p.Line, Column: p.Column}
}

func (r *errorRecord) error() *result.Error {
	if r == nil {
		return nil
	}
	e := &result.Error{
		Kind: r.Kind, Message: r.Message, Client: r.Client, Timeout: r.Timeout, CodeName: r.CodeName, Labels: r.Labels,
		Server: r.Server, Response: documentOf(r.Response), Partial: valueOf(r.PartialResult),
	}
	if r.Code != nil {
		e.Code, e.HasCode = *r.Code, true
	}
	for _, i := range slices.Sorted(maps.Keys(r.WriteErrors)) {
		if e.WriteErrors == nil {
			e.WriteErrors = map[int]bson.Raw{}
		}
		e.WriteErrors[i] = documentOf(r.WriteErrors[i])
	}
	for _, w := range r.WriteConcernError {
		e.WriteConcernErrors = append(e.WriteConcernErrors, documentOf(w))
	}
	return e
}

func (r *eventRecord) event() result.Event {
	e := result.Event{Sequence: r.Sequence, Time: orZero(r.Time), Type: r.Type, Address: r.Address}
	var service *bson.ObjectID
	if id, err := bson.ObjectIDFromHex(r.ServiceID); err == nil {
		service = &id
	}
	switch kind := string(r.Type); {
	case strings.HasPrefix(kind, "command"):
		c := &result.CommandEvent{
			CommandName: r.Command, DatabaseName: r.Database, RequestID: r.RequestID, OperationID: r.OperationID,
			ConnectionID: r.Connection, ServerConnectionID: r.ServerConnectionID, ServiceID: service, Redacted: r.Redacted,
			Duration: fromMilliseconds(r.DurationMS), Failure: r.Failure.error(),
		}
		if r.Type == result.CommandStarted {
			c.Command = documentOf(r.Body)
		} else {
			c.Reply = documentOf(r.Body)
		}
		e.Command = c
	case strings.HasPrefix(kind, "pool"), strings.HasPrefix(kind, "connection"):
		e.Pool = &result.PoolEvent{ConnectionID: r.ConnectionID, Reason: r.Reason, ServiceID: service, InterruptInUseConnections: r.InterruptInUseConnections, Err: r.Err}
	default:
		e.SDAM = &result.SDAMEvent{Awaited: r.Awaited, Previous: r.Previous.state(), New: r.New.state(), Err: r.Err}
	}
	return e
}

func (d *descriptor) state() *result.TopologyState {
	if d == nil {
		return nil
	}
	s := &result.TopologyState{Type: d.Type}
	for _, server := range d.Servers {
		s.Servers = append(s.Servers, result.ServerState(server))
	}
	return s
}

// documentOf reads what document writes; nil for what is no document.
func documentOf(text json.RawMessage) bson.Raw {
	var raw bson.Raw
	if len(text) == 0 || bson.UnmarshalExtJSON(text, false, &raw) != nil {
		return nil
	}
	return raw
}

// valueOf reads what value writes; a value of type 0 for what is none.
func valueOf(text json.RawMessage) bson.RawValue {
	if len(text) == 0 {
		return bson.RawValue{}
	}
	return documentOf(slices.Concat([]byte(`{"v":`), text, []byte("}"))).Lookup("v")
}
