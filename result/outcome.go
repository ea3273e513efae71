// Package result holds what a run produces: outcomes of operations, events of
// clients, mismatches, verdicts, and the stream of notes that reporters read.
// All types are plain data; tags are
// the names of fields in JSON reports.
package result

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Outcome is what an engine reports of one operation.
type Outcome struct {
	// Value is the result as a BSON value. Iterables are fully iterated into
	// an array; model objects are documents. The zero RawValue (Type 0) means
	// that the operation returned nothing.
	Value bson.RawValue
	// Err is the error that the operation raised, nil if none. Client bulk
	// writes and bulk writes may carry a partial result inside the error.
	Err *Error
	// Server is the address of the server that answered last, "" if unknown.
	Server string
	// ServiceID is the load balanced service that answered last, if any.
	ServiceID *bson.ObjectID
	// Decisions are the steps of the retry core, in order. Engines that
	// do not report decisions leave it empty.
	Decisions []Decision
	// Broken says why the engine itself could not carry out the operation. Then the
	// other fields mean nothing, and the test is broken.
	Broken error
}

// Error is an error raised by an operation, in the terms of the format's
// expectedError.
type Error struct {
	Message string
	// Client is true if the error does not derive from a server response
	// (network errors, server selection, parameter validation).
	Client bool
	// Timeout is true if the error is due to timeoutMS.
	Timeout bool
	// Kind is a short word for reports: "network", "server", "pool cleared",
	// "server selection", "timeout", "argument", "write", "bulk write", …
	Kind string
	// Code and CodeName are those of the server's response.
	Code     int32
	HasCode  bool
	CodeName string
	Labels   []string
	// Response is the whole reply of the server, nil if there is none.
	Response bson.Raw
	// WriteErrors by index, and WriteConcernErrors in order, as documents.
	// For bulkWrite and clientBulkWrite.
	WriteErrors        map[int]bson.Raw
	WriteConcernErrors []bson.Raw
	// Partial is the result inside the error, Type 0 if there is none.
	Partial bson.RawValue
	// Server is the address of the server that the error came from.
	Server string
	// Unsupported names a capability that the engine lacks. The runner turns
	// it into a skip; it is never a failure and never a pass.
	Unsupported string
}

// Error makes *Error an error.
func (e *Error) Error() string { return e.Message }

// HasLabel reports whether the error carries a label.
func (e *Error) HasLabel(label string) bool { return slices.Contains(e.Labels, label) }

// Decision is one step of the retry core, for reports.
type Decision struct {
	Attempt       int      `json:"attempt"`         // 1 for the first attempt
	Action        string   `json:"action"`          // "select", "send", "back off", "return result", "return error"
	Rules         []string `json:"rules,omitempty"` // the rules that fired, "R1", …
	Server        string   `json:"server,omitempty"`
	Deprioritized []string `json:"deprioritized,omitempty"`
	DelayMS       float64  `json:"delayMS,omitempty"`
	Tokens        *float64 `json:"tokens,omitempty"` // in the client's token bucket after the step, nil without one
	Reason        string   `json:"reason,omitempty"` // in a person's words
}
