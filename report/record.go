package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// JSON writes a record for each test as JSON Lines. docs/records.md and record.schema.json describe the record. BSON
// documents are in relaxed Extended JSON. The report of a shard, a matrix or a cell ends with a line about its run, by
// which Read knows that it is complete.
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
	cells   bool // the run is a matrix
	kept    map[string]time.Time
}

func (r *records) test(v *result.Verdict) {
	one := record{Shard: r.started.Shard}
	writing.record(&one, v)
	if err := r.lines.Encode(one); err != nil { // NaN or infinity: keep the verdict
		one.Operations, one.Clients, one.Attempts = nil, nil, nil
		one.Reason = strings.TrimSpace(one.Reason + " (details left out: " + err.Error() + ")")
		_ = r.lines.Encode(one)
	}
}

func (r *records) cell(n result.CellFinished) {
	r.cells = true
	if !n.KeptFrom.IsZero() {
		r.kept[n.Cell] = n.KeptFrom
	}
}

func (r *records) finish(s result.Summary) {
	at := r.started
	if at.Shard != "" || at.Cell != "" || r.cells {
		_ = r.lines.Encode(map[string]PastRun{"run": { // no field can fail to encode
			Started: at.Time, Engine: at.Engine, Servers: at.Servers, Files: at.Files, Shard: at.Shard, Cell: at.Cell, Kept: r.kept,
			DurationMS: milliseconds(s.Duration), Interrupted: s.Interrupted, Problems: s.Problems,
		}})
	}
}

// The record consists of these types and those of package result with JSON tags.
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
		DurationMS float64         `json:"durationMS"`
		Timings    timingsRecord   `json:"timings"`
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
		SetupMS   float64 `json:"setupMS"`
		EngineMS  float64 `json:"engineMS"`
		ServerMS  float64 `json:"serverMS"`
		WaitingMS float64 `json:"waitingMS"`
		CleanupMS float64 `json:"cleanupMS"`
	}
	operationRecord struct {
		Name       string            `json:"name"`
		Object     string            `json:"object"`
		Place      source.Position   `json:"place,omitzero"`
		DurationMS float64           `json:"durationMS"`
		Server     string            `json:"server,omitempty"`
		Result     json.RawMessage   `json:"result,omitempty"`
		Error      *errorRecord      `json:"error,omitempty"`
		Decisions  []result.Decision `json:"decisions,omitempty"`
		Omitted    result.Gap        `json:"omitted,omitzero"`
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
		Omitted result.Gap    `json:"omitted,omitzero"`
		// Successful heartbeats that an HTML page omits.
		Heartbeats int `json:"heartbeats,omitempty"`
	}
	eventRecord struct {
		Sequence int64            `json:"sequence"`
		Time     time.Time        `json:"time,omitzero"`
		Type     result.EventType `json:"type"`
		Address  string           `json:"address,omitempty"`

		Command            string          `json:"command,omitempty"`
		Database           string          `json:"database,omitempty"`
		RequestID          int64           `json:"requestId,omitempty"`
		OperationID        int64           `json:"operationId,omitempty"`
		Connection         string          `json:"connection,omitempty"`
		ServerConnectionID *int64          `json:"serverConnectionId,omitempty"`
		ServiceID          *bson.ObjectID  `json:"serviceId,omitempty"`
		Redacted           bool            `json:"redacted,omitempty"`
		DurationMS         float64         `json:"durationMS,omitempty"`
		Body               json.RawMessage `json:"body,omitempty"`
		Failure            *errorRecord    `json:"failure,omitempty"`

		ConnectionID              int64  `json:"connectionId,omitempty"`
		Reason                    string `json:"reason,omitempty"`
		InterruptInUseConnections *bool  `json:"interruptInUseConnections,omitempty"`
		Err                       string `json:"error,omitempty"`

		Awaited  *bool                 `json:"awaited,omitempty"`
		Previous *result.TopologyState `json:"previousDescription,omitempty"`
		New      *result.TopologyState `json:"newDescription,omitempty"`
	}
)
