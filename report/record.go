package report

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// JSON writes one record for each test that ended, each on a line of its own
// (JSON Lines). docs/records.md and Schema describe the record. Documents of
// events and results are in relaxed Extended JSON. The report of a shard, and that
// of a matrix or one of its cells, ends with a line about its run, by which Read tells
// whether it is whole.
func JSON() Generator {
	var started result.RunStarted
	cells, kept := false, map[string]time.Time{}
	return func(n result.Note) []byte {
		switch n := n.(type) {
		case result.RunStarted:
			started = n
		case result.TestFinished:
			r := newRecord(n.Verdict)
			r.Shard = started.Shard
			line, err := oneRecord(r)
			if err != nil {
				// A number that JSON cannot write. The verdict itself must not be lost.
				bare := *n.Verdict
				bare.Operations, bare.Clients, bare.Attempts = nil, nil, nil
				bare.Reason = strings.TrimSpace(bare.Reason + " (details left out: " + err.Error() + ")")
				r = newRecord(&bare)
				r.Shard = started.Shard
				line, _ = oneRecord(r)
			}
			return line
		case result.CellFinished:
			cells = true
			if !n.Kept.IsZero() {
				kept[n.Cell] = n.Kept
			}
		case result.RunFinished:
			if started.Shard == "" && started.Cell == "" && !cells {
				return nil
			}
			line, _ := oneRecord(map[string]runRecord{"run": { // plain data
				Time: started.Time, Engine: started.Engine, Servers: started.Servers, Files: started.Files, Shard: started.Shard, Cell: started.Cell, Kept: kept,
				DurationMS: milliseconds(n.Summary.Duration), Interrupted: n.Summary.Interrupted, Problems: n.Summary.Problems,
			}})
			return line
		}
		return nil
	}
}

// oneRecord encodes a record on a line of its own.
func oneRecord(r any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return line.Bytes(), err
}

