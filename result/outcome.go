// Package result defines the results of a run: outcomes of operations, events of clients, mismatches, verdicts, and
// the stream of notes that reporters read. All types are plain data.
package result

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Outcome is the outcome of an operation as reported by an engine.
type Outcome struct {
	// Server is the address of the server that replied last, "" if unknown.
	Server string `json:"server,omitempty"`
	// Value is the result. Iterables are iterated into an array; model objects
	// are documents. The zero Value means no result.
	Value Value `json:"result,omitzero"`
	// Err is the error that the operation raised, or nil.
	Err *Error `json:"error,omitempty"`
	// Decisions are the steps of the retry core, if the engine reports them.
	Decisions []Decision `json:"decisions,omitempty"`
	// ServiceID is the load balanced service that replied last, or nil.
	ServiceID *bson.ObjectID `json:"-"`
	// Broken is why the engine could not perform the operation. The test is then
	// broken, and the other fields are ignored.
	Broken error `json:"-"`
}

// Error is an error raised by an operation, in terms of expectedError.
type Error struct {
	// Kind is a short word for reports: "network", "server", "pool cleared",
	// "server selection", "timeout", "argument", "write", "bulk write", …
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	// Client is true if the error does not derive from a server response
	// (network errors, server selection, parameter validation).
	Client  bool `json:"client,omitempty"`
	Timeout bool `json:"timeout,omitempty"` // caused by timeoutMS
	// Code and CodeName come from the server's response. They are 0 and "" without one.
	Code     int32    `json:"code,omitempty"`
	CodeName string   `json:"codeName,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	// Server is the address of the server that returned the error.
	Server string `json:"server,omitempty"`
	// Response is the reply of the server, or nil.
	Response Document `json:"response,omitempty"`
	// WriteErrors by index and WriteConcernErrors in order come from bulkWrite and clientBulkWrite.
	WriteErrors        map[int]Document `json:"writeErrors,omitempty"`
	WriteConcernErrors []Document       `json:"writeConcernErrors,omitempty"`
	// Partial is the partial result of a bulk write, the zero Value without one.
	Partial Value `json:"partialResult,omitzero"`
	// Unsupported is a capability that the engine lacks: the test is skipped.
	Unsupported string `json:"-"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// HasLabel reports whether the error has a label.
func (e *Error) HasLabel(label string) bool { return slices.Contains(e.Labels, label) }

// Decision is a step of the retry core, for reports.
type Decision struct {
	Attempt       int      `json:"attempt"`         // from 1
	Action        string   `json:"action"`          // "select", "send", "back off", "return result", "return error"
	Rules         []string `json:"rules,omitempty"` // that applied: "R1", …
	Server        string   `json:"server,omitempty"`
	Deprioritized []string `json:"deprioritized,omitempty"`
	DelayMS       float64  `json:"delayMS,omitempty"`
	Tokens        *float64 `json:"tokens,omitempty"` // in the client's token bucket after the step; nil without one
	Reason        string   `json:"reason,omitempty"`
	// Took is how long the engine selected a server or backed off, for Timings. Adapters do not report it.
	Took Duration `json:"-"`
}
