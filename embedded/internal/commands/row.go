package commands

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Row describes a command of a server.
type Row struct {
	Name    string
	Aliases []string // other spellings, such as ismaster for isMaster
	// Parse does the checks that a server does before fail points, and returns a function that executes the command. It
	// is nil for commands that the dispatcher executes itself.
	Parse func(*Request) (func() (Response, error), error)
	// AdminOnly commands run only on the database admin.
	AdminOnly bool
	// BeforeAuth commands do not require authentication.
	BeforeAuth bool
	// Write commands run only on a primary. Their writeConcern is checked, and the reply may contain a
	// writeConcernError.
	Write bool
	// NoWriteConcern Write commands do not accept a writeConcern. WriteConcern commands accept one although they are
	// not Write.
	NoWriteConcern, WriteConcern bool
	// Statements is the name of the field with the statements of a command, to which a mongos composes the reply itself.
	Statements string
	// ReadConcern lists the levels of readConcern that are accepted outside of transactions; nil means only local.
	ReadConcern []string
	// RoutedReadConcern commands accept every level on a mongos, because it does not read itself.
	RoutedReadConcern bool
	// ShardRefuses commands refuse a level on the shard, after a mongos has chosen the time of a snapshot.
	ShardRefuses bool
	// Raw commands answer on a mongos with the replies of the shards in raw.
	Raw bool
	// Coordinated commands are executed by a mongos itself or with the config server, not by a shard.
	Coordinated bool
	// NoAfterClusterTime commands do not accept afterClusterTime.
	NoAfterClusterTime bool
	// OnSecondary commands run on a secondary with any read preference. Other commands that are not Write require
	// secondaryOk or a $readPreference.
	OnSecondary bool
	// Since and Until are the first and the last release with the command; "" means no limit.
	Since, Until string
	// Roles are the servers that have the command; nil means all.
	Roles []Role
	// API lists the versions of the stable API that contain the command ("1", "12"); it is deprecated in version
	// Deprecated.
	API, Deprecated string
	// LocalhostException commands are allowed by the localhost exception: without authentication while no user exists.
	LocalhostException bool
	// EndsTransaction is set for commitTransaction and abortTransaction.
	EndsTransaction bool
	// StartTransactionError is the error message if the command starts a transaction; "" if it may.
	StartTransactionError string
	// Retryable commands may have a txnNumber outside of a transaction, Transactional commands inside.
	Retryable, Transactional bool
}

// ReadsShard reports whether a mongos passes the read concern on to a shard. The shard checks its times.
func (r *Row) ReadsShard() bool { return r.Parse != nil && !r.RoutedReadConcern && !r.Coordinated }

// Exists reports whether servers of a wire version and role have the command.
func (r *Row) Exists(wire int, role Role) bool {
	return version.Range{Since: r.Since, Until: r.Until}.Has(wire) &&
		(len(r.Roles) == 0 || slices.Contains(r.Roles, role))
}

// AcceptsWriteConcern reports whether the command accepts a writeConcern, and waits for it.
func (r *Row) AcceptsWriteConcern() bool { return r.WriteConcern || r.Write && !r.NoWriteConcern }

// ReadConcernLevels lists all levels of readConcern. The last one is snapshot.
var ReadConcernLevels = []string{"local", "majority", "linearizable", "available", "snapshot"}

// Role is the role of a server in its deployment.
type Role uint8

const (
	Standalone Role = iota
	Primary
	Secondary
	Mongos
)

// Request is a received command. The functions are never nil in a request from the dispatcher.
type Request struct {
	Context context.Context // ends with the connection or the server
	Row     *Row
	Name    string   // as sent
	DB      string   // $db
	Body    bson.Raw // with document sequences as arrays
	Server  *Identity
	LastOp  bson.Timestamp // of the last write on the connection
	API     string         // apiVersion, apiStrict and apiDeprecationErrors, as in messages
	// LSID is the logical session id, a document; nil without a session.
	LSID bson.Raw
	// TxnNumber is nil if the command is neither a retryable write nor part of a transaction.
	TxnNumber        *int64
	StartTransaction bool
	InTransaction    bool
	// Refused is why a mongos refuses the command after it has begun or continued the transaction; nil if it does not.
	Refused error
	// TransactionLifetime limits a transaction that the command starts; 0 means no limit.
	TransactionLifetime time.Duration
	// ExhaustAllowed is set if the client accepts moreToCome replies.
	ExhaustAllowed bool
	// FailPoint evaluates the named fail point for the command: it reports whether it is hit, and its effect.
	FailPoint func(failPoint string) (failpoint.Failure, bool)
	// HangUp closes the connection. The command continues, but its reply is not sent.
	HangUp func()
	// Reads reports whether the user may read a database, or with "" all of them; nil means every one.
	Reads func(db string) bool
	// Operations returns the commands in progress for $currentOp: of this server, or of all shards of a mongos.
	Operations func(local bool) []bson.Raw
}

// Response is the result of a command. The dispatcher adds ok, the times and the error to it. failpoint.ErrClose closes
// the connection without a reply; other errors that are not a *fault.Error become an internal error (code 1).
type Response struct {
	// Fields with an error precede ok, like fields that a server has already written when a command fails.
	Fields bson.D
	// AfterTimes are fields that follow the cluster time (recoveryToken), also with an error.
	AfterTimes bson.D
	// Stream returns the next reply; nil unless the command streams.
	Stream func() (Response, error)
	// IsChangeStream is set for change streams: their errors may be resumable.
	IsChangeStream bool
	// TriedToWrite is set if the command has locked data to write it.
	TriedToWrite bool
}

// Identity is what a server is in its deployment.
type Identity struct {
	Role    Role
	Address string
	*version.Version
	// DataBearing is the number of data-bearing members of the replica set; 0 if the server is not a member.
	DataBearing int
	// Term and ElectionID of the current primary of a replica set.
	Term       int64
	ElectionID bson.ObjectID
}

// GitVersion is the gitVersion of all servers.
const GitVersion = "nogitversion"