// The types below are the record; their tags are its field names. Fields that
// do not apply are left out.
type (
	record struct {
		File       string          `json:"file"`
		Line       int             `json:"line,omitempty"`
		Column     int             `json:"column,omitempty"`
		Suite      string          `json:"suite"`
		Test       string          `json:"test"`
		Deployment string          `json:"deployment,omitempty"`
		Iteration  int             `json:"iteration"`
		Shard      string          `json:"shard,omitempty"`
		Cell       string          `json:"cell,omitempty"`
		Status     result.Status   `json:"status"`
		SkipKind   result.SkipKind `json:"skipKind,omitempty"`
		Reason     string          `json:"reason,omitempty"`
		Time       *time.Time      `json:"time,omitempty"`
		DurationMS float64         `json:"durationMS"`
		Timings    timingsRecord   `json:"timings"`
		evidenceRecord
		Attempts    []attemptRecord `json:"attempts,omitempty"`
		Rerun       []string        `json:"rerun,omitempty"`
		RerunQuoted string          `json:"rerunCommand,omitempty"`
	}
	attemptRecord struct {
		Status     result.Status `json:"status"`
		Reason     string        `json:"reason,omitempty"`
		Time       *time.Time    `json:"time,omitempty"`
		DurationMS float64       `json:"durationMS"`
		Timings    timingsRecord `json:"timings"`
		evidenceRecord
	}
	evidenceRecord struct {
		Mismatches        []mismatchRecord  `json:"mismatches,omitempty"`
		OmittedMismatches *gapRecord        `json:"omittedMismatches,omitempty"`
		Operations        []operationRecord `json:"operations,omitempty"`
		OmittedOperations *gapRecord        `json:"omittedOperations,omitempty"`
		Clients           []clientRecord    `json:"clients,omitempty"`
		ServerLog         []logRecord       `json:"serverLog,omitempty"`
		OmittedLog        *gapRecord        `json:"omittedLog,omitempty"`
	}
	gapRecord struct {
		After int `json:"after"`
		Count int `json:"count"`
	}
	logRecord struct {
		Time   time.Time `json:"time"`
		Server string    `json:"server"`
		Text   string    `json:"text"`
	}
	runRecord struct {
		Time        time.Time            `json:"time"`
		Engine      string               `json:"engine"`
		Servers     []string             `json:"servers,omitempty"`
		Files       int                  `json:"files"`
		Shard       string               `json:"shard,omitempty"`
		Cell        string               `json:"cell,omitempty"`
		Kept        map[string]time.Time `json:"kept,omitempty"`
		DurationMS  float64              `json:"durationMS"`
		Interrupted bool                 `json:"interrupted,omitempty"`
		Problems    []string             `json:"problems,omitempty"`
	}
	placeRecord struct {
		File   string `json:"file"`
		Line   int    `json:"line"`
		Column int    `json:"column"`
	}
	timingsRecord struct {
		SetupMS   float64 `json:"setupMS"`
		EngineMS  float64 `json:"engineMS"`
		ServerMS  float64 `json:"serverMS"`
		WaitingMS float64 `json:"waitingMS"`
		CleanupMS float64 `json:"cleanupMS"`
	}
	mismatchRecord struct {
		Path    string       `json:"path"`
		Place   *placeRecord `json:"place,omitempty"`
		Message string       `json:"message"`
		Want    string       `json:"want,omitempty"`
		Got     string       `json:"got,omitempty"`
		Diff    string       `json:"diff,omitempty"`
	}
	operationRecord struct {
		Name       string           `json:"name"`
		Object     string           `json:"object"`
		Place      *placeRecord     `json:"place,omitempty"`
		DurationMS float64          `json:"durationMS"`
		Server     string           `json:"server,omitempty"`
		Result     json.RawMessage  `json:"result,omitempty"`
		Error      *errorRecord     `json:"error,omitempty"`
		Decisions  []decisionRecord `json:"decisions,omitempty"`
		Omitted    *gapRecord       `json:"omitted,omitempty"`
	}
	decisionRecord struct {
		Attempt       int      `json:"attempt"`
		Action        string   `json:"action"`
		Rules         []string `json:"rules,omitempty"`
		Server        string   `json:"server,omitempty"`
		Deprioritized []string `json:"deprioritized,omitempty"`
		DelayMS       float64  `json:"delayMS,omitempty"`
		Reason        string   `json:"reason,omitempty"`
	}
	errorRecord struct {
		Kind              string                  `json:"kind,omitempty"`
		Message           string                  `json:"message"`
		Client            bool                    `json:"client,omitempty"`
		Timeout           bool                    `json:"timeout,omitempty"`
		Code              *int32                  `json:"code,omitempty"`
		CodeName          string                  `json:"codeName,omitempty"`
		Labels            []string                `json:"labels,omitempty"`
		Server            string                  `json:"server,omitempty"`
		Response          json.RawMessage         `json:"response,omitempty"`
		WriteErrors       map[int]json.RawMessage `json:"writeErrors,omitempty"`
		WriteConcernError []json.RawMessage       `json:"writeConcernErrors,omitempty"`
		PartialResult     json.RawMessage         `json:"partialResult,omitempty"`
	}
	clientRecord struct {
		Client  string        `json:"client"`
		Events  []eventRecord `json:"events"`
		Omitted *gapRecord    `json:"omitted,omitempty"`
	}
	eventRecord struct {
		Sequence int64            `json:"sequence"`
		Time     *time.Time       `json:"time,omitempty"`
		Type     result.EventType `json:"type"`
		Address  string           `json:"address,omitempty"`

		Command            string          `json:"command,omitempty"`
		Database           string          `json:"database,omitempty"`
		RequestID          int64           `json:"requestId,omitempty"`
		OperationID        int64           `json:"operationId,omitempty"`
		Connection         string          `json:"connection,omitempty"`
		ServerConnectionID *int64          `json:"serverConnectionId,omitempty"`
		ServiceID          string          `json:"serviceId,omitempty"`
		Redacted           bool            `json:"redacted,omitempty"`
		DurationMS         float64         `json:"durationMS,omitempty"`
		Body               json.RawMessage `json:"body,omitempty"`
		Failure            *errorRecord    `json:"failure,omitempty"`

		ConnectionID              int64  `json:"connectionId,omitempty"`
		Reason                    string `json:"reason,omitempty"`
		InterruptInUseConnections *bool  `json:"interruptInUseConnections,omitempty"`
		Err                       string `json:"error,omitempty"`

		Awaited  *bool       `json:"awaited,omitempty"`
		Previous *descriptor `json:"previousDescription,omitempty"`
		New      *descriptor `json:"newDescription,omitempty"`
	}
	descriptor struct {
		Type    string             `json:"type"`
		Servers []descriptorServer `json:"servers,omitempty"`
	}
	descriptorServer struct {
		Address string `json:"address"`
		Type    string `json:"type"`
	}
)

func newRecord(v *result.Verdict) record {
	r := record{
		File: v.Test.File, Line: v.Position.Line, Column: v.Position.Column,
		Suite: v.Test.Suite, Test: v.Test.Description, Deployment: v.Test.Deployment, Iteration: max(1, v.Test.Iteration),
		Cell:   v.Test.Cell,
		Status: v.Status, SkipKind: v.SkipKind, Reason: v.Reason,
		Time: known(v.Began), DurationMS: milliseconds(v.Duration),
		Timings: newTimings(v.Timings),
		Rerun:   v.Rerun,
	}
	if len(v.Rerun) > 0 {
		r.RerunQuoted = Quote(v.Rerun)
	}
	r.evidenceRecord = evidence(v)
	for _, a := range v.Attempts {
		t := attemptRecord{Status: a.Status, Reason: a.Reason, Time: known(a.Began), DurationMS: milliseconds(a.Duration), Timings: newTimings(a.Timings)}
		t.evidenceRecord = evidence(a)
		r.Attempts = append(r.Attempts, t)
	}
	return r
}

