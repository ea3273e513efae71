// Package engine is the interface of a driver under test. An engine is judged
// by the runner only through these calls, whether it lives in the process or
// behind a pipe: arguments and results are BSON documents as the format
// writes them, typed options are the engine's own matter.
package engine

import (
	"context"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Engine is a driver under test. All methods may be called concurrently.
type Engine interface {
	// Describe says what the engine is and can do. It does not change while
	// the engine lives.
	Describe(ctx context.Context) (Description, error)
	// Begin opens an empty set of entities for one test. Several tests may be
	// open at once; they share nothing.
	Begin(ctx context.Context) (Test, error)
	// Close ends the engine. The caller has ended all tests before.
	Close() error
}

// Description is what an engine says of itself.
type Description struct {
	Name    string
	Version string
	// SchemaVersion is the highest schema version whose features the engine
	// serves, such as "1.28".
	SchemaVersion string
	// Operations that it serves, as "kind.name" ("collection.find").
	Operations []string
	// Features are optional abilities, such as "retryable reads", "csot",
	// "logging", "tracing", "csfle".
	Features []string
}

// Serves reports whether an operation is served.
func (d Description) Serves(kind, name string) bool {
	return slices.Contains(d.Operations, kind+"."+name)
}

// Test is the engine's side of one running test: a namespace of entities.
// Different entities may be used at once; one session or cursor may not
// (the runner keeps to that). An error returned by Open, Events or Close
// means that the engine is broken or the request is not a valid one, unless
// it is a *result.Error: that is an error of the driver under test.
type Test interface {
	// Open creates an entity.
	Open(ctx context.Context, entity Entity) error
	// Do performs an operation. Errors of the operation are in the outcome;
	// the context's end cancels it. Do never returns before the operation has
	// let go of its connection.
	Do(ctx context.Context, operation Operation) result.Outcome
	// Events returns the events of a client with a sequence greater than
	// after, in order. If there are none it waits up to wait for one.
	Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error)
	// Close closes one entity: ends the session, kills the cursor, closes the
	// client. Closing twice is not an error. The events of a closed client can
	// still be read.
	Close(ctx context.Context, id string) error
	// End closes all that is still open, cursors before sessions before
	// clients, and forgets the test.
	End(ctx context.Context) error
}

// Entity is a request to create an entity.
type Entity struct {
	// Kind is the format's key: client, database, collection, session,
	// bucket, clientEncryption. (Threads are the runner's.)
	Kind string
	ID   string
	// Options is the entity's document as the suite writes it (id, client,
	// databaseName, uriOptions, sessionOptions, …), placeholders replaced.
	Options bson.Raw
	// URI is the connection string for a client, to which the engine applies
	// uriOptions on top.
	URI string
	// ClusterTime, for sessions, is a $clusterTime document to advance to.
	ClusterTime bson.Raw
}

// Operation is a request to perform an operation on an entity.
type Operation struct {
	Object    string // id of the entity
	Name      string
	Arguments bson.Raw // as written; session arguments name entities
	// SaveAs is the id under which a cursor, change stream or collection that the
	// operation creates can be used. Empty: the engine may still create it,
	// and closes it at the end of the test.
	SaveAs string
	// Callback runs the operations of withTransaction's callback and returns
	// the error to propagate. Nil for all other operations.
	Callback func(ctx context.Context) *result.Error
}

// Operations that serve the runner's own assertions. An engine that lacks one
// answers with an Unsupported error.
const (
	// OpLSID on a session: its logical session id, a document. It is the
	// session's from the beginning: asking must not be what chooses it.
	OpLSID = "$lsid"
	// OpTransactionState on a session: none, starting, in_progress, …
	OpTransactionState = "$transactionState"
	// OpPinnedServer on a session: address of the pinned mongos, or null.
	OpPinnedServer = "$pinnedServer"
	// OpDirty on a session: whether its server session is marked dirty.
	OpDirty = "$dirty"
	// OpTopology on a client: {type, servers: [{address, type}]}.
	OpTopology = "$topology"
	// OpConfigureFailPoint on a client: runs the configureFailPoint command
	// in arguments.command with primary read preference; its command events
	// are kept out of the log. The outcome names the server.
	OpConfigureFailPoint = "$configureFailPoint"
)

// Features that the runner itself asks for, by Description.Features. Others
// are for people to read.
const (
	// FeatureEncryption: libmongocrypt and a query analyser are there, so that
	// csfle requirements can be met. Beside it, FeatureLibmongocrypt followed
	// by a version ("libmongocrypt 1.8.0") says which libmongocrypt it is.
	FeatureEncryption    = "csfle"
	FeatureLibmongocrypt = "libmongocrypt "
	// FeatureLogging: tests give log messages (LogReader).
	FeatureLogging = "logging"
	// FeatureReducedHeartbeats: clients through which a test sets fail points
	// are to be given heartbeatFrequencyMS in uriOptions, and
	// minHeartbeatFrequencyMS beside uriOptions (Unified Test Format,
	// "Executing a Test"). Engines without it see to short heartbeats
	// themselves, or wait.
	FeatureReducedHeartbeats = "reduced heartbeats"
)

// LogReader is a Test that gives log messages, for expectLogMessages. Engines
// with FeatureLogging return one from Begin.
type LogReader interface {
	// Logs returns the log messages of a client so far, in order: those of the
	// components and levels that its observeLogMessages names. Those of a
	// closed client can still be read.
	Logs(ctx context.Context, client string) ([]result.LogMessage, error)
}
