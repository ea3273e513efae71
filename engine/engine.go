package engine

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// Engine is a driver under test. All methods may be called concurrently.
type Engine interface {
	// Describe returns the engine's name and capabilities. They never change.
	Describe(ctx context.Context) (Description, error)
	// Begin starts a test, with no entities. Several tests may be open at once; they share nothing.
	Begin(ctx context.Context) (Test, error)
	// Close closes the engine. The caller must end all tests first.
	Close() error
}

// Description is the name and capabilities of an engine. The names of its members in
// JSON follow the protocol of package process.
type Description struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// SchemaVersion is the highest schema version whose features the engine supports, such as "1.28".
	SchemaVersion string `json:"schemaVersion"`
	// Operations are the supported operations as "kind.name", such as "collection.find".
	Operations []string `json:"operations"`
	// Lacks explains why the driver cannot perform operations that are not supported, such as "PyMongo 4.0 removed
	// Collection.count", for the reason of a skip.
	Lacks map[string]string `json:"lacks,omitempty"`
	// Features are optional capabilities, such as "retryable reads", "csot", "logging", "tracing", "csfle".
	Features []string `json:"features,omitempty"`
	// Events are the kinds of events in the logs of clients: command, and possibly cmap and sdam. Nil means all three.
	Events []result.Monitor `json:"events,omitempty"`
}

// Supports reports whether the engine supports an operation.
func (d Description) Supports(kind, name string) bool {
	return slices.Contains(d.Operations, kind+"."+name)
}

// Logs reports whether the logs of the engine's clients have the events of a monitor.
func (d Description) Logs(m result.Monitor) bool {
	return d.Events == nil || slices.Contains(d.Events, m)
}

// Test is the engine's side of one running test: a namespace of entities. Different entities may be used
// concurrently; the runner never uses one session or cursor concurrently. An error returned by Open, Events or Close
// means that the engine is broken or the request is invalid, unless it is a *result.Error, which is an error of the
// driver under test.
type Test interface {
	// Open creates an entity.
	Open(ctx context.Context, entity Entity) error
	// Do performs an operation. Errors of the operation are in the outcome. Canceling the context cancels the
	// operation. Do returns only after the operation has released its connection.
	Do(ctx context.Context, operation Operation) result.Outcome
	// Events returns the events of a client whose sequence is greater than
	// after, in order. Without any, it waits up to wait for one.
	Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error)
	// Logs returns the log messages of a client so far, in order, of the components and levels in its
	// observeLogMessages. Those of a closed client can still be read. Engines without FeatureLogging return none.
	Logs(ctx context.Context, client string) ([]result.LogMessage, error)
	// Spans returns the tracing spans of a client so far, for a client with observeTracingMessages, in the order in
	// which they began. Those of a closed client can still be read. Engines without FeatureTracing return none.
	Spans(ctx context.Context, client string) ([]result.Span, error)
	// Close closes one entity: ends the session, kills the cursor, closes the client. Closing twice is not an error.
	// The events of a closed client can still be read.
	Close(ctx context.Context, id string) error
	// End closes all open entities, cursors before sessions before clients, and releases the test.
	End(ctx context.Context) error
}

// Entity is a request to create an entity.
type Entity struct {
	// Kind is the format's key: client, database, collection, session,
	// bucket, clientEncryption. (Threads are the runner's.)
	Kind string
	ID   string
	// Options is the entity's document from the suite (id, client, databaseName,
	// uriOptions, sessionOptions, …) with placeholders replaced.
	Options bson.Raw
	// URI is the connection string of a client. uriOptions override its options.
	URI string
	// ClusterTime is the $clusterTime document to advance a session to.
	ClusterTime bson.Raw
}

// Operation is a request to perform an operation on an entity.
type Operation struct {
	Object    string // id of the entity
	Name      string
	Arguments bson.Raw // as the suite writes them: sessions are names of entities
	// SaveAs is the id for a cursor, change stream or collection that the operation creates. If it is empty, the
	// engine closes what the operation creates at the end of the test.
	SaveAs string
	// Callback runs the operations of withTransaction's callback and returns
	// the error to propagate. Nil for all other operations.
	Callback func(ctx context.Context) *result.Error
}

// Operations for the runner's own assertions. An engine without one returns an Unsupported error.
const (
	// OpLSID returns the logical session id of a session, a document. It must be
	// the id that the session uses from its start: reading it must not assign one.
	OpLSID = "$lsid"
	// OpTransactionState returns the state of a session: none, starting, in_progress, …
	OpTransactionState = "$transactionState"
	// OpPinnedServer returns the address of the mongos that a session is pinned to, or null.
	OpPinnedServer = "$pinnedServer"
	// OpDirty returns whether the server session of a session is marked dirty.
	OpDirty = "$dirty"
	// OpTopology returns the topology of a client: {type, servers: [{address, type}]}.
	OpTopology = "$topology"
	// OpConfigureFailPoint runs the configureFailPoint command in arguments.command on a client, with primary read
	// preference. Its command events are not logged. The outcome names the server.
	OpConfigureFailPoint = "$configureFailPoint"
)

// The entries of Description.Features that the runner interprets. Others are informational.
const (
	// FeatureEncryption means that libmongocrypt and a query analyser are available. csfle requirements need both.
	// FeatureLibmongocrypt, followed by a version ("libmongocrypt 1.8.0"), names the libmongocrypt.
	FeatureEncryption    = "csfle"
	FeatureLibmongocrypt = "libmongocrypt "
	// FeatureLogging means that clients have log messages, for expectLogMessages.
	FeatureLogging = "logging"
	// FeatureTracing means that clients have tracing spans, for expectTracingMessages.
	FeatureTracing = "tracing"
	// FeatureReducedHeartbeats makes the runner add heartbeatFrequencyMS to uriOptions, and minHeartbeatFrequencyMS
	// beside uriOptions, for clients through which a test sets fail points (Unified Test Format, "Executing a Test").
	// Other engines reduce the heartbeat interval themselves, or wait.
	FeatureReducedHeartbeats = "reduced heartbeats"
)