// evidence is what a verdict rests on.
func evidence(v *result.Verdict) (e evidenceRecord) {
	for _, m := range v.Mismatches {
		e.Mismatches = append(e.Mismatches, mismatchRecord{Path: m.Path, Place: place(m.Position), Message: m.Message, Want: m.Want, Got: m.Got, Diff: m.Diff})
	}
	for _, o := range v.Operations {
		e.Operations = append(e.Operations, newOperation(o))
	}
	for _, c := range v.Clients {
		log := clientRecord{Client: c.Client, Events: []eventRecord{}, Omitted: newGap(c.Omitted)}
		for _, event := range c.Events {
			log.Events = append(log.Events, newEvent(event))
		}
		e.Clients = append(e.Clients, log)
	}
	for _, l := range v.ServerLog {
		e.ServerLog = append(e.ServerLog, logRecord(l))
	}
	e.OmittedMismatches, e.OmittedOperations, e.OmittedLog = newGap(v.OmittedMismatches), newGap(v.OmittedOperations), newGap(v.OmittedLog)
	return e
}

func newGap(g result.Gap) *gapRecord {
	if g.Count == 0 {
		return nil
	}
	return &gapRecord{g.After, g.Count}
}

// known is nil for a time that nobody has told.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func newTimings(t result.Timings) timingsRecord {
	return timingsRecord{
		SetupMS: milliseconds(t.Setup), EngineMS: milliseconds(t.Engine), ServerMS: milliseconds(t.Server),
		WaitingMS: milliseconds(t.Waiting), CleanupMS: milliseconds(t.Cleanup),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func place(p source.Position) *placeRecord {
	if p.IsZero() {
		return nil
	}
	return &placeRecord{File: p.File, Line: p.Line, Column: p.Column}
}

func newOperation(o result.OperationLog) operationRecord {
	r := operationRecord{
		Name: o.Name, Object: o.Object, Place: place(o.Position), DurationMS: milliseconds(o.Duration),
		Server: o.Outcome.Server, Result: value(o.Outcome.Value), Error: newError(o.Outcome.Err),
		Omitted: newGap(o.Omitted),
	}
	for _, d := range o.Outcome.Decisions {
		r.Decisions = append(r.Decisions, decisionRecord(d))
	}
	return r
}

func newError(e *result.Error) *errorRecord {
	if e == nil {
		return nil
	}
	r := &errorRecord{
		Kind: e.Kind, Message: e.Message, Client: e.Client, Timeout: e.Timeout, CodeName: e.CodeName, Labels: e.Labels,
		Server: e.Server, Response: document(e.Response), PartialResult: value(e.Partial),
	}
	if e.HasCode {
		r.Code = &e.Code
	}
	for _, i := range slices.Sorted(maps.Keys(e.WriteErrors)) {
		if r.WriteErrors == nil {
			r.WriteErrors = map[int]json.RawMessage{}
		}
		r.WriteErrors[i] = document(e.WriteErrors[i])
	}
	for _, w := range e.WriteConcernErrors {
		r.WriteConcernError = append(r.WriteConcernError, document(w))
	}
	return r
}

func newEvent(e result.Event) eventRecord {
	r := eventRecord{Sequence: e.Sequence, Time: known(e.Time), Type: e.Type, Address: e.Address}
	switch {
	case e.Command != nil:
		c := e.Command
		r.Command, r.Database, r.RequestID, r.OperationID = c.CommandName, c.DatabaseName, c.RequestID, c.OperationID
		r.Connection, r.ServerConnectionID, r.Redacted = c.ConnectionID, c.ServerConnectionID, c.Redacted
		r.DurationMS, r.Failure = milliseconds(c.Duration), newError(c.Failure)
		if c.ServiceID != nil {
			r.ServiceID = c.ServiceID.Hex()
		}
		if r.Body = document(c.Command); r.Body == nil {
			r.Body = document(c.Reply)
		}
	case e.Pool != nil:
		p := e.Pool
		r.ConnectionID, r.Reason, r.InterruptInUseConnections, r.Err = p.ConnectionID, p.Reason, p.InterruptInUseConnections, p.Err
		if p.ServiceID != nil {
			r.ServiceID = p.ServiceID.Hex()
		}
	case e.SDAM != nil:
		s := e.SDAM
		r.Awaited, r.Err, r.Previous, r.New = s.Awaited, s.Err, describe(s.Previous), describe(s.New)
	}
	return r
}

func describe(s *result.TopologyState) *descriptor {
	if s == nil {
		return nil
	}
	d := &descriptor{Type: s.Type}
	for _, server := range s.Servers {
		d.Servers = append(d.Servers, descriptorServer(server))
	}
	return d
}
