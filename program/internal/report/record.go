package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// JSON writes a record for each test as JSON Lines. docs/start/records.md and record.schema.json describe the record.
// BSON documents are in relaxed Extended JSON. The last line is about the run; it shows Read that the report is
// complete.
func JSON() Generator {
	r := &records{engines: map[string]string{}, kept: map[string]time.Time{}, cells: map[string]result.Duration{}}
	r.lines = json.NewEncoder(&r.out)
	r.lines.SetEscapeHTML(false)
	return hooks{start: func(n result.RunStarted) { r.started = n }, test: r.test, cell: r.cell,
		finish: r.finish}.generator(&r.out)
}

type records struct {
	out     bytes.Buffer
	lines   *json.Encoder // to out
	started result.RunStarted
	engines map[string]string
	kept    map[string]time.Time
	cells   map[string]result.Duration
}

func (r *records) test(v *result.Verdict) {
	one := recordOf(v, r.started.Shard)
	if err := r.lines.Encode(one); err != nil { // NaN or infinity: keep the verdict
		one.Operations, one.Clients, one.Attempts = nil, nil, nil
		one.Reason = strings.TrimSpace(one.Reason + " (details left out: " + err.Error() + ")")
		_ = r.lines.Encode(one)
	}
}

func (r *records) cell(n result.CellFinished) {
	if n.Engine != "" {
		r.engines[n.Cell] = n.Engine
	}
	if n.Summary.Duration > 0 {
		r.cells[n.Cell] = result.Duration(n.Summary.Duration)
	}
	if !n.KeptFrom.IsZero() {
		r.kept[n.Cell] = n.KeptFrom
	}
}

func (r *records) finish(s result.Summary) {
	at := r.started
	_ = r.lines.Encode(map[string]PastRun{"run": { // no field can fail to encode
		Started: at.Time, Engine: at.Engine, Servers: at.Servers, Files: at.Files, Shard: at.Shard, Cell: at.Cell,
		Commit: at.Commit, Engines: r.engines, Kept: r.kept, Cells: r.cells,
		Duration: result.Duration(s.Duration), CPU: result.Duration(s.CPU), Waiting: result.Duration(s.Waiting()),
		Interrupted: s.Interrupted, Breaks: s.Breaks, Problems: s.Problems,
	}})
}

// The record consists of these types, and of types of package result with JSON tags.
type (
	record struct {
		File       string `json:"file"`
		Line       int    `json:"line,omitempty"`
		Column     int    `json:"column,omitempty"`
		Suite      string `json:"suite"`
		Test       string `json:"test"`
		Deployment string `json:"deployment,omitempty"`
		Iteration  int    `json:"iteration"`
		Shard      string `json:"shard,omitempty"`
		Cell       string `json:"cell,omitempty"`
		attemptRecord
		Attempts    []attemptRecord `json:"attempts,omitempty"`
		Rerun       []string        `json:"rerun,omitempty"`
		RerunQuoted string          `json:"rerunCommand,omitempty"`
	}
	attemptRecord struct {
		Status     result.Status   `json:"status"`
		SkipKind   result.SkipKind `json:"skipKind,omitempty"` // of a test as a whole
		Reason     string          `json:"reason,omitempty"`
		Time       time.Time       `json:"time,omitzero"`
		DurationMS result.Duration `json:"durationMS"`
		Timings    result.Timings  `json:"timings"`
		result.Evidence
	}
)

func recordOf(v *result.Verdict, shard string) record {
	id := v.Test
	r := record{File: id.File, Line: v.Position.Line, Column: v.Position.Column, Suite: id.Suite, Test: id.Description,
		Deployment: id.Deployment, Iteration: max(1, id.Iteration), Shard: shard, Cell: id.Cell, attemptRecord: attemptOf(v),
		Rerun: v.Rerun, RerunQuoted: Quote(v.Rerun)}
	r.SkipKind = v.SkipKind
	for _, a := range v.Attempts {
		r.Attempts = append(r.Attempts, attemptOf(a))
	}
	return r
}

func attemptOf(v *result.Verdict) attemptRecord {
	return attemptRecord{Status: v.Status, Reason: v.Reason, Time: v.Started, DurationMS: result.Duration(v.Duration),
		Timings: v.Timings, Evidence: v.Evidence}
}

func (r *record) verdict() *result.Verdict {
	of := result.Verdict{Position: result.Position{Line: r.Line, Column: r.Column}, Test: result.TestID{File: r.File,
		Suite: r.Suite, Description: r.Test, Deployment: r.Deployment, Iteration: r.Iteration, Cell: r.Cell}}
	if r.Line > 0 {
		of.Position.File = r.File
	}
	v := r.attemptRecord.verdict(of)
	v.SkipKind, v.Rerun = r.SkipKind, r.Rerun
	for _, a := range r.Attempts {
		v.Attempts = append(v.Attempts, a.verdict(of))
	}
	return v
}

// verdict sets the fields of an attempt in a verdict.
func (a *attemptRecord) verdict(v result.Verdict) *result.Verdict {
	v.Status, v.Reason, v.Started, v.Duration = a.Status, a.Reason, a.Time, time.Duration(a.DurationMS)
	v.Timings, v.Evidence = a.Timings, a.Evidence
	return &v
}
