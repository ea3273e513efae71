package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/exchange"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// JSON writes one record for each test that ended, each on a line of its own
// (JSON Lines). docs/records.md and record.schema.json describe the record.
// Documents of events and results are in relaxed Extended JSON. The report of a
// shard, of a matrix or of one of its cells ends with a line about its run, which
// tells Read that it is whole.
func JSON() Generator {
	r := &records{kept: map[string]time.Time{}}
	r.lines = json.NewEncoder(&r.out)
	r.lines.SetEscapeHTML(false)
	return hooks{start: func(n result.RunStarted) { r.started = n }, test: r.test, cell: r.cell, finish: r.finish}.generator(&r.out)
}

type records struct {
	out     bytes.Buffer
	lines   *json.Encoder // to out
	started result.RunStarted
	cells   bool // there are some
	kept    map[string]time.Time
}

func (r *records) test(v *result.Verdict) {
	one := recordOf(v)
	one.Shard = r.started.Shard
	if err := r.lines.Encode(one); err != nil { // a number that JSON cannot write: keep the verdict
		one.Operations, one.Clients, one.Attempts = nil, nil, nil
		one.Reason = strings.TrimSpace(one.Reason + " (details left out: " + err.Error() + ")")
		_ = r.lines.Encode(one)
	}
}

func (r *records) cell(n result.CellFinished) {
	r.cells = true
	if !n.Kept.IsZero() {
		r.kept[n.Cell] = n.Kept
	}
}

func (r *records) finish(s result.Summary) {
	at := r.started
	if at.Shard != "" || at.Cell != "" || r.cells {
		_ = r.lines.Encode(map[string]PastRun{"run": { // plain data
			Started: at.Time, Engine: at.Engine, Servers: at.Servers, Files: at.Files, Shard: at.Shard, Cell: at.Cell, Kept: r.kept,
			DurationMS: milliseconds(s.Duration), Interrupted: s.Interrupted, Problems: s.Problems,
		}})
	}
}

