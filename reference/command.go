package reference

import (
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// command is one command of an operation. It is assembled again for each attempt.
type command struct {
	body bson.D // without the generic fields; the first key is the name of the command
	db   string
	op   retry.Operation
	// adapt is called before each attempt. It returns more fields for the server, or an error if the server does not
	// support the command. It may be nil.
	adapt func(*attempt) (bson.D, error)
	// fit, which may be nil, chooses what is sent by the limits of a server. It is called once, before the first attempt
	// that has a connection: retries send the same.
	fit func(limits) error
	// sequences are the fields that are sent as document sequences (OP_MSG, "Command Arguments As Payload"). The events
	// have them as arrays.
	sequences []string

	write      bool // select a writable server instead of using preference
	preference selection.Preference
	explicit   bool // the preference is an argument of the operation
	// primary marks commands that write but are not write commands. Helpers pass read preference primary for them
	// (Server Selection, "Use of read preferences with commands").
	primary          bool
	readConcern      bson.D // sent outside of transactions
	takesReadConcern bool   // the command has the field readConcern
	writeConcern     bson.D

	session *clientSession // never nil
	address string         // a cursor's server; "" selects
	conn    *mnet.Connection
	late    *bool // whether conn still awaits the reply to an earlier command; nil without conn
	// uncertain is true after an attempt failed with an error other than a retryable overload error: the server may have
	// executed the command.
	uncertain bool

	pin       bool // keep the connection for the reply's cursor behind a load balancer
	timeout   bool // timeoutMS governs the operation
	noMaxTime bool // do not derive maxTimeMS from timeoutMS
	hidden    bool // omit its events from the log
	closing   bool // endSessions, the last command: it has no session

	txnNumber        *int64 // set by the first attempt of a retryable write
	startTransaction bool   // this command starts the transaction
}

// Wire versions by server release.
const (
	wire44 = 9
	wire50 = 13
	wire80 = 25
	wire82 = 27
)

// errNoTime means that no time is left for an attempt.
var errNoTime = errors.New("the remaining time is shorter than a round trip")

// forever exceeds the time until any deadline.
const forever = time.Duration(1 << 62)

func (cmd *command) name() string { return cmd.body[0].Key }

// inTransaction reports whether the command belongs to a transaction, or ends it.
func (cmd *command) inTransaction() bool {
	return cmd.session.inTransaction() || cmd.op.EndsTransaction
}

// silent reports whether the command has no reply. In a transaction, only commit and abort have a write concern.
func (cmd *command) silent() bool {
	return unacknowledged(cmd.writeConcern) && !cmd.session.inTransaction()
}

// sensitive reports whether a command's events are redacted (Command Logging and Monitoring, "Security").
func sensitive(name string, body bson.Raw) bool {
	_, err := body.LookupErr("speculativeAuthenticate")
	return wire.Sensitive(name) || err == nil && wire.IsHello(name)
}
