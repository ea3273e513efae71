package reference

import (
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/unified-test-runner/utr/reference/pinning"
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
	// sequences are the fields that are sent as document sequences (OP_MSG, "Command Arguments As Payload"). The events have
	// them as arrays.
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

// assemble builds a command and adds the generic fields.
func (a *attempt) assemble() (bson.Raw, error) {
	cmd, srv := a.cmd, a.srv
	body := slices.Clone(cmd.body)
	if cmd.adapt != nil {
		more, err := cmd.adapt(a)
		if err != nil {
			return nil, err
		}
		body = append(body, more...)
	}
	drop := func(key string) { body = slices.DeleteFunc(body, func(e bson.E) bool { return e.Key == key }) }
	add := func(key string, value any) { // unless the user has set it
		if !slices.ContainsFunc(body, func(e bson.E) bool { return e.Key == key }) {
			body = append(body, bson.E{Key: key, Value: value})
		}
	}
	s, inTxn := cmd.session, cmd.inTransaction()

	// rawData requires server 8.2 (CRUD).
	if a.wire < wire82 && cmd.op.Name != "runCommand" {
		drop("rawData")
	}

	// timeoutMS (Client Side Operations Timeout, "Command Execution").
	adds := cmd.timeout && !cmd.noMaxTime && a.remaining < forever
	if cmd.timeout && a.remaining <= 0 || adds && a.remaining < time.Millisecond { // maxTimeMS 0 would mean no limit
		return nil, errNoTime
	}
	if adds {
		drop("maxTimeMS")
		add("maxTimeMS", a.remaining.Milliseconds())
	}

	if len(cmd.writeConcern) > 0 && (!inTxn || cmd.op.EndsTransaction) {
		add("writeConcern", cmd.writeConcern)
	}
	if a.silent && !s.implicit {
		return nil, errors.New("unacknowledged writes cannot use an explicit session")
	}
	// (Load Balancers, "Session Support")
	sessions := srv.topology == selection.LoadBalanced || a.conn.Description().SessionTimeoutMinutes != nil
	if !sessions && !s.implicit {
		return nil, errors.New("the server does not support sessions")
	}
	if s.snapshot && a.wire < wire50 {
		// the text of Snapshot Reads, "Requires MongoDB 5.0+"
		return nil, argument("Snapshot reads require MongoDB 5.0 or later")
	}
	if sessions && !a.silent && !cmd.closing {
		session := s.acquired()
		add("lsid", session.id)
		session.lastUse = a.driver.options.Now()
		switch {
		case inTxn:
			if s.state == txnStarting {
				cmd.startTransaction, s.state = true, txnInProgress
			}
			add("txnNumber", session.txn)
			if cmd.startTransaction {
				add("startTransaction", true)
			}
			add("autocommit", false)
			if cmd.op.EndsTransaction && s.recovery != nil {
				add("recoveryToken", s.recovery)
			}
		case a.settings.RetryWrites && a.driver.policy.Numbers(cmd.op, srv.chosen()):
			if cmd.txnNumber == nil {
				session.txn++
				n := session.txn
				cmd.txnNumber = &n
			}
			add("txnNumber", *cmd.txnNumber)
		}
	}

	if rc := a.readConcern(); len(rc) > 0 {
		add("readConcern", rc)
	}

	preference := srv.preference
	if cmd.primary {
		preference = selection.Preference{}
	}
	p, ok := selection.Pass(srv.topology, srv.kind, preference)
	if a.driver.policy.Pinning != "" {
		p, ok = pinning.Pass(preference, srv.kind == selection.Mongos)
	}
	if ok && (cmd.primary || !cmd.write) {
		add("$readPreference", p.Document())
	}

	// Gossiping (Driver Sessions, "Gossipping the cluster time").
	if srv.kind != selection.Standalone {
		if now := later(a.clock.GetClusterTime(), s.clusterTime); now != nil {
			add("$clusterTime", now.Lookup("$clusterTime"))
		}
	}
	if a.api != nil {
		add("apiVersion", string(a.api.ServerAPIVersion))
		if a.api.Strict != nil {
			add("apiStrict", *a.api.Strict)
		}
		if a.api.DeprecationErrors != nil {
			add("apiDeprecationErrors", *a.api.DeprecationErrors)
		}
	}
	add("$db", cmd.db)
	return bson.Marshal(body)
}

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

// causalWrites are the writes with afterClusterTime (Read and Write Concern, "afterClusterTime").
var causalWrites = []string{"insert", "update", "delete", "findAndModify", "bulkWrite", "create",
	"createIndexes", "drop",
	"dropDatabase", "dropIndexes"}

// readConcern returns the readConcern field, including the fields of the session.
func (a *attempt) readConcern() bson.D {
	cmd, s, inTxn := a.cmd, a.cmd.session, a.cmd.inTransaction()
	var rc bson.D
	switch {
	case inTxn && !cmd.startTransaction:
		return nil
	case inTxn:
		rc = slices.Clone(s.options.readConcern)
	case s.snapshot:
		// On every command, so that the server rejects those that cannot read from a snapshot (Snapshot Reads, "Sending
		// readConcern to the server on all commands").
		return addIf(document("level", "snapshot"), s.snapshotTime != nil, "atClusterTime", s.snapshotTime)
	case cmd.op.Name == "runCommand":
		// the argument; nothing is added (Causal Consistency, "Causally consistent read and write commands")
		return cmd.readConcern
	case slices.Contains(causalWrites, cmd.name()):
	case !cmd.takesReadConcern:
		return nil
	default:
		rc = slices.Clone(cmd.readConcern)
	}
	causal := s.causal && s.operationTime != nil && a.srv.kind != selection.Standalone
	return addIf(rc, causal, "afterClusterTime", s.operationTime)
}

// sensitive reports whether a command's events are redacted (Command Logging and Monitoring, "Security").
func sensitive(name string, body bson.Raw) bool {
	switch name {
	case "authenticate", "saslStart", "saslContinue", "getnonce", "createUser", "updateUser",
		"copydbgetnonce", "copydbsaslstart", "copydb":
		return true
	case "hello", "ismaster", "isMaster":
		_, err := body.LookupErr("speculativeAuthenticate")
		return err == nil
	}
	return false
}