// The types below are the record, together with those of package result that have
// tags; the tags are its field names, and the fields of a verdict where they are named
// otherwise: see package exchange. Fields that do not apply are left out.
type (
	record struct {
		File       string `json:"file" value:"Test.File"`
		Line       int    `json:"line,omitempty" value:"Position.Line"`
		Column     int    `json:"column,omitempty" value:"Position.Column"`
		Suite      string `json:"suite" value:"Test.Suite"`
		Test       string `json:"test" value:"Test.Description"`
		Deployment string `json:"deployment,omitempty" value:"Test.Deployment"`
		Iteration  int    `json:"iteration" value:"Test.Iteration"`
		Shard      string `json:"shard,omitempty" value:"-"`
		Cell       string `json:"cell,omitempty" value:"Test.Cell"`
		attemptRecord
		Attempts    []attemptRecord `json:"attempts,omitempty"`
		Rerun       []string        `json:"rerun,omitempty"`
		RerunQuoted string          `json:"rerunCommand,omitempty" value:"-"`
	}
	attemptRecord struct {
		Status   result.Status   `json:"status"`
		SkipKind result.SkipKind `json:"skipKind,omitempty"` // of a test as a whole
		Reason   string          `json:"reason,omitempty"`
		Began    time.Time       `json:"time,omitzero"`
		Duration duration        `json:"durationMS"`
		Timings  timingsRecord   `json:"timings"`
		evidenceRecord
	}
	evidenceRecord struct {
		Mismatches        []result.Mismatch `json:"mismatches,omitempty"`
		OmittedMismatches result.Gap        `json:"omittedMismatches,omitzero"`
		Operations        []operationRecord `json:"operations,omitempty"`
		OmittedOperations result.Gap        `json:"omittedOperations,omitzero"`
		Clients           []clientRecord    `json:"clients,omitempty"`
		ServerLog         []result.LogLine  `json:"serverLog,omitempty"`
		OmittedLog        result.Gap        `json:"omittedLog,omitzero"`
	}
	timingsRecord struct {
		Setup   duration `json:"setupMS"`
		Engine  duration `json:"engineMS"`
		Server  duration `json:"serverMS"`
		Waiting duration `json:"waitingMS"`
		Cleanup duration `json:"cleanupMS"`
	}
	operationRecord struct {
		Name      string            `json:"name"`
		Object    string            `json:"object"`
		Position  source.Position   `json:"place,omitzero"`
		Duration  duration          `json:"durationMS"`
		Server    string            `json:"server,omitempty" value:"Outcome.Server"`
		Result    value             `json:"result,omitzero" value:"Outcome.Value"`
		Error     *errorRecord      `json:"error,omitempty" value:"Outcome.Err"`
		Decisions []result.Decision `json:"decisions,omitempty" value:"Outcome.Decisions"`
		Omitted   result.Gap        `json:"omitted,omitzero"`
	}
	errorRecord struct {
		Kind               string           `json:"kind,omitempty"`
		Message            string           `json:"message"`
		Client             bool             `json:"client,omitempty"`
		Timeout            bool             `json:"timeout,omitempty"`
		Code               *int32           `json:"code,omitempty" if:"HasCode"`
		CodeName           string           `json:"codeName,omitempty"`
		Labels             []string         `json:"labels,omitempty"`
		Server             string           `json:"server,omitempty"`
		Response           document         `json:"response,omitempty"`
		WriteErrors        map[int]document `json:"writeErrors,omitempty"`
		WriteConcernErrors []document       `json:"writeConcernErrors,omitempty"`
		Partial            value            `json:"partialResult,omitzero"`
	}
	clientRecord struct {
		Client  string        `json:"client"`
		Events  []eventRecord `json:"events"`
		Omitted result.Gap    `json:"omitted,omitzero"`
		// Heartbeats that succeeded and were left out: on a page alone.
		Heartbeats int `json:"heartbeats,omitempty" value:"-"`
	}
	eventRecord struct {
		Sequence int64            `json:"sequence"`
		Time     time.Time        `json:"time,omitzero"`
		Type     result.EventType `json:"type"`
		Address  string           `json:"address,omitempty"`

		Command            string         `json:"command,omitempty" value:"Command.CommandName"`
		Database           string         `json:"database,omitempty" value:"Command.DatabaseName"`
		RequestID          int64          `json:"requestId,omitempty" value:"Command.RequestID"`
		OperationID        int64          `json:"operationId,omitempty" value:"Command.OperationID"`
		Connection         string         `json:"connection,omitempty" value:"Command.ConnectionID"`
		ServerConnectionID *int64         `json:"serverConnectionId,omitempty" value:"Command.ServerConnectionID"`
		ServiceID          *bson.ObjectID `json:"serviceId,omitempty" value:"Command.ServiceID|Pool.ServiceID"`
		Redacted           bool           `json:"redacted,omitempty" value:"Command.Redacted"`
		Duration           duration       `json:"durationMS,omitzero" value:"Command.Duration"`
		Body               document       `json:"body,omitempty" value:"-"`
		Failure            *errorRecord   `json:"failure,omitempty" value:"Command.Failure"`

		ConnectionID              int64  `json:"connectionId,omitempty" value:"Pool.ConnectionID"`
		Reason                    string `json:"reason,omitempty" value:"Pool.Reason"`
		InterruptInUseConnections *bool  `json:"interruptInUseConnections,omitempty" value:"Pool.InterruptInUseConnections"`
		Err                       string `json:"error,omitempty" value:"Pool.Err|SDAM.Err"`

		Awaited  *bool                 `json:"awaited,omitempty" value:"SDAM.Awaited"`
		Previous *result.TopologyState `json:"previousDescription,omitempty" value:"SDAM.Previous"`
		New      *result.TopologyState `json:"newDescription,omitempty" value:"SDAM.New"`
	}
)

// recordOf gives the record of a verdict.
func recordOf(v *result.Verdict) (r record) {
	exchange.Write(&r, v)
	r.Iteration = max(1, r.Iteration)
	if len(v.Rerun) > 0 {
		r.RerunQuoted = Quote(v.Rerun)
	}
	return r
}

// verdict gives what a record describes: written again, it makes the same record.
func (r *record) verdict() *result.Verdict {
	v := &result.Verdict{}
	exchange.Read(r, v)
	if r.Line > 0 {
		v.Position.File = r.File
	}
	for _, attempt := range v.Attempts {
		attempt.Test, attempt.Position = v.Test, v.Position
	}
	return v
}

// Written makes a list of no events.
func (r *clientRecord) Written(any) {
	if r.Events == nil {
		r.Events = []eventRecord{} // not null
	}
}

// Written and Reading see to the body of a command event: a command or a reply.
func (r *eventRecord) Written(from any) {
	if c := from.(*result.Event).Command; c != nil {
		r.Body = document(c.Reply)
		if r.Type == result.CommandStarted {
			r.Body = document(c.Command)
		}
	}
}

func (r *eventRecord) Reading(into any) {
	switch e, kind := into.(*result.Event), string(r.Type); {
	case r.Type == result.CommandStarted:
		e.Command = &result.CommandEvent{Command: bson.Raw(r.Body)}
	case strings.HasPrefix(kind, "command"):
		e.Command = &result.CommandEvent{Reply: bson.Raw(r.Body)}
	case strings.HasPrefix(kind, "pool"), strings.HasPrefix(kind, "connection"):
		e.Pool = &result.PoolEvent{}
	default:
		e.SDAM = &result.SDAMEvent{}
	}
}
