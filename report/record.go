package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// JSON writes one record for each test that ended, each on a line of its own
// (JSON Lines). docs/records.md and record.schema.json describe the record.
// Documents of events and results are in relaxed Extended JSON. The report of a
// shard, of a matrix or of one of its cells ends with a line about its run, which
// tells Read that it is whole.
func JSON() Generator {
	var started result.RunStarted
	cells, kept := false, map[string]time.Time{}
	return func(n result.Note) []byte {
		switch n := n.(type) {
		case result.RunStarted:
			started = n
		case result.TestFinished:
			r := record{Shard: started.Shard}
			writing.record(&r, n.Verdict)
			line, err := oneRecord(r)
			if err != nil { // a number that JSON cannot write: keep the verdict
				r.Operations, r.Clients, r.Attempts = nil, nil, nil
				r.Reason = strings.TrimSpace(r.Reason + " (details left out: " + err.Error() + ")")
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
			line, _ := oneRecord(map[string]PastRun{"run": { // plain data
				Started: started.Time, Engine: started.Engine, Servers: started.Servers, Files: started.Files, Shard: started.Shard, Cell: started.Cell, Kept: kept,
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

// The types below are the record, together with those of package result that have
// tags; the tags are its field names. Fields that do not apply are left out.
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
		// Heartbeats that succeeded and were left out: on a page alone.
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
		ServiceID          string          `json:"serviceId,omitempty"`
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
