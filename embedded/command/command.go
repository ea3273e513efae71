// Package command is the seam between the protocol side of the embedded
// deployment (connections, handshakes, fail points, sessions) and the commands
// that it answers: a row for each command, and a request that a row serves.
package command

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Row is one command in the table of a server.
type Row struct {
	Name    string
	Aliases []string // other spellings, such as isMaster and ismaster
	// Run answers a request. The reply is without ok, operationTime and
	// $clusterTime: the dispatcher adds them. An error that is not an *Error is
	// an internal error (code 1); ErrClose closes the connection without an
	// answer. Fields returned beside an *Error stand before ok, as those that
	// a server had already written when it failed.
	Run func(*Request) (bson.D, error)
	// Parse is the first part of Run, of rows that have it: what a server finds wrong
	// before any fail point strikes. It gives the second part.
	Parse func(*Request) (func() (bson.D, error), error)
	// AdminOnly commands are refused on other databases.
	AdminOnly bool
	// BeforeAuth commands are served to connections that have not
	// authenticated.
	BeforeAuth bool
	// Write commands are refused by secondaries; their writeConcern is
	// checked and may get a writeConcernError.
	Write bool
	// NoWriteConcern is set for a Write command without writeConcern, and
	// WriteConcern for another command that takes one.
	NoWriteConcern, WriteConcern bool
	// OnlyOK is set if the reply to writeConcern {w: 0} has nothing but ok.
	OnlyOK bool
	// ReadConcern has the levels of readConcern that the command takes outside of
	// transactions. Nil means local alone.
	ReadConcern []string
	// Untimed commands take no afterClusterTime.
	Untimed bool
	// OnSecondary is set if a secondary serves it whatever the read
	// preference. Commands that are neither Write nor OnSecondary need
	// secondaryOk or a $readPreference there.
	OnSecondary bool
	// MinWire and MaxWire bound the wire versions that have the command;
	// MaxWire 0 means no bound.
	MinWire, MaxWire int
	// Topologies that have it; empty means all.
	Topologies []Role
	// API names the versions of the stable API that have it ("1", "12"), and
	// Deprecated the one in which it is deprecated.
	API, Deprecated string
	// BeforeUsers commands are served under the localhost exception: without
	// authentication as long as there is no user.
	BeforeUsers bool
	// EndsTransaction is set for commitTransaction and abortTransaction.
	EndsTransaction bool
	// NotFirst is the message of the error if the command starts a transaction;
	// empty if it may.
	NotFirst string
	// Retryable commands may have a txnNumber outside of a transaction, and Transactional ones
	// may be part of one.
	Retryable, Transactional bool
	// NoTransaction commands are refused in transactions.
	NoTransaction bool
}

// ReadConcernLevels are all levels of readConcern, snapshot at the end.
var ReadConcernLevels = []string{"local", "majority", "linearizable", "available", "snapshot"}

// Role is what a server is in its deployment.
type Role uint8

// The roles.
const (
	Standalone Role = iota
	Primary
	Secondary
	Mongos
	Uninitiated // waits for the configuration of its replica set
)

// Request is one command as a server received it.
type Request struct {
	Context context.Context // ends with the connection or the server
	Row     *Row
	Name    string   // as sent
	DB      string   // $db
	Body    bson.Raw // document sequences folded in as arrays
	Server  *Server
	// LSID is the session of the command (the id document), nil if none.
	LSID bson.Raw
	// TxnNumber and StmtID for retryable writes and transactions.
	TxnNumber *int64
	// Autocommit false with StartTransaction marks transactions.
	StartTransaction bool
	InTransaction    bool
	// TransactionLifetime is how long a transaction that it starts may stay
	// open; 0 means as long as it likes.
	TransactionLifetime time.Duration
	// ExhaustAllowed is set if the client accepts moreToCome replies. A
	// handler that streams sets Stream to produce the following replies.
	ExhaustAllowed bool
	Stream         func() (bson.D, error)
	// Strikes asks whether the named fail point strikes the command now, says what
	// it does, and counts the hit. Never nil in a request from the dispatcher.
	Strikes func(failPoint string) (Failure, bool)
	// HangUp closes the connection at once. The command goes on, and its reply is
	// not sent. Never nil in a request from the dispatcher.
	HangUp func()
	// Operations are the commands in progress, for $currentOp: of the server
	// alone, or of all shards of a mongos. Never nil in a request from the
	// dispatcher.
	Operations func(local bool) []bson.Raw
	// AfterOK are fields that the dispatcher puts behind all others, the times
	// included (recoveryToken). A handler may set it on success and on failure.
	AfterOK bson.D
	// Watches is set if the command is about a change stream, whose errors may be
	// resumable. A handler sets it.
	Watches bool
}

// Server is what commands may know of the server that they run on.
type Server struct {
	Role    Role
	Address string
	Wire    int    // maxWireVersion of the profile
	Version [3]int // server version of the profile
	// Term and ElectionID are those of the present primary of a replica set.
	Term       int64
	ElectionID bson.ObjectID
}

// Failure is what a fail point does to a command, in this order: it blocks, then
// it closes the connection, or it returns an error.
type Failure struct {
	Block           time.Duration
	CloseConnection bool
	HasCode         bool
	Code            int32
	// Labels replace the labels that the server would have added, unless they are nil.
	Labels            []string
	ExtraInfo         bson.Raw // of the error, if not nil
	WriteConcernError bson.Raw // for the reply of the command, if not nil
	LoseReply         bool     // the command runs, and its reply is not sent
}

// ErrClose tells the dispatcher to close the connection instead of answering,
// as fail points can demand.
var ErrClose = errors.New("close the connection")

// Error is a command's failure as the server reports it. The dispatcher adds
// the labels that the server derives from the code (RetryableWriteError,
// TransientTransactionError) and topologyVersion.
type Error struct {
	Code    int32  // 0: the reply has neither code nor codeName
	Name    string // codeName; empty: the dispatcher knows it by the code
	Message string // errmsg
	Labels  []string
	Extra   bson.D // further top-level fields of the reply, after codeName
}

// Error makes *Error an error.
func (e *Error) Error() string { return e.Message }
